package recall

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// marked shows a text with what is marked in brackets.
func marked(s string, marks [][2]int) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		b.WriteString(s[at:m[0]] + "[" + s[m[0]:m[1]] + "]")
		at = m[1]
	}
	return b.String() + s[at:]
}

// TestMarksAsFound: what is found by its beginning, with a typo or as a phrase is
// marked, in any script.
func TestMarksAsFound(t *testing.T) {
	for _, c := range []struct{ text, query, want string }{
		{"the harbour opens", "harbours", "the [harbour] opens"},
		{"set the configuration here", "config", "set the [configuration] here"},
		{"set the configuration and config", "config", "set the configuration and [config]"},
		{"permission denied", "permisson denyed", "[permission] [denied]"},
		{"the mail came", "main", "the [mail] came"},
		{"the agentObserverCancel hook", "agent observer cancel", "the [agentObserverCancel] hook"},
		{"commit 1d4ed75a9be0", "1d4ed75a", "commit [1d4ed75a9be0]"},
		{"we merge with --no-ff here", "--no-ff", "we merge with [--no-ff] here"},
		{"it was to be, or not", "to be", "it was [to be], or not"},
		{"a\tto\n  be b", "to be", "a to be b"},
		{"今日は東京都へ行く", "東京都", "今日は[東京都]へ行く"},
		{"aaa 東京 bbb 東京", "東京", "aaa [東京] bbb [東京]"},
		{"Straße STRASSE", "strasse", "[Straße] [STRASSE]"},
		{"İstanbul harbour", "harbour", "İstanbul [harbour]"},
		{"func sailFerry()", "ferry", "func sail[Ferry]()"},
		{"FLY_API_TOKEN=1", "flyApiToken", "[FLY_API_TOKEN]=1"},
		{"nothing of it", "quokka", "nothing of it"},
	} {
		w := worlds["sqlite"](t, Options{})
		say(t, w, "a", "user: "+c.text)
		res, err := w.ix.Search(t.Context(), Query{Text: c.query})
		if err != nil {
			t.Fatal(err)
		}
		h := Hit{Text: c.text}
		if len(res.Hits) > 0 {
			h = res.Hits[0]
		}
		if got := marked(h.Snippet(c.query, 200)); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	// A word that stands for none is not marked: another message has the word itself.
	w := worlds["sqlite"](t, Options{})
	say(t, w, "a", "user: the mail came", "user: the main one came")
	res, err := w.ix.Search(t.Context(), Query{Text: "main came"})
	if err != nil || len(res.Hits) != 2 {
		t.Fatalf("%d hits, %v", len(res.Hits), err)
	}
	for _, h := range res.Hits {
		if got := marked(h.Snippet("main came", 200)); got != "the mail [came]" && got != "the [main] one [came]" {
			t.Errorf("marked %s", got)
		}
	}
}

// TestLines: of a long output the lines that hold the query are shown, with
// their numbers, each once, and those that hold more of it first.
func TestLines(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 500; i++ {
		switch i {
		case 120, 130, 140:
			b.WriteString("panic: nil pointer\r\n")
		case 200:
			b.WriteString("goroutine 7 of the ferry\n")
		case 300:
			b.WriteString(strings.Repeat("y ", 400) + "panic in the ferry: nil pointer " + strings.Repeat("z ", 400) + "\n")
		case 400:
			b.WriteString("pointer\n")
		default:
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	show := func(lines []LineMatch) (out []string) {
		for _, l := range lines {
			out = append(out, fmt.Sprintf("%d: %s", l.Line, marked(l.Text, l.Marks)))
		}
		return out
	}
	got := show(Hit{Text: b.String()}.Matches("ferry panic nil pointer", 3, 60))
	want := []string{
		"120: [panic]: [nil] [pointer]",
		"200: goroutine 7 of the [ferry]",
		"300: … y y y y y y y [panic] in the [ferry]: [nil] [pointer] z z z z z z z …",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := (Hit{Text: b.String()}).Matches("walrus", 3, 60); len(got) != 0 {
		t.Errorf("nothing is found as %v", got)
	}
	if got := show((Hit{Text: "one\n東京へ\n"}).Matches("東京", 3, 60)); len(got) != 1 || got[0] != "2: [東京]へ" {
		t.Errorf("got %v", got)
	}
	for _, text := range []string{"", "\n", "ferry", "ferry\n", "\nferry", strings.Repeat("ferry\n", 5000), strings.Repeat("東京", 5000)} {
		for _, l := range (Hit{Text: text}).Matches("ferry 東京", 3, 60) {
			if l.Line < 1 || len(l.Marks) == 0 || len(l.Text) > 100 {
				t.Errorf("%.20q: %+v", text, l)
			}
		}
	}
}

// FuzzSnippet: marks lie within the text, in order, and on whole characters.
func FuzzSnippet(f *testing.F) {
	f.Add("the harbour\nopens 東京 at nine", "harbour 東京 nin", 20)
	f.Add("\xff--no-ff\x00İİ", "--no-ff", 3)
	f.Fuzz(func(t *testing.T, text, query string, n int) {
		n = max(1, min(n, 1000))
		check := func(s string, marks [][2]int) {
			last := 0
			for _, m := range marks {
				if m[0] < last || m[1] <= m[0] || m[1] > len(s) {
					t.Fatalf("marks %v of %q", marks, s)
				}
				last = m[1]
			}
		}
		h := Hit{Text: text, Stand: map[string]string{"nine": "nin"}}
		check(h.Snippet(query, n))
		check(text, h.Marks(query))
		for _, l := range h.Matches(query, 3, n) {
			check(l.Text, l.Marks)
			if l.Line < 1 || l.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("line %d of %q", l.Line, text)
			}
		}
	})
}

// TestGroups: hits are grouped by where they are; what is only near a match is
// left out where there are matches.
func TestGroups(t *testing.T) {
	at := start
	groups := Groups([]Hit{
		{Session: "a", Seq: 1, Time: at, Also: []string{"a#5", "b#9"}},
		{Session: "b", Seq: 2, Near: true},
		{File: "memory/x.md", Line: 3, Also: []string{"memory/x.md:9", "memory/x.md.old:1"}},
		{Session: "a", Seq: 3, Time: at.Add(1), Near: true},
		{Session: "a", Seq: 4, Time: at.Add(2)},
	})
	var got []string
	for _, g := range groups {
		line := fmt.Sprintf("%d:", g.Count)
		for _, h := range g.Hits {
			line += " " + h.Cite()
		}
		got = append(got, line)
	}
	if d := cmp.Diff([]string{"3: a#1 a#4", "1: b#2", "2: memory/x.md:3"}, got); d != "" {
		t.Error(d)
	}
	if !groups[0].Latest().Equal(at.Add(2)) {
		t.Errorf("the latest is of %v", groups[0].Latest())
	}
}
