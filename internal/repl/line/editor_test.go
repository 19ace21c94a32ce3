package line

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// typed presses the keys that raw stands for and returns the text with the
// cursor as a bar.
func typed(e *editor, raw string) string {
	var d decoder
	for _, k := range d.feed([]byte(raw)) {
		e.press(k)
	}
	return e.text[:e.pos] + "|" + e.text[e.pos:]
}

func TestEdit(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"insert":                    {"hello", "hello|"},
		"latin letters":             {"äöü é", "äöü é|"},
		"in the middle":             {"hllo\x1b[D\x1b[D\x1b[De", "he|llo"},
		"home and end":              {"bc\x01a\x05d", "abcd|"},
		"home and end by name":      {"bc\x1b[Ha\x1b[Fd\x1bOHx\x1b[4~y", "xabcdy|"},
		"backspace":                 {"abc\x7f\x08", "a|"},
		"backspace at the start":    {"a\x01\x7f", "|a"},
		"delete":                    {"abc\x01\x1b[3~\x04", "|c"},
		"ctrl-d at the end":         {"abc\x04", "abc|"},
		"one character, many runes": {"a👩‍👩‍👧e\u0301\x7f\x7f", "a|"},
		"left over a family":        {"👩‍👩‍👧b\x1b[D\x1b[Dx", "x|👩‍👩‍👧b"},
		"words left":                {"one two-three\x1bb\x1bb", "one |two-three"},
		"words right":               {"one two\x01\x1bf\x1b[1;5C", "one two|"},
		"kill word back":            {"one two-three\x17", "one |"},
		"kill word":                 {"one two\x01\x1bd", "| two"},
		"kill rest and yank":        {"one two\x1bb\x0b\x01\x19", "two|one "},
		"kill line":                 {"one two\x1b[D\x15", "|o"},
		"kill rest joins lines":     {"a\x1b\rb\x1b[A\x05\x0b", "a|b"},
		"swap":                      {"ab\x14", "ba|"},
		"swap in the middle":        {"abc\x1b[D\x14", "acb|"},
		"swap alone":                {"a\x14", "a|"},
		"undo a word":               {"one\x1b[200~ two\x1b[201~\x1f", "one|"},
		"undo typing":               {"abc\x1f", "|"},
		"undo nothing":              {"\x1f", "|"},
		"alt-enter":                 {"a\x1b\rb", "a\nb|"},
		"shift-enter of kitty":      {"a\x1b[13;2ub", "a\nb|"},
		"shift-enter of xterm":      {"a\x1b[27;2;13~b", "a\nb|"},
		"backslash":                 {"a\\\rb", "a\nb|"},
		"backslash in the middle":   {"a\\b\x1b[D\r", "a\\|b"},
		"paste":                     {"\x1b[200~one\r\ntwo\rthree\nfour\x1b[201~!", "one\ntwo\nthree\nfour!|"},
		"paste with keys in it":     {"\x1b[200~a\x03\x1b[Ab\x1b[201~", "a\x03\x1b[Ab|"},
		"up within the text":        {"abc\x1b\rde\x1b[A", "ab|c\nde"},
		"down within the text":      {"ab\x1b\rcde\x1b[A\x1b[B", "ab\ncd|e"},
		"up to a shorter line":      {"a\x1b\rbcd\x1b[A", "a|\nbcd"},
		"unknown sequences":         {"a\x1b[99;5X\x1bOPb\x1bz", "ab|"},
		"escape and Ctrl-U":         {"ab\x1b\x15c", "c|"},
		"broken utf-8":              {"a\xff\xc3(b", "a\uFFFD(b|"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := typed(newEditor(nil, nil), c.raw); got != c.want {
				t.Errorf("%q gives %q, want %q", c.raw, got, c.want)
			}
		})
	}
}

func TestKeysComeInPieces(t *testing.T) {
	const raw = "ä中\x1b[200~a\nb\x1b[201~\x1b[D\x1b[1;5Dx\x1b\r👩‍👩‍👧\x1b[3~"
	want := typed(newEditor(nil, nil), raw)
	var d decoder
	e := newEditor(nil, nil)
	for i := range len(raw) {
		for _, k := range d.feed([]byte{raw[i]}) {
			e.press(k)
		}
	}
	if got := e.text[:e.pos] + "|" + e.text[e.pos:]; got != want {
		t.Errorf("byte by byte %q, at once %q", got, want)
	}
}

