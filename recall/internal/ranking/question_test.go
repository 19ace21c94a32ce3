package ranking

import (
	"fmt"
	"strings"
	"testing"

	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/words"
)

func TestSpoken(t *testing.T) {
	q := &Question{names: []string{words.Term("Ada"), words.Term("Grace")}}
	for text, want := range map[string]string{
		"When did Ada buy a boat?":           "When did I buy a boat?",
		"Is it Ada's boat, or grace’s?":      "Is it my boat, or my?",
		"Ada":                                "I",
		"Who is Adam, and why do we ask him": "Who is Adam, and why do we ask him",
	} {
		if got := q.Spoken(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := new(Question).Spoken("Ada?"); got != "Ada?" {
		t.Errorf("nobody is named, but got %q", got)
	}
}

func TestOurs(t *testing.T) {
	for text, want := range map[string]bool{
		"What is my monthly budget?":        true,
		"what did we decide about the logo": true,
		"How did you help me with it?":      false,
		"parseSessionID":                    false,
		"why did the deploy fail?":          false,
	} {
		if got := ours(text); got != want {
			t.Errorf("%q is about the user: %v, want %v", text, got, want)
		}
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]bool{
		"permission denied":                    true,
		"if (err != nil)":                      true,
		"what is in parse(x)?":                 true,
		"- Missing error handling. Should we?": true, // a line that was copied
		"❓ should we go on anyway?":            true,
		"--no-ff: what is it?":                 false,
		"should we go on anyway?":              false,
		"who decided that":                     false,
		"The deploy failed. Do you know why?":  false,
		"?":                                    false,
	} {
		ends, _ := words.Asks(text)
		if got := isExact(text, ends); got != want {
			t.Errorf("%q looks for its words themselves: %v, want %v", text, got, want)
		}
	}
}

// TestOpens: a talk begins with a session or after a pause, and its first three
// messages count as its beginning.
func TestOpens(t *testing.T) {
	var docs []postings.Doc
	for _, d := range []struct {
		group   uint32
		minutes int64
	}{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 1000}, {1, 1001}, {2, 1001}, {2, 1002}, {2, 1003}, {2, 1004}, {2, 1200}, {2, 1441}} {
		docs = append(docs, postings.Doc{Group: d.group}.At(60*d.minutes))
	}
	var got []string
	for at := range docs {
		got = append(got, fmt.Sprintf("%.1f", opens(docs, at)))
	}
	if got, want := strings.Join(got, " "), "1.0 0.7 0.3 0.0 1.0 0.7 1.0 0.7 0.3 0.0 0.0 1.0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
