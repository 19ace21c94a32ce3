package storetest

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// listIsReplay appends to a log everything that an Info counts and compares
// after every record.
func (s suite) listIsReplay(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := logOf("s1", "k",
		sessiontest.Model("a", "m1"),
		sessiontest.User("1"),
		sessiontest.By("a", "m1", sessiontest.Used(100, sessiontest.Call("c1", "read"))),
		sessiontest.Result("c1", "ok"),
		sessiontest.By("a", "m1", sessiontest.Used(150, sessiontest.Answer("2"))),
		sessiontest.Title("first"),
		session.ThinkingChange{Level: "high"},
		sessiontest.User("3"),
		session.Compaction{Summary: "s", FirstKept: "e8", Usage: llm.Usage{Input: 7, Output: 8}},
		sessiontest.By("b", "m2", sessiontest.Used(50, sessiontest.Answer("4"))),
		sessiontest.User("5"),
		sessiontest.Stopped(llm.StopError, sessiontest.Answer("")),
		session.Compaction{Summary: "s", FirstKept: "nowhere"},
		sessiontest.User("6"),
		sessiontest.Undo("e13"),
		sessiontest.Answer("7"),
		session.Compaction{Summary: "s", FirstKept: "e17"},
		sessiontest.Reset(),
		sessiontest.Title("second"),
		sessiontest.User("8"),
		session.Reset{Reason: "daily", FirstKept: "e20"},
		sessiontest.User("9"),
	)
	for i, r := range recs {
		r.Time = sessiontest.Start.Add(time.Duration(i) * time.Second)
		add(t, st, "s1", r)
		wantReplay(t, st, "s1")
		wantOpen(t, st, "s1")
		if i%6 == 5 {
			must(t, st.Close())
			st = s.at(t, dir)
			wantReplay(t, st, "s1")
		}
	}
	add(t, st, "s2", logOf("s2", "k", func() (all []session.Body) {
		for _, r := range recs[1:] {
			all = append(all, r.Body)
		}
		return
	}()...)...)
	wantReplay(t, st, "s2")
}

// wantOpen reports an opened session that differs from the replayed one.
func wantOpen(t testing.TB, st session.Store, id session.ID) {
	t.Helper()
	whole, err := session.Replay(id, st.Read(bg, id, 0))
	must(t, err)
	got, err := session.Open(bg, st, id)
	must(t, err)
	got.Info.Trashed = whole.Info.Trashed
	if d := cmp.Diff(whole.Info, got.Info); d != "" {
		t.Errorf("open of %s (-replayed +opened):\n%s", id, d)
	}
	if len(got.Branch) > len(whole.Branch) {
		t.Fatalf("open of %s has %d records on its branch, replay %d", id, len(got.Branch), len(whole.Branch))
	}
	if d := sessiontest.Diff(whole.Branch[len(whole.Branch)-len(got.Branch):], got.Branch); d != "" {
		t.Errorf("open of %s has another branch (-replayed +opened):\n%s", id, clip(d))
	}
}

