package codec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A quoted text is the text again, and is escaped where it must be and nowhere
// else, at whatever place in it.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abcé☃😀 \"\\\n\r\t\b\f\x00\x1f\x7f</>&\u2028")), 0, 60, -1).Draw(t, "text")
		s = strings.Repeat("x", rapid.IntRange(0, 20).Draw(t, "before")) + s
		b := appendString(nil, s)
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
