package session_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

func replay(t interface{ Fatalf(string, ...any) }, recs []session.Record) *session.Session {
	return replayAs(t, session.Replay, recs)
}

// replaying is a way to read a log.
type replaying func(session.ID, iter.Seq2[session.Record, error]) (*session.Session, error)

// readings are the two ways.
var readings = map[string]replaying{"healed": session.Replay, "strict": session.ReplayStrict}

func replayAs(t interface{ Fatalf(string, ...any) }, replay replaying, recs []session.Record) *session.Session {
	s, err := replay("s1", sessiontest.Yield(recs...))
	if err != nil {
		t.Fatalf("replay of %d records: %v", len(recs), err)
	}
	return s
}

func outline(t interface{ Fatalf(string, ...any) }, recs []session.Record) *session.Outline {
	o := session.NewOutline("s1")
	for _, r := range recs {
		if err := o.Apply(r); err != nil {
			t.Fatalf("outline: %v", err)
		}
	}
	return o
}

// A store counts with Info.Add and outlines the whole log where Add declines.
// Whichever of several records with one id its index finds, the Info is the
// one of the outline.
func TestAddAgreesWithOutline(t *testing.T) {
	first := func(recs []session.Record) func(string) session.Seq {
		return func(id string) session.Seq {
			for _, r := range recs {
				if r.ID == id && id != "" {
					return r.Seq
				}
			}
			return 0
		}
	}
	last := func(recs []session.Record) func(string) session.Seq {
		return func(id string) session.Seq {
			at := session.Seq(0)
			for _, r := range recs {
				if r.ID == id && id != "" {
					at = r.Seq
				}
			}
			return at
		}
	}
	counted, declined := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		recs := sessiontest.AnyLog(t)
		for name, find := range map[string]func([]session.Record) func(string) session.Seq{"first": first, "last": last} {
			in := session.Info{ID: "s1"}
			for i, r := range recs {
				before := in
				if in.Add(r, find(recs[:i])) {
					counted++
				} else {
					declined++
					if in != before {
						t.Fatalf("Add declined record %d and changed the info", r.Seq)
					}
					in = outline(t, recs[:i+1]).Info
				}
				if d := cmp.Diff(outline(t, recs[:i+1]).Info, in); d != "" {
					t.Fatalf("record %d, %s with an id (-outline +add):\n%s", r.Seq, name, d)
				}
			}
		}
	})
	if counted == 0 || declined == 0 {
		t.Errorf("Add counted %d records and declined %d: the logs drawn show nothing", counted, declined)
	}
}

// The everyday append must not need the log: a straight log with folds is
// counted record by record.
func TestAddCountsStraightLogs(t *testing.T) {
	recs := sessiontest.Log(sessiontest.User("1"), sessiontest.Answer("2"), sessiontest.Title("t"), sessiontest.Compaction("s", "e2"),
		sessiontest.User("3"), sessiontest.Compaction("s", ""), sessiontest.Reset(), sessiontest.Model("a", "b"), sessiontest.Checkpoint("c", "e5"))
	in := session.Info{ID: "s1"}
	for i, r := range recs {
		if !in.Add(r, func(id string) session.Seq {
			for _, r := range recs[:i] {
				if r.ID == id {
					return r.Seq
				}
			}
			return 0
		}) {
			t.Fatalf("Add declined record %d, %T", r.Seq, r.Body)
		}
	}
	if d := cmp.Diff(outline(t, recs).Info, in); d != "" {
		t.Errorf("-outline +add:\n%s", d)
	}
}

