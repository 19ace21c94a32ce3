//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/internal/pgtest"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
)

// remote is a machine: a store and an index of its own.
type remote struct {
	t     *testing.T
	store *postgres.Store
	index *recall.Index
}

func newRemote(t *testing.T, dsn, path string) *remote {
	t.Helper()
	st, err := postgres.Open(t.Context(), dsn, postgres.Options{Patience: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ix, err := recall.Open(recall.Options{Store: st, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	m := &remote{t, st, ix}
	t.Cleanup(m.close)
	return m
}

func (m *remote) close() {
	m.index.Close()
	m.store.Close()
}

// say appends to a session.
func (m *remote) say(id session.ID, text string) {
	m.t.Helper()
	in, err := session.Stat(m.t.Context(), m.store, id)
	if err != nil {
		recs := sessiontest.Log(session.Header{Version: session.Version, ID: id, Key: session.Key("t:cli:" + id)})
		if err := m.store.Append(m.t.Context(), id, recs...); err != nil {
			m.t.Fatal(err)
		}
		in.Last = 1
	}
	r := session.Record{Seq: in.Last + 1, ID: fmt.Sprintf("%s-%d", text, in.Last), Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("about the " + text)}
	if err := m.store.Append(m.t.Context(), id, r); err != nil {
		m.t.Fatal(err)
	}
}

// finds returns how many hits a word has.
func (m *remote) finds(word string) int {
	m.t.Helper()
	res, err := m.index.Search(m.t.Context(), recall.Query{Text: word})
	if err != nil {
		m.t.Fatal(err)
	}
	n := 0
	for _, h := range res.Hits {
		if strings.Contains(h.Text, word) {
			n++
		}
	}
	return n
}

// An index that stays open finds what another machine wrote at the first search
// after it was confirmed: there is nothing to wait for. When the server cannot be
// asked, the search fails instead of finding less.
func TestPostgresRecall(t *testing.T) {
	if _, err := pgOnce(); err != nil {
		pgServer(t) // skips, or says why not
	}
	server, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	a := newRemote(t, server.DSN("postgres"), filepath.Join(t.TempDir(), "a"))
	b := newRemote(t, server.DSN("postgres"), filepath.Join(t.TempDir(), "b"))
	for i := range 20 {
		word := fmt.Sprintf("word%d", i)
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		from.say(session.ID(fmt.Sprint("s", i%3)), word)
		if n := to.finds(word); n != 1 {
			t.Errorf("the other machine finds %s %d times", word, n)
		}
	}
	server.Stop()
	res, err := a.index.Search(t.Context(), recall.Query{Text: "word1"})
	if err == nil || !strings.Contains(err.Error(), "cannot connect") && !strings.Contains(err.Error(), "connection was lost") {
		t.Errorf("without a server the search finds %d hits, and the error is %v", len(res.Hits), err)
	}
}

// A database that was dumped and restored on another server goes back in time: an
// index that knows more forgets it, and follows what is written from then on.
func TestPostgresRestored(t *testing.T) {
	first := pgServer(t)
	second, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Stop()
	pgExec(t, first, "DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$") // it is further than the other
	path := filepath.Join(t.TempDir(), "index")
	m := newRemote(t, first.dsn(), path)
	for _, word := range []string{"heron", "stork", "egret"} {
		m.say("s1", word)
		m.say("s2", word+"s")
	}
	if err := m.index.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	held, err := m.store.Lock(t.Context(), "s1", "whoever runs a turn")
	if err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(t.TempDir(), "dump")
	tool := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(filepath.Join(first.Bin, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	tool("pg_dump", "-Fc", "-f", dump, first.dsn())
	held()
	m.say("s1", "pelican") // lost
	m.say("s3", "gannet")  // lost
	if m.finds("pelican") != 1 || m.finds("gannet") != 1 {
		t.Error("the index does not follow")
	}
	m.close()

	tool("pg_restore", "--no-owner", "-d", second.DSN("postgres"), dump)
	r := newRemote(t, second.DSN("postgres"), path)
	for word, want := range map[string]int{"heron": 2, "pelican": 0, "gannet": 0} {
		if n := r.finds(word); n != want {
			t.Errorf("restored, %s is found %d times, want %d", word, n, want)
		}
	}
	r.say("s2", "cormorant")
	if n := r.finds("cormorant"); n != 1 {
		t.Errorf("what was written since is found %d times", n)
	}
	ch, err := r.store.Changes(t.Context(), "")
	if err == nil {
		ch, err = r.store.Changes(t.Context(), ch.Now)
	}
	if err != nil || len(ch.Logs) > 1 { // the last change may be reported again
		t.Errorf("without a change the feed is %+v (%v)", ch, err)
	}
	if err := r.store.Check(t.Context(), func(id session.ID, err error) { t.Errorf("%s: %v", id, err) }); err != nil {
		t.Error(err)
	}
	ended := "UPDATE goclaw_locks SET expires = now() - interval '1 hour'" // the lease of whoever had it
	tool("psql", "-q", "-d", second.DSN("postgres"), "-c", ended)
	release, err := r.store.Lock(t.Context(), "s1", "the next")
	if err != nil {
		t.Fatal(err)
	}
	r.say("s1", "grebe")
	release()
}
