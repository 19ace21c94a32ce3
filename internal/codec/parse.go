package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// tape is one JSON value, parsed: a node for each value and key, in the order
// of the text, with the place of its bytes. Nothing is copied, so that a part
// of a line can be kept byte for byte, and nothing is converted that is not
// asked for.
//
// It is as strict as JSON.parse, and stricter where that reads a half UTF-8
// sequence as a replacement character: what the writer meant is gone then.
type tape struct {
	b     []byte
	nodes []node
	stack []uint32
	buf   []byte // scratch of unescape
	kept  bool   // nobody changes b
}

// node is a value: next is the node behind it and all that it holds. The
// members of an object are a key and a value by turns.
type node struct {
	start, end uint32 // in b; of a string, without its quotes
	next       uint32
	kind       kind
	esc        bool // a string with a backslash
}

type kind uint8

const (
	null kind = iota
	boolean
	number
	str
	array
	object
)

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// syntaxError says why b is not JSON.
type syntaxError struct {
	at  int
	why string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.why, e.at) }

func (t *tape) fail(i int, why string) error {
	switch {
	case i < len(t.b) && t.b[i] == 0:
		why = "a NUL byte"
	case i >= len(t.b):
		return &syntaxError{i, "it breaks off"}
	}
	return &syntaxError{i, why}
}

// parse reads b, which must stay as it is while t is used.
func (t *tape) parse(b []byte) error {
	t.b, t.nodes, t.stack = b, t.nodes[:0], t.stack[:0]
	if len(b) > largeText { // once, and not by growing
		n := 2
		for _, c := range [][]byte{{','}, {':'}, {'['}, {'{'}} {
			n += bytes.Count(b, c)
		}
		if n > cap(t.nodes) {
			t.nodes = make([]node, 0, n)
		}
	}
	err := t.scan()
	if err == nil || utf8.Valid(b) {
		return err
	}
	// That is the better reason, whatever else is wrong.
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return &syntaxError{i, "invalid UTF-8"}
		}
		i += n
	}
}

func (t *tape) scan() error {
	b := t.b
	i := space(b, 0)
	for {
		// A value begins at i.
		if i >= len(b) {
			return t.fail(i, "")
		}
		at := len(t.nodes)
		open := false
		switch c := b[i]; c {
		case '"':
			n, err := t.scanString(i)
			if err != nil {
				return err
			}
			i = n
		case '{', '[':
			k := array
			if c == '{' {
				k = object
			}
			if len(t.stack) >= maxDepth {
				return t.fail(i, "nested too deep")
			}
			t.nodes = append(t.nodes, node{start: uint32(i), kind: k})
			t.stack = append(t.stack, uint32(at))
			i = space(b, i+1)
			if i < len(b) && b[i] == c+2 { // ']' and '}' stand 2 behind '[' and '{'
				break
			}
			open = true
		case 't', 'f', 'n':
			word, k := "true", boolean
			if c == 'f' {
				word = "false"
			} else if c == 'n' {
				word, k = "null", null
			}
			for j := 0; j < len(word); j++ {
				if i+j >= len(b) || b[i+j] != word[j] {
					return t.fail(i+j, "not a JSON value")
				}
			}
			t.add(i, i+len(word), k)
			i += len(word)
		default:
			n, err := t.scanNumber(i)
			if err != nil {
				return err
			}
			t.add(i, n, number)
			i = n
		}
		// What follows the value, or stands first in a container.
		for !open {
			i = space(b, i)
			if len(t.stack) == 0 {
				if i < len(b) {
					return t.fail(i, "something behind the value")
				}
				return nil
			}
			top := &t.nodes[t.stack[len(t.stack)-1]]
			if i >= len(b) {
				return t.fail(i, "")
			}
			switch c := b[i]; {
			case c == ',':
				i = space(b, i+1)
				open = true
			case c == ']' && top.kind == array, c == '}' && top.kind == object:
				i++
				top.end, top.next = uint32(i), uint32(len(t.nodes))
				t.stack = t.stack[:len(t.stack)-1]
			default:
				return t.fail(i, "no comma and no end")
			}
		}
		if top := t.nodes[t.stack[len(t.stack)-1]]; top.kind == object {
			if i >= len(b) || b[i] != '"' {
				return t.fail(i, "no key")
			}
			n, err := t.scanString(i)
			if err != nil {
				return err
			}
			i = space(b, n)
			if i >= len(b) || b[i] != ':' {
				return t.fail(i, "no colon")
			}
			i = space(b, i+1)
		}
	}
}

func (t *tape) add(start, end int, k kind) {
	t.nodes = append(t.nodes, node{start: uint32(start), end: uint32(end), next: uint32(len(t.nodes) + 1), kind: k})
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks those of eight bytes that are a quote, a backslash or a control
// character: the first of them for sure, and perhaps others behind it, which a
// borrow can spoil.
func special(x uint64) uint64 {
	q, s := x^(ones*'"'), x^(ones*'\\')
	return ((q-ones)&^q | (s-ones)&^s | (x-ones*0x20)&^x) & highs
}

// scanString adds the string that begins at i, and returns where it ended.
func (t *tape) scanString(i int) (int, error) {
	b, start, esc := t.b, i+1, false
	high := uint64(0) // not zero if there may be more than ASCII
	i++
	for {
		// Eight bytes at a time, up to a special one.
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			high |= x & highs
			if hit := special(x); hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
			high |= uint64(b[i]) & 0x80
			i++
		}
		switch {
		case i >= len(b):
			return i, t.fail(i, "")
		case b[i] == '"':
			if high != 0 && !utf8.Valid(b[start:i]) {
				return i, t.fail(start, "invalid UTF-8")
			}
			t.add(start, i, str)
			t.nodes[len(t.nodes)-1].esc = esc
			return i + 1, nil
		case b[i] != '\\':
			return i, t.fail(i, "a control character in a string")
		}
		esc = true
		if i+1 >= len(b) {
			return i, t.fail(i+1, "")
		}
		if escapes[b[i+1]] != 0 {
			i += 2
			continue
		}
		if b[i+1] != 'u' {
			return i, t.fail(i+1, "a bad escape")
		}
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) || unhex(b[j]) < 0 {
				return i, t.fail(j, "a bad \\u")
			}
		}
		i += 6
	}
}

