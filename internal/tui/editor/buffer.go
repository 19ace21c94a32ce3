package editor

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// buffer is text being edited. Its characters are what a reader sees as one,
// whatever their number of code points; a chip is one as well.
type buffer struct {
	text string
	pos  int // in bytes, at the boundary of a character

	killed string
	undos  []state
	redos  []state
	typing bool // the last change inserted a letter: a word is undone at once
}

type state struct {
	text string
	pos  int
}

// maxUndo and maxUndoBytes bound what is kept for undoing.
const (
	maxUndo      = 500
	maxUndoBytes = 4 << 20
)

// set changes the text and remembers what it was.
func (b *buffer) set(text string, pos int) {
	b.typing = false
	if text == b.text {
		b.pos = pos
		return
	}
	b.undos = append(b.undos, state{b.text, b.pos})
	for len(b.undos) > maxUndo || len(b.undos) > 1 && len(b.undos)*len(b.text) > maxUndoBytes {
		b.undos = b.undos[1:]
	}
	b.redos = nil
	b.text, b.pos = text, pos
}

// reset begins with text as if nothing had been typed before.
func (b *buffer) reset(text string) {
	*b = buffer{text: text, pos: len(text), killed: b.killed}
}

// insert inserts s at the cursor. Letters typed one after the other are undone
// together, up to a blank.
func (b *buffer) insert(s string, typed bool) {
	join := typed && b.typing && s != " "
	n := len(b.undos)
	b.set(b.text[:b.pos]+s+b.text[b.pos:], b.pos+len(s))
	if join && n > 0 && len(b.undos) > n {
		b.undos = b.undos[:n]
	}
	b.typing = typed
	b.pos = b.boundary(b.pos)
}

// boundary returns p, or the end of the character that p is in: what is inserted
// may combine with what is there.
func (b *buffer) boundary(p int) int {
	for at := b.lineStart(p); at < p; {
		if at = b.right(at); at > p {
			return at
		}
	}
	return p
}

// cut removes text, and keeps it for yank if keep.
func (b *buffer) cut(from, to int, keep bool) {
	if from == to {
		return
	}
	if keep {
		b.killed = b.text[from:to]
	}
	b.set(b.text[:from]+b.text[to:], from)
	b.pos = b.boundary(b.pos)
}

func (b *buffer) undo() {
	if n := len(b.undos); n > 0 {
		b.redos = append(b.redos, state{b.text, b.pos})
		b.text, b.pos = b.undos[n-1].text, b.undos[n-1].pos
		b.undos = b.undos[:n-1]
	}
	b.typing = false
}

func (b *buffer) redo() {
	if n := len(b.redos); n > 0 {
		b.undos = append(b.undos, state{b.text, b.pos})
		b.text, b.pos = b.redos[n-1].text, b.redos[n-1].pos
		b.redos = b.redos[:n-1]
	}
	b.typing = false
}

func (b *buffer) lineStart(p int) int { return strings.LastIndexByte(b.text[:p], '\n') + 1 }

func (b *buffer) lineEnd(p int) int {
	if i := strings.IndexByte(b.text[p:], '\n'); i >= 0 {
		return p + i
	}
	return len(b.text)
}

// first returns the first character of s, which is not empty.
func first(s string) string {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1]
	}
	r, n := utf8.DecodeRuneInString(s)
	if isChip(r) {
		return s[:n]
	}
	g := displaywidth.StringGraphemes(s)
	if !g.Next() {
		return s
	}
	c := g.Value()
	for i, r := range c { // no mark joins a chip to what stands before it
		if i > 0 && isChip(r) {
			return c[:i]
		}
	}
	return c
}

// right returns where the character at p ends.
func (b *buffer) right(p int) int {
	if p >= len(b.text) {
		return p
	}
	return p + len(first(b.text[p:]))
}

// left returns where the character before p begins.
func (b *buffer) left(p int) int {
	from := b.lineStart(p)
	if from == p {
		return max(p-1, 0)
	}
	for {
		next := b.right(from)
		if next >= p {
			return from
		}
		from = next
	}
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_' || isChip(r)
}

func (b *buffer) wordLeft(p int) int {
	p = len(strings.TrimRightFunc(b.text[:p], func(r rune) bool { return !isWord(r) }))
	return b.atStart(len(strings.TrimRightFunc(b.text[:p], isWord)))
}

func (b *buffer) wordRight(p int) int {
	rest := strings.TrimLeftFunc(b.text[p:], func(r rune) bool { return !isWord(r) })
	return b.boundary(len(b.text) - len(strings.TrimLeftFunc(rest, isWord)))
}

// blankLeft returns where the word before p begins, if only blanks end words.
func (b *buffer) blankLeft(p int) int {
	p = len(strings.TrimRightFunc(b.text[:p], unicode.IsSpace))
	return b.atStart(len(strings.TrimRightFunc(b.text[:p], func(r rune) bool { return !unicode.IsSpace(r) })))
}

// atStart returns p, or the start of the character that p is in.
func (b *buffer) atStart(p int) int {
	if end := b.boundary(p); end != p {
		return b.left(end)
	}
	return p
}