func TestRecall(t *testing.T) {
	past := []string{"first", "second\nline", "third"}
	for name, c := range map[string]struct{ raw, want string }{
		"last":                    {"\x1b[A", "third|"},
		"two back":                {"\x10\x10", "second\nline|"},
		"too far back":            {"\x10\x10\x10\x10\x10", "first|"},
		"back to the draft":       {"draft\x10\x10\x0e\x0e", "draft|"},
		"edited ones stay":        {"\x10!\x10\x0e", "third!|"},
		"up walks the text first": {"\x10\x10\x1b[A\x1b[A", "first|"},
		"search":                  {"\x12sec", "sec|ond\nline"},
		"search older":            {"\x12ir\x12", "fir|st"},
		"search nothing":          {"draft\x12zzz\x07", "draft|"},
		"search cancelled":        {"draft\x12fir\x07", "draft|"},
		"search and go on":        {"\x12third\x05!", "third!|"},
		"search shortened":        {"\x12thix\x7f", "thi|rd"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := typed(newEditor(past, nil), c.raw); got != c.want {
				t.Errorf("%q gives %q, want %q", c.raw, got, c.want)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	for raw, want := range map[string]outcome{
		"a\r": accepted, "a\n": accepted, "\r": accepted, "a\x03": interrupted, "\x04": ended, "a\x04": more,
		"\x1a": suspended, "\x0c": cleared, "a\\\r": more, "\x12a\x03": more, "\x12a\r": accepted,
	} {
		e := newEditor([]string{"xa"}, nil)
		var d decoder
		var got outcome
		for _, k := range d.feed([]byte(raw)) {
			got = e.press(k)
		}
		if got != want {
			t.Errorf("%q: %v, want %v", raw, got, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	words := func(before string) (int, []string) {
		from := strings.LastIndexByte(before, ' ') + 1
		var out []string
		for _, w := range []string{"/sessions", "/switch", "/help", "grün", "grünlich"} {
			if strings.HasPrefix(w, before[from:]) {
				out = append(out, w)
			}
		}
		return from, out
	}
	for name, c := range map[string]struct {
		raw, want string
		options   []string
	}{
		"one":              {"/he\t", "/help |", nil},
		"common part":      {"g\t", "grün|", nil},
		"several":          {"/s\t", "/s|", []string{"/sessions", "/switch"}},
		"none":             {"x\t", "x|", nil},
		"second word":      {"/help /sw\t", "/help /switch |", nil},
		"before the end":   {"/he x\x1b[D\x1b[D\t", "/help| x", nil},
		"common then list": {"g\t\t", "grün|", []string{"grün", "grünlich"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEditor(nil, words)
			if got := typed(e, c.raw); got != c.want {
				t.Errorf("%q gives %q, want %q", c.raw, got, c.want)
			}
			if d := cmp.Diff(c.options, e.options); d != "" {
				t.Errorf("options (-want +got):\n%s", d)
			}
		})
	}
}

func TestLayout(t *testing.T) {
	for name, c := range map[string]struct {
		prompt   int
		text     string
		pos      int
		width    int
		rows     []string
		row, col int
	}{
		"empty":              {2, "", 0, 10, []string{""}, 0, 2},
		"short":              {2, "abc", 1, 10, []string{"abc"}, 0, 3},
		"wrapped":            {2, "abcdefghijk", 11, 10, []string{"abcdefgh", "ijk"}, 1, 3},
		"at the edge":        {2, "abcdefgh", 8, 10, []string{"abcdefgh", ""}, 1, 0},
		"wide at the edge":   {2, "abcdefg中", 10, 10, []string{"abcdefg", "中"}, 1, 2},
		"before a wide":      {2, "abcdefg中", 7, 10, []string{"abcdefg", "中"}, 1, 0},
		"lines are indented": {2, "ab\ncd", 5, 10, []string{"ab", "  cd"}, 1, 4},
		"on the line end":    {2, "ab\ncd", 2, 10, []string{"ab", "  cd"}, 0, 4},
		"control characters": {2, "a\x1b[Hb\tc", 3, 20, []string{"a\uFFFD[Hb    c"}, 0, 5},
		"long prompt":        {12, "ab", 2, 10, []string{"", "ab"}, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			rows, row, col := layout(c.prompt, c.text, c.pos, c.width)
			if d := cmp.Diff(c.rows, rows); d != "" || row != c.row || col != c.col {
				t.Errorf("cursor at %d,%d, want %d,%d; rows (-want +got):\n%s", row, col, c.row, c.col, d)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	want := []string{"aa   d", "bbb  e", "c"}
	if d := cmp.Diff(want, columns([]string{"aa", "bbb", "c", "d", "e"}, 11)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Whatever is pressed, the cursor stands at the border of a character and the
// text stays valid.
func TestAnyKeys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pool := []string{"a", "ä", "中", "👩‍👩‍👧", " ", "e\u0301", "\\\r", "\x1b\r", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x01", "\x05", "\x0b", "\x15", "\x17",
		"\x19", "\x14", "\x1f", "\x7f", "\x1b[3~", "\x10", "\x0e", "\x1bb", "\x1bf", "\x1bd", "\x12", "\x07", "\t", "\x1b[200~x\ny\x1b[201~", "\x04"}
	for range 300 {
		e := newEditor([]string{"past", "mehr\nals eine"}, func(b string) (int, []string) { return len(b), []string{"opt", "option"} })
		var raw strings.Builder
		for range 60 {
			k := pool[rnd.IntN(len(pool))]
			raw.WriteString(k)
			typed(e, k)
			if e.pos < 0 || e.pos > len(e.text) || !utf8.ValidString(e.text[:e.pos]) || !utf8.ValidString(e.text[e.pos:]) {
				t.Fatalf("after %q the cursor is at %d of %q", raw.String(), e.pos, e.text)
			}
		}
	}
}
