package editor

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/shell"
	"goclaw/internal/tui/fuzzy"
)

// maxMenu is how many lines the list of completions takes.
const maxMenu = 8

type kind int

const (
	kindNone kind = iota
	kindCommand
	kindArgument
	kindFile
	kindPath // a file in a shell command
)

// files reports whether files are offered.
func (k kind) files() bool { return k == kindFile || k == kindPath }

// place is where in the text something can be completed.
type place struct {
	kind    kind
	command string // whose argument it is
	from    int    // where the word begins
	word    string // up to the cursor
}

// same reports whether both are the same word, as far as it was typed.
func (p place) same(q place) bool {
	return p.kind == q.kind && p.command == q.command && p.from == q.from
}

// menu is the list of what the word at the cursor can be completed to.
type menu struct {
	place
	all       []Option // what there is for commands and arguments
	options   []Option // what fits the word
	selected  int      // -1: none, Enter sends the text as it is
	top       int      // the first that is drawn
	looking   bool     // for files: nothing is known yet
	dismissed bool     // the user does not want it for this word
	ranking   bool     // files are being compared with a word
	again     bool     // and must be once more
	fits      string   // the word that the files fit
}

func (m *menu) open() bool {
	return m.kind != kindNone && !m.dismissed && (len(m.options) > 0 || m.looking)
}

func (m *menu) close() { *m = menu{ranking: m.ranking} }

// placeAt says what can be completed at the cursor.
func placeAt(text string, pos int) place {
	before := text[:pos]
	if strings.HasPrefix(before, "/") && !strings.HasPrefix(before, "//") && !strings.Contains(before, "\n") {
		name, arg, ok := strings.Cut(before[1:], " ")
		if !ok {
			return place{kind: kindCommand, word: before}
		}
		if !strings.Contains(arg, "@") {
			arg = strings.TrimLeft(arg, " ")
			return place{kind: kindArgument, command: name, from: pos - len(arg), word: arg}
		}
	}
	if strings.HasPrefix(before, "!") {
		return place{}
	}
	if from, word, ok := refBefore(before); ok {
		return place{kind: kindFile, from: from, word: word}
	}
	return place{}
}

// pathAt returns the word at the cursor if the text is a shell command: Tab
// completes it to a file.
func pathAt(text string, pos int) place {
	before := text[:pos]
	if !strings.HasPrefix(before, "!") {
		return place{}
	}
	from := strings.LastIndexAny(before, " \t\n|;&<>()='\"!") + 1
	return place{kind: kindPath, from: from, word: before[from:]}
}

// refBefore returns the beginning of a file's name at the end of before: after
// an @ that begins a word, with or without a quotation mark.
func refBefore(before string) (from int, word string, ok bool) {
	from = strings.LastIndexByte(before, '@')
	if from < 0 || !beginsRef(before[:from]) {
		return 0, "", false
	}
	word = before[from+1:]
	if rest, quoted := strings.CutPrefix(word, `"`); quoted {
		return from, rest, !strings.ContainsAny(rest, "\"\n")
	}
	return from, word, !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || isChip(r) })
}

// beginsRef reports whether an @ after before begins the name of a file, and is
// not part of an address.
func beginsRef(before string) bool {
	if before == "" {
		return true
	}
	last := []rune(before[max(0, len(before)-4):])
	r := last[len(last)-1]
	return unicode.IsSpace(r) || isChip(r) || strings.ContainsRune("([{<\"'`,;:", r)
}

// offered are commands or arguments.
type offered struct {
	place
	options []Option
}

// complete opens, changes or closes the list after a change of the text.
func (e *Editor) complete() tea.Cmd {
	m, p := &e.menu, placeAt(e.buf.text, e.buf.pos)
	if path := pathAt(e.buf.text, e.buf.pos); m.kind == kindPath && m.same(path) && path.word != "" {
		p = path // it was asked for
	}
	return e.completeAt(p)
}

// completeAt is complete for that place.
func (e *Editor) completeAt(p place) tea.Cmd {
	m := &e.menu
	if p.kind == kindNone {
		m.close()
		return nil
	}
	if !m.same(p) {
		*m = menu{place: p, ranking: m.ranking, selected: -1}
		return m.lookUp(&e.o, &e.files)
	}
	m.word = p.word
	if m.kind.files() {
		return m.files(&e.files, nil)
	}
	m.filter()
	return nil
}

