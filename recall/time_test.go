package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// TestNaturalTime: a time in the words of a query puts what was said then
// first, in the zone of the user, and the rest after it.
func TestNaturalTime(t *testing.T) {
	zone := time.FixedZone("", 9*3600)
	now := time.Date(2026, 11, 18, 10, 0, 0, 0, zone) // a Wednesday
	w := worlds["memory"](t, Options{Now: func() time.Time { return now }})
	days := []struct {
		at   time.Time
		what string
	}{
		{time.Date(2026, 3, 12, 9, 0, 0, 0, zone), "march"},
		{time.Date(2026, 9, 18, 9, 0, 0, 0, zone), "september"},
		{time.Date(2026, 11, 10, 9, 0, 0, 0, zone), "the week before"},
		{time.Date(2026, 11, 16, 1, 0, 0, 0, zone), "monday"}, // Sunday in UTC
		{time.Date(2026, 11, 17, 8, 0, 0, 0, zone), "tuesday"},
		{time.Date(2026, 11, 18, 8, 0, 0, 0, zone), "this morning"},
	}
	recs := []session.Record{{Seq: 1, Time: days[0].at, Body: session.Header{Version: session.Version, ID: "a", Key: "main:cli:a"}}}
	for i, d := range days {
		recs = append(recs, session.Record{Seq: session.Seq(i + 2), Time: d.at, Body: session.Message{Message: llm.UserText(fmt.Sprintf("For the logo we decided on draft %c then.", 'A'+i))}})
	}
	if err := w.Append(t.Context(), "a", recs...); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"what did we decide about the logo in March?":       "march",
		"what did we decide about the logo two months ago?": "september",
		"what did we decide about the logo last week?":      "the week before",
		"what did we decide about the logo on Monday?":      "monday",
		"what did we decide about the logo yesterday?":      "tuesday",
		"the logo, what did we decide today?":               "this morning",
		"what did we decide about the logo this morning?":   "this morning",
		"logo draft last night":                             "tuesday",
		"what did we decide about the logo on 16 November?": "monday",
		"what did we decide about the logo on the 16th?":    "monday",
		"which logo did we choose on 2026-11-16?":           "monday",
	} {
		lines := strings.Split(call(t, w.ix, "session_search", fmt.Sprintf(`{"query":%q}`, query)), "\n")
		for i, d := range days {
			if d.what == want && !strings.HasPrefix(lines[0], fmt.Sprintf("a#%d  %s user: ", i+2, d.at.Format("2006-01-02 15:04"))) {
				t.Errorf("%s: got\n%s", query, strings.Join(lines, "\n"))
			}
		}
		if len(lines) != len(days) {
			t.Errorf("%s: %d results, want all %d", query, len(lines), len(days))
		}
	}
	// The filters leave the rest out.
	for args, want := range map[string]int{
		`{"query":"logo","since":"2026-11-10","until":"2026-11-16"}`: 2,
		`{"query":"logo","until":"2026-03"}`:                         1,
		`{"query":"logo","since":"7d","role":"user"}`:                3,
		`{"query":"logo","source":"goclaw"}`:                         6,
	} {
		if got := strings.Split(call(t, w.ix, "session_search", args), "\n"); len(got) != want {
			t.Errorf("%s: got\n%s", args, strings.Join(got, "\n"))
		}
	}
	for args, want := range map[string]string{
		`{"query":"logo","until":"soon"}`:         "until takes a date",
		`{"query":"logo","role":"king"}`:          "role must be user, assistant, tool or summary",
		`{"query":"logo","source":"emacs"}`:       "emacs",
		`{"query":"logo","tool":"bash"}`:          "bash",
		`{"query":"logo","folder":"/nowhere/at"}`: "/nowhere/at",
	} {
		if got := call(t, w.ix, "session_search", args); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

// TestFewWordsAndADate: what was said when the query says may be what is meant,
// though it holds none of its words and another text holds them all.
func TestFewWordsAndADate(t *testing.T) {
	now := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	write(t, dir+"/memory/2026-08-11.md", "- The captain likes tea, as he said yesterday.\n")
	write(t, dir+"/memory/2026-08-19.md", "- Of all who sail, the skipper goes last.\n")
	w := worlds["memory"](t, Options{Workspace: dir, Embedder: Local{}, Now: func() time.Time { return now }})
	if _, err := w.ix.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := find(t, w.ix, Query{Text: "captain yesterday"}); !slices.Contains(got, "memory/2026-08-19.md:1") {
		t.Errorf("found %v", got)
	}
	if got := find(t, w.ix, Query{Text: "captain"}); !slices.Equal(got, []string{"memory/2026-08-11.md:1"}) {
		t.Errorf("without a date: %v", got)
	}
}
