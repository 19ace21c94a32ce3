package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"goclaw/internal/text"
)

func TestShortened(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"short head", text.Head("äbc", 4), "äbc"},
		{"head", text.Head("abcdef", 3), "abc"},
		{"head in a character", text.Head("aäb", 2), "a"},
		{"no head", text.Head("ä", 1), ""},
		{"short tail", text.Tail("äb", 9), "äb"},
		{"tail", text.Tail("abcdef", 2), "ef"},
		{"tail in a character", text.Tail("aäb", 2), "b"},
		{"short middle", text.Middle("abcdef", 4, 2), "abcdef"},
		{"middle", text.Middle("abcdefghij", 3, 2), "abc\n[... 5 of 10 bytes cut ...]\nij"},
		{"middle in characters", text.Middle("aäääb", 2, 2), "a\n[... 6 of 8 bytes cut ...]\nb"},
		{"short clip", text.Clip(" a b ", 3), "a b"},
		{"clip at a word", text.Clip("one two three", 9), "one two …"},
		{"one line", text.OneLine(" one\n two\tthree ", 9), "one two …"},
		{"clip in a word", text.Clip("extraordinary", 5), "extra …"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

func FuzzMiddle(f *testing.F) {
	f.Add("häßlich "+strings.Repeat("€", 40), 7, 5)
	f.Fuzz(func(t *testing.T, s string, head, tail int) {
		if head < 0 || tail < 0 || head > 1<<20 || tail > 1<<20 || !utf8.ValidString(s) {
			t.Skip()
		}
		got := text.Middle(s, head, tail)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if len(s) > head+tail && len(got) > head+tail+80 {
			t.Errorf("%d bytes of %d, want at most %d and a note", len(got), len(s), head+tail)
		}
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KB", 1536: "1.5 KB", 1<<20 - 1: "1.0 MB", 1 << 20: "1.0 MB", 3 << 30: "3.0 GB", 1 << 62: "4096.0 PB"} {
		if got := text.Bytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