// lookUp asks for what there is.
func (m *menu) lookUp(o *Options, f *files) tea.Cmd {
	p := m.place
	switch {
	case p.kind == kindCommand && o.Commands != nil:
		m.offered(offered{p, o.Commands()}) // at once: the next key may be Tab
	case p.kind == kindArgument && o.Arguments != nil:
		now, later := o.Arguments(p.command)
		m.offered(offered{p, now})
		if later != nil {
			return func() tea.Msg { return offered{p, later()} }
		}
	case p.kind.files() && o.Files != nil:
		cmd := f.scan()
		m.looking = f.count() == 0
		return m.files(f, cmd)
	}
	return nil
}

func (m *menu) offered(o offered) {
	if m.same(o.place) {
		m.all = o.options
		m.filter()
	}
}

// filter keeps what fits the word: first what begins with it, then what holds
// its letters.
func (m *menu) filter() {
	word := strings.TrimPrefix(m.word, "/")
	type scored struct {
		Option
		score int
	}
	var fits []scored
	pattern := fuzzy.New(word)
	for _, o := range m.all {
		name := strings.TrimPrefix(o.Text, "/")
		score, ok := pattern.Score(fuzzy.Fold(name))
		if !ok || word == "" && o.Also {
			continue
		}
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(word)) {
			score += 1000
		}
		if name == word {
			score += 1000
		}
		if word == "" {
			score = 0
		}
		fits = append(fits, scored{o, score})
	}
	slices.SortStableFunc(fits, func(a, b scored) int { return b.score - a.score })
	m.options = make([]Option, len(fits))
	for i, f := range fits {
		m.options[i] = f.Option
	}
	m.selected, m.top = 0, 0
	if m.kind == kindArgument {
		m.selected = -1 // an argument may be anything
	}
	if m.kind == kindArgument && len(m.options) == 1 && m.options[0].Text == m.word {
		m.options = nil
	}
}

// menuKeys are the keys of a list.
var menuKeys = []string{"up", "down", "ctrl+p", "ctrl+n", "tab", "shift+tab", "pgup", "pgdown", "enter", "esc"}

// menuKey handles a key while the list is open. done is false if the key has its
// usual meaning.
func (e *Editor) menuKey(name string) (done bool, ev Event, cmd tea.Cmd) {
	m := &e.menu
	if m.kind.files() && m.fits != m.word && (name == "tab" || name == "enter") {
		m.show(&e.files, ranked{m.word, e.files.rank(m.word)}) // faster than the ranking
	}
	n := len(m.options)
	if n == 0 && name != "esc" {
		return false, None, nil
	}
	switch name {
	case "up", "ctrl+p", "shift+tab":
		m.selected--
		if m.selected < 0 {
			m.selected = n - 1
		}
	case "down", "ctrl+n":
		m.selected = (m.selected + 1) % n
	case "pgdown":
		m.selected = min(m.selected+maxMenu-1, n-1)
	case "pgup":
		m.selected = max(m.selected-maxMenu+1, 0)
	case "esc":
		m.dismissed = true
	case "tab":
		return true, None, e.accept(m.options[max(m.selected, 0)], true)
	case "enter":
		if m.selected < 0 || m.options[m.selected].Text == m.word {
			m.dismissed = true
			return false, None, nil
		}
		o := m.options[m.selected]
		// A command that only resembles what was typed is looked at first.
		guessed := m.kind == kindCommand && !strings.HasPrefix(strings.ToLower(o.Text), strings.ToLower(m.word))
		goOn := m.kind.files() || !o.Runs || guessed
		if cmd = e.accept(o, goOn); goOn {
			return true, None, cmd
		}
		return true, Send, nil
	default:
		return false, None, nil
	}
	return true, None, nil
}

// accept puts o in the word's place, and goes on to what may follow it.
func (e *Editor) accept(o Option, goOn bool) tea.Cmd {
	b, m := &e.buf, &e.menu
	text, k := o.Text, m.kind
	switch k {
	case kindFile:
		text = ref(text)
	case kindPath:
		text = shell.Quote([]string{text})
	}
	folder := k.files() && strings.HasSuffix(o.Text, "/")
	rest := b.text[b.pos:]
	if goOn && !folder && !strings.HasPrefix(rest, " ") && (k.files() || o.Args != "" || k == kindArgument) {
		text += " "
	}
	at := m.from + len(text)
	if folder && strings.HasSuffix(text, `"`) {
		at-- // the name of a file may follow
	}
	b.set(b.text[:m.from]+text+rest, at)
	m.close()
	if folder && k == kindFile || k == kindCommand && goOn {
		return e.complete()
	}
	return nil
}

// ref is how the text names a file.
func ref(path string) string {
	if strings.ContainsAny(path, " ,;:!?()[]{}<>'`") {
		return `@"` + path + `"`
	}
	return "@" + path
}
