// Package terminal writes text so that it cannot control the terminal that
// shows it.
//
// Whatever goclaw shows may come from outside: from a model, a server, a log of
// another program. A Writer lets only text through. Colours and cursor movements
// are made by Paint and Control; they carry a number that nobody outside of the
// process knows, and the Writer takes it out again. Any other control character
// is shown as a JSON escape, such as \u001b, so that JSON keeps its meaning.
//
// All output passes a Writer, into a pipe as well: a pipe may end in a terminal.
package terminal

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// own begins the sequences of this process. To what measures text, it is the
// beginning of any control sequence.
var own = func() string {
	var b [8]byte
	rand.Read(b[:]) // it never fails
	return fmt.Sprintf("\x1b[%020d;", binary.LittleEndian.Uint64(b[:]))
}()

// Control returns a control sequence that a Writer lets through: what follows
// ESC [ in it, such as "K" or "31m".
func Control(sequence string) string { return own + sequence }

// Return moves the cursor to the beginning of the line.
func Return() string { return own + "G" }

// Paint sets text in the style with that SGR code.
func Paint(code, text string) string { return Control(code+"m") + text + Control("0m") }

// Writer lets text through, and the sequences of Control and Paint.
type Writer struct {
	w    io.Writer
	lent atomic.Pointer[func(text string)]
}

// NewWriter returns a Writer to w: w itself if it is one.
func NewWriter(w io.Writer) *Writer {
	if t, ok := w.(*Writer); ok {
		return t
	}
	return &Writer{w: w}
}

// Under returns what is written to.
func (t *Writer) Under() io.Writer { return t.w }

// Lend gives take what is written from now on, as it is, until back is called:
// something else draws on the terminal.
func (t *Writer) Lend(take func(text string)) (back func()) {
	t.lent.Store(&take)
	return func() { t.lent.Store(nil) }
}

// Write writes p, which holds whole characters.
func (t *Writer) Write(p []byte) (int, error) {
	if take := t.lent.Load(); take != nil {
		(*take)(string(p))
		return len(p), nil
	}
	if harmless(p) {
		return t.w.Write(p)
	}
	if _, err := io.WriteString(t.w, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// harmless reports whether p is ASCII without control characters.
func harmless(p []byte) bool {
	for _, c := range p {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// Text returns what a Writer makes of s.
func Text(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for s != "" {
		if rest, ok := strings.CutPrefix(s, own); ok {
			sequence := sequenceOf(rest)
			s = rest[len(sequence):]
			switch sequence {
			case "":
			case "G":
				b.WriteByte('\r')
			default:
				b.WriteString("\x1b[" + sequence)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\r' && strings.HasPrefix(s, "\r\n"):
		case Hidden(r):
			escape(&b, r)
		default:
			b.WriteRune(r) // U+FFFD for what is not UTF-8
		}
		s = s[n:]
	}
	return b.String()
}

// sequences are what programs write to control a terminal: colours, titles, links.
// One that does not end is not one: it would hide all that follows. Compiling it
// takes 2 ms, which most commands need not spend.
var sequences = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P_^X][^\x07\x1b\n]{0,999}(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]|\x1b[78=>cDEHM]`)
})

// Strip returns s without the sequences that control a terminal.
func Strip(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	return sequences().ReplaceAllString(s, "")
}

// sequenceOf returns the rest of a control sequence at the beginning of s; "" if
// it is cut off.
func sequenceOf(s string) string {
	for i := range len(s) {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return s[:i+1]
		}
	}
	return ""
}

func escape(b *strings.Builder, r rune) {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// Hidden reports whether r may not be in text: control characters other than
// line end and tab, what changes the direction of text or ends a line, and what
// only programs see.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r < 0x61c:
		return false
	case r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // direction
		return true
	case r == 0x2028, r == 0x2029: // lines
		return true
	case r >= 0x206a && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f: // deprecated, annotations, tags
		return true
	}
	return false
}

// Invisible reports whether r is Hidden, or takes no space or looks like one. In
// a name or a command, such a character makes two that differ look the same.
func Invisible(r rune) bool {
	switch r {
	case ' ':
		return false
	case 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0: // letters that are blank
		return true
	}
	return r == '\n' || r == '\t' || Hidden(r) || unicode.In(r, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp)
}
