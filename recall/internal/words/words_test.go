package words

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestTerms(t *testing.T) {
	for _, group := range [][]string{
		{"film", "films", "movie", "movies"},
		{"child", "children", "kid", "kids"},
		{"mother", "mothers", "mom", "moms"},
		{"decide", "decided", "decision", "decisions"},
		{"went", "go", "goes", "going"},
		{"colour", "colors", "color"},
		{"Café", "cafe", "cafés"},
	} {
		for _, w := range group[1:] {
			if got, want := Term(w), Term(group[0]); got != want {
				t.Errorf("%s is found by %q, %s by %q", w, got, group[0], want)
			}
		}
	}
	for _, pair := range [][2]string{{"found", "founded"}, {"doc", "doctor"}, {"cut", "cat"}} {
		if a, b := Term(pair[0]), Term(pair[1]); a == b {
			t.Errorf("%s and %s are both found by %q", pair[0], pair[1], a)
		}
	}
}

// TestLexer holds what a Lexer remembers against what it would find out again:
// words of every length, alike in their first bytes or in all but one, and
// more of them than it remembers.
func TestLexer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	var all []string
	for len(all) < maxSeen+maxSeen/4 {
		w := strings.Repeat("abcdefgh", 3)[:1+rng.IntN(20)]
		at := rng.IntN(len(w))
		w = w[:at] + string(rune('a'+rng.IntN(26))) + w[at+1:]
		if rng.IntN(4) > 0 {
			w += fmt.Sprint(rng.IntN(maxSeen))
		}
		all = append(all, w, "ö"+w)
	}
	var l Lexer
	for range 2 {
		for _, w := range all {
			got := l.look(w).id
			if want := Term(w); want == "" && got != stopWord || want != "" && l.Terms[got] != want {
				t.Fatalf("%q is term %d, want %q", w, got, want)
			}
		}
	}
	if len(l.seen) > maxSeen {
		t.Errorf("%d words are remembered", len(l.seen))
	}
}

func TestAsks(t *testing.T) {
	type asks struct{ ends, mostly bool }
	both := asks{true, true}
	for text, want := range map[string]asks{
		"":                  {},
		"It works.":         {},
		"Does it work?":     both,
		"Does it work? \"":  both,
		"Hi! Does it work?": both,
		"动了吗？":              both,
		"The parser was rewritten on Monday and is twice as fast. And you?": {true, false},
		"Why was the parser rewritten on Monday, of all days? Hm.":          {false, true},
		"Does it work? [attached: machine.jpg, 120 KB]":                     both,
		"It works. [why?]": {},
	} {
		if ends, mostly := Asks(text); (asks{ends, mostly}) != want {
			t.Errorf("%q: got %v and %v, want %v", text, ends, mostly, want)
		}
	}
}

func TestDates(t *testing.T) {
	now := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ text, from, to string }{
		{"what happened on 2026-03-05?", "2026-03-05", "2026-03-08"},
		{"on 5 March 2025", "2025-03-05", "2025-03-08"},
		{"on March 5th, 2025", "2025-03-05", "2025-03-08"},
		{"on 1 September", "2025-09-01", "2025-09-04"},
		{"in May 2024", "2024-05-01", "2024-06-04"},
		{"in June", "2026-06-01", "2026-07-04"},
		{"in the summer of 2023", "2023-06-01", "2023-09-01"},
		{"during 2022", "2022-01-01", "2023-01-01"},
		{"what did I say yesterday", "2026-08-19", "2026-08-20"},
		{"three days ago", "2026-08-17", "2026-08-18"},
		{"a couple of days ago", "2026-08-17", "2026-08-20"},
		{"a few weeks ago", "2026-07-27", "2026-08-03"},
		{"this morning", "2026-08-20", "2026-08-21"},
		{"last night", "2026-08-19", "2026-08-21"},
		{"before the release", "", ""},
		{"last month", "2026-07-01", "2026-08-04"},
		{"last Monday", "2026-08-17", "2026-08-18"},
		{"on thursday", "2026-08-13", "2026-08-14"}, // it is Thursday now
		{"what did we plan last weekend", "2026-08-15", "2026-08-17"},
		{"in mid-May 2024", "2024-05-10", "2024-05-24"},
		{"in early June", "2026-06-01", "2026-06-14"},
		{"at the end of May 2024", "2024-05-20", "2024-06-04"},
		{"in the second week of March", "2026-03-08", "2026-03-18"},
		{"between 3 and 7 May 2024", "2024-05-03", "2024-05-10"},
		{"May 3-7, 2024", "2024-05-03", "2024-05-10"},
		{"from 28 May 2024 to 3 June 2024", "2024-05-28", "2024-06-06"},
		{"between May 3 and May 7 2026", "2026-05-03", "2026-05-10"},
		{"what happened last week, as said on 6 May 2024", "2024-05-06", "2024-05-09"},
		{"the monday of my dreams", "", ""},
		{"I may go", "", ""},
	} {
		spans := Dates(c.text, now)
		got := [2]string{}
		if len(spans) > 0 {
			got = [2]string{spans[0].From.Format(time.DateOnly), spans[0].To.Format(time.DateOnly)}
		}
		if want := [2]string{c.from, c.to}; got != want {
			t.Errorf("%q: got %v, want %v", c.text, got, want)
		}
	}
}

func FuzzDates(f *testing.F) {
	f.Add("from 28 May 2024 to 3 June 2024")
	f.Add("9999 days ago, in mid-May")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Dates(text, time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)) {
			if !s.From.Before(s.To) || s.At[0] < 0 || s.At[0] >= s.At[1] || s.At[1] > len(text) {
				t.Errorf("%q: %v", text, s)
			}
		}
	})
}
