package storekit

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFileNamesNeverMeetOrEscape(t *testing.T) {
	emoji := strings.Repeat("🦀", 75)
	texts := []string{"a:b", "a_b", "A:B", "a:B", "a%3ab", "../x", "..", ".", "", "a:", ":a", "a/b", `a\b`, "a\x00b", "nul", "%nul", "n%ul",
		"con.x", "com1", "x.", ".x", "x ", emoji, emoji[:len(emoji)-1] + "\x81", strings.Repeat("a", 300), strings.Repeat("a", 301), "%", "%25", "%~"}
	seen := map[string]string{}
	for _, s := range texts {
		name := FileName(s)
		checkName(t, s, name)
		low := strings.ToLower(name)
		if other, ok := seen[low]; ok {
			t.Errorf("FileName(%q) = FileName(%q) = %q", s, other, name)
		}
		seen[low] = s
	}
}

func TestFileNameInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-bA-B:_./%~0-9]{0,6}`))
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		na, nb := FileName(a), FileName(b)
		if a != b && strings.EqualFold(na, nb) {
			t.Fatalf("%q and %q both become %q", a, b, na)
		}
	})
}

func checkName(t *testing.T, text, name string) {
	t.Helper()
	if name == "" || len(name) > 200 || name[0] == '.' || strings.ContainsAny(name, `/\:*?"<>|`+"\x00") || filepath.Base(name) != name || !filepath.IsLocal(name) {
		t.Errorf("FileName(%q) = %q is not a safe name", text, name)
	}
}
