package line

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Completer returns completions of the text before the cursor. They replace the
// text from byte from on.
type Completer func(before string) (from int, options []string)

// editor is text being edited. It knows no terminal: keys go in, and what they
// mean for the reader comes out.
type editor struct {
	text string
	pos  int // in bytes, at the boundary of a character

	complete Completer
	history  []string // oldest first
	at       int      // the line of history that is shown; len(history): the draft
	edited   map[int]string

	killed string
	undos  []state
	typing bool // the last key inserted text: a word is undone at once

	options []string // to be listed below the text
	tabbed  bool     // the last key was a Tab that changed nothing

	query     string
	searching bool
	found     int // index in history, -1: nowhere
	before    state
}

type state struct {
	text string
	pos  int
}

// outcome is what a key means for the reader of the line.
type outcome int

const (
	more outcome = iota
	accepted
	interrupted
	ended
	suspended
	cleared
)

func newEditor(history []string, c Completer) *editor {
	return &editor{history: history, at: len(history), edited: map[int]string{}, complete: c}
}

func (e *editor) press(k key) outcome {
	e.options = nil
	if e.searching {
		if done, out := e.searchKey(k); done {
			return out
		}
	}
	tabbed, typing := e.tabbed, e.typing
	e.tabbed, e.typing = false, false
	switch k.code {
	case insert:
		e.typing = true
		e.insert(k.text, typing && k.text != " ")
	case paste:
		e.insert(k.text, false)
	case newline:
		e.insert("\n", false)
	case enter:
		if strings.HasSuffix(e.text, `\`) && e.pos == len(e.text) {
			e.set(e.text[:len(e.text)-1]+"\n", len(e.text))
			return more
		}
		return accepted
	case tab:
		e.completeAt(tabbed)
	case interrupt:
		return interrupted
	case eof:
		if e.text == "" {
			return ended
		}
		e.cut(e.pos, e.right(e.pos), false)
	case suspend:
		return suspended
	case clearScreen:
		return cleared
	case search:
		e.searching, e.query, e.found, e.before = true, "", -1, state{e.text, e.pos}
	case previous, up:
		if k.code == previous || !e.row(-1) {
			e.recall(e.at - 1)
		}
	case next, down:
		if k.code == next || !e.row(1) {
			e.recall(e.at + 1)
		}
	default:
		e.edit(k.code)
	}
	return more
}

// edit moves the cursor or removes text.
func (e *editor) edit(c code) {
	switch c {
	case left:
		e.pos = e.left(e.pos)
	case right:
		e.pos = e.right(e.pos)
	case home:
		e.pos = e.lineStart(e.pos)
	case end:
		e.pos = e.lineEnd(e.pos)
	case wordLeft:
		e.pos = e.wordLeft(e.pos)
	case wordRight:
		e.pos = e.wordRight(e.pos)
	case backspace:
		e.cut(e.left(e.pos), e.pos, false)
	case del:
		e.cut(e.pos, e.right(e.pos), false)
	case killWordBack:
		e.cut(e.blankLeft(e.pos), e.pos, true)
	case killWord:
		e.cut(e.pos, e.wordRight(e.pos), true)
	case killRest:
		to := e.lineEnd(e.pos)
		if to == e.pos {
			to = e.right(e.pos)
		}
		e.cut(e.pos, to, true)
	case killLine:
		e.cut(e.lineStart(e.pos), e.pos, true)
	case yank:
		e.insert(e.killed, false)
	case swap:
		e.swap()
	case undo:
		if n := len(e.undos); n > 0 {
			s := e.undos[n-1]
			e.undos = e.undos[:n-1]
			e.text, e.pos = s.text, s.pos
		}
	}
}

// maxUndo and maxUndoBytes bound what is kept for undoing.
const (
	maxUndo      = 200
	maxUndoBytes = 1 << 20
)

// set changes the text and remembers what it was.
func (e *editor) set(text string, pos int) {
	if text == e.text {
		e.pos = pos
		return
	}
	e.undos = append(e.undos, state{e.text, e.pos})
	for len(e.undos) > maxUndo || len(e.undos) > 1 && len(e.undos)*len(e.text) > maxUndoBytes {
		e.undos = e.undos[1:]
	}
	e.text, e.pos = text, pos
}

func (e *editor) insert(s string, join bool) {
	n := len(e.undos)
	e.set(e.text[:e.pos]+s+e.text[e.pos:], e.pos+len(s))
	if join && n > 0 && len(e.undos) > n {
		e.undos = e.undos[:n]
	}
}

func (e *editor) cut(from, to int, keep bool) {
	if from == to {
		return
	}
	if keep {
		e.killed = e.text[from:to]
	}
	e.set(e.text[:from]+e.text[to:], from)
}

// swap exchanges the characters around the cursor, or the last two.
func (e *editor) swap() {
	p := e.pos
	if p == e.lineEnd(p) {
		p = e.left(p)
	}
	a, c := e.left(p), e.right(p)
	if a == p || p == c || strings.Contains(e.text[a:c], "\n") {
		return
	}
	e.set(e.text[:a]+e.text[p:c]+e.text[a:p]+e.text[c:], c)
}

func (e *editor) lineStart(p int) int { return strings.LastIndexByte(e.text[:p], '\n') + 1 }

func (e *editor) lineEnd(p int) int {
	if i := strings.IndexByte(e.text[p:], '\n'); i >= 0 {
		return p + i
	}
	return len(e.text)
}

// left returns where the character before p begins. A character is what a reader
// sees as one, whatever its number of code points.
func (e *editor) left(p int) int {
	from := e.lineStart(p)
	if from == p {
		return max(p-1, 0)
	}
	last := from
	for g := displaywidth.StringGraphemes(e.text[from:p]); g.Next(); {
		last = from
		from += len(g.Value())
	}
	return last
}

func (e *editor) right(p int) int {
	if g := displaywidth.StringGraphemes(e.text[p:]); g.Next() {
		return p + len(g.Value())
	}
	return p
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func (e *editor) wordLeft(p int) int {
	p = len(strings.TrimRightFunc(e.text[:p], func(r rune) bool { return !isWord(r) }))
	return len(strings.TrimRightFunc(e.text[:p], isWord))
}

func (e *editor) wordRight(p int) int {
	rest := strings.TrimLeftFunc(e.text[p:], func(r rune) bool { return !isWord(r) })
	return len(e.text) - len(strings.TrimLeftFunc(rest, isWord))
}

func (e *editor) blankLeft(p int) int {
	p = len(strings.TrimRightFunc(e.text[:p], unicode.IsSpace))
	return len(strings.TrimRightFunc(e.text[:p], func(r rune) bool { return !unicode.IsSpace(r) }))
}

// row moves the cursor one line up or down within the text, and reports whether
// there is such a line.
func (e *editor) row(by int) bool {
	from := e.lineStart(e.pos)
	col := utf8.RuneCountInString(e.text[from:e.pos])
	var start int
	if by < 0 {
		if from == 0 {
			return false
		}
		start = e.lineStart(from - 1)
	} else {
		to := e.lineEnd(e.pos)
		if to == len(e.text) {
			return false
		}
		start = to + 1
	}
	e.pos = start
	for stop := e.lineEnd(start); col > 0 && e.pos < stop; col-- {
		e.pos = e.right(e.pos)
	}
	return true
}

// recall shows another line of the history. Changes to a line are kept until one
// is accepted.
func (e *editor) recall(to int) {
	if to < 0 || to > len(e.history) {
		return
	}
	e.edited[e.at] = e.text
	e.at = to
	text, ok := e.edited[to]
	if !ok {
		text = e.history[to]
	}
	e.undos = nil
	e.text, e.pos = text, len(text)
}

func (e *editor) completeAt(again bool) {
	if e.complete == nil {
		return
	}
	from, options := e.complete(e.text[:e.pos])
	if len(options) == 0 || from < 0 || from > e.pos {
		return
	}
	word := e.text[from:e.pos]
	to := common(options)
	if len(options) == 1 && !strings.HasPrefix(e.text[e.pos:], " ") {
		to += " "
	}
	if to != word && strings.HasPrefix(to, word) {
		e.set(e.text[:from]+to+e.text[e.pos:], from+len(to))
		return
	}
	if again || len(options) > 1 {
		e.options = slices.Clone(options)
	}
	e.tabbed = true
}

// common returns the longest common prefix of ss.
func common(ss []string) string {
	c := ss[0]
	for _, s := range ss[1:] {
		for !strings.HasPrefix(s, c) {
			_, n := utf8.DecodeLastRuneInString(c)
			c = c[:len(c)-n]
		}
	}
	return c
}

// searchKey handles a key during a search of the history. done is false if the
// key ends the search and has its usual meaning.
func (e *editor) searchKey(k key) (done bool, out outcome) {
	switch k.code {
	case insert, paste:
		e.query += k.text
		e.find(len(e.history) - 1)
	case backspace:
		if e.query != "" {
			_, n := utf8.DecodeLastRuneInString(e.query)
			e.query = e.query[:len(e.query)-n]
		}
		e.find(len(e.history) - 1)
	case search:
		if e.found > 0 {
			e.find(e.found - 1)
		}
	case cancel, interrupt:
		e.searching = false
		e.text, e.pos = e.before.text, e.before.pos
	default:
		e.searching = false
		return false, more
	}
	return true, more
}

func (e *editor) find(from int) {
	for i := from; i >= 0 && e.query != ""; i-- {
		if at := strings.Index(e.history[i], e.query); at >= 0 {
			e.found = i
			e.text, e.pos = e.history[i], at+len(e.query)
			return
		}
	}
	if from == len(e.history)-1 {
		e.found = -1
	}
}
