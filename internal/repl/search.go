package repl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"goclaw/internal/naming"
	"goclaw/internal/query"
	"goclaw/internal/transcript"
	"goclaw/recall"
)

// Searcher searches conversations and memory files.
type Searcher interface {
	query.Searcher
	File(name string, from, lines int) (text string, total int, err error)
}

// opened is how many messages are shown before and after a hit, openedLines how
// many lines of a file.
const (
	opened      = 3
	openedLines = 12
)

// finds searches, and opens what it found.
type finds struct {
	o        *Options
	view     *view
	commands *commands
	found    []recall.Hit // by the last search
	text     string       // that it looked for
}

// searchArgs are what /search takes.
const searchArgs = "[flags] [TEXT]"

// manyHits is the largest number that means a hit; larger ones are searched for.
const manyHits = 99

// search looks for text. A number alone opens a hit of the last search.
func (f *finds) search(ctx context.Context, arg string) error {
	if f.o.Search == nil {
		return errors.New("there is no search here")
	}
	if n, err := strconv.Atoi(arg); err == nil && len(f.found) > 0 && n >= 0 && n <= manyHits {
		return f.openNumber(ctx, n)
	}
	if ch := f.view.chooser(); ch != nil && arg == "" {
		return f.choose(ctx, ch)
	}
	a, err := f.asked(ctx, arg, func(usage string) { f.view.print("%s", usage) })
	switch {
	case errors.Is(err, pflag.ErrHelp): // shown
		return nil
	case err != nil:
		return err
	}
	flags, text := a.flags, a.Text
	for _, w := range a.plain {
		f.view.note("%s is no flag of /search: it is searched for as text", w)
	}
	res, groups, err := flags.Search(ctx, f.o.Search, a.Query)
	if err != nil {
		return err
	}
	f.found, f.text = res.Hits, text
	switch {
	case len(res.Hits) == 0:
		f.view.print("nothing found")
	case flags.Group:
		f.found = nil
		for _, g := range groups {
			f.found = append(f.found, g.Hits[0])
		}
		f.view.groups(groups, text)
	case flags.Open == 0:
		f.view.hits(res.Hits, text)
	}
	for _, s := range query.Remarks(res) {
		f.view.note("%s", s)
	}
	switch {
	case len(res.Hits) == 0:
		return nil
	case flags.Open > 0:
		return f.openNumber(ctx, flags.Open)
	case res.Literal || res.Words && len(res.Incomplete) > 0: // said above
	case res.Words:
		f.view.note("a word search only: this text is not searched for by meaning")
	case res.Vectors == 0 && res.Missing > 0 && !res.Unclear(): // otherwise it is said above
		f.view.note("a word search only: %s", res.Uncompared())
	}
	if flags.Group {
		f.view.note("/open N opens the best hit of N in its context")
	} else {
		f.view.note("/open N opens hit N in its context")
	}
	return nil
}

// question is what is to be searched for, and how.
type question struct {
	recall.Query
	flags query.Flags
	plain []string // words that look like flags, and are none
}

var errNoWords = errors.New("/search needs words to look for; /open N opens the N-th hit")

// asked reads a line with flags and words in it. --help tells usage which flags
// there are.
func (f *finds) asked(ctx context.Context, arg string, usage func(string)) (q question, err error) {
	fs := pflag.NewFlagSet("search", pflag.ContinueOnError)
	q.flags.Bind(fs)
	fs.Usage = func() {
		if usage != nil {
			usage(strings.TrimRight(fs.FlagUsages(), "\n"))
		}
	}
	var known, words []string
	known, words, q.plain = query.Split(fs, query.Words(fs, arg))
	if err := fs.Parse(known); err != nil {
		var unknown *pflag.NotExistError
		if !errors.As(err, &unknown) {
			return q, err
		}
		name := "--" + unknown.GetSpecifiedName()
		return q, fmt.Errorf("/search has no flag %s: did you mean %s? To search for the text: /search -- %s", name, query.Nearest(fs, name), name)
	}
	if len(words) == 0 {
		return q, errNoWords
	}
	q.flags.Session = naming.Numbered(ctx, f.o.Store, q.flags.Session, f.o.Lists.Last())
	q.Query, err = q.flags.Query(ctx, f.o.Store, strings.Join(words, " "), f.o.CWD)
	return q, err
}

// open opens a hit of the last search by its number.
func (f *finds) open(ctx context.Context, arg string) error {
	n, err := strconv.Atoi(arg)
	switch {
	case len(f.found) == 0:
		return errors.New("there is no hit to open: /search TEXT finds some")
	case err != nil:
		return fmt.Errorf("/open needs the number of a hit, from 1 to %d", len(f.found))
	}
	return f.openNumber(ctx, n)
}

func (f *finds) openNumber(ctx context.Context, n int) error {
	if n < 1 || n > len(f.found) {
		return fmt.Errorf("the last search found %s: there is no hit %d; /search \"%d\" searches for the number", transcript.Count(len(f.found), "hit"), n, n)
	}
	return f.openHit(ctx, f.found[n-1])
}

// openHit shows what surrounds a hit.
func (f *finds) openHit(ctx context.Context, h recall.Hit) error {
	if h.File != "" {
		from := max(1, h.Line-openedLines/3)
		text, total, err := f.o.Search.File(h.File, from, openedLines)
		if err != nil {
			return err
		}
		var lines []passage
		for i, line := range strings.Split(text, "\n") {
			n := from + i
			lines = append(lines, passage{number: n, text: line, hit: n >= h.Line && n < h.Line+h.Lines})
		}
		f.view.around(lines, h, f.text)
		f.view.note("%s has %s", h.File, transcript.Count(total, "line"))
		return nil
	}
	around, err := recall.Around(ctx, f.o.Store, h.Session, h.Seq, opened, opened)
	if err != nil {
		return err
	}
	var lines []passage
	for _, l := range around {
		lines = append(lines, passage{number: int(l.Seq), role: string(l.Role), text: l.Text, hit: l.Seq == h.Seq})
	}
	f.view.around(lines, h, f.text)
	f.view.note("record %d of %s: /switch %s goes there", h.Seq, h.Key, h.Session)
	return nil
}