func (t *tape) scanNumber(i int) (int, error) {
	b := t.b
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return i, t.fail(i, "not a JSON value")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return i, t.fail(i, "a bad number")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return i, t.fail(i, "a bad number")
		}
	}
	return i, nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// raw is the text of a value, a string's with its quotes.
func (t *tape) raw(n int) []byte {
	v := t.nodes[n]
	if v.kind == str {
		return t.b[v.start-1 : v.end+1 : v.end+1]
	}
	return t.b[v.start:v.end:v.end]
}

// text is the bytes that a string stands for. They are valid until the next
// call. Half a surrogate pair becomes U+FFFD.
func (t *tape) text(n int) []byte {
	v := t.nodes[n]
	s := t.b[v.start:v.end]
	if !v.esc {
		return s
	}
	t.buf = unescape(t.buf[:0], s)
	return t.buf
}

// own is the text of a string in memory of its own. One that is most of a
// large line shares that with the line, if that is kept anyway.
func (t *tape) own(n int) string {
	v := t.nodes[n]
	s := t.b[v.start:v.end]
	if t.kept && !v.esc && len(s) > largeText && len(s) > len(t.b)/2 {
		return unsafe.String(unsafe.SliceData(s), len(s))
	}
	if !v.esc || len(s) < 256 {
		return string(t.text(n))
	}
	b := unescape(make([]byte, 0, len(s)), s)
	if cap(b)-len(b) > len(b)/4 {
		return string(b)
	}
	// Nobody else has b: it may become the string, as in strings.Builder.
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// largeText is the size of a text, an image mostly, that is not copied.
const largeText = 1 << 20

// escapes are the characters behind a backslash that stand for one byte.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends what the escaped text s stands for, which is never longer
// than s.
func unescape(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		j := bytes.IndexByte(s[i:], '\\')
		if j < 0 {
			return append(dst, s[i:]...)
		}
		dst = append(dst, s[i:i+j]...)
		i += j
		if c := escapes[s[i+1]]; c != 0 {
			dst = append(dst, c)
			i += 2
			continue
		}
		r := rune16(s[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
				pair = utf16.DecodeRune(r, rune16(s[i:]))
			}
			if pair != utf8.RuneError {
				i += 6
			}
			r = pair
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// rune16 reads the \uXXXX that s begins with.
func rune16(s []byte) rune {
	return rune(unhex(s[2])<<12 | unhex(s[3])<<8 | unhex(s[4])<<4 | unhex(s[5]))
}

// is reports whether n is the string s.
func (t *tape) is(n int, s string) bool {
	return n > 0 && t.nodes[n].kind == str && string(t.text(n)) == s
}

// string returns the string n, or "" if n is none.
func (t *tape) string(n int) string {
	if n <= 0 || t.nodes[n].kind != str {
		return ""
	}
	return t.own(n)
}

// same is string, but returns *last where that is the same text: a log
// repeats its models, and each id once more as a parent.
func (t *tape) same(n int, last *string) string {
	if n <= 0 || t.nodes[n].kind != str {
		return ""
	}
	if s := t.text(n); string(s) != *last {
		*last = string(s)
	}
	return *last
}

// int returns the number n, also one in a string, or 0 if n is none.
func (t *tape) int(n int) int {
	if n <= 0 {
		return 0
	}
	var s []byte
	switch t.nodes[n].kind {
	case number:
		s = t.raw(n)
	case str:
		s = t.text(n)
	default:
		return 0
	}
	v := 0
	for i, c := range s {
		if c < '0' || c > '9' || i > 17 {
			f, err := strconv.ParseFloat(string(s), 64)
			if err != nil || f != f || f > 1<<53 || f < -1<<53 {
				return 0
			}
			return int(f)
		}
		v = v*10 + int(c-'0')
	}
	return v
}

// bool reports whether n is true.
func (t *tape) bool(n int) bool {
	return n > 0 && t.nodes[n].kind == boolean && t.b[t.nodes[n].start] == 't'
}

// kindOf returns the kind of n, and null where there is none.
func (t *tape) kindOf(n int) kind {
	if n <= 0 {
		return null
	}
	return t.nodes[n].kind
}

// get returns the value of a key of the object n, or -1. Of a key that
// stands twice the last counts.
func (t *tape) get(n int, key string) int {
	at := -1
	if n < 0 || t.nodes[n].kind != object {
		return at
	}
	for k, end := n+1, int(t.nodes[n].next); k < end; k = int(t.nodes[k+1].next) {
		if string(t.text(k)) == key {
			at = k + 1
		}
	}
	return at
}
