package pick_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw/internal/tui/pick"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// grown is a session with three branches.
func grown(t testing.TB) *session.Session {
	user, answer := sessiontest.User, sessiontest.Answer
	log := []session.Record{
		{Seq: 1, Body: session.Header{Version: session.Version, ID: "s", Key: "main:cli:trip"}},
		{ID: "a", Body: user("Which flights to Lisbon are cheap in May?")}, {ID: "b", Parent: "a", Body: answer("The one on Tuesday.\n\nIt costs 80 euros and lands at noon.")},
		{ID: "c", Parent: "b", Body: user("And trains?\x1b[2J")}, {ID: "d", Parent: "c", Body: answer("Trains take two days.")},
		{ID: "c2", Parent: "d", Body: user("Overnight?")},
		{ID: "l1", Parent: "c2", Body: session.Leaf{Target: "b"}},
		{ID: "e", Parent: "b", Body: user("And ships?")}, {ID: "f", Parent: "e", Body: answer("There are no ships.")},
		{ID: "l2", Parent: "f", Body: session.Leaf{Target: "b"}},
		{ID: "g", Parent: "b", Body: user("And hotels near the river, 三晚, with a balcony and breakfast and a view of the bridge?")}, {ID: "h", Parent: "g", Body: answer("Three of them.")},
		{ID: "cp", Parent: "h", Body: session.Checkpoint{Summary: "flights and hotels", Covers: "h"}},
		{ID: "k", Parent: "cp", Body: sessiontest.Compaction("The user plans a trip to Lisbon.", "g")},
		{ID: "m", Parent: "k", Body: user("Book the second one")}, {ID: "n", Parent: "m", Body: answer("It is booked.")},
	}
	clock := now()
	for i := range log {
		log[i].Seq, log[i].Time = session.Seq(i+1), clock.Now()
	}
	clock.Move(0)
	s, err := session.Replay("s", sessiontest.Yield(log...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tree(t testing.TB, w, h int) (*pick.Tree, *person) {
	s := grown(t)
	clock := now()
	clock.Move(90 * 60e9)
	v := pick.NewTree(context.Background(), pick.TreeOptions{Clock: clock, Load: func(context.Context) (*session.Session, error) { return s, nil }})
	return v, open(t, v, w, h)
}

func TestTreeScreens(t *testing.T) {
	for _, size := range []struct {
		name string
		w, h int
	}{{"80x24", 80, 24}, {"40x20", 40, 20}} {
		t.Run(size.name, func(t *testing.T) {
			_, p := tree(t, size.w, size.h)
			golden(t, "tree-"+size.name, p.screen())
			p.press("home")
			golden(t, "tree-first-"+size.name, p.screen())
			p.press("?")
			golden(t, "tree-help-"+size.name, p.screen())
		})
	}
}

func TestPointIsChosen(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string // the record, and "end" or "live"
	}{
		{[]string{"enter"}, ""}, // here already
		{[]string{"esc"}, ""},
		{[]string{"up", "enter"}, "m live"},
		{[]string{"home", "enter"}, "a live"},
		{[]string{"trains", "enter"}, "c"},
		{[]string{"home", "down", "down", "down", "enter"}, "c2 end"},
		{[]string{"ships", "enter"}, "e"},
		{[]string{"nothing of the kind", "enter", "esc"}, ""},
		{[]string{"plans", "enter", "ctrl+u", "overnight", "enter"}, "c2"}, // a compaction cannot be chosen
	} {
		v, p := tree(t, 80, 24)
		p.press(c.keys...)
		got := ""
		if x := v.Choice(); x != nil {
			got = x.Record.ID
			if x.End {
				got += " end"
			}
			if x.Live {
				got += " live"
			}
		}
		if got != c.want || !p.done {
			t.Errorf("%q: done %v, chose %q, want %q", c.keys, p.done, got, c.want)
		}
	}
}

func TestTreeThatCannotBeRead(t *testing.T) {
	v := pick.NewTree(context.Background(), pick.TreeOptions{Clock: now(), Load: func(context.Context) (*session.Session, error) { return nil, errors.New("the disk is gone") }})
	p := open(t, v, 80, 24)
	if s := p.screen(); !strings.Contains(s, "the disk is gone") {
		t.Error(s)
	}
	p.press("enter", "x", "end", "esc")
	if !p.done || v.Choice() != nil {
		t.Error("it is not left")
	}
}

// Every message of every log is in the tree once, whatever its shape.
func TestAnyTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := sessiontest.AnyLog(rt)
		s, err := session.Replay("s", sessiontest.Yield(log...))
		if err != nil {
			rt.Skip(err)
		}
		want := map[session.Seq]bool{}
		for r := range s.Links() {
			if session.IsTurn(r.Body) {
				want[r.Seq] = true
			}
		}
		v := pick.NewTree(context.Background(), pick.TreeOptions{Clock: now(), Load: func(context.Context) (*session.Session, error) { return s, nil }})
		p := open(rt, v, 80, 400)
		for seq := range want {
			if n := strings.Count(p.screen(), fmt.Sprintf("#%d ", seq)); n != 1 && len(want) < 300 {
				rt.Fatalf("message %d is shown %d times:\n%s", seq, n, p.screen())
			}
		}
		for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"up", "down", "home", "end", "pgup", "pgdown", "a", "backspace", "?"}), 0, 10).Draw(rt, "keys") {
			p.w, p.h = rapid.IntRange(1, 100).Draw(rt, "width"), rapid.IntRange(1, 30).Draw(rt, "height")
			p.press(k)
		}
	})
}

// BenchmarkTree opens a session of 100,000 records, and presses a key in it.
func BenchmarkTree(b *testing.B) {
	var bodies []session.Body
	for i := range 50_000 {
		bodies = append(bodies, sessiontest.User(fmt.Sprintf("question %d about the importer", i)), sessiontest.Answer("an answer"))
	}
	s := sessiontest.Replay(b, bodies...)
	load := func(context.Context) (*session.Session, error) { return s, nil }
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open(fatal{b}, pick.NewTree(context.Background(), pick.TreeOptions{Clock: now(), Load: load}), 80, 24)
		}
	})
	v := pick.NewTree(context.Background(), pick.TreeOptions{Clock: now(), Load: load})
	open(fatal{b}, v, 80, 24)
	for _, k := range []string{"up", "ctrl+a", "x"} {
		b.Run(k, func(b *testing.B) {
			p := &person{t: fatal{b}, v: v, w: 80, h: 24}
			for b.Loop() {
				p.press(k)
			}
		})
	}
}
