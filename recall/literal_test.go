package recall

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAsItStands: a query without a word that is indexed is found as it
// stands, the newest first.
func TestAsItStands(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- To be,\n- to be or not\n  to be\n- tea 🎉\n")
	w := worlds["sqlite"](t, Options{Workspace: dir, Embedder: Local{}})
	say(t, w, "a", "user: To be or not to be?", "assistant: not at all", "user: that was it 🎉", "user: ❤️", "tool: 🎉")
	say(t, w, "b", "user: the others")
	for _, c := range []struct {
		q    Query
		want []string
	}{
		{Query{Text: "to be or not to be"}, []string{"a#2", "MEMORY.md:2"}},
		{Query{Text: "  TO BE or   not to be "}, []string{"a#2", "MEMORY.md:2"}},
		{Query{Text: "not at all"}, []string{"a#3"}},
		{Query{Text: "not at al"}, []string{}}, // within a word
		{Query{Text: "🎉"}, []string{"a#6", "MEMORY.md:4", "a#4"}},
		{Query{Text: "😀🎉", Memory: true}, []string{"MEMORY.md:4"}},
		{Query{Text: "🎉", Role: User}, []string{"a#4"}},
		{Query{Text: "🎉", Session: "b"}, []string{}},
		{Query{Text: "🎉", Sessions: true, Limit: 1}, []string{"a#6"}},
		{Query{Text: "🎉", Until: start.Add(5 * time.Minute), Role: User}, []string{"a#4"}},
		{Query{Text: "🎉", Sessions: true, Since: start.Add(5 * time.Minute)}, []string{"a#6"}},
		{Query{Text: "❤"}, []string{"a#5"}},
		{Query{Text: "?"}, []string{"a#2"}},
		{Query{Text: " "}, []string{}},
		{Query{Text: strings.Repeat("to be ", 10_000)}, []string{}},
	} {
		if d := cmp.Diff(c.want, find(t, w.ix, c.q)); d != "" {
			t.Errorf("%.40q (-want +got):\n%s", c.q.Text, d)
		}
	}
	s, marks := Hit{Text: strings.Repeat("nothing here. ", 40) + "To be or not to be 🎉"}.Snippet("to be or not to be", 100)
	if len(marks) != 1 || s[marks[0][0]:marks[0][1]] != "To be or not to be" {
		t.Errorf("%q is marked at %v", s, marks)
	}
	s, marks = Hit{Text: strings.Repeat("nothing here. ", 40) + "To be or not to be 🎉"}.Snippet("🎉😀", 100)
	if len(marks) != 1 || s[marks[0][0]:marks[0][1]] != "🎉" {
		t.Errorf("%q is marked at %v", s, marks)
	}
	// In a long log the newest are gone through, and the result says so.
	var lines []string
	for i := range maxScannedOne + 10 {
		lines = append(lines, fmt.Sprintf("user: filler %d", i))
	}
	say(t, w, "long", lines...)
	res, err := w.ix.Search(t.Context(), Query{Text: "🎉", Sessions: true})
	if err != nil || len(res.Hits) != 2 || len(res.Incomplete) != 1 || !res.Literal {
		t.Errorf("%d hits, incomplete %q, %v", len(res.Hits), res.Incomplete, err)
	}
}
