// Package storetest is the one judge of every session.Store.
//
// Run holds a store against the promises of session.Store; there is nothing to
// switch off. Processes does so with real processes. What is learnt about one store becomes a case here, for all.
//
// A store's tests call Main from TestMain, because Processes starts
// the test binary again.
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

// Run judges the store that open opens in dir. Opening the same dir again
// must give the same store, whether or not it was closed before.
func Run(t *testing.T, open func(t *testing.T, dir string) session.Store) {
	s := suite{open}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"append and read", s.appendRead},
		{"every kind of record", s.kinds},
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
		{"ids are bytes", s.ids},
		{"clocks", s.clocks},
		{"list is replay", s.listIsReplay},
		{"crooked logs", s.crooked},
		{"random logs", s.randomLogs},
		{"random operations", s.randomOps},
		{"eight writers", s.eightWriters},
		{"two doors", s.twoDoors},
		{"lock", s.lock},
		{"one session of a key", s.oneOfKey},
		{"wait", s.wait},
		{"follow", s.follow},
		{"feed", s.feed},
		{"read while appending", s.readWhileAppending},
		{"break off", s.breakOff},
		{"many sessions", s.manySessions},
		{"cancelled", s.cancelled},
		{"closed", s.closed},
		{"copy", s.copies},
		{"faults", s.faults},
	} {
		t.Run(c.name, c.run)
	}
}

// suite is a store under judgement.
type suite struct {
	open func(t *testing.T, dir string) session.Store
}

// fresh opens a store in a new dir and closes it after the test.
func (s suite) fresh(t *testing.T) session.Store {
	t.Helper()
	return s.at(t, t.TempDir())
}

// at opens the store in dir and closes it after the test.
func (s suite) at(t *testing.T, dir string) session.Store {
	t.Helper()
	st := s.open(t, dir)
	if st == nil {
		t.Fatal("open returned no store")
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// bg is the context of everything that is not about contexts.
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

// read returns the records behind after, or ends the test.
func read(t testing.TB, st session.Store, id session.ID, after session.Seq) []session.Record {
	t.Helper()
	recs, err := sessiontest.Collect(st.Read(bg, id, after))
	if err != nil {
		t.Fatalf("read %s after %d: %v", id, after, err)
	}
	return recs
}

// list returns what q asks for, or ends the test.
func list(t testing.TB, st session.Store, q session.Query) []session.Info {
	t.Helper()
	infos, err := sessiontest.Collect(st.List(bg, q))
	if err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	return infos
}

// wantLog reports a log that does not say want.
func wantLog(t testing.TB, st session.Store, id session.ID, want []session.Record) {
	t.Helper()
	if d := cmp.Diff(want, read(t, st, id, 0), sessiontest.Same); d != "" {
		t.Errorf("log %s (-want +got):\n%s", id, clip(d))
	}
}

// wantReplay reports an Info in the list that Replay does not compute.
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

// clip keeps a diff of megabytes out of the terminal.
func clip(s string) string {
	if len(s) > 4000 {
		return s[:4000] + " ..."
	}
	return s
}

// header is the first record of the log id.
func header(id session.ID, key session.Key) session.Record {
	return session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{Version: session.Version, ID: id, Key: key}}
}

// logOf is Log with its own id and key.
func logOf(id session.ID, key session.Key, bodies ...session.Body) []session.Record {
	return sessiontest.Log(append([]session.Body{session.Header{Version: session.Version, ID: id, Key: key}}, bodies...)...)
}

// soon is how long a test waits for what must come.
const soon = 20 * time.Second
