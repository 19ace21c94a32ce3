package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"goclaw/internal/mirrors"
	"goclaw/llm"
	"goclaw/session"
)

// TestScripts: words are found in whatever script they are written, also where
// it puts no spaces between them, or writes endings onto them.
func TestScripts(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	texts := []string{
		"데이터베이스를 이전했습니다", "北京今天下雨", "東京の天気", "データベースを移した", "ﾃﾞｰﾀ", // 2 to 6
		"ประเทศไทยสวยงาม", "Die Straße ist gesperrt", "ΟΔΥΣΣΕΥΣ ἐγύρισε", "Zażółć gęślą jaźń w Łodzi", "smørrebrød and œuvre", // 7 to 11
	}
	for i, text := range texts {
		say(t, w, fmt.Sprintf("s%d", i+2), "user: "+text)
	}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			query string
			want  int
		}{
			{"데이터베이스", 2}, {"데이터", 2}, {"이전", 2}, {"데", 2}, {"데이터베이스가", 2},
			{"데이터", 2}, // its letters one by one
			{"北", 3}, {"北京", 3}, {"雨", 3}, {"東", 4}, {"気", 4}, {"天気", 4},
			{"データベース", 5}, {"ﾍﾞｰｽ", 5}, {"移", 5},
			{"ไทย", 7},
			{"strasse", 8}, {"STRASSE", 8}, {"straße", 8},
			{"οδυσσευς", 9}, {"οδυσσεύς", 9}, {"ΟΔΥΣΣΕΎΣ", 9}, {"εγυρισε", 9},
			{"zazolc", 10}, {"lodzi", 10}, {"smorrebrod", 11}, {"oeuvre", 11},
		} {
			first(t, w.ix, c.query, fmt.Sprintf("s%d#2", c.want))
		}
		for _, query := range []string{"京", "天"} { // two have it
			got := find(t, w.ix, Query{Text: query})
			if len(got) != 2 {
				t.Errorf("%s found %v, want both", query, got)
			}
		}
		if got := find(t, w.ix, Query{Text: "南"}); len(got) != 0 {
			t.Errorf("found what nobody said: %v", got)
		}
	}
	check()
	for i := range flushAt { // in a segment, too
		say(t, w, "filler", fmt.Sprintf("user: filler %d", i))
	}
	check()
}

// TestMarked: what is found is marked as far as it goes.
func TestMarked(t *testing.T) {
	for _, c := range []struct{ text, query, want string }{
		{"나는 데이터베이스를 이전", "데이터베이스", "데이터베이스"},
		{"今日は東京へ行く", "京", "京"},
		{"今日は東京都へ行く", "東京都", "東京都"},
		{"Die Straße hier", "strasse", "Straße"},
	} {
		s, marks := Hit{Text: c.text}.Snippet(c.query, 100)
		if len(marks) != 1 || s[marks[0][0]:marks[0][1]] != c.want {
			t.Errorf("%s in %s: marked %v", c.query, s, marks)
		}
	}
}

// TestSaidOften: what is said again and again is one hit, however short it is,
// and does not hide the rest.
func TestSaidOften(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	for i := range 6 {
		say(t, w, fmt.Sprintf("s%d", i), "user: restart the nginx server"+strings.Repeat("!", i), "assistant: done")
	}
	say(t, w, "other", "user: do not restart the nginx server")
	for _, limit := range []int{1, 2, 10} {
		res, err := w.ix.Search(t.Context(), Query{Text: "restart nginx", Limit: limit, Role: User})
		if err != nil || len(res.Hits) != min(limit, 2) {
			t.Fatalf("limit %d: %+v, %v", limit, res.Hits, err)
		}
		for _, h := range res.Hits {
			if want := map[bool]int{false: 5, true: 0}[h.Session == "other"]; len(h.Also) != want {
				t.Errorf("limit %d: %s is said %d times more, want %d", limit, h.Cite(), len(h.Also), want)
			}
		}
	}
	if got := call(t, w.ix, "session_search", `{"query":"restart nginx","role":"user"}`); !strings.Contains(got, "[and 5 more like it, such as s") {
		t.Errorf("the model reads %s", got)
	}
	say(t, w, "party", "user: 🎉", "assistant: nice", "user: 🎉")
	if got := find(t, w.ix, Query{Text: "🎉"}); len(got) != 1 {
		t.Errorf("as it stands: %v", got)
	}
	for range 2 * candidates {
		say(t, w, "often", "user: the wombat digs under the apple tree")
	}
	say(t, w, "once", "tool: a wombat")
	if got := find(t, w.ix, Query{Text: "wombat"}); len(got) != 2 || got[1] != "once#2" {
		t.Errorf("after what is said often: %v", got)
	}
}