// Every record is placed in the time that one takes, however long the log and
// wherever its last reset.
func TestOutlineOfLongLogAfterReset(t *testing.T) {
	o := session.NewOutline("s1")
	recs := sessiontest.Log(sessiontest.User("1"), sessiontest.Reset())
	for _, r := range recs {
		if err := o.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	const n = 200_000 // a walk back to the reset for each would be 20,000,000,000 steps
	for i := 3; i < n; i++ {
		r := session.Record{Seq: o.Last + 1, ID: fmt.Sprintf("x%d", i), Parent: o.Leaf, Time: sessiontest.Start, Body: sessiontest.User("x")}
		if err := o.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if o.Turns != n-2 || o.KeepFrom != 3 {
		t.Errorf("outline has %d turns and keeps from %d, want %d and 3", o.Turns, o.KeepFrom, n-2)
	}
}

func ids(recs []session.Record) []string {
	var out []string
	for _, r := range recs {
		out = append(out, r.ID)
	}
	return out
}

// A session that was opened at KeepFrom is the end of the one replayed, and
// stays so with everything that it accepts.
func TestResumeAgreesWithReplay(t *testing.T) {
	partial, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		recs := sessiontest.AnyLog(t)
		for cut := 1; cut <= len(recs); cut++ {
			in := replay(t, recs[:cut]).Info
			got, err := session.Resume(in, sessiontest.Yield(recs[in.KeepFrom-1:cut]...))
			if err != nil {
				t.Fatalf("resume: %v", err)
			}
			if in.KeepFrom > 1 {
				partial++
			}
			wantEnd(t, replay(t, recs[:cut]), got)
			for i := cut; i < min(cut+4, len(recs)); i++ {
				if slices.Contains(ids(recs[:in.KeepFrom-1]), recs[i].ID) {
					break // only the whole log could know
				}
				if err := got.Apply(recs[i]); errors.Is(err, session.ErrPartial) {
					refused++
					break
				} else if err != nil {
					t.Fatalf("apply: %v", err)
				}
				wantEnd(t, replay(t, recs[:i+1]), got)
			}
		}
	})
	if partial == 0 || refused == 0 {
		t.Errorf("%d sessions were opened in their middle, %d refused a record: the logs drawn show nothing", partial, refused)
	}
}

func wantEnd(t *rapid.T, whole, got *session.Session) {
	t.Helper()
	if d := cmp.Diff(whole.Info, got.Info); d != "" {
		t.Fatalf("info (-replayed +got):\n%s", d)
	}
	if len(got.Branch) > len(whole.Branch) {
		t.Fatalf("branch is %v, replayed %v", ids(got.Branch), ids(whole.Branch))
	}
	off := len(whole.Branch) - len(got.Branch)
	if d := cmp.Diff(ids(whole.Branch[off:]), ids(got.Branch)); d != "" {
		t.Fatalf("branch (-replayed +got):\n%s", d)
	}
	at, keep, ok := whole.Compaction()
	gotAt, gotKeep, gotOK := got.Compaction()
	if ok != gotOK || ok && (at-off != gotAt || keep-off != gotKeep) {
		t.Fatalf("fold is at %d, keeps from %d (%v); replayed %d, %d (%v) less %d", gotAt, gotKeep, gotOK, at, keep, ok, off)
	}
	if ok && off > keep {
		t.Fatalf("the fold keeps from %d, the branch begins at %d", keep, off)
	}
	if !ok && off > 0 {
		t.Fatalf("nothing is folded, and %d records are missing", off)
	}
	if d := cmp.Diff(whole.Unanswered(), got.Unanswered()); d != "" {
		t.Fatalf("unanswered (-replayed +got):\n%s", d)
	}
}

// searched is the compaction in effect on a branch, found by walking back
// through it.
func searched(branch []session.Record) (at, keep int, ok bool) {
	undone := map[string]bool{}
	for i := len(branch) - 1; i >= 0; i-- {
		first := ""
		switch b := branch[i].Body.(type) {
		case session.Undo:
			undone[b.Target] = true
			continue
		case session.Compaction:
			first = b.FirstKept
		case session.Reset:
			first = b.FirstKept
		default:
			continue
		}
		if undone[branch[i].ID] {
			continue
		}
		for k := i - 1; k >= 0 && first != ""; k-- {
			if branch[k].ID == first {
				return i, k, true
			}
		}
		return i, i, true
	}
	return 0, 0, false
}

