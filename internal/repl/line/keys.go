package line

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// key is one press, or one paste.
type key struct {
	code code
	text string // of insert and paste
}

type code int

const (
	ignore code = iota
	insert
	paste
	enter
	newline
	tab
	backspace
	del
	left
	right
	up
	down
	home
	end
	wordLeft
	wordRight
	killWordBack
	killWord
	killRest
	killLine
	yank
	swap
	undo
	clearScreen
	search
	previous
	next
	interrupt
	eof
	suspend
	cancel
)

var control = map[byte]code{
	0x01: home, 0x02: left, 0x03: interrupt, 0x04: eof, 0x05: end, 0x06: right, 0x07: cancel, 0x08: backspace,
	0x09: tab, 0x0a: enter, 0x0b: killRest, 0x0c: clearScreen, 0x0d: enter, 0x0e: next, 0x10: previous,
	0x12: search, 0x14: swap, 0x15: killLine, 0x17: killWordBack, 0x19: yank, 0x1a: suspend, 0x1f: undo, 0x7f: backspace,
}

var meta = map[byte]code{
	'b': wordLeft, 'f': wordRight, 'd': killWord, 'B': wordLeft, 'F': wordRight, 'D': killWord,
	0x7f: killWordBack, 0x08: killWordBack, '\r': newline, '\n': newline,
}

// sequences are what terminals send for keys after ESC [ or ESC O.
var sequences = map[string]code{
	"A": up, "B": down, "C": right, "D": left, "H": home, "F": end,
	"1~": home, "7~": home, "4~": end, "8~": end, "3~": del,
	"1;5C": wordRight, "1;3C": wordRight, "5C": wordRight, "1;5D": wordLeft, "1;3D": wordLeft, "5D": wordLeft,
	"3;5~": killWord, "3;3~": killWord,
	"13;2u": newline, "13;3u": newline, "13;4u": newline, "13;5u": newline, "13u": enter,
	"27;2;13~": newline, "27;3;13~": newline, "27;5;13~": newline, "M": enter,
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// decoder turns a terminal's bytes into keys. A key may arrive in pieces.
type decoder struct {
	buf     []byte
	scanned int // bytes of an open paste, so that a long one is searched only once
}

func (d *decoder) feed(b []byte) []key {
	d.buf = append(d.buf, b...)
	var keys []key
	for len(d.buf) > 0 {
		k, n := d.one()
		if n == 0 {
			break
		}
		d.buf = d.buf[n:]
		if k.code != ignore {
			keys = append(keys, k)
		}
	}
	if len(d.buf) == 0 {
		d.buf = nil
	}
	return keys
}

// alone returns the Escape that waits for the rest of a sequence, as a key.
func (d *decoder) alone() []key {
	d.buf = nil
	return []key{{code: cancel}}
}

// one decodes the first key and returns how many bytes it took; 0: more bytes
// are needed.
func (d *decoder) one() (key, int) {
	c := d.buf[0]
	if c == 0x1b {
		return d.escape()
	}
	if c < 0x20 || c == 0x7f {
		return key{code: control[c]}, 1
	}
	// Printable text in one go, so that a paste without marks is one insert.
	n := 0
	for n < len(d.buf) && d.buf[n] >= 0x20 && d.buf[n] != 0x7f {
		if !utf8.FullRune(d.buf[n:]) {
			break
		}
		_, size := utf8.DecodeRune(d.buf[n:])
		n += size
	}
	if n == 0 {
		return key{}, 0
	}
	return key{code: insert, text: strings.ToValidUTF8(string(d.buf[:n]), "\uFFFD")}, n
}

func (d *decoder) escape() (key, int) {
	b := d.buf
	if len(b) == 1 {
		return key{}, 0
	}
	if b[1] != '[' && b[1] != 'O' {
		if b[1] == 0x1b {
			return key{}, 1
		}
		if meta[b[1]] == ignore && b[1] < 0x20 { // Escape, and then Ctrl-C
			return key{}, 1
		}
		return key{code: meta[b[1]]}, 2
	}
	if bytes.HasPrefix(b, []byte(pasteBegin)) {
		from := max(len(pasteBegin), d.scanned-len(pasteEnd))
		i := bytes.Index(b[from:], []byte(pasteEnd))
		if i < 0 {
			d.scanned = len(b)
			return key{}, 0
		}
		d.scanned = 0
		text := string(b[len(pasteBegin) : from+i])
		return key{code: paste, text: clean(text)}, from + i + len(pasteEnd)
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return key{code: sequences[string(b[2:i+1])]}, i + 1
		}
		if b[i] < 0x20 || b[i] == 0x7f { // not a sequence after all
			return key{}, i
		}
	}
	return key{}, 0
}

// clean normalises the line ends of pasted text.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.ToValidUTF8(s, "\uFFFD")
}
