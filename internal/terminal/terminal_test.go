package terminal_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"goclaw/internal/terminal"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":              "plain\ttext\n",
		"你好 🦀 é é 👩‍👩‍👧":             "你好 🦀 é é 👩‍👩‍👧",
		"\x1b[31mred\x1b[0m":         `\u001b[31mred\u001b[0m`,
		"\x1b]0;title\x07":           `\u001b]0;title\u0007`,
		"over\rwritten\b\b\x7f":      `over\u000dwritten\u0008\u0008\u007f`,
		"one\r\ntwo\r\n":             "one\ntwo\n",
		"\u009b31m \u0085":           `\u009b31m \u0085`,
		"raw \x9b31m \xc2":           "raw \uFFFD31m \uFFFD",
		"evil \u202etxt\u2066\u200f": `evil \u202etxt\u2066\u200f`,
		"line\u2028end":              `line\u2028end`,
		"tag\U000e0041":              `tag\udb40\udc41`,
		"\x00":                       `\u0000`,
		terminal.Paint("31", "red"):  "\x1b[31mred\x1b[0m",
		terminal.Return() + "x" + terminal.Control("K"): "\rx\x1b[K",
		terminal.Control("?2004h"):                      "\x1b[?2004h",
		terminal.Paint("31", "a\x1b[8mb"):               "\x1b[31ma\\u001b[8mb\x1b[0m",
		terminal.Control(""):                            "", // cut off
	} {
		if got := terminal.Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		var b bytes.Buffer
		if n, err := terminal.NewWriter(&b).Write([]byte(in)); n != len(in) || err != nil || b.String() != want {
			t.Errorf("%q: wrote %d, %v, %q", in, n, err, b.String())
		}
	}
}

// JSON means the same after a Writer.
func TestJSONKeepsItsMeaning(t *testing.T) {
	want := "\x1b[2J \u009b \x7f \u202e \u2028 \U000e0041 \\ \" \r\n 🦀"
	var b bytes.Buffer
	enc := json.NewEncoder(terminal.NewWriter(&b))
	if err := enc.Encode(want); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(b.String(), terminal.Hidden); i >= 0 {
		t.Errorf("%q has a control character at %d", b.String(), i)
	}
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func TestOneWriter(t *testing.T) {
	var b bytes.Buffer
	w := terminal.NewWriter(&b)
	if terminal.NewWriter(w) != w || w.Under() != &b {
		t.Error("a Writer is wrapped twice")
	}
}

func TestStrip(t *testing.T) {
	for s, want := range map[string]string{
		"plain":                "plain",
		"\x1b[1;31mred\x1b[0m": "red",
		"\x1b]0;title\x07x":    "x",
		"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]0;never ends\nnext":                  "\x1b]0;never ends\nnext",
		"\x1b(B\x1b7a\x1b8":                        "a",
		"\x1b[":                                    "\x1b[",
	} {
		if got := terminal.Strip(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

func TestInvisible(t *testing.T) {
	for r, want := range map[rune]bool{'a': false, ' ': false, 'é': false, '中': false, '\n': true, 0x200b: true, 0x200d: true, 0xfeff: true, 0xad: true, 0xa0: true, 0x3164: true, 0x202e: true} {
		if got := terminal.Invisible(r); got != want {
			t.Errorf("%U: got %v", r, got)
		}
	}
}

// Whatever the text, the only control sequences are ours.
func FuzzText(f *testing.F) {
	f.Add("a\x1b[31mb\x9b\u009b\u202e\r\n", "\x1b[0m")
	f.Add("\x1b", "[31m")
	ours := regexp.MustCompile("^\x1b\\[31m|\x1b\\[0m$")
	f.Fuzz(func(t *testing.T, text, more string) {
		got := terminal.Text(terminal.Paint("31", text+more))
		if !utf8.ValidString(got) || !strings.HasPrefix(got, "\x1b[31m") || !strings.HasSuffix(got, "\x1b[0m") {
			t.Fatalf("%q is not painted", got)
		}
		if plain := ours.ReplaceAllString(got, ""); strings.IndexFunc(plain, terminal.Hidden) >= 0 {
			t.Errorf("%q has a control character", plain)
		}
	})
}
