package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Tape is one JSON value, parsed: a node for each value and key, in the order
// of the text, with the place of its bytes. Nothing is copied, so that a part
// of a text can be kept byte for byte, and nothing is converted until it is
// asked for. A value is named by the number of its node: 0 is the whole, and
// -1, which Get returns for a missing key, reads as null everywhere.
//
// Parsing is as strict as JSON.parse, and stricter about invalid UTF-8, which
// JSON.parse never sees: the text that was meant is lost.
type Tape struct {
	b     []byte
	nodes []node
	stack []uint32
	buf   []byte // scratch of Text
	kept  bool
}

// node is a value: next is the node after it and everything in it. The
// members of an object are a key and a value by turns.
type node struct {
	start, end uint32 // in b; of a string, without its quotes
	next       uint32
	kind       Kind
	esc        bool // a string with a backslash
}

// Kind is a kind of JSON value.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// syntaxError says why a text is not JSON.
type syntaxError struct {
	at  int
	why string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.why, e.at) }

func (t *Tape) fail(i int, why string) error {
	switch {
	case i < len(t.b) && t.b[i] == 0:
		why = "a NUL byte"
	case i >= len(t.b):
		return &syntaxError{i, "it breaks off"}
	}
	return &syntaxError{i, why}
}

// Parse reads b, which must not change while t is used. kept says that b never
// changes: a text that makes up most of a large b then shares its memory.
func (t *Tape) Parse(b []byte, kept bool) error {
	t.b, t.nodes, t.stack, t.kept = b, t.nodes[:0], t.stack[:0], kept
	if len(b) > largeText { // allocate once instead of growing
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

func (t *Tape) scan() error {
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
			k := Array
			if c == '{' {
				k = Object
			}
			if len(t.stack) >= maxDepth {
				return t.fail(i, "nested too deep")
			}
			t.nodes = append(t.nodes, node{start: uint32(i), kind: k})
			t.stack = append(t.stack, uint32(at))
			i = space(b, i+1)
			if i < len(b) && b[i] == c+2 { // ']' and '}' are 2 after '[' and '{'
				break
			}
			open = true
		case 't', 'f', 'n':
			word, k := "true", Bool
			if c == 'f' {
				word = "false"
			} else if c == 'n' {
				word, k = "null", Null
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
			t.add(i, n, Number)
			i = n
		}
		// What follows the value, or comes first in a container.
		for !open {
			i = space(b, i)
			if len(t.stack) == 0 {
				if i < len(b) {
					return t.fail(i, "something after the value")
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
			case c == ']' && top.kind == Array, c == '}' && top.kind == Object:
				i++
				top.end, top.next = uint32(i), uint32(len(t.nodes))
				t.stack = t.stack[:len(t.stack)-1]
			default:
				return t.fail(i, "no comma and no end")
			}
		}
		if top := t.nodes[t.stack[len(t.stack)-1]]; top.kind == Object {
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

func (t *Tape) add(start, end int, k Kind) {
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
// character. The first mark is right; later ones may be wrong, spoilt by a
// borrow.
func special(x uint64) uint64 {
	q, s := x^(ones*'"'), x^(ones*'\\')
	return ((q-ones)&^q | (s-ones)&^s | (x-ones*0x20)&^x) & highs
}

// scanString adds the string that begins at i, and returns where it ends.
func (t *Tape) scanString(i int) (int, error) {
	b, start, esc := t.b, i+1, false
	high := uint64(0) // not zero if there is more than ASCII
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
			t.add(start, i, String)
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

func (t *Tape) scanNumber(i int) (int, error) {
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

// Raw returns the text of a value, a string's with its quotes.
func (t *Tape) Raw(n int) []byte {
	v := t.nodes[n]
	if v.kind == String {
		return t.b[v.start-1 : v.end+1 : v.end+1]
	}
	return t.b[v.start:v.end:v.end]
}

// Text returns the bytes that a string stands for, nil if n is not a string.
// They are valid until the next call. Half a surrogate pair becomes U+FFFD.
func (t *Tape) Text(n int) []byte {
	if t.Kind(n) != String {
		return nil
	}
	v := t.nodes[n]
	s := t.b[v.start:v.end]
	if !v.esc {
		return s
	}
	t.buf = unescape(t.buf[:0], s)
	return t.buf
}

// largeText is the size of a text, mostly an image, that is not copied.
const largeText = 1 << 20

// String returns the string n, "" if n is not a string.
func (t *Tape) String(n int) string {
	if t.Kind(n) != String {
		return ""
	}
	v := t.nodes[n]
	s := t.b[v.start:v.end]
	if t.kept && !v.esc && len(s) > largeText && len(s) > len(t.b)/2 {
		return unsafe.String(unsafe.SliceData(s), len(s))
	}
	if !v.esc || len(s) < 256 {
		return string(t.Text(n))
	}
	b := unescape(make([]byte, 0, len(s)), s)
	if cap(b)-len(b) > len(b)/4 {
		return string(b)
	}
	// Nothing else refers to b: it may become the string, as in strings.Builder.
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// escapes are the characters after a backslash that stand for one byte.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends what the escaped text s stands for, which is never longer
// than s.
func unescape(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		r, n := Escape(s[i:])
		dst = utf8.AppendRune(append(dst, s[:i]...), r)
		s = s[i+n:]
	}
}

// Escape reads the escape that the text s of a string begins with, and returns
// its length. Half a surrogate pair is returned as it is.
func Escape(s []byte) (r rune, size int) {
	if c := escapes[s[1]]; c != 0 {
		return rune(c), 2
	}
	r = rune16(s)
	if utf16.IsSurrogate(r) && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, rune16(s[6:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

// rune16 reads the \uXXXX that s begins with.
func rune16(s []byte) rune {
	return rune(unhex(s[2])<<12 | unhex(s[3])<<8 | unhex(s[4])<<4 | unhex(s[5]))
}

// Same is String, but returns *last if that is the same text: a log repeats
// the names of its models, and each id once more as a parent.
func (t *Tape) Same(n int, last *string) string {
	if t.Kind(n) != String {
		return ""
	}
	if s := t.Text(n); string(s) != *last {
		*last = string(s)
	}
	return *last
}

// Is reports whether n is the string s.
func (t *Tape) Is(n int, s string) bool { return t.Kind(n) == String && string(t.Text(n)) == s }

// True reports whether n is true.
func (t *Tape) True(n int) bool { return t.Kind(n) == Bool && t.b[t.nodes[n].start] == 't' }

// Kind returns the kind of n.
func (t *Tape) Kind(n int) Kind {
	if n < 0 {
		return Null
	}
	return t.nodes[n].kind
}

// Int returns the number n, also one in a string, or 0 if n is neither.
func (t *Tape) Int(n int) int {
	s := t.Text(n)
	if t.Kind(n) == Number {
		s = t.Raw(n)
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

// Float returns the number n, or 0 if n is not a number.
func (t *Tape) Float(n int) float64 {
	if t.Kind(n) != Number {
		return 0
	}
	s := t.Raw(n)
	if len(s) == 1 {
		return float64(s[0] - '0')
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return 0
	}
	return f
}

// Get returns the value of a key of the object n, or -1. If the key occurs
// twice, the last one counts.
func (t *Tape) Get(n int, key string) int {
	at := -1
	if t.Kind(n) != Object {
		return at
	}
	// Not with Members: decoding a record asks for two dozen keys.
	for k, end := n+1, int(t.nodes[n].next); k < end; k = int(t.nodes[k+1].next) {
		c := &t.nodes[k]
		if c.esc && string(t.Text(k)) == key || int(c.end-c.start) == len(key) && string(t.b[c.start:c.end]) == key && !c.esc {
			at = k + 1
		}
	}
	return at
}

// Members yields the keys and values of the object n. Anything else has none.
func (t *Tape) Members(n int) iter.Seq2[int, int] {
	return func(yield func(key, value int) bool) {
		if t.Kind(n) != Object {
			return
		}
		for k, end := n+1, int(t.nodes[n].next); k < end; k = int(t.nodes[k+1].next) {
			if !yield(k, k+1) {
				return
			}
		}
	}
}

// Values yields the elements of the array n. Anything else has none.
func (t *Tape) Values(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if t.Kind(n) != Array {
			return
		}
		for v, end := n+1, int(t.nodes[n].next); v < end; v = int(t.nodes[v].next) {
			if !yield(v) {
				return
			}
		}
	}
}

// Len returns how many elements the array n has.
func (t *Tape) Len(n int) (count int) {
	for range t.Values(n) {
		count++
	}
	return count
}

// Reset forgets the text that was parsed, and gives up memory that a huge one
// took.
func (t *Tape) Reset() {
	t.b = nil
	if cap(t.nodes) > 1<<16 || cap(t.buf) > 1<<20 {
		*t = Tape{}
	}
}