// bent compares literal logs that bend in every way with Replay.
func (s suite) bent(t *testing.T) {
	st := s.fresh(t)
	user := sessiontest.User("x")
	for name, recs := range map[string][]session.Record{
		"absent parent":      {{ID: "a", Body: user}, {ID: "b", Link: session.Absent, Body: user}, {ID: "c", Parent: "b", Body: user}},
		"blank parent":       {{ID: "a", Body: user}, {ID: "b", Link: session.Blank, Body: user}, {ID: "c", Parent: "b", Body: user}},
		"dangling parent":    {{ID: "a", Body: user}, {ID: "b", Parent: "zz", Body: user}},
		"child first":        {{ID: "a", Body: user}, {ID: "b", Parent: "c", Body: user}, {ID: "c", Parent: "a", Body: user}},
		"own parent":         {{ID: "a", Parent: "a", Body: user}, {ID: "b", Parent: "a", Body: user}},
		"cycle":              {{ID: "a", Parent: "b", Body: user}, {ID: "b", Parent: "a", Body: user}},
		"two ids":            {{ID: "a", Body: user}, {ID: "b", Parent: "a", Body: user}, {ID: "a", Parent: "b", Body: user}, {ID: "c", Parent: "a", Body: user}},
		"no id":              {{ID: "a", Body: user}, {Parent: "a", Body: user}, {ID: "c", Parent: "a", Body: user}},
		"null midway":        {{ID: "a", Body: user}, {ID: "b", Body: user}, {ID: "c", Parent: "b", Body: user}},
		"dead branch":        {{ID: "a", Body: user}, {ID: "b", Parent: "a", Body: user}, {ID: "c", Parent: "a", Body: user}},
		"side":               {{ID: "a", Body: user}, {ID: "b", Parent: "a", Side: true, Body: user}, {ID: "c", Parent: "b", Body: user}, {ID: "d", Parent: "a", Side: true, Body: user}},
		"leaf row":           {{ID: "a", Body: user}, {ID: "b", Parent: "a", Body: user}, {ID: "l", Parent: "b", Body: session.Leaf{Target: "a"}}, {ID: "c", Parent: "l", Body: user}},
		"append parent":      {{ID: "a", Body: user}, {ID: "b", Parent: "a", Body: user}, {ID: "l", Parent: "b", Body: session.Leaf{Target: "a", AppendParent: "b"}}, {ID: "c", Parent: "b", Body: user}},
		"reset window":       {{ID: "a", Body: user}, {ID: "r", Parent: "a", Body: session.Reset{Reason: "new"}}, {ID: "b", Parent: "a", Body: user}, {ID: "c", Body: user}},
		"reset and leaf":     {{ID: "a", Body: user}, {ID: "r", Parent: "a", Body: session.Reset{Reason: "new"}}, {ID: "l", Parent: "r", Body: session.Leaf{Target: "a"}}, {ID: "b", Parent: "r", Body: user}},
		"compacted dead end": {{ID: "a", Body: user}, {ID: "f", Parent: "a", Body: sessiontest.Compaction("s", "a")}, {ID: "b", Parent: "a", Body: user}},
		"dead end kept":      {{ID: "a", Body: user}, {ID: "b", Parent: "a", Body: user}, {ID: "c", Parent: "a", Body: user}, {ID: "f", Parent: "c", Body: sessiontest.Compaction("s", "b")}},
		"second header":      {{ID: "a", Body: user}, {Body: session.Header{Version: 3, ID: "x", Key: "y"}}, {ID: "b", Parent: "a", Body: user}},
		"time runs back":     {{ID: "a", Body: user}, {ID: "b", Parent: "a", Body: user, Time: sessiontest.Start.Add(-9 * time.Second)}},
		"no time":            {{ID: "a", Body: user, Time: sessiontest.Start.Add(time.Hour)}, {ID: "b", Parent: "a", Body: user}, {ID: "c", Parent: "a", Side: true, Body: user}},
		"straight after it":  {{ID: "a", Body: user}, {ID: "b", Body: user}, {ID: "c", Parent: "b", Body: user}, {ID: "f", Parent: "c", Body: sessiontest.Compaction("s", "c")}, {ID: "d", Parent: "f", Body: user}},
	} {
		id := session.ID(name)
		log := []session.Record{header(id, "k")}
		for i, r := range recs {
			r.Seq = session.Seq(i) + 2
			if r.Time.IsZero() && name != "no time" {
				r.Time = sessiontest.Start
			}
			log = append(log, r)
		}
		for _, r := range log {
			add(t, st, id, r)
			wantReplay(t, st, id)
		}
		wantLog(t, st, id, log)
		wantOpen(t, st, id)
	}
	// Without a time of its own a log began with its first record that has one.
	undated := header("undated", "k")
	undated.Time = time.Time{}
	add(t, st, "undated", undated, session.Record{Seq: 2, ID: "a", Time: sessiontest.Start, Body: user}, session.Record{Seq: 3, ID: "b", Parent: "a", Body: user})
	for id, updated := range map[session.ID]time.Time{"undated": sessiontest.Start, "no time": sessiontest.Start.Add(time.Hour)} {
		in, err := session.Stat(bg, st, id)
		must(t, err)
		if !in.Created.Equal(sessiontest.Start) || !in.Updated.Equal(updated) {
			t.Errorf("%s: created %v, updated %v, want %v and %v", id, in.Created, in.Updated, sessiontest.Start, updated)
		}
	}
}

func (s suite) randomLogs(t *testing.T) {
	dir, n := t.TempDir(), 0
	st := s.at(t, dir)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		id := session.ID(fmt.Sprintf("log%d", n))
		recs := sessiontest.AnyLog(rt)
		h := recs[0].Body.(session.Header)
		h.ID = id
		recs[0].Body = h
		for i := 0; i < len(recs); {
			k := min(rapid.IntRange(1, 8).Draw(rt, "batch"), len(recs)-i)
			if err := st.Append(bg, id, recs[i:i+k]...); err != nil {
				rt.Fatalf("append: %v", err)
			}
			i += k
			if err := sameAsReplay(st, id); err != nil {
				rt.Fatal(err)
			}
			if rapid.IntRange(0, 49).Draw(rt, "reopen") == 0 {
				st.Close()
				st = s.at(t, dir)
				if err := sameAsReplay(st, id); err != nil {
					rt.Fatalf("reopened: %v", err)
				}
			}
		}
		got, err := sessiontest.Collect(st.Read(bg, id, 0))
		if err != nil {
			rt.Fatal(err)
		}
		if d := sessiontest.Diff(recs, got); d != "" {
			rt.Fatalf("the log came back changed (-want +got):\n%s", clip(d))
		}
	})
}

