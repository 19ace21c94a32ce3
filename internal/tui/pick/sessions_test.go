package pick_test

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/tui/pick"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/memory"
)

// searches finds what it was told to.
type searches struct{ hits []recall.Hit }

func (s *searches) Search(_ context.Context, q recall.Query) (recall.Result, error) {
	var res recall.Result
	for _, h := range s.hits {
		if strings.Contains(strings.ToLower(h.Text), strings.ToLower(q.Text)) {
			res.Hits = append(res.Hits, h)
		}
	}
	return res, nil
}

func sessions(t testing.TB, w, h int) (*pick.Sessions, *person, session.Store, []session.ID) {
	o, ids := choice(t)
	v := pick.NewSessions(context.Background(), o)
	return v, open(t, v, w, h), o.Store, ids
}

func choice(t testing.TB) (pick.SessionsOptions, []session.ID) {
	st := open1(t)
	ids := several(t, st)
	search := &searches{[]recall.Hit{{Session: ids[5], Seq: 2, Role: recall.User, Text: "The invoices are wrong."}, {Session: ids[1], Seq: 2, Role: recall.User, Text: "The importer test fails on every second run."}}}
	return pick.SessionsOptions{Store: st, Clock: later(), Search: search, Folder: "/home/ann/work", Open: ids[1]}, ids
}

func TestSessionScreens(t *testing.T) {
	for _, size := range []struct {
		name string
		w, h int
	}{{"80x24", 80, 24}, {"40x20", 40, 20}, {"120x30", 120, 30}} {
		t.Run(size.name, func(t *testing.T) {
			_, p, _, _ := sessions(t, size.w, size.h)
			golden(t, "sessions-"+size.name, p.screen())
			p.press("down", "invoices")
			golden(t, "sessions-found-"+size.name, p.screen())
			p.press("ctrl+u", "tab")
			golden(t, "sessions-preview-"+size.name, p.screen())
			p.press("tab", "?")
			golden(t, "sessions-help-"+size.name, p.screen())
		})
	}
}

func TestSessionIsChosen(t *testing.T) {
	o, ids := choice(t)
	for _, c := range []struct {
		keys []string
		want int
	}{
		{[]string{"enter"}, 0},
		{[]string{"down", "down", "up", "enter"}, 1},
		{[]string{"lisbon", "enter"}, 0},
		{[]string{"bill refac", "enter"}, 5},
		{[]string{"会议", "enter"}, 4},
		{[]string{"parsers deep", "enter"}, 2}, // a title and a folder
		{[]string{"invoices", "enter"}, 5},     // what was said
		{[]string{"xyzzy", "enter", "esc"}, -1},
		{[]string{"esc"}, -1},
		{[]string{"ctrl+c"}, -1},
		{[]string{"ctrl+l", "home", "enter"}, 1}, // the first of this folder
		{[]string{"?", "enter", "end", "enter"}, 5},
	} {
		v := pick.NewSessions(context.Background(), o)
		p := open(t, v, 80, 24)
		p.press(c.keys...)
		want := session.ID("")
		if c.want >= 0 {
			want = ids[c.want]
		}
		if !p.done || v.Choice() != want {
			t.Errorf("%q: done %v, chose %q, want %q", c.keys, p.done, v.Choice(), want)
		}
	}
}

// At the start the sessions of this folder are shown, unless there are none.
func TestHereAtFirst(t *testing.T) {
	o, ids := choice(t)
	for _, c := range []struct {
		folder, want string
	}{{"/home/ann/work", "Sessions  3 of 6  in /home/ann/work\n"}, {"/elsewhere", "Sessions  6\n"}} {
		o.Here, o.Folder, o.Text = true, c.folder, ""
		if s := open(t, pick.NewSessions(context.Background(), o), 80, 24).screen(); !strings.HasPrefix(s, c.want) {
			t.Errorf("in %s:\n%s", c.folder, s)
		}
	}
	o.Text = "lisbon"
	o.Folder = "/home/ann/work"
	v := pick.NewSessions(context.Background(), o)
	p := open(t, v, 80, 24)
	p.press("ctrl+l", "enter")
	if v.Choice() != ids[0] {
		t.Errorf("chose %q", v.Choice())
	}
}

func TestSessionIsRenamed(t *testing.T) {
	v, p, st, ids := sessions(t, 80, 24)
	p.press("ctrl+r", "ctrl+u", "Fado and pastries")
	golden(t, "sessions-rename-80x24", p.screen())
	p.press("enter", "fado", "enter")
	in, err := session.Stat(context.Background(), st, ids[0])
	if err != nil || in.Title != "Fado and pastries" || v.Choice() != ids[0] {
		t.Errorf("it is called %q, and %q is chosen, not %q: %v", in.Title, v.Choice(), ids[0], err)
	}
	_, p, st, ids = sessions(t, 80, 24)
	p.press("ctrl+r", "no", "esc", "ctrl+r", "ctrl+u", "enter")
	if in, _ := session.Stat(context.Background(), st, ids[0]); in.Title != "Plan the trip to Lisbon" {
		t.Errorf("it is called %q", in.Title)
	}
}