// TestContinuedOnce: what a session has from one that it continues is found
// once, in the one that goes on.
func TestContinuedOnce(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	at := start
	head := session.Record{Seq: 1, Time: at, Body: session.Header{Version: session.Version, ID: "mirror", Key: "agent:main:x", Origin: session.Origin{Program: "openclaw", Path: "/x.jsonl", ID: "x"}}}
	recs := []session.Record{head}
	for i, text := range []string{"the quokka eats grass", "and the quokka that lives on the island of Rottnest eats leaves as well", "quokka 🎉", "🎉"} {
		r := session.Record{Seq: session.Seq(i + 2), ID: fmt.Sprintf("r%d", i), Time: at, Body: session.Message{Message: llm.UserText(text), At: at}}
		if i > 0 {
			r.Parent = fmt.Sprintf("r%d", i-1)
		}
		recs = append(recs, r)
	}
	if err := w.Append(t.Context(), "mirror", recs...); err != nil {
		t.Fatal(err)
	}
	in, err := session.Stat(t.Context(), w, "mirror")
	if err != nil {
		t.Fatal(err)
	}
	own, err := mirrors.Continue(t.Context(), w, in, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	for query, n := range map[string]int{"quokka": 3, "🎉": 2} {
		res, err := w.ix.Search(t.Context(), Query{Text: query})
		if err != nil || len(res.Hits) != n {
			t.Errorf("%s: %+v, %v", query, res.Hits, err)
		}
		seen := map[string]bool{}
		for _, h := range res.Hits {
			if h.Session != own.ID || len(h.Also) != 0 || seen[h.Record] || h.Key != own.Key {
				t.Errorf("%s: %s, and %v", query, h.Cite(), h.Also)
			}
			seen[h.Record] = true
		}
	}
	if got := call(t, w.ix, "session_search", `{"query":"quokka"}`); strings.Contains(got, "mirror#") || strings.Count(got, string(own.ID)) != 3 {
		t.Errorf("the model reads %s", got)
	}
	if got := find(t, w.ix, Query{Text: "quokka", Session: "mirror"}); len(got) != 3 {
		t.Errorf("in the mirror: %v", got)
	}
}

// TestShortQuestion: whoever looks for a word sees the message that has it
// before those around it.
func TestShortQuestion(t *testing.T) {
	for name, e := range map[string]Embedder{"words": nil, "vectors": Local{}} {
		dir := t.TempDir()
		write(t, dir+"/MEMORY.md", "- We were at the sea for the whole of the summer and saw many boats there\n- zanzibar too\n- In the autumn we came back by train, through the long tunnel and over the bridge\n")
		w := worlds["sqlite"](t, Options{Embedder: e, Workspace: dir})
		var lines []string
		for i := range 9 { // 2 to 10
			lines = append(lines, fmt.Sprintf("user: filler number %d is about nothing at all", i))
		}
		lines = append(lines, "assistant: zanzibar is an island that we discussed",
			"user: and now for something else, which is a good deal longer: the plan for the week, the shopping, and all that has to be done in the house and garden before Sunday")
		say(t, w, "a", lines...)
		say(t, w, "b", "user: good morning to you, it is a fine day for a walk outside, is it not", "user: kookaburra?", "assistant: It laughs.")
		if _, err := w.ix.Embed(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			q    Query
			want string
		}{
			{Query{Text: "zanzibar", Sessions: true, Limit: 1}, "a#11"},
			{Query{Text: "the zanzibar island", Sessions: true, Limit: 1}, "a#11"},
			{Query{Text: "zanzibar", Memory: true, Limit: 1}, "MEMORY.md:2"},
			{Query{Text: "kookaburra", Limit: 1}, "b#3"},
		} {
			if got := find(t, w.ix, c.q); len(got) != 1 || got[0] != c.want {
				t.Errorf("%s, %s: found %v, want %s", name, c.q.Text, got, c.want)
			}
		}
	}
}

// TestNoteBeforeNear: for a word or two, a note that holds them comes before a
// message that is only near, and the other way round.
func TestNoteBeforeNear(t *testing.T) {
	own := func(file string, seq int) Hit { return Hit{File: file, Line: 1, Session: "s", Seq: session.Seq(seq)} }
	near := func(h Hit) Hit { h.Near = true; return h }
	cites := func(hits []Hit) (out []string) {
		for _, h := range hits {
			out = append(out, h.Cite())
		}
		return out
	}
	messages := []Hit{near(own("", 2)), near(own("", 3))}
	notes := []Hit{own("a.md", 0), own("b.md", 0), near(own("c.md", 0))}
	for _, c := range []struct {
		a, b     []Hit
		ownFirst bool
		limit    int
		want     []string
	}{
		{messages, notes, true, 10, []string{"a.md:1", "b.md:1", "s#2", "c.md:1", "s#3"}},
		{notes, messages, true, 10, []string{"a.md:1", "b.md:1", "s#2", "c.md:1", "s#3"}},
		{messages, notes, false, 10, []string{"s#2", "a.md:1", "s#3", "b.md:1", "c.md:1"}},
		{messages, nil, true, 1, []string{"s#2"}},
		{nil, notes, false, 2, []string{"a.md:1", "b.md:1"}},
		{nil, nil, true, 2, nil},
	} {
		if got := cites(interleave(c.a, c.b, c.limit, c.ownFirst)); !slices.Equal(got, c.want) {
			t.Errorf("%v and %v, own first: %v: %v, want %v", cites(c.a), cites(c.b), c.ownFirst, got, c.want)
		}
	}
	for text, want := range map[string]bool{"locker": true, "locker code": true, "the locker code": true, "the locker code of Anna": false, "pkg/locker/code_test.go --no-ff": true, "locker?": false} {
		if got := fewWords(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
