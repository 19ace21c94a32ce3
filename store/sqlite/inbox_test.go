package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/internal/sqlstore"
)

// crowdOf appends the next record of each session, all in one transaction.
func crowdOf(t *testing.T, s *Store, want map[session.ID][]session.Record) {
	t.Helper()
	var reqs []*sqlstore.Request
	for id, recs := range want {
		r := session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}}
		if n := len(recs); n > 0 {
			r = session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%03d", n), Parent: recs[n-1].ID, Time: sessiontest.Start, Body: sessiontest.User(fmt.Sprint(id, " says ", n))}
		}
		want[id] = append(recs, r)
		reqs = append(reqs, request(t, id, r))
	}
	batch(t, s, reqs...)
	for _, r := range reqs {
		must(t, r.Err)
	}
}

// whole fails unless s has what was wanted, and finds nothing wrong with it.
func whole(t *testing.T, s *Store, want map[session.ID][]session.Record) {
	t.Helper()
	for id, recs := range want {
		got, err := sessiontest.Collect(s.Read(bg, id, 0))
		must(t, err)
		if d := cmp.Diff(recs, got, sessiontest.Same); d != "" {
			t.Fatalf("%s (-want +got):\n%s", id, d)
		}
		in, err := session.Stat(bg, s, id)
		must(t, err)
		if in.Records != len(recs) || in.Leaf != recs[len(recs)-1].ID {
			t.Errorf("%s has %d records and ends at %q, want %d and %q", id, in.Records, in.Leaf, len(recs), recs[len(recs)-1].ID)
		}
	}
	if got := reports(t, s); len(got) != 0 {
		t.Errorf("check reports %q", got)
	}
}

// sessions returns n sessions without records.
func sessions(n int) map[session.ID][]session.Record {
	m := map[session.ID][]session.Record{}
	for i := range n {
		m[session.ID(fmt.Sprintf("s%02d", i))] = nil
	}
	return m
}

// do has f done by s's writer, in a transaction.
func do(t *testing.T, s *Store, f func(w *writer) error) {
	t.Helper()
	must(t, s.queue.Put(bg, &sqlstore.Request{Do: func() error { return s.writer.alone(func() error { return f(&s.writer) }) }}))
}

// What was sorted in by half when its process was killed is whole for the
// next one, and nothing is there twice: of new sessions the row comes before
// the records, of others behind.
func TestInboxHalfSorted(t *testing.T) {
	for _, old := range []bool{false, true} {
		for placed := range 5 {
			t.Run(fmt.Sprint("old=", old, " placed=", placed), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "sessions.db")
				s := at(t, path)
				s.writer.settling.Store(true) // nobody shall settle it by the way
				want := sessions(usual.many)
				if old {
					crowdOf(t, s, want)
					crowdOf(t, s, want)
					do(t, s, func(w *writer) error { return w.sort(nil) })
				}
				for range 4 {
					crowdOf(t, s, want)
				}
				do(t, s, func(w *writer) error {
					for _, sh := range w.inbox.order {
						if placed == 0 {
							break
						}
						if err := w.sortShare(sh, placed); err != nil {
							return err
						}
					}
					return nil
				})
				// As after a kill: nobody closes s.
				whole(t, at(t, path), want)
				crowdOf(t, s, want)
				whole(t, s, want)
			})
		}
	}
}

// Who reads a session has that one sorted in, and not all the others.
func TestInboxReadOne(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	s.writer.settling.Store(true)
	want := sessions(2 * usual.many)
	crowdOf(t, s, want)
	crowdOf(t, s, want)
	got, err := sessiontest.Collect(s.Read(bg, "s03", 0))
	must(t, err)
	if d := cmp.Diff(want["s03"], got, sessiontest.Same); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	do(t, s, func(w *writer) error {
		if got, want := w.inbox.pending, 2*(len(want)-1); got != want {
			t.Errorf("%d records are pending, want %d", got, want)
		}
		return nil
	})
	whole(t, s, want)
}

// A crowd that stays is sorted in while it is there, bit by bit, and what is in
// its place leaves the inbox.
func TestInboxStays(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	s.writer.settling.Store(true)
	m := measures{many: usual.many, ripe: amount{6, 1 << 20}, stays: amount{100, 1 << 20}, most: amount{200, 2 << 20}, max: amount{400, 4 << 20}, atOnce: 16}
	s.writer.measures = m
	want := sessions(2 * usual.many)
	for round := range 100 {
		crowdOf(t, s, want)
		// The next one who leads begins with it.
		do(t, s, func(w *writer) error {
			b := &w.inbox
			if b.pending > 200 || b.pending < 80 && round > 6 {
				t.Errorf("%d records are pending in round %d", b.pending, round)
			}
			if rows := b.last - b.first + 1; rows > 40 {
				t.Errorf("%d rows are in the inbox in round %d", rows, round)
			}
			return nil
		})
	}
	whole(t, s, want)
}

