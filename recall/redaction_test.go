package recall_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"goclaw/recall"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// Words that a redaction took out are found no more, and are not in the file of
// the index, whether they were in a segment or not.
func TestRedactedWords(t *testing.T) {
	for _, n := range []int{10, 700} {
		st, path := memory.New(), filepath.Join(t.TempDir(), "index.db")
		var bodies []session.Body
		for i := range n {
			bodies = append(bodies, sessiontest.User(fmt.Sprintf("message number%d about xylophones", i)))
		}
		bodies[3] = sessiontest.User("the word is qwertzuiop7")
		if err := st.Append(t.Context(), "s1", sessiontest.Log(bodies...)...); err != nil {
			t.Fatal(err)
		}
		ix, err := recall.Open(recall.Options{Store: st, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		find := func(text string) int {
			t.Helper()
			res, err := ix.Search(t.Context(), recall.Query{Text: text, Sessions: true})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, h := range res.Hits {
				if h.Record == "e4" == (text == "qwertzuiop7") {
					n++
				}
			}
			return n
		}
		if got := find("qwertzuiop7"); got != 1 {
			t.Fatalf("%d records: %d hits before the redaction", n, got)
		}
		s, err := session.Open(t.Context(), st, "s1")
		if err != nil {
			t.Fatal(err)
		}
		b := session.Redaction{Targets: []session.Target{{ID: "e4", Spans: []session.Span{{Field: "blocks.0", Start: 12, End: 23}}}}}
		if _, err := session.Keep(t.Context(), st, s, s.Next(b, session.System{}), session.System{}); err != nil {
			t.Fatal(err)
		}
		if got := find("qwertzuiop7"); got != 0 {
			t.Errorf("%d records: %d hits after the redaction", n, got)
		}
		if got := find("xylophones"); got == 0 {
			t.Errorf("%d records: the rest is not found", n)
		}
		if err := ix.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte("qwertzuiop7")) {
			t.Errorf("%d records: the index holds the word (%v)", n, err)
		}
	}
}
