// Package storetest tests every session.Store with the same cases.
//
// Run compares a store with the promises of session.Store; no case can be
// switched off. Processes does so with real processes, which are killed. A bug
// found in one store becomes a case here, for all stores.
//
// Processes starts the test binary again, so a store's TestMain calls Main.
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// Opener opens the store in dir. Opening the same dir again must give the same
// store, whether or not it was closed before.
type Opener func(dir string) (session.Store, error)

// Run tests the store that open opens.
func Run(t *testing.T, open Opener) {
	s := suite{open}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"append and read", s.appendRead},
		{"every kind of record", s.kinds},
		{"redactions", s.redactions},
		{"bytes", s.bytes},
		{"unknown records", s.unknown},
		{"too large", s.tooLarge},
		{"conflict", s.conflict},
		{"header", s.header},
		{"all or nothing", s.allOrNothing},
		{"trash", s.trash},
		{"trash survives reopening", s.trashReopened},
		{"list", s.list},
		{"keys are bytes", s.keys},
		{"moved", s.moved},
		{"marked", s.marked},
		{"ids are bytes", s.ids},
		{"clocks", s.clocks},
		{"list is replay", s.listIsReplay},
		{"bent logs", s.bent},
		{"random logs", s.randomLogs},
		{"random operations", s.randomOps},
		{"eight writers", s.eightWriters},
		{"two handles", s.twoHandles},
		{"lock", s.lock},
		{"one session of a key", s.oneOfKey},
		{"wait", s.wait},
		{"follow", s.follow},
		{"feed", s.feed},
		{"read while appending", s.readWhileAppending},
		{"stop reading", s.stopReading},
		{"many sessions", s.manySessions},
		{"cancelled", s.cancelled},
		{"closed", s.closed},
		{"copy", s.copies},
		{"checksums", s.checksums},
		{"faults", s.faults},
	} {
		t.Run(c.name, c.run)
	}
}

// suite is the store under test. It has a method for each case of Run.
type suite struct{ open Opener }

// fresh opens a store in a new dir and closes it after the test.
func (s suite) fresh(t *testing.T) session.Store {
	t.Helper()
	return s.at(t, t.TempDir())
}

// at opens the store in dir and closes it after the test.
func (s suite) at(t *testing.T, dir string) session.Store {
	t.Helper()
	st := s.openAt(t, dir)
	t.Cleanup(func() { st.Close() })
	return st
}

// openAt opens the store in dir.
func (s suite) openAt(t *testing.T, dir string) session.Store {
	t.Helper()
	st, err := s.open(dir)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if st == nil {
		t.Fatal("open returned no store")
	}
	return st
}

// bg is the context of calls that are not about contexts.
var bg = context.Background()

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr reports an err that does not wrap want.
func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

// add appends recs, or ends the test.
func add(t testing.TB, st session.Store, id session.ID, recs ...session.Record) {
	t.Helper()
	if err := st.Append(bg, id, recs...); err != nil {
		t.Fatalf("append of records %d to %d: %v", recs[0].Seq, recs[len(recs)-1].Seq, err)
	}
}

// read returns the records after seq after, or ends the test.
func read(t testing.TB, st session.Store, id session.ID, after session.Seq) []session.Record {
	t.Helper()
	recs, err := sessiontest.Collect(st.Read(bg, id, after))
	if err != nil {
		t.Fatalf("read %s after %d: %v", id, after, err)
	}
	return recs
}

// list returns the rows that q asks for, or ends the test.
func list(t testing.TB, st session.Store, q session.Query) []session.Info {
	t.Helper()
	infos, err := sessiontest.Collect(st.List(bg, q))
	if err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	return infos
}

// wantLog reports a log that is not want.
func wantLog(t testing.TB, st session.Store, id session.ID, want []session.Record) {
	t.Helper()
	if d := sessiontest.Diff(want, read(t, st, id, 0)); d != "" {
		t.Errorf("log %s (-want +got):\n%s", id, clip(d))
	}
}

// wantReplay reports an Info in the list that differs from that of Replay.
func wantReplay(t testing.TB, st session.Store, id session.ID) {
	t.Helper()
	got, err := session.Stat(bg, st, id)
	must(t, err)
	s, err := session.Replay(id, st.Read(bg, id, 0))
	must(t, err)
	s.Info.Trashed = got.Trashed
	if d := cmp.Diff(s.Info, got, sessiontest.SameInfo); d != "" {
		t.Errorf("list of %s differs from replay (-replay +list):\n%s", id, d)
	}
}

// clip shortens a diff of megabytes.
func clip(s string) string {
	if len(s) > 4000 {
		return s[:4000] + " ..."
	}
	return s
}

// header returns the first record of the log id.
func header(id session.ID, key session.Key) session.Record {
	return session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{Version: session.Version, ID: id, Key: key}}
}

// logOf returns sessiontest.Log with the given id and key.
func logOf(id session.ID, key session.Key, bodies ...session.Body) []session.Record {
	return sessiontest.Log(append([]session.Body{session.Header{Version: session.Version, ID: id, Key: key}}, bodies...)...)
}

// soon is how long a test waits for something that must happen, on a machine that
// may be busy.
const soon = time.Minute