func sameAsReplay(st session.Store, id session.ID) error {
	got, err := session.Stat(bg, st, id)
	if err != nil {
		return err
	}
	s, err := session.Replay(id, st.Read(bg, id, 0))
	if err != nil {
		return err
	}
	s.Info.Trashed = got.Trashed
	if d := cmp.Diff(s.Info, got); d != "" {
		return fmt.Errorf("list of %s differs from replay (-replay +list):\n%s", id, d)
	}
	return nil
}

// randomOps performs random operations on the store and on the one in memory,
// and wants the same results.
func (s suite) randomOps(t *testing.T) {
	root, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(root, fmt.Sprint(n))
		st, mem := s.openAt(t, dir), session.Store(memory.New())
		defer func() { st.Close() }()
		ids := []session.ID{"s1", "s2", "s3"}
		logs := map[session.ID][]session.Record{}
		both := func(what string, f func(st session.Store) error) bool {
			got, want := f(st), f(mem)
			if class(got) != class(want) {
				rt.Fatalf("%s: %v, in memory %v", what, got, want)
			}
			return want == nil
		}
		pick := func() session.ID { return rapid.SampledFrom(ids).Draw(rt, "session") }
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				id := pick()
				log := logs[id]
				var batch []session.Record
				if len(log) == 0 {
					h := header(id, rapid.SampledFrom([]session.Key{"main:cli:me", "main:cli:you"}).Draw(rt, "key"))
					batch, log = append(batch, h), append(log, h)
				}
				for range rapid.IntRange(0, 4).Draw(rt, "batch") {
					r := sessiontest.AnyRecord(rt, log)
					batch, log = append(batch, r), append(log[:len(log):len(log)], r)
				}
				if both(fmt.Sprintf("append of %d to %s", len(batch), id), func(st session.Store) error { return st.Append(bg, id, batch...) }) {
					logs[id] = log
				}
			},
			"append at a wrong place": func(rt *rapid.T) {
				id := pick()
				at := session.Seq(len(logs[id])) + 1 + session.Seq(rapid.SampledFrom([]int{-2, -1, 1, 2}).Draw(rt, "off"))
				r := session.Record{Seq: at, ID: "x", Time: sessiontest.Start, Body: sessiontest.User("x")}
				both(fmt.Sprintf("append at %d", at), func(st session.Store) error { return st.Append(bg, id, r) })
			},
			"delete": func(rt *rapid.T) {
				id := pick()
				both("delete", func(st session.Store) error { return st.Delete(bg, id) })
			},
			"restore": func(rt *rapid.T) {
				id := pick()
				both("restore", func(st session.Store) error { return st.Restore(bg, id) })
			},
			"purge": func(rt *rapid.T) {
				id := pick()
				if both("purge", func(st session.Store) error { return st.Purge(bg, id) }) {
					delete(logs, id)
				}
			},
			"read": func(rt *rapid.T) {
				id, after := pick(), session.Seq(rapid.IntRange(0, 12).Draw(rt, "after"))
				got, gotErr := sessiontest.Collect(st.Read(bg, id, after))
				want, wantErr := sessiontest.Collect(mem.Read(bg, id, after))
				if class(gotErr) != class(wantErr) {
					rt.Fatalf("read: %v, in memory %v", gotErr, wantErr)
				}
				if d := sessiontest.Diff(want, got); d != "" {
					rt.Fatalf("read of %s after %d (-memory +got):\n%s", id, after, clip(d))
				}
			},
			"reopen": func(rt *rapid.T) {
				if err := st.Close(); err != nil {
					rt.Fatalf("close: %v", err)
				}
				st = s.openAt(t, dir)
			},
			"": func(rt *rapid.T) {
				for _, q := range []session.Query{{}, {Trash: true}, {Key: "main:cli:me", Limit: 1}} {
					got, gotErr := sessiontest.Collect(st.List(bg, q))
					want, wantErr := sessiontest.Collect(mem.List(bg, q))
					if err := errors.Join(gotErr, wantErr); err != nil {
						rt.Fatalf("list: %v", err)
					}
					if d := cmp.Diff(want, got, sessiontest.SameInfo); d != "" {
						rt.Fatalf("list %+v (-memory +got):\n%s", q, d)
					}
				}
			},
		})
	})
}

// class returns the text of the sentinel that err wraps.
func class(err error) string {
	for _, s := range []error{session.ErrNotFound, session.ErrConflict, session.ErrClosed, session.ErrTooLarge, session.ErrHeld} {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	if err != nil {
		return "another error"
	}
	return ""
}
