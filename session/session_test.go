package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// lines numbers recs and puts a header before them.
func lines(recs ...session.Record) []session.Record {
	log := Log()
	for i, r := range recs {
		r.Seq = session.Seq(i) + 2
		if r.Time.IsZero() {
			r.Time = Start
		}
		if r.Body == nil {
			r.Body = User(r.ID)
		}
		log = append(log, r)
	}
	return log
}

// Each log is one rule of how OpenClaw 2026.9.6 heals, beside what pi makes of
// the same lines.
func TestBranch(t *testing.T) {
	reset, leaf := session.Reset{Reason: "new"}, func(to string) session.Leaf { return session.Leaf{Target: to} }
	unknown := session.Unknown{Type: "hologram"}
	for _, c := range []struct {
		name           string
		recs           []session.Record
		healed, strict string
	}{
		{"straight", lines(rec("a", ""), rec("b", "a"), rec("c", "b")), "a b c", "a b c"},
		{"dead branch", lines(rec("a", ""), rec("b", "a"), rec("c", "a")), "a c", "a c"},
		{"absent parent continues", lines(rec("a", ""), absent("b"), rec("c", "b")), "a b c", "b c"},
		{"absent parent on another branch", lines(rec("a", ""), rec("b", "a"), rec("c", "a"), absent("d")), "a c d", "d"},
		{"blank parent belongs nowhere", lines(rec("a", ""), blank("b"), rec("c", "a")), "a c", "a c"},
		{"behind a blank one", lines(rec("a", ""), blank("b"), rec("c", "b")), "a c", "b c"},
		{"dangling parent continues", lines(rec("a", ""), rec("b", "zz"), rec("c", "b")), "a b c", "b c"},
		{"child before parent", lines(rec("a", ""), rec("c", "b"), rec("b", "a")), "a b", "a b"},
		{"child before parent, then on", lines(rec("a", ""), rec("c", "b"), rec("b", "a"), rec("d", "c")), "a c d", "a b c d"},
		{"null parent midway begins anew", lines(rec("a", ""), rec("b", ""), rec("c", "b")), "b c", "b c"},
		{"own parent", lines(rec("a", ""), rec("b", "b"), rec("c", "b")), "a b c", "b c"},
		{"first is its own parent", lines(rec("a", "a"), rec("b", "a")), "a b", "a b"},
		{"cycle", lines(rec("a", "b"), rec("b", "a")), "a b", "a b"},
		{"cycle of three", lines(rec("a", "c"), rec("b", "a"), rec("c", "b"), rec("d", "c")), "a b c d", "a b c d"},
		{"repeated id: first, or last", lines(rec("a", ""), rec("b", "a"), with(rec("b", ""), User("other")), rec("c", "b")), "a b c", "b c"},
		{"repeated id makes a cycle", lines(rec("a", ""), rec("b", "a"), rec("a", "b"), rec("c", "a")), "a c", "b a c"},
		{"no id", lines(rec("a", ""), rec("", "a"), rec("c", "a")), "a c", "a c"},
		{"no id at the end", lines(rec("a", ""), rec("", "a")), "a", "a "},
		{"unknown kinds join and never end", lines(rec("a", ""), with(rec("x", "a"), unknown)), "a", "a x"},
		{"through an unknown kind", lines(rec("a", ""), with(rec("x", "a"), unknown), rec("b", "x")), "a x b", "a x b"},
		{"unknown kind without a parent", lines(rec("a", ""), with(absent("x"), unknown), rec("b", "x")), "a b", "x b"},
		{"labels and titles are of the tree", lines(rec("a", ""), with(rec("t", "a"), Title("t")), with(rec("l", "t"), Pin("a"))), "a t l", "a t l"},
		{"side never ends", lines(rec("a", ""), side("s", "a")), "a", "a s"},
		{"side, then on from before", lines(rec("a", ""), side("s", "a"), rec("b", "a")), "a b", "a b"},
		{"on from a side", lines(rec("a", ""), side("s", "a"), rec("b", "s")), "a s b", "a s b"},
		{"leaf row", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), leaf("a"))), "a", "a b l"},
		{"leaf row, then on", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), leaf("a")), rec("c", "a")), "a c", "a c"},
		{"on from the leaf row itself", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), leaf("a")), rec("c", "l")), "a c", "a b l c"},
		{"leaf row to nowhere", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), leaf("zz"))), "a b", "a b l"},
		{"leaf row to a leaf row", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), leaf("a")), with(rec("m", "l"), leaf("l")), absent("c")), "a c", "c"},
		{"append parent stands for the leaf", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), session.Leaf{Target: "a", AppendParent: "b"}), rec("c", "b")), "a c", "a b c"},
		{"append parent, once", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), session.Leaf{Target: "a", AppendParent: "b"}), rec("c", "b"), rec("d", "b")), "a b d", "a b d"},
		{"append parent that is not known", lines(rec("a", ""), rec("b", "a"), with(rec("l", "b"), session.Leaf{Target: "a", AppendParent: "zz"}), rec("c", "a")), "a c", "a c"},
		{"reset is of the branch", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r")), "a r b", "a r b"},
		{"after a reset, null continues", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r"), rec("c", "")), "a r b c", "c"},
		{"after a reset, the past continues", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r"), rec("c", "a")), "a r b c", "a c"},
		{"after a reset, branches within it", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r"), rec("c", "r")), "a r c", "a r c"},
		{"after a reset, leaf rows out of it", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r"), with(rec("l", "b"), leaf("a")), rec("c", "l")), "a r b c", "a r b l c"},
		{"after a reset, leaf rows within it", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r"), with(rec("l", "b"), leaf("r")), rec("c", "r")), "a r c", "a r c"},
		{"two resets", lines(rec("a", ""), with(rec("r", "a"), reset), rec("b", "r"), with(rec("q", "b"), reset), rec("c", "b")), "a r b q c", "a r b c"},
		{"a reset on the side resets nothing", lines(rec("a", ""), with(side("r", "a"), reset), rec("b", "a"), rec("c", "")), "c", "c"},
		{"on a reset on the side", lines(rec("a", ""), with(rec("q", "a"), reset), with(side("r", "q"), reset), rec("b", "r"), rec("c", "b")), "a q r b c", "a q r b c"},
		{"second header", append(lines(rec("a", "")), session.Record{Seq: 3, Body: session.Header{ID: "x"}}, session.Record{Seq: 4, ID: "b", Parent: "a", Body: User("b")}), "a b", "a b"},
		{"nothing", lines(), "", ""},
	} {
		for kind, reading := range readings {
			want := map[string]string{"healed": c.healed, "strict": c.strict}[kind]
			s := replayAs(t, reading, c.recs)
			if got := strings.Join(ids(s.Branch), " "); got != want {
				t.Errorf("%s, %s: branch is %q, want %q", c.name, kind, got, want)
			}
			if s.Records != len(c.recs) {
				t.Errorf("%s, %s: %d records of %d are counted", c.name, kind, s.Records, len(c.recs))
			}
		}
	}
}

func rec(id, parent string) session.Record { return session.Record{ID: id, Parent: parent} }
func absent(id string) session.Record      { return session.Record{ID: id, Link: session.Absent} }
func blank(id string) session.Record       { return session.Record{ID: id, Link: session.Blank} }
func side(id, parent string) session.Record {
	return session.Record{ID: id, Parent: parent, Side: true}
}

func with(r session.Record, b session.Body) session.Record {
	r.Body = b
	return r
}

func TestRepeatedIDKeepsTheFirst(t *testing.T) {
	recs := lines(rec("a", ""), with(rec("b", "a"), User("first")), with(rec("b", "a"), User("second")))
	for kind, want := range map[string]string{"healed": "first", "strict": "second"} {
		s := replayAs(t, readings[kind], recs)
		if got := s.Branch[len(s.Branch)-1].Body.(session.Message).Text(); got != want {
			t.Errorf("%s, the branch ends with %q, want %q", kind, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	s := Replay(t,
		Model("a", "m1"),                         // e1, 2
		User("1"),                                // e2, 3
		By("a", "m1", Used(100, Call("c", "x"))), // e3, 4
		Result("c", "ok"),                        // e4, 5
		By("b", "m2", Used(150, Answer("2"))),    // e5, 6
		session.ThinkingChange{Level: "high"},    // e6, 7
		Title("t"),                               // e7, 8
		session.Compaction{Summary: "s", FirstKept: "e5", Usage: llm.Usage{Output: 9}}, // e8, 9
		By("openclaw", "delivery-mirror", Answer("3")),                                 // e9, 10
		Stopped(llm.StopError, Used(70, Answer(""))),                                   // e10, 11
		session.Checkpoint{Covers: "e10", Usage: llm.Usage{Input: 40, Output: 5}},      // e11, 12
	)
	want := session.Info{ID: ID, Key: Key, Title: "t", Created: Start, Updated: Start, Records: 12, Last: 12, Compactions: 1,
		Spent: llm.Usage{Input: 99 + 149 + 69 + 40, Output: 3 + 9 + 5}, Turns: 1, Provider: "b", Model: "m2", Thinking: "high",
		Used: 0, Leaf: "e11", KeepFrom: 6}
	if d := cmp.Diff(want, s.Info); d != "" {
		t.Errorf("info (-want +got):\n%s", d)
	}
	for in, want := range map[session.Info]string{{Provider: "a", Model: "b"}: "a/b", {Model: "b"}: "b", {Provider: "a"}: "a", {}: ""} {
		if got := in.ModelName(); got != want {
			t.Errorf("ModelName of %q and %q = %q, want %q", in.Provider, in.Model, got, want)
		}
	}
}

func TestCompaction(t *testing.T) {
	for _, c := range []struct {
		name   string
		bodies []session.Body
		want   string // "at keep", or "" if nothing is folded
		from   session.Seq
	}{
		{"nothing", []session.Body{User("1"), Answer("2")}, "", 1},
		{"a compaction", []session.Body{User("1"), User("2"), Compaction("s", "e2"), User("3")}, "2 1", 3},
		{"the last of two", []session.Body{User("1"), Compaction("s", "e1"), User("2"), Compaction("s", "e3"), User("3")}, "3 2", 4},
		{"it keeps a compaction", []session.Body{User("1"), Compaction("s", "e1"), User("2"), Compaction("s", "e1")}, "3 0", 2},
		{"it keeps nothing known", []session.Body{User("1"), Compaction("s", "zz"), User("2")}, "1 1", 3},
		{"it keeps itself", []session.Body{User("1"), Compaction("s", "e2"), User("2")}, "1 1", 3},
		{"it keeps what comes later", []session.Body{User("1"), Compaction("s", "e3"), User("2")}, "1 1", 3},
		{"a reset", []session.Body{User("1"), Reset(), User("2")}, "1 1", 3},
		{"a reset that keeps", []session.Body{User("1"), session.Reset{FirstKept: "e1"}, User("2")}, "1 0", 2},
		{"undone", []session.Body{User("1"), Compaction("s", "e1"), Undo("e2")}, "", 1},
		{"the last undone", []session.Body{User("1"), User("2"), Compaction("s", "e2"), User("3"), Compaction("s", "e4"), Undo("e5")}, "2 1", 3},
		{"the first undone", []session.Body{User("1"), Compaction("s", "e1"), User("2"), Compaction("s", "e3"), Undo("e2")}, "3 2", 4},
		{"the first undone, then the last", []session.Body{User("1"), Compaction("s", "zz"), User("2"), Compaction("s", "e3"), Undo("e2"), Undo("e4")}, "", 1},
		{"undone twice", []session.Body{User("1"), Compaction("s", "zz"), User("2"), Compaction("s", "e3"), Undo("e4"), Undo("e4")}, "1 1", 3},
		{"undone before it was", []session.Body{User("1"), Undo("e3"), Compaction("s", "zz")}, "2 2", 4},
		{"undone and done again", []session.Body{User("1"), Compaction("s", "zz"), Undo("e2"), Compaction("s", "e1")}, "3 0", 2},
		{"what is not a fold undone", []session.Body{User("1"), Compaction("s", "zz"), Undo("e1")}, "1 1", 3},
	} {
		s := Replay(t, c.bodies...)
		got := ""
		if at, keep, ok := s.Compaction(); ok {
			got = fmt.Sprint(at, keep)
		}
		if got != c.want || s.KeepFrom != c.from {
			t.Errorf("%s: fold is %q and KeepFrom %d, want %q and %d", c.name, got, s.KeepFrom, c.want, c.from)
		}
	}
}

func TestUnanswered(t *testing.T) {
	two := Calls(llm.ToolCall{ID: "c1", Name: "a"}, llm.ToolCall{ID: "c2", Name: "b"})
	for _, c := range []struct {
		name   string
		bodies []session.Body
		want   []string
	}{
		{"nothing", nil, nil},
		{"words", []session.Body{User("1"), Answer("2")}, nil},
		{"a call", []session.Body{User("1"), Call("c1", "a")}, []string{"c1"}},
		{"answered", []session.Body{User("1"), Call("c1", "a"), Result("c1", "ok")}, nil},
		{"failed is answered", []session.Body{User("1"), Call("c1", "a"), Failed("c1", "no")}, nil},
		{"two of two", []session.Body{User("1"), two}, []string{"c1", "c2"}},
		{"one of two", []session.Body{User("1"), two, Result("c1", "ok")}, []string{"c2"}},
		{"the other of two", []session.Body{User("1"), two, Result("c2", "ok")}, []string{"c1"}},
		{"beside other records", []session.Body{User("1"), two, Result("c2", "ok"), Title("t"), Model("a", "b")}, []string{"c1"}},
		{"someone spoke since", []session.Body{User("1"), two, User("2")}, nil},
		{"a later answer", []session.Body{User("1"), two, Answer("2")}, nil},
		{"an answer that failed", []session.Body{User("1"), Stopped(llm.StopError, two)}, nil},
		{"an answer that was stopped", []session.Body{User("1"), Stopped(llm.StopAborted, two)}, nil},
		{"kept by a fold", []session.Body{User("1"), two, Compaction("s", "e2")}, []string{"c1", "c2"}},
		{"folded away", []session.Body{User("1"), two, Compaction("s", "zz")}, nil},
		{"reset away", []session.Body{User("1"), two, Reset()}, nil},
		{"folded away, and back", []session.Body{User("1"), two, Compaction("s", "zz"), Undo("e3")}, []string{"c1", "c2"}},
	} {
		var got []string
		for _, call := range Replay(t, c.bodies...).Unanswered() {
			got = append(got, call.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: unanswered are %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReplayCollectsDamage(t *testing.T) {
	recs := Log(User("1"), Answer("2"))
	boom := errors.New("boom")
	seq := func(end error) iter.Seq2[session.Record, error] {
		return func(yield func(session.Record, error) bool) {
			_ = yield(recs[0], nil) && yield(recs[1], nil) && yield(session.Record{}, fmt.Errorf("wrapped: %w", &session.Damage{File: "f", Line: 3})) && yield(recs[2], end)
		}
	}
	s, err := session.Replay(ID, seq(nil))
	if err != nil || len(s.Branch) != 2 || len(s.Damage) != 1 || s.Damage[0].Line != 3 {
		t.Errorf("around damage there are %d records, %d damages, %v", len(s.Branch), len(s.Damage), err)
	}
	if _, err := session.Replay(ID, seq(boom)); !errors.Is(err, boom) {
		t.Errorf("another error ends the reading with %v", err)
	}
	unnumbered := Log(User("1"))
	for i := range unnumbered {
		unnumbered[i].Seq = 0
	}
	if s, err := session.Replay(ID, Yield(unnumbered...)); err != nil || s.Last != 2 {
		t.Errorf("records without numbers: last is %d, %v", s.Last, err)
	}
	if _, err := session.Replay(ID, Yield(recs[0], recs[2])); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a gap gives %v", err)
	}
}

func TestResumeTellsStaleInfo(t *testing.T) {
	recs := Log(User("1"), Compaction("s", "zz"), User("2"))
	in := replay(t, recs).Info
	if in.KeepFrom != 3 {
		t.Fatalf("KeepFrom is %d", in.KeepFrom)
	}
	for what, got := range map[string][]session.Record{"shorter": recs[2:3], "longer": append(recs[2:4:4], session.Record{Seq: 5, ID: "e4", Parent: "e3", Body: User("3")})} {
		if _, err := session.Resume(in, Yield(got...)); !errors.Is(err, session.ErrStale) {
			t.Errorf("a log that is %s than its info: %v", what, err)
		}
	}
	s, err := session.Resume(in, Yield(recs[2:]...))
	if err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]session.Record{
		"an unfold":          {ID: "x", Parent: "e3", Body: Undo("e2")},
		"another branch":     {ID: "x", Parent: "e1", Body: User("x")},
		"a new root":         {ID: "x", Body: User("x")},
		"a leaf row":         {ID: "x", Parent: "e3", Body: session.Leaf{Target: "e1"}},
		"a fold to the past": {ID: "x", Parent: "e3", Body: Compaction("s", "e1")},
	} {
		r.Seq = 5
		if err := s.Apply(r); !errors.Is(err, session.ErrPartial) {
			t.Errorf("%s into a past that is not loaded: %v", what, err)
		}
	}
	if err := s.Apply(session.Record{Seq: 5, ID: "x", Parent: "e3", Body: Compaction("s", "e3")}); err != nil || s.KeepFrom != 4 || s.Compactions != 2 {
		t.Errorf("a fold within what is loaded: keeps from %d, %d folds, %v", s.KeepFrom, s.Compactions, err)
	}
}

func TestNext(t *testing.T) {
	for name, c := range map[string]session.Clock{"stands still": &Clock{}, "runs back": &Clock{Step: -time.Second}, "knows no chance": stuck{}} {
		s := Replay(t)
		seen := map[string]bool{}
		for range 300 {
			r := s.Next(User("x"), c)
			if seen[r.ID] || r.Seq != s.Last+1 || r.Parent != s.Leaf || !r.Time.Equal(r.Time.Truncate(time.Millisecond)) {
				t.Fatalf("a clock that %s gives record %+v behind %q", name, r, s.Leaf)
			}
			before, _ := session.Record{ID: s.Leaf}.IDTime()
			if ms, ok := r.IDTime(); !ok || ms < before {
				t.Fatalf("a clock that %s gives record %q behind %q", name, r.ID, s.Leaf)
			}
			seen[r.ID] = true
			if err := s.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.Branch) != 300 {
			t.Errorf("a clock that %s: 300 records, %d on the branch", name, len(s.Branch))
		}
	}
	if got, want := replay(t, Log()).Next(User("x"), &Clock{}).ID, "1794700800000_"; !strings.HasPrefix(got, want) || len(got) != len(want)+8 {
		t.Errorf("a record's id is %q, want %q and 8 digits", got, want)
	}
	if got := string(session.NewID(&Clock{})); len(got) != 36 || !strings.HasPrefix(got, "01a1dc80-f000-7") || !strings.ContainsRune("89ab", rune(got[19])) {
		t.Errorf("a session's id is %q, want a UUIDv7 of that time", got)
	}
}

// stuck is a clock on which nothing moves.
type stuck struct{}

func (stuck) Now() time.Time { return Start }
func (stuck) Rand() uint64   { return 7 }

var ctx = context.Background()

func TestLoadBeginsOrRestores(t *testing.T) {
	st, c := memory.New(), &Clock{}
	one, err := session.Load(ctx, st, "k", c)
	if err != nil || one.Records != 1 || one.Key != "k" {
		t.Fatalf("load of a new key = %+v, %v", one, err)
	}
	r := one.Next(User("hi"), c)
	if err := st.Append(ctx, one.ID, r); err != nil {
		t.Fatal(err)
	}
	again, err := session.Load(ctx, st, "k", c)
	if err != nil || again.ID != one.ID || again.Turns != 1 || len(again.Branch) != 1 {
		t.Errorf("load of a known key = %+v, %v", again.Info, err)
	}
	two, err := session.Begin(ctx, st, session.Header{Key: "k"}, c) // the clock stands still
	if err != nil || !two.Created.After(one.Created) {
		t.Fatalf("a second log of the key is begun at %v, the first at %v, %v", two.Created, one.Created, err)
	}
	if got, err := session.Load(ctx, st, "k", c); err != nil || got.ID != two.ID {
		t.Errorf("the newest is %s, %v, want %s", got.ID, err, two.ID)
	}
	if err := st.Delete(ctx, two.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := session.Load(ctx, st, "k", c); err != nil || got.ID != one.ID {
		t.Errorf("with the newest in the trash, load gives %s, %v, want %s", got.ID, err, one.ID)
	}
	c.Move(-time.Hour)
	three, err := session.Begin(ctx, st, session.Header{Key: "k"}, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Restore(ctx, two.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := session.Current(ctx, st, "k"); err != nil || got.ID != three.ID {
		t.Errorf("the log begun last is %s, %v, want %s, though one came back from the trash", got.ID, err, three.ID)
	}
	empty, err := session.Load(ctx, st, "", c)
	if err != nil || empty.Key != "" || empty.Records != 1 {
		t.Errorf("load of the empty key = %+v, %v", empty.Info, err)
	}
	if got, err := session.Load(ctx, st, "", c); err != nil || got.ID != empty.ID {
		t.Errorf("load of the empty key again gives %s, %v, want %s", got.ID, err, empty.ID)
	}
	if _, err := session.Begin(ctx, st, session.Header{ID: one.ID, Key: "k"}, c); !errors.Is(err, session.ErrConflict) {
		t.Errorf("begin of a log that exists: %v", err)
	}
	if _, err := session.Stat(ctx, st, "nobody"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("stat of nothing: %v", err)
	}
	if _, err := session.Current(ctx, st, "nobody"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("current of nothing: %v", err)
	}
}

// damaged is a store whose logs have a line that cannot be read.
type damaged struct{ session.Store }

func (s damaged) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	return s.Store.(session.Waiter).Wait(ctx, id, after)
}

func (s damaged) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for r, err := range s.Store.Read(ctx, id, after) {
			if !yield(r, err) {
				return
			}
		}
		yield(session.Record{}, &session.Damage{File: "f", Line: 9, Reason: "torn"})
	}
}

func TestFollow(t *testing.T) {
	for name, wrap := range map[string]func(session.Store) session.Store{
		"waiter": func(st session.Store) session.Store { return st },
		"poll":   func(st session.Store) session.Store { return struct{ session.Store }{st} },
		"damage": func(st session.Store) session.Store { return damaged{st} },
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.New()
			recs := Log(User("1"), Answer("2"), User("3"), Answer("4"))
			if err := mem.Append(ctx, ID, recs[:2]...); err != nil {
				t.Fatal(err)
			}
			go func() {
				for _, r := range recs[2:] {
					time.Sleep(2 * time.Millisecond)
					if err := mem.Append(ctx, ID, r); err != nil {
						t.Error(err)
					}
				}
			}()
			var got []session.Seq
			damages := 0
			stop, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			for r, err := range session.Follow(stop, wrap(mem), ID, 1) {
				if err != nil {
					damages++
					continue
				}
				if got = append(got, r.Seq); r.Seq == 5 {
					break
				}
			}
			if want := []session.Seq{2, 3, 4, 5}; !slices.Equal(got, want) {
				t.Errorf("follow yields %v, want %v", got, want)
			}
			if want := map[string]int{"damage": 1}[name]; damages != want {
				t.Errorf("damage was told %d times, want %d", damages, want)
			}
		})
	}
	mem := memory.New()
	var errs []error
	for _, err := range session.Follow(ctx, mem, "nobody", 0) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], session.ErrNotFound) {
		t.Errorf("follow of nothing yields %v", errs)
	}
}

func TestErrorsSayWhatTheyKnow(t *testing.T) {
	for err, want := range map[error]string{
		&session.Damage{File: "a.jsonl", Line: 3, After: 2, Size: 17, Reason: "no JSON"}: "a.jsonl:3: no JSON (17 bytes, after record 2)",
		&session.Damage{File: "sessions.db", After: 2, Size: 17, Reason: "no JSON"}:      "sessions.db: no JSON (17 bytes, after record 2)",
		&session.HeldError{Name: "s1", Who: "the repl", PID: 42, Since: Start}:           "session: s1 is held by the repl (pid 42) since 00:00:00",
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// A choice is what is marked as one: a change that another program wrote into a
// log without a key of its own is none. The model used last is the one that
// answered, until something else did.
func TestChosenAndLast(t *testing.T) {
	st, c := memory.New(), &Clock{}
	s, err := session.Begin(ctx, st, session.Header{}, c)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		say          session.Body
		chosen, last string
	}{
		{session.ModelChange{Provider: "p", Model: "theirs"}, "", "p/theirs"},
		{session.Message{Message: llm.Message{Role: llm.Assistant}, Provider: "p", Model: "answered"}, "", "p/answered"},
		{session.ModelChange{Provider: "p", Model: "chosen", Chosen: true}, "p/chosen", "p/answered"},
		{session.Message{Message: llm.Message{Role: llm.Assistant}, Provider: "p", Model: "chosen"}, "p/chosen", "p/chosen"},
	} {
		if _, err := session.Keep(ctx, st, s, s.Next(step.say, c), c); err != nil {
			t.Fatal(err)
		}
		chosen, last := "", ""
		if r, ok := s.Chosen(); ok {
			chosen = r.Body.(session.ModelChange).Name()
		}
		if m, ok := s.LastModel(); ok {
			last = m.Name()
		}
		if chosen != step.chosen || last != step.last {
			t.Errorf("step %d: chosen %q, used last %q; want %q, %q", i+1, chosen, last, step.chosen, step.last)
		}
	}
}