// A record that is too large for the inbox does not have all the others sorted
// in, and comes behind what its session said before.
func TestInboxLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	crowdOf(t, s, want)
	crowdOf(t, s, want)
	large := session.Record{Seq: 3, ID: "e002", Parent: "e001", Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("much ", maxRow/4))}
	must(t, s.Append(bg, "s03", large))
	want["s03"] = append(want["s03"], large)
	if got, want := s.writer.inbox.pending, 2*(len(want)-1); got != want {
		t.Errorf("%d records are pending, want %d", got, want)
	}
	crowdOf(t, s, want)
	whole(t, at(t, path), want)
	whole(t, s, want)
}

// Sessions that say little do not stay in the inbox for ever.
func TestInboxOfMany(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	s.writer.settling.Store(true)
	s.writer.measures = measures{many: usual.many, ripe: amount{6, 1 << 20}, stays: amount{100, 1 << 20}, most: amount{200, 2 << 20}, max: amount{400, 4 << 20}, atOnce: 16}
	all := sessions(900)
	part := map[session.ID][]session.Record{}
	for id := range all {
		part[id] = nil
		if len(part) == 20 {
			crowdOf(t, s, part)
			for id, recs := range part {
				all[id] = recs
			}
			clear(part)
			do(t, s, func(w *writer) error {
				if n := w.inbox.pending; n > 300 {
					t.Errorf("%d records are pending", n)
				}
				return nil
			})
		}
	}
	whole(t, s, all)
}

// What a damaged file has lost of the inbox costs what was in it, and nobody
// else: the store goes on.
func TestInboxTorn(t *testing.T) {
	for lost := range 4 {
		t.Run(fmt.Sprint("row ", lost+1), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			s := at(t, path)
			s.writer.settling.Store(true)
			want := sessions(usual.many)
			for range 4 {
				crowdOf(t, s, want)
			}
			must(t, s.lend(bg, func(c *conn) error { return c.exec("DELETE FROM inbox WHERE n = $1", int64(lost+1)) }))
			other := at(t, path)
			talk(t, other, "new", 3)
			for id, recs := range want {
				var got []session.Seq
				damage := 0
				for r, err := range other.Read(bg, id, 0) {
					if err != nil {
						damage++
					} else if r.Raw == nil || string(r.Raw) != "null" {
						got = append(got, r.Seq)
					}
				}
				var left []session.Seq
				for _, r := range recs {
					if int(r.Seq) != lost+1 {
						left = append(left, r.Seq)
					}
				}
				if d := cmp.Diff(left, got); d != "" || damage != 1 && lost < 3 {
					t.Errorf("%s has %v, want %v, and %d times damage, want 1", id, got, left, damage)
				}
				in, err := session.Stat(bg, other, id)
				must(t, err)
				must(t, other.Append(bg, id, session.Record{Seq: in.Last + 1, ID: "on", Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("on")}))
			}
		})
	}
}

// Where the file is so damaged that the inbox cannot be sorted in, the sessions
// that have nothing there are read all the same, and the others say so.
func TestInboxBlocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	old := sessions(usual.many)
	for range 5 {
		crowdOf(t, s, old)
	}
	do(t, s, func(w *writer) error { return w.sort(nil) })
	must(t, s.Close())
	s = at(t, path)
	s.writer.settling.Store(true)
	pending := map[session.ID][]session.Record{"s03": old["s03"]}
	for i := range usual.many {
		pending[session.ID(fmt.Sprint("new", i))] = nil
	}
	crowdOf(t, s, pending)
	must(t, s.lend(bg, func(c *conn) error {
		_, _, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
		return err
	}))
	// The index of the records' ids is lost: nothing can be added.
	b, err := os.ReadFile(path)
	must(t, err)
	var root int64
	must(t, s.lend(bg, func(c *conn) (err error) {
		root, err = c.int("SELECT rootpage FROM sqlite_schema WHERE name = 'records_id'")
		return err
	}))
	for i := range 4096 {
		b[(root-1)*4096+int64(i)] = 0xff
	}
	damaged := filepath.Join(t.TempDir(), "sessions.db")
	must(t, os.WriteFile(damaged, b, 0o600))
	other := at(t, damaged)
	if got, err := sessiontest.Collect(other.Read(bg, "s01", 0)); err != nil || len(got) != 5 {
		t.Errorf("%d records are read of a session that has nothing in the inbox (%v), want 5", len(got), err)
	}
	for _, id := range []session.ID{"s03", "new1"} {
		if got, err := sessiontest.Collect(other.Read(bg, id, 0)); err == nil || !strings.Contains(err.Error(), "cannot be put in their places") {
			t.Errorf("%s: %d records are read, and %v is said", id, len(got), err)
		}
	}
	if got := reports(t, other); len(got) == 0 {
		t.Error("check reports nothing")
	}
	if _, err := other.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	for id, recs := range pending {
		old[id] = recs
	}
	whole(t, other, old)
}
