package words

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestWords holds the words of texts of every kind: their terms, where they
// are, (inner) parts and [joined] names.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "0 ",
		" .,- ":                            "0 ",
		"The children went to the movies.": "6 child go movi",
		"it's Ann's; don't, O'Neill’s rock'n'roll":                                "5 ann o'neil rocknrol",
		"parseHTTPRequest getUserID2 sha256 v2 aB3xK9":                            "5 parsehttprequest (pars) (http) (request) getuserid2 sha256 (sha) (256) v2 ab3xk9",
		"UserByID getURLs URLsOf IOError macOS iOS aBcD":                          "7 userbyid (user) (id) geturl (get) (url) urlsof (url) ioerror (io) (error) maco (mac) (os) io abcd",
		"FLY_API_TOKEN=x fly-api-token config.API_TOKEN main.go a.b.c":            "15 flight api token [flyapitoken=FLY_API_TOKEN] x flight api token [flyapitoken=fly-api-token] config api token [apitoken=API_TOKEN] [configapitoken=config.API_TOKEN] main go [maingo=main.go] b c [abc=a.b.c]",
		"git merge --no-ff --version ---x x--y -- --":                             "8 git merg ff [noff=no-ff] [--no-ff=--no-ff] version [--version=--version] x x y",
		"2026-03-05 v1.2.3 10.0.0.1 1.5":                                          "12 2026 03 05 v1 2 3 10 0 0 1 1 5",
		"Ünïcödé Straße ŁÓDŹ naïve’s":                                             "4 unicod strass lodz naiv",
		"猫は魚が好き ｶﾞ 한국어 ไทย 动了吗？":                                                  "12 (猫) 猫は (は) は魚 (魚) 魚が=魚が (が=が) が好=が好 (好) 好き (き) ガ=ｶﾞ (한=한) 한국=한국 (국=국) 국어=국어 (어=어) ไท ทย (动) 动了 (了) 了吗 (吗)",
		"abcdefg abcdefgh abcdefghi ABCDEFGH abcdefgh́":                           "5 abcdefg abcdefgh abcdefghi abcdefgh abcdefgh",
		"abcdefgh1 abcdefgh2 1234567 12345678 123456789":                          "5 abcdefgh1 (abcdefgh) abcdefgh2 (abcdefgh) 1234567 12345678 123456789",
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ööööööööööööööööööööööööö": "2 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ooooooooooooooooooooooooo",
		"a_b_c_d fooBar_bazQux-1 foo..bar foo.":                                   "10 b c d [abcd=a_b_c_d] foobar (foo) (bar) bazqux (baz) (qux) 1 [foobarbazqux1=fooBar_bazQux-1] foo bar foo",
		"path/to/some_file.test.go:12 --set-upstream=origin/main":                 "11 path file [somefil=some_file] test go [somefiletestgo=some_file.test.go] 12 set upstream [setupstream=set-upstream] [--set-upstream=--set-upstream] origin main",
		"été é": "2 ete e",
	} {
		var got []string
		n := Each(text, func(w Word) {
			s := w.Term
			if Term(text[w.From:w.To]) != s && !w.Joined {
				s += "=" + text[w.From:w.To]
			}
			switch {
			case w.Inner:
				s = "(" + s + ")"
			case w.Joined:
				s = "[" + s + "=" + text[w.From:w.To] + "]"
			}
			got = append(got, s)
		})
		if got := fmt.Sprint(n, " ", strings.Join(got, " ")); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
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
			got, _ := l.look(w)
			if want := Term(w); want == "" && got != stopWord || want != "" && l.Terms[got] != want {
				t.Fatalf("%q is term %d, want %q", w, got, want)
			}
		}
	}
	if l.seen.n > maxSeen {
		t.Errorf("%d words are remembered", l.seen.n)
	}
}

// TestMemory holds words apart whose keys are the same, also when the table
// grows.
func TestMemory(t *testing.T) {
	m := memory{slots: make([]slot, 8), more: make([]more, 1)}
	all := []string{"key", "a long word", "another long word"}
	for i, w := range all {
		m.add(keyOf("key"), w, i, []part{{id: i}})
	}
	for range 2 {
		for i, w := range all {
			s := m.find(keyOf("key"), w)
			if parts := m.more[max(s.more, -s.more)].parts; s.key == 0 || int(s.id) != i || len(parts) != 1 || parts[0].id != i {
				t.Errorf("%q is %+v with the parts %v, want %d", w, *s, parts, i)
			}
		}
		m.grow()
	}
	if s := m.find(keyOf("key"), "a third long word"); s.key != 0 {
		t.Errorf("an unknown word is %+v", *s)
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
		{"what happened on 2026-03-05?", "2026-03-05", "2026-03-07"},
		{"on 5 March 2025", "2025-03-05", "2025-03-07"},
		{"on March 5th, 2025", "2025-03-05", "2025-03-07"},
		{"on 1 September", "2025-09-01", "2025-09-03"},
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
		{"from 28 May 2024 to 3 June 2024", "2024-05-28", "2024-06-05"},
		{"between May 3 and May 7 2026", "2026-05-03", "2026-05-09"},
		{"what happened last week, as said on 6 May 2024", "2024-05-06", "2024-05-08"},
		{"the monday of my dreams", "", ""},
		{"what did I say on the 16th?", "2026-08-16", "2026-08-18"},
		{"what did I say on the 20th?", "2026-08-20", "2026-08-22"},
		{"what did I say on the 31st?", "2026-07-31", "2026-08-02"},
		{"on the 5th of March 2025", "2025-03-05", "2025-03-07"},
		{"on the 32nd floor", "", ""},
		{"on the 5th", "2026-08-05", "2026-08-07"},
		{"I may go", "", ""},
		{"how many pets do we have, as of December 2025?", "", ""},
		{"as of the end of May 2024", "", ""},
		{"what was said in May, as of June 2026", "2026-05-01", "2026-06-04"},
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

// Of a named day, the next one is included and told apart.
func TestNamedDay(t *testing.T) {
	now := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"on 5 March 2025":                 "2025-03-06",
		"on the 16th":                     "2026-08-17",
		"between 3 and 7 May 2024":        "2024-05-10",
		"last weekend":                    "2026-08-17",
		"in June":                         "2026-07-04",
		"from 28 May 2024 to 3 June 2024": "2024-06-04",
		"from 3 May 2024 to May 2024":     "2024-06-04",
	} {
		spans := Dates(text, now)
		if len(spans) == 0 || spans[0].Day.Format(time.DateOnly) != want {
			t.Errorf("%q: %v, want a day until %s", text, spans, want)
		}
	}
}

// TestPartsForgotten: what was read without a part is not remembered when the
// part is there again.
func TestPartsForgotten(t *testing.T) {
	term := func() (terms []string) {
		Each("children", func(w Word) { terms = append(terms, w.Term) })
		return terms
	}
	with := term()
	partIrregular.Leave(true)
	without := term()
	partIrregular.Leave(false)
	if again := term(); slices.Equal(with, without) || !slices.Equal(with, again) {
		t.Errorf("%v, without the part %v, then %v", with, without, again)
	}
}
