package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// A quoted text is the text again, and is escaped where it must be and nowhere
// else, at whatever place in it.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abcé☃😀 \"\\\n\r\t\b\f\x00\x1f\x7f</>&\u2028")), 0, 60, -1).Draw(t, "text")
		s = strings.Repeat("x", rapid.IntRange(0, 20).Draw(t, "before")) + s
		b := AppendString(nil, s)
		var got string
		if err := json.Unmarshal(b, &got); err != nil || got != s {
			t.Fatalf("%q is quoted as %s (%v)", s, b, err)
		}
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		// JSON.stringify escapes no line separator, encoding/json does.
		if w := strings.ReplaceAll(strings.TrimSpace(want.String()), `\u2028`, "\u2028"); w != string(b) {
			t.Fatalf("%q is quoted as %s, want %s", s, b, w)
		}
	})
}

// FuzzAppendString: what is quoted reads back as it was.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain text of more than eight bytes", "quote \" slash \\ and more", "\x00\x1f\x7f\n\r\t tab", "ünïcödé \u2028", "12345678\"", "1234567\x19", strings.Repeat("\"", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if b := AppendString(nil, s); utf8.ValidString(s) && (json.Unmarshal(b, &got) != nil || got != s) {
			t.Errorf("%q became %s", s, b)
		}
	})
}
