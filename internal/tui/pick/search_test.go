package pick_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"goclaw/internal/tui/pick"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// searching opens a search over a real index: a long conversation, the sessions
// of several, and a memory file.
func searching(t testing.TB, w, h int) (*pick.Search, *person, []session.ID) {
	o, ids := searched(t)
	v := pick.NewSearch(context.Background(), o)
	return v, open(t, v, w, h), ids
}

func searched(t testing.TB) (pick.SearchOptions, []session.ID) {
	st := open1(t)
	ids := several(t, st)
	var bodies []session.Body
	for i := range 60 {
		bodies = append(bodies, sessiontest.User(fmt.Sprintf("Question %d about the parser.", i)), sessiontest.Answer(fmt.Sprintf("Answer %d.\n\tIt has two lines.\x1b[2J", i)))
	}
	bodies[60] = sessiontest.User("What does the walrus operator do in the parser?")
	bodies[90] = sessiontest.User("And the walrus again?")
	ids = append(ids, talk(t, st, session.Header{Key: "main:cli:long", CWD: "/home/ann/work/goclaw"}, time.Hour, append(bodies, session.Title{Title: "The parser\x1b[31m"})...))
	dir := t.TempDir()
	note := strings.Repeat("Nothing of interest.\n\n", 30) + "The walrus lives in memory.\n\n" + strings.Repeat("Nothing again.\n\n", 30)
	if err := os.WriteFile(filepath.Join(dir, "MEMORY.md"), []byte(note), 0o666); err != nil {
		t.Fatal(err)
	}
	ix, err := recall.Open(recall.Options{Store: st, Workspace: dir, Now: now().Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return pick.SearchOptions{Store: st, Clock: now(), File: ix.File, Find: func(ctx context.Context, line string) ([]recall.Hit, string, []string, error) {
		if strings.HasPrefix(line, "--wrong") {
			return nil, "", nil, errors.New("there is no flag --wrong")
		}
		res, err := ix.Search(ctx, recall.Query{Text: line, Limit: 50})
		return res.Hits, line, nil, err
	}}, ids
}

func TestSearchScreens(t *testing.T) {
	o, _ := searched(t)
	for _, size := range []struct {
		name string
		w, h int
	}{{"80x24", 80, 24}, {"40x20", 40, 20}} {
		t.Run(size.name, func(t *testing.T) {
			p := open(t, pick.NewSearch(context.Background(), o), size.w, size.h)
			golden(t, "search-"+size.name, p.screen())
			p.press("walrus")
			golden(t, "search-hits-"+size.name, p.screen())
			p.press("enter")
			golden(t, "search-open-"+size.name, p.screen())
			for range 3 {
				if !strings.Contains(p.screen(), "walrus lives") {
					p.press("n")
				}
			}
			golden(t, "search-note-"+size.name, p.screen())
		})
	}
}

// A hit that has no word of what was typed says so, also without colours.
func TestNearHit(t *testing.T) {
	o, ids := searched(t)
	o.Find = func(context.Context, string) ([]recall.Hit, string, []string, error) {
		return []recall.Hit{{Session: ids[0], Seq: 2, Role: "user", Text: "the sea mammal", Near: true}}, "walrus", nil, nil
	}
	p := open(t, pick.NewSearch(context.Background(), o), 80, 24)
	p.press("walrus")
	if got := p.screen(); !strings.Contains(got, "#2 user (near) the sea mammal") {
		t.Errorf("it shows\n%s", got)
	}
}

func TestHitIsChosen(t *testing.T) {
	o, ids := searched(t)
	for _, c := range []struct {
		keys []string
		want pick.Found // Session: "long" or "importer"
	}{
		{[]string{"esc"}, pick.Found{}},
		{[]string{"walrus operator", "enter", "o"}, pick.Found{Session: "long", Seq: 62}},
		{[]string{"walrus operator", "enter", "f"}, pick.Found{Session: "long", Seq: 62, Fork: true}},
		{[]string{"walrus operator", "enter", "esc", "esc"}, pick.Found{}},
		{[]string{"--wrong", "ctrl+u", "importer second run", "enter", "o"}, pick.Found{Session: "importer", Seq: 2}},
		{[]string{"zzzzz", "enter", "esc"}, pick.Found{}},
	} {
		v := pick.NewSearch(context.Background(), o)
		p := open(t, v, 80, 24)
		p.press(c.keys...)
		want := c.want
		switch want.Session {
		case "long":
			want.Session = ids[len(ids)-1]
		case "importer":
			want.Session = ids[1]
		}
		if got := v.Choice(); !p.done || got != want {
			t.Errorf("%q: done %v, chose %+v, want %+v\n%s", c.keys, p.done, got, want, p.screen())
		}
	}
}

// The whole conversation can be read from an open hit, in both directions.
func TestScrollingReadsMore(t *testing.T) {
	_, p, _ := searching(t, 80, 24)
	p.press("walrus operator", "enter")
	for range 200 {
		p.press("pgup")
	}
	if s := p.screen(); !strings.Contains(s, "Question 0 about") {
		t.Errorf("the beginning is not there:\n%s", s)
	}
	for range 400 {
		p.press("pgdown")
	}
	if s := p.screen(); !strings.Contains(s, "Answer 59.") {
		t.Errorf("the end is not there:\n%s", s)
	}
}

func TestAnySearchKeys(t *testing.T) {
	v, p, _ := searching(t, 80, 24)
	keys := []string{"enter", "up", "down", "home", "end", "pgup", "pgdown", "walrus ", "parser ", "ctrl+u", "n", "p", "?", "\x1b", "backspace"}
	rapid.Check(t, func(rt *rapid.T) {
		p.t = rt
		p.w, p.h = rapid.IntRange(1, 100).Draw(rt, "width"), rapid.IntRange(1, 30).Draw(rt, "height")
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 8).Draw(rt, "keys") {
			p.press(k)
			if c := v.Cursor(); c != nil && (c.X < 0 || c.X >= p.w || c.Y >= p.h) {
				rt.Fatalf("the cursor is at %d, %d", c.X, c.Y)
			}
		}
	})
}

// What there is to know about the hits is said whole: that some were not
// compared, and that these are only near.
func TestSearchRemarks(t *testing.T) {
	o, ids := searched(t)
	o.Find = func(_ context.Context, line string) ([]recall.Hit, string, []string, error) {
		if line == "walrus" {
			return []recall.Hit{{Session: ids[0], Seq: 2, Role: "user", Text: "the walrus"}}, line, nil, nil
		}
		return []recall.Hit{{Session: ids[0], Seq: 2, Role: "user", Text: "the sea mammal", Near: true}}, line,
			[]string{"incomplete: 7 messages are not compared by meaning yet", recall.OnlyNear}, nil
	}
	p := open(t, pick.NewSearch(context.Background(), o), 80, 24)
	p.press("captain")
	for _, want := range []string{"7 messages are not compared", recall.OnlyNear} {
		if got := p.screen(); !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	p.press("ctrl+u", "walrus")
	if got := p.screen(); strings.Contains(got, "near") || strings.Contains(got, "compared") {
		t.Errorf("it goes on saying so:\n%s", got)
	}
}