// The compaction in effect, which a session keeps with every record, is the
// one that a search through its branch finds.
func TestCompactionAgreesWithSearch(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		recs := sessiontest.AnyLog(t)
		check := func(what string, s *session.Session) {
			t.Helper()
			at, keep, ok := searched(s.Branch)
			if gotAt, gotKeep, gotOK := s.Compaction(); gotAt != at || gotKeep != keep || gotOK != ok {
				t.Fatalf("%s: compaction at %d keeps from %d (%v), a search finds %d, %d (%v)", what, gotAt, gotKeep, gotOK, at, keep, ok)
			}
		}
		live := replay(t, nil)
		for i, r := range recs {
			if err := live.Apply(r); err != nil {
				t.Fatal(err)
			}
			check("live", live)
			strict := replayAs(t, session.ReplayStrict, recs[:i+1])
			check("strict", strict)
			part := rapid.IntRange(0, len(live.Branch)).Draw(t, "part")
			check("part", live.WithBranch(live.Branch[:part]))
			opened, err := session.Resume(live.Info, sessiontest.Yield(recs[live.KeepFrom-1:i+1]...))
			if err != nil {
				t.Fatal(err)
			}
			check("opened", opened)
			if _, _, ok := live.Compaction(); ok {
				found++
			}
		}
	})
	if found == 0 {
		t.Error("no log had a compaction in effect: the logs drawn show nothing")
	}
}

// Living and loading are one: a session grown record by record is the one
// replayed, in the usual reading and in pi's.
func TestApplyAgreesWithReplay(t *testing.T) {
	for name, reading := range readings {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				recs := sessiontest.AnyLog(t)
				cut := rapid.IntRange(0, len(recs)).Draw(t, "cut")
				s := replayAs(t, reading, recs[:cut])
				for i := cut; i < len(recs); i++ {
					if err := s.Apply(recs[i]); err != nil {
						t.Fatalf("apply: %v", err)
					}
					if d := cmp.Diff(replayAs(t, reading, recs[:i+1]), s, sessiontest.Same); d != "" {
						t.Fatalf("after record %d (-replayed +applied):\n%s", i+1, d)
					}
				}
			})
		})
	}
}

// Whatever a log says, its branch is made of its records, each once, and Info
// says where it ends.
func TestBranchIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := sessiontest.AnyLog(t)
		for _, s := range []*session.Session{replay(t, recs), replayAs(t, session.ReplayStrict, recs)} {
			seen := map[session.Seq]bool{}
			for _, r := range s.Branch {
				if seen[r.Seq] || r.Seq < 2 || int(r.Seq) > len(recs) || recs[r.Seq-1].ID != r.ID {
					t.Fatalf("branch %v has record %d twice, or one that is not in the log", ids(s.Branch), r.Seq)
				}
				seen[r.Seq] = true
			}
			leaf := ""
			if n := len(s.Branch); n > 0 {
				leaf = s.Branch[n-1].ID
			}
			if s.Leaf != leaf || s.Records != len(recs) || s.Last != session.Seq(len(recs)) || s.KeepFrom < 1 || s.KeepFrom > max(s.Last, 1) {
				t.Fatalf("info %+v of %d records whose branch ends with %q", s.Info, len(recs), leaf)
			}
		}
	})
}

// Compactions that keep much, and undone ones, take no more steps in a long log
// than in a short one.
func TestOutlineOfManyCompactions(t *testing.T) {
	const n = 100_000
	id := func(i int) string { return fmt.Sprint("r", i) }
	bodies := map[string]func(i int) session.Body{
		"keep everything": func(i int) session.Body { return session.Compaction{FirstKept: id(1)} },
		"undone": func(i int) session.Body {
			if i%2 == 0 {
				return session.Compaction{FirstKept: id(i - 1)}
			}
			return session.Undo{Target: id(i - 1)}
		},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			o := session.NewOutline("s1")
			for i := range n {
				r := session.Record{Seq: session.Seq(i + 1), ID: id(i), Body: session.Body(session.Header{})}
				switch {
				case i == 1:
					r.Body = sessiontest.User("hi")
				case i > 1:
					r.Parent, r.Body = id(i-1), body(i)
				}
				if err := o.Apply(r); err != nil {
					t.Fatal(err)
				}
			}
			if o.Steps() > n {
				t.Errorf("%d steps for %d records", o.Steps(), n)
			}
		})
	}
}
