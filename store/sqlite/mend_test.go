package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/internal/sqlstore"
)

// half returns a store with sessions of four records each, two of them in the
// inbox.
func half(t *testing.T) (*Store, map[session.ID][]session.Record) {
	t.Helper()
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	s.writer.settling.Store(true) // nobody shall settle it by the way
	want := sessions(usual.many)
	crowdOf(t, s, want)
	crowdOf(t, s, want)
	do(t, s, func(w *writer) error { return w.sort(nil) })
	crowdOf(t, s, want)
	crowdOf(t, s, want)
	return s, want
}

// A round that begins while the store is mended, and takes what is to be
// appended when that is done, appends nothing.
func TestMendedMeanwhile(t *testing.T) {
	s, want := half(t)
	s.writer.mending.Store(true)
	must(t, s.remakeInbox())
	must(t, s.writer.begin(bg))
	s.writer.mending.Store(false)
	req := request(t, "s02", said(3, want["s02"][1].ID, "another third"))
	s.writer.serveAll([]*sqlstore.Request{req})
	s.writer.after()
	if !errors.Is(req.Err, errMending) && !errors.Is(req.Err, session.ErrConflict) {
		t.Errorf("a second record 3 gets %v", req.Err)
	}
	whole(t, s, want)
}

// While a store is mended, nobody reads less than there is without being told,
// and nothing can be removed that would come back.
func TestWhileMending(t *testing.T) {
	s, want := half(t)
	s.writer.mending.Store(true)
	must(t, s.remakeInbox())
	if got, err := sessiontest.Collect(s.Read(bg, "s02", 0)); !errors.Is(err, errMending) {
		t.Errorf("%d of 4 records are read, and %v is said", len(got), err)
	}
	if err := s.Delete(bg, "s03"); !errors.Is(err, errMending) {
		t.Errorf("a session is deleted: %v", err)
	}
	s.writer.mending.Store(false)
	whole(t, s, want)
}

// What the row of a session counts and the next process has to sort in, that
// process knows when it goes on.
func TestInboxAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	for range 6 {
		crowdOf(t, s, want)
	}
	do(t, s, func(w *writer) error { return w.sortShare(w.inbox.order[0], 2) })
	other := at(t, path)
	for id, recs := range want {
		n := len(recs)
		r := session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%03d", n), Parent: recs[n-1].ID, Time: sessiontest.Start, Body: session.Compaction{Summary: "s", FirstKept: recs[n-2].ID}}
		want[id] = append(recs, r)
		must(t, other.Append(bg, id, r))
	}
	whole(t, other, want)
}

// What was purged does not come back from a row of the inbox whose end cannot
// be read.
func TestInboxTornPurge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	crowdOf(t, s, want)
	crowdOf(t, s, want)
	must(t, s.lend(bg, func(c *conn) error { return c.exec("UPDATE inbox SET data = data || x'ff'") }))
	must(t, s.Delete(bg, "s03"))
	must(t, s.Purge(bg, "s03"))
	other := at(t, path)
	talk(t, other, "new", 2)
	for _, s := range []*Store{s, other} {
		if in, err := session.Stat(bg, s, "s03"); err == nil {
			t.Errorf("what was purged is there again: %+v", in)
		}
	}
	if got := reports(t, other)[""]; len(got) != 1 {
		t.Errorf("check reports %q of what cannot be read", got)
	}
	if _, err := other.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	delete(want, "s03")
	whole(t, other, want)
}
