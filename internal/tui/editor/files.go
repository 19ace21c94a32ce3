package editor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/tui/fuzzy"
)

const (
	maxFiles  = 200_000         // that are looked at
	maxRanked = 200             // that are offered
	stale     = 5 * time.Second // after which files are listed again
	tellAfter = 5000            // files are told at a time
)

// files are those of the workspace. They are listed in the background when they
// are asked for, and kept.
type files struct {
	list func(ctx context.Context, visit func(path string, folder bool) error) error

	mu     sync.Mutex
	known  []file
	last   []file // of the list before, until this one is whole
	round  int
	busy   bool
	ended  time.Time
	news   chan struct{}
	cancel func()
}

type file struct {
	path string // folders end in a slash
	has  uint64 // which letters and digits it holds
}

// listed: more files are known.
type listed struct{ round int }

// ranked are the files that fit a word, the best first.
type ranked struct {
	word    string
	options []Option
}

func (f *files) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
}

func (f *files) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(len(f.known), len(f.last))
}

// errEnough ends a listing.
var errEnough = errors.New("enough files")

// scan lists the files, unless they were listed a moment ago.
func (f *files) scan() tea.Cmd {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy || time.Since(f.ended) < stale {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.busy, f.cancel, f.news = true, cancel, make(chan struct{}, 1)
	f.last, f.known = f.known, nil
	f.round++
	round, news := f.round, f.news
	go func() {
		defer cancel()
		visit, put := f.visit(news)
		f.list(ctx, visit) // what could not be listed is not offered
		put()
		f.mu.Lock()
		f.busy, f.ended, f.last = false, time.Now(), nil
		f.mu.Unlock()
		close(news)
	}()
	return wait(round, news)
}

// visit returns what is called for each file, and what makes those known that it
// still keeps.
func (f *files) visit(news chan<- struct{}) (visit func(string, bool) error, put func()) {
	var batch []file
	n, began := 0, time.Now()
	put = func() {
		f.mu.Lock()
		f.known = append(f.known, batch...)
		f.mu.Unlock()
		batch, began = batch[:0], time.Now()
		select {
		case news <- struct{}{}:
		default:
		}
	}
	visit = func(path string, folder bool) error {
		if n++; n > maxFiles {
			return errEnough
		}
		if clean(path) != path || strings.ContainsAny(path, "\n\t\"") {
			return nil // it cannot be typed
		}
		if folder {
			path += "/"
		}
		batch = append(batch, file{path, letters(path)})
		if len(batch) >= tellAfter || time.Since(began) > 100*time.Millisecond {
			put()
		}
		return nil
	}
	return visit, put
}

// wait waits for more files.
func wait(round int, news <-chan struct{}) tea.Cmd {
	return func() tea.Msg {
		<-news
		return listed{round}
	}
}

// more returns the wait for what follows.
func (f *files) more(l listed) tea.Cmd {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.round != f.round || !f.busy {
		return nil
	}
	return wait(f.round, f.news)
}

// letters returns a set of the letters and digits of s.
func letters(s string) (set uint64) {
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case c >= 'a' && c <= 'z':
			set |= 1 << (c - 'a')
		case s[i] >= '0' && s[i] <= '9':
			set |= 1 << (26 + s[i] - '0')
		}
	}
	return set
}

// rank returns the files that fit word, the best first: what is in the name of
// the file goes before what is in its folders, and a short path before a long
// one.
func (f *files) rank(word string) []Option {
	f.mu.Lock()
	known := f.known
	if len(f.last) > len(known) {
		known = f.last
	}
	f.mu.Unlock()
	type scored struct {
		path  string
		score int
	}
	var fits []scored
	order := func(a, b scored) int {
		return cmp.Or(b.score-a.score, len(a.path)-len(b.path), strings.Compare(a.path, b.path))
	}
	pattern, need, lower := fuzzy.New(word), letters(word), strings.ToLower(word)
	for _, one := range known {
		if one.has&need != need {
			continue
		}
		score, ok := fit(pattern, lower, one.path)
		if !ok {
			continue
		}
		if fits = append(fits, scored{one.path, score}); len(fits) >= 20*maxRanked {
			slices.SortFunc(fits, order)
			fits = fits[:maxRanked]
		}
	}
	slices.SortFunc(fits, order)
	fits = fits[:min(len(fits), maxRanked)]
	out := make([]Option, len(fits))
	for i, s := range fits {
		out[i] = Option{Text: s.path}
	}
	return out
}

// fit says how well a path fits.
func fit(pattern fuzzy.Pattern, lower, path string) (score int, ok bool) {
	depth := strings.Count(strings.TrimSuffix(path, "/"), "/")
	if pattern.Empty() {
		return -depth, true
	}
	name := path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1:]
	if !strings.Contains(lower, "/") {
		if score, ok = pattern.Score(fuzzy.Fold(name)); ok {
			score += 20
			if strings.HasPrefix(strings.ToLower(name), lower) {
				score += 20
			}
			return score - depth, true
		}
	}
	if score, ok = pattern.Score(fuzzy.Fold(path)); ok && strings.HasPrefix(strings.ToLower(path), lower) {
		score += 40
	}
	return score - depth, ok
}

// files asks for the files that fit the word, beside whatever cmd does.
func (m *menu) files(f *files, cmd tea.Cmd) tea.Cmd {
	if !m.kind.files() {
		return cmd
	}
	if m.ranking {
		m.again = true
		return cmd
	}
	m.ranking, m.again = true, false
	word := m.word
	return tea.Batch(cmd, func() tea.Msg { return ranked{word, f.rank(word)} })
}

// ranked shows the files that fit, and asks again if the word has changed since,
// or more files are known.
func (m *menu) ranked(f *files, r ranked) tea.Cmd {
	m.ranking = false
	if !m.kind.files() {
		return nil
	}
	if r.word == m.word {
		m.show(f, r)
	}
	if r.word != m.word || m.again {
		return m.files(f, nil)
	}
	return nil
}

// show shows the files that fit the word. What was chosen stays chosen if it still
// fits the same word.
func (m *menu) show(f *files, r ranked) {
	kept := ""
	if m.fits == r.word && m.selected > 0 && m.selected < len(m.options) {
		kept = m.options[m.selected].Text
	}
	m.fits, m.options, m.selected, m.top = r.word, r.options, 0, 0
	for i, o := range r.options {
		if o.Text == kept {
			m.selected = i
		}
	}
	f.mu.Lock()
	m.looking = f.busy && len(f.known) == 0
	f.mu.Unlock()
}