func TestSessionsAreDeletedAndRestored(t *testing.T) {
	_, p, st, ids := sessions(t, 80, 24)
	trashed := func(want ...session.ID) {
		t.Helper()
		got := map[session.ID]bool{}
		for in, err := range st.List(context.Background(), session.Query{Trash: true}) {
			if err != nil {
				t.Fatal(err)
			}
			got[in.ID] = true
		}
		for _, id := range want {
			if !got[id] {
				t.Errorf("%s is not in the trash", id)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d are in the trash, want %d", len(got), len(want))
		}
	}
	p.press("ctrl+x")
	trashed(ids[0])
	if s := p.screen(); strings.Contains(s, "* Plan the trip") || !strings.Contains(s, "Ctrl-Z brings it back") {
		t.Errorf("it is still there:\n%s", s)
	}
	p.press("ctrl+x", "end", "ctrl+x")
	trashed(ids[0], ids[1], ids[5])
	p.press("ctrl+z")
	trashed(ids[0], ids[1])
	p.press("ctrl+z", "ctrl+z", "ctrl+z")
	trashed()
	golden(t, "sessions-restored-80x24", p.screen())
}

func TestSessionIsForked(t *testing.T) {
	v, p, st, ids := sessions(t, 80, 24)
	p.press("billing", "ctrl+f")
	p.press("enter")
	f, err := session.Stat(context.Background(), st, v.Choice())
	if err != nil || f.ID == ids[5] || f.Mirror() || f.Turns != 1 {
		t.Errorf("the copy of an imported session is %+v: %v", f, err)
	}
	if was, _ := session.Stat(context.Background(), st, ids[5]); was.Records != 4 {
		t.Errorf("the imported session has %d records now", was.Records)
	}
}

// A change that was asked for is made, also if Esc follows at once.
func TestLeavingWaitsForChanges(t *testing.T) {
	v, p, st, ids := sessions(t, 80, 24)
	_, cmd := v.Update(named["ctrl+x"])
	if done, _ := v.Update(named["esc"]); done {
		t.Fatal("it is left while a session is being deleted")
	}
	p.run(cmd)
	if in, _ := session.Stat(context.Background(), st, ids[0]); !p.done || in.Trashed.IsZero() {
		t.Errorf("done %v, and in the trash since %v", p.done, in.Trashed)
	}
}

// Thousands of sessions: the first page is enough for the first screen, and all
// of them are there in the end.
func TestManySessions(t *testing.T) {
	st := open1(t)
	crowd(t, st, 1_200)
	v := pick.NewSessions(context.Background(), pick.SessionsOptions{Store: st, Clock: later()})
	p := &person{t: t, v: v, w: 80, h: 24}
	_, more := v.Update(v.Init()())
	golden(t, "sessions-first-80x24", p.screen())
	p.run(more)
	if s := p.screen(); !strings.Contains(s, "Sessions  1200\n") {
		t.Errorf("the whole list:\n%s", s)
	}
	p.press("case 1199", "enter")
	if in, err := session.Stat(context.Background(), st, v.Choice()); err != nil || in.Key != "main:cli:s1199" {
		t.Errorf("chose %s: %v", in.Key, err)
	}
}

// Whatever keys are pressed, the screen is never left, and nothing is lost for
// good.
func TestAnyKeys(t *testing.T) {
	keys := []string{"tab", "up", "down", "pgup", "pgdown", "home", "end", "backspace", "delete", "left", "right", "ctrl+r", "ctrl+f", "ctrl+x", "ctrl+z", "ctrl+l", "ctrl+u", "ctrl+w", "ctrl+k", "?", "a", "e", " ", "lis", "会", "🙂", "\u0301"}
	rapid.Check(t, func(rt *rapid.T) {
		st := memory.New()
		ids := several(t, st)
		v := pick.NewSessions(context.Background(), pick.SessionsOptions{Store: st, Clock: later(), Folder: "/home/ann/work", Search: &searches{[]recall.Hit{{Session: ids[2], Seq: 2, Text: "lisp\x1b[2J"}}}})
		w, h := rapid.IntRange(1, 130).Draw(rt, "width"), rapid.IntRange(1, 40).Draw(rt, "height")
		p := open(rt, v, w, h)
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 15).Draw(rt, "keys") {
			p.press(k)
			if c := v.Cursor(); c != nil && (c.X < 0 || c.X >= w || c.Y < 0 || c.Y >= h) {
				rt.Fatalf("the cursor is at %d, %d", c.X, c.Y)
			}
		}
		if strings.Contains(v.View(80, 24), "New title:") {
			p.press("esc")
		}
		for range 16 { // the first may end the help
			p.press("ctrl+z")
		}
		p.send(tea.WindowSizeMsg{Width: 5, Height: 3})
		for _, id := range ids {
			if in, err := session.Stat(context.Background(), st, id); err != nil || !in.Trashed.IsZero() {
				rt.Fatalf("%s is lost: %v", in.Key, err)
			}
		}
	})
}

// BenchmarkFilter is one key press among 10,000 sessions, with the view of it.
func BenchmarkFilter(b *testing.B) {
	st := memory.New()
	crowd(b, st, 10_000)
	v := pick.NewSessions(context.Background(), pick.SessionsOptions{Store: st, Clock: later()})
	open(fatal{b}, v, 120, 40)
	for b.Loop() {
		v.Update(tea.KeyPressMsg{Code: 'i', Text: "i"})
		v.View(120, 40)
		v.Update(named["backspace"])
		v.View(120, 40)
	}
}

// BenchmarkOpen is the first screen of 10,000 sessions in SQLite, and all of them.
func BenchmarkOpen(b *testing.B) {
	st := open1(b)
	crowd(b, st, 10_000)
	for _, all := range []bool{false, true} {
		name := map[bool]string{false: "first", true: "all"}[all]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				v := pick.NewSessions(context.Background(), pick.SessionsOptions{Store: st, Clock: later()})
				_, more := v.Update(v.Init()())
				v.View(80, 24)
				if p := (&person{t: fatal{b}, v: v, w: 80, h: 24}); all {
					p.run(more)
				}
				v.Update(named["esc"])
			}
		})
	}
}

type fatal struct{ *testing.B }
