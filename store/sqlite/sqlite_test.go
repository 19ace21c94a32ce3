package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/internal/sqlstore"
	"goclaw/store/storetest"
)

func openDir(dir string) (session.Store, error) { return Open(filepath.Join(dir, "sessions.db")) }

func TestMain(m *testing.M) { storetest.Main(m, openDir) }

func TestStore(t *testing.T) { storetest.Run(t, openDir) }

func TestProcesses(t *testing.T) { storetest.Processes(t, openDir) }

var bg = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func at(t testing.TB, path string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(path, opts...)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// talk appends a header and a few records to the log id.
func talk(t testing.TB, s *Store, id session.ID, n int) []session.Record {
	t.Helper()
	recs := []session.Record{{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key("k:" + id), Version: session.Version}}}
	parent := ""
	for i := range n {
		r := session.Record{Seq: session.Seq(i + 2), ID: fmt.Sprintf("e%03d", i+1), Parent: parent, Time: sessiontest.Start, Body: sessiontest.User(fmt.Sprint("say ", i+1))}
		recs, parent = append(recs, r), r.ID
	}
	must(t, s.Append(bg, id, recs...))
	return recs
}

// sql runs statements on the file behind the store's back.
func sql(t testing.TB, path, text string) {
	t.Helper()
	c, err := sqlite3.Open(path)
	must(t, err)
	defer c.Close()
	must(t, c.Exec("PRAGMA foreign_keys = OFF; PRAGMA busy_timeout = 5000;"+text))
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "sessions.db")
	want := map[string]os.FileMode{"": 0o600, "-wal": 0o600, "-shm": 0o600}
	modes := func() map[string]os.FileMode {
		got := map[string]os.FileMode{}
		for suffix := range want {
			if st, err := os.Stat(path + suffix); err == nil {
				got[suffix] = st.Mode()
			}
		}
		return got
	}
	s := at(t, path)
	talk(t, s, "s1", 2)
	if d := cmp.Diff(want, modes()); d != "" {
		t.Errorf("open (-want +got):\n%s", d)
	}
	must(t, s.Close())
	for suffix := range want { // a copy of the database alone
		if suffix != "" {
			os.Remove(path + suffix)
		}
	}
	s = at(t, path)
	talk(t, s, "s2", 2)
	if d := cmp.Diff(want, modes()); d != "" {
		t.Errorf("opened again (-want +got):\n%s", d)
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if st, err := os.Stat(dir); err != nil || st.Mode() != 0o700|os.ModeDir {
			t.Errorf("%s has mode %v (%v)", dir, st.Mode(), err)
		}
	}
}

// What is in the database after Close is in one file.
func TestCloseLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	recs := talk(t, s, "s1", 20)
	must(t, s.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	copied := filepath.Join(t.TempDir(), "copy.db")
	must(t, os.WriteFile(copied, b, 0o600))
	got, err := sessiontest.Collect(at(t, copied).Read(bg, "s1", 0))
	must(t, err)
	if d := sessiontest.Diff(recs, got); d != "" {
		t.Errorf("the copy (-want +got):\n%s", d)
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	db := func(name, text string) string {
		path := filepath.Join(dir, name)
		sql(t, path, text)
		return path
	}
	newer := filepath.Join(dir, "newer.db")
	must(t, at(t, newer).Close())
	sql(t, newer, "PRAGMA user_version = 7")
	empty := file("empty.db", "")
	for _, c := range []struct {
		name, path, want string
		opts             []Option
	}{
		{"text", file("text.db", strings.Repeat("To be, or not to be.\n", 100)), "is not an SQLite database", nil},
		{"short text", file("short.db", "hello"), "is not an SQLite database", nil},
		{"a folder", dir, "is a folder", nil},
		{"another program's", db("other.db", "CREATE TABLE notes (text)"), "is a database of another program", nil},
		{"another program's mark", db("mark.db", "PRAGMA application_id = 7"), "is a database of another program", nil},
		{"newer", newer, "has schema 7, this version knows up to 4: a newer goclaw wrote it", nil},
		{"nothing, to be read", filepath.Join(dir, "none.db"), "no such file", []Option{ReadOnly()}},
		{"empty, to be read", empty, "is an empty database", []Option{ReadOnly()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			_, err := Open(c.path, c.opts...)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want one line with %q", err, c.want)
			}
			if after, _ := os.ReadFile(c.path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	talk(t, at(t, empty), "s1", 1) // an empty file is a database to be
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	w := at(t, path)
	recs := talk(t, w, "s1", 3)
	must(t, w.Close())
	r := at(t, path, ReadOnly())
	got, err := sessiontest.Collect(r.Read(bg, "s1", 0))
	must(t, err)
	if d := sessiontest.Diff(recs, got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	_, rebuild := r.Rebuild(bg)
	for what, err := range map[string]error{
		"append": r.Append(bg, "s1", session.Record{Seq: 5, ID: "x", Parent: "e003", Body: sessiontest.User("no")}),
		"delete": r.Delete(bg, "s1"), "restore": r.Restore(bg, "s1"), "purge": r.Purge(bg, "s1"), "rebuild": rebuild,
	} {
		if err == nil || !strings.Contains(err.Error(), "reading only") {
			t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
}

// Eight make one at once; each step of the making is one's alone.
func TestOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			id := session.ID(fmt.Sprint("s", i))
			if err := s.Append(bg, id, session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	infos, err := sessiontest.Collect(at(t, path).List(bg, session.Query{}))
	must(t, err)
	if len(infos) != 8 {
		t.Errorf("%d sessions are listed, want 8", len(infos))
	}
}

// reports collects what Check says.
func reports(t *testing.T, s *Store) map[session.ID][]string {
	t.Helper()
	got := map[session.ID][]string{}
	must(t, s.Check(bg, func(id session.ID, err error) { got[id] = append(got[id], err.Error()) }))
	return got
}

func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	recs := talk(t, s, "s1", 6)
	talk(t, s, "s2", 2)
	sql(t, path, `UPDATE records SET data = x'7b22ff' WHERE session = 1 AND seq = 4; DELETE FROM records WHERE session = 1 AND seq = 6`)

	var got []session.Record
	var damage []session.Damage
	for r, err := range s.Read(bg, "s1", 0) {
		var d *session.Damage
		if errors.As(err, &d) {
			damage = append(damage, *d)
			continue
		}
		must(t, err)
		got = append(got, r)
	}
	for i := range damage {
		damage[i].Reason, _, _ = strings.Cut(damage[i].Reason, ":")
	}
	want := []session.Damage{
		{File: path, After: 3, Size: 3, Reason: "record 4"},
		{File: path, After: 5, Reason: "record 6 is missing"},
	}
	if d := cmp.Diff(want, damage); d != "" {
		t.Errorf("damage (-want +got):\n%s", d)
	}
	// The places are held, so that everything around them keeps its own.
	recs[3].Body, recs[3].Time = session.Unknown{Type: "message"}, time.Time{}
	recs[5] = session.Record{Seq: 6, Link: session.Blank, Body: session.Unknown{}}
	if d := sessiontest.Diff(recs, got); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	if string(got[3].Raw) != "{\"\xff" {
		t.Errorf("the damaged bytes are %q", got[3].Raw)
	}
	live, err := session.Open(bg, s, "s1")
	must(t, err)
	if len(live.Damage) != 2 || live.Last != 7 {
		t.Errorf("opened with %d damages, ending at record %d, want 2 and 7", len(live.Damage), live.Last)
	}
	must(t, s.Append(bg, "s1", live.Next(sessiontest.User("go on"), session.System{})))

	problems := reports(t, s)
	if len(problems["s1"]) != 3 || len(problems) != 1 { // two damages, and a row that counts what is lost
		t.Errorf("check reports %q", problems)
	}
	if n, err := s.Rebuild(bg); n != 1 || err != nil {
		t.Errorf("rebuild changed %d rows (%v), want 1", n, err)
	}
	if problems = reports(t, s); len(problems["s1"]) != 2 {
		t.Errorf("after the rebuild check reports %q", problems)
	}
}

func TestRebuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	for _, id := range []session.ID{"s1", "s2", "s3", "s4"} {
		talk(t, s, id, 5)
	}
	must(t, s.Delete(bg, "s2"))
	all := func() (infos []session.Info) {
		for _, trash := range []bool{false, true} {
			some, err := sessiontest.Collect(s.List(bg, session.Query{Trash: trash}))
			must(t, err)
			infos = append(infos, some...)
		}
		return infos
	}
	want := all()
	if got := reports(t, s); len(got) != 0 {
		t.Fatalf("check of a good store reports %q", got)
	}
	sql(t, path, `
		UPDATE sessions SET title = 'x', turns = 99, last = 2, keep_from = 1000000000, updated = 'never', key = '' WHERE id = 's1';
		UPDATE sessions SET leaf = '', spent_input = -1, last = 1000000000 WHERE id = 's2';
		DELETE FROM sessions WHERE id = 's3'`)
	if got := reports(t, s); len(got["s1"]) != 1 || len(got["s2"]) != 1 || len(got[""]) != 1 || len(got) != 3 {
		t.Errorf("check reports %q, want s1, s2 and a log without a row", got)
	}
	// A row that lies cannot make the log be overwritten.
	if err := s.Append(bg, "s1", session.Record{Seq: 3, ID: "new", Parent: "e001", Time: sessiontest.Start, Body: sessiontest.User("over")}); !errors.Is(err, session.ErrStale) {
		t.Errorf("append over a record: %v, want %v", err, session.ErrStale)
	}
	if n, err := s.Rebuild(bg); n != 3 || err != nil {
		t.Errorf("rebuild changed %d rows (%v), want 3", n, err)
	}
	if d := cmp.Diff(want, all()); d != "" {
		t.Errorf("rebuilt (-want +got):\n%s", d)
	}
	if n, err := s.Rebuild(bg); n != 0 || err != nil {
		t.Errorf("a second rebuild changed %d rows (%v)", n, err)
	}
	must(t, s.Append(bg, "s3", session.Record{Seq: 7, ID: "e006", Parent: "e005", Time: sessiontest.Start, Body: sessiontest.User("go on")}))
}

// The columns beside a line are a projection of it, too.
func TestRebuildOfColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 5)
	sql(t, path, `UPDATE records SET id = 'bogus', type = 'x' WHERE seq = 3; UPDATE records SET time = '' WHERE seq = 4`)
	if got := fmt.Sprint(reports(t, s)["s1"]); !strings.Contains(got, "2 of its records are filed under another id") || !strings.Contains(got, "the first is record 3") {
		t.Errorf("check reports %q", got)
	}
	if _, err := s.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	if got := reports(t, s); len(got) != 0 {
		t.Errorf("after a rebuild, check reports %q", got)
	}
}

// A header that cannot be read must not cost the session its key, of which
// the row has the last copy.
func TestRebuildWithoutAHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 5)
	before, err := session.Stat(bg, s, "s1")
	must(t, err)
	sql(t, path, `UPDATE records SET data = x'00' WHERE seq = 1`)
	if got := reports(t, s); !strings.Contains(fmt.Sprint(got["s1"]), "known from its row only") {
		t.Errorf("check reports %q", got)
	}
	if _, err := s.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	after, err := session.Stat(bg, s, "s1")
	must(t, err)
	if after.Key != before.Key || after.Key == "" || !after.Created.Equal(before.Created) {
		t.Errorf("rebuilt, the key is %q and the begin %v; want %q and %v", after.Key, after.Created, before.Key, before.Created)
	}
}

// batch has reqs served in one round, as if they had come at once.
func batch(t *testing.T, s *Store, reqs ...*request) {
	t.Helper()
	must(t, s.writer.begin(bg))
	s.writer.serveAll(reqs)
	s.writer.after()
}

func newRequest(t *testing.T, id session.ID, recs ...session.Record) *request {
	t.Helper()
	recs, lines, err := sqlstore.Encode(recs)
	must(t, err)
	return &request{id: id, recs: recs, lines: lines}
}

func TestBatch(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		t.Run(fmt.Sprint("crowded=", crowded), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			s := at(t, path)
			next := func(id session.ID, seq session.Seq, name string) *request {
				return newRequest(t, id, session.Record{Seq: seq, ID: name, Parent: "e002", Time: sessiontest.Start, Body: sessiontest.User(name)})
			}
			var reqs []*request
			var want []error
			put := func(r *request, err error) { reqs, want = append(reqs, r), append(want, err) }
			for _, id := range []session.ID{"a", "b", "c", "trash"} {
				talk(t, s, id, 2)
			}
			must(t, s.Delete(bg, "trash"))
			put(next("a", 4, "a-1"), nil)
			put(next("b", 9, "b-gap"), session.ErrConflict)
			put(next("a", 4, "a-late"), session.ErrConflict)
			put(next("trash", 4, "t"), session.ErrNotFound)
			put(next("c", 4, "e001"), nil) // an id that is there already: the log must be outlined
			put(next("a", 5, "a-2"), nil)
			put(next("b", 4, "b-1"), nil)
			put(newRequest(t, "new", session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: "new"}}), nil)
			if crowded {
				for i := range 8 {
					id := session.ID(fmt.Sprint("crowd", i))
					put(newRequest(t, id, session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id}}), nil)
				}
			}
			batch(t, s, reqs...)
			for i, r := range reqs {
				if !errors.Is(r.err, want[i]) || (r.err == nil) != (want[i] == nil) {
					t.Errorf("request %d (%s): %v, want %v", i, r.id, r.err, want[i])
				}
			}
			for id, last := range map[session.ID]session.Seq{"a": 5, "b": 4, "c": 4, "new": 1, "trash": 3} {
				if in, err := session.Stat(bg, s, id); err != nil || in.Last != last {
					t.Errorf("%s ends at %d (%v), want %d", id, in.Last, err, last)
				}
			}
			if got := reports(t, s); len(got) != 0 {
				t.Errorf("check reports %q", got)
			}
		})
	}
}

// One request that the database fails for does not harm those beside it.
func TestBatchFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	for _, id := range []session.ID{"a", "b", "c"} {
		talk(t, s, id, 2)
	}
	sql(t, path, "UPDATE sessions SET last = 1 WHERE id = 'b'")
	rec := session.Record{Seq: 4, ID: "x", Parent: "e002", Time: sessiontest.Start, Body: sessiontest.User("x")}
	over := rec
	over.Seq = 2
	a, b, c := newRequest(t, "a", rec), newRequest(t, "b", over), newRequest(t, "c", rec)
	batch(t, s, a, b, c)
	if a.err != nil || !errors.Is(b.err, session.ErrStale) || c.err != nil {
		t.Errorf("outcomes are %v, %v, %v, want only the second to fail", a.err, b.err, c.err)
	}
	for _, id := range []session.ID{"a", "c"} {
		if in, err := session.Stat(bg, s, id); err != nil || in.Last != 4 {
			t.Errorf("%s ends at %d (%v), want 4", id, in.Last, err)
		}
	}
}

// A purged text is not left in the file.
func TestPurgeOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 3)
	must(t, s.Append(bg, "s1", session.Record{Seq: 5, ID: "secret", Parent: "e003", Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("the password is swordfish ", 1000))}))
	must(t, s.Delete(bg, "s1"))
	must(t, s.Purge(bg, "s1"))
	must(t, s.Close())
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, err)
		if strings.Contains(string(b), "swordfish") {
			t.Errorf("%s still says it", path+suffix)
		}
	}
}

// Nor is it where it was written beside others, in one transaction.
func TestPurgeOverwritesOneOfMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	for round := range session.Seq(20) {
		var reqs []*request
		for i := range 8 {
			id := session.ID(fmt.Sprint("s", i))
			r := header(id)
			if round > 0 {
				text := strings.Repeat("hello ", 100)
				if i == 3 {
					text = strings.Repeat("the password is swordfish ", 100)
				}
				r = said(round+1, fmt.Sprintf("e%04d", round), text)
			}
			if round == 1 {
				r.Parent = ""
			}
			reqs = append(reqs, newRequest(t, id, r))
		}
		batch(t, s, reqs...)
		for _, r := range reqs {
			must(t, r.err)
		}
	}
	must(t, s.Delete(bg, "s3"))
	must(t, s.Purge(bg, "s3"))
	must(t, s.Close())
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, err)
		if n := strings.Count(string(b), "swordfish"); n > 0 {
			t.Errorf("%s still says it, %d times", path+suffix, n)
		}
	}
}

// A read never writes: not to the files, and not by the connection that could.
func TestReadsDoNotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	w := at(t, path)
	for i := range 20 {
		talk(t, w, session.ID(fmt.Sprint("s", i)), 10)
	}
	files := func() (all [2]string) {
		for i, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			must(t, err)
			all[i] = string(b)
		}
		return all
	}
	before := files()
	s := at(t, path)
	for in, err := range s.List(bg, session.Query{}) {
		must(t, err)
		if _, err := sessiontest.Collect(s.Read(bg, in.ID, 0)); err != nil {
			t.Error(err)
		}
	}
	must(t, s.Wait(bg, "s3", 5))
	if got := reports(t, s); len(got) != 0 {
		t.Errorf("check reports %q", got)
	}
	if s.writer.c != nil {
		t.Error("the writer was opened")
	}
	if files() != before {
		t.Error("the files have changed")
	}
}

func TestCloseTwiceAndWaiters(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	talk(t, s, "s1", 1)
	done := make(chan error, 1)
	go func() { done <- s.Wait(bg, "s1", 2) }()
	time.Sleep(20 * time.Millisecond)
	must(t, s.Close())
	must(t, s.Close())
	if err := <-done; !errors.Is(err, session.ErrClosed) {
		t.Errorf("a waiter learns %v, want %v", err, session.ErrClosed)
	}
}

// Closing what nothing was written to serves those who came before.
func TestCloseWithAppends(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "sessions.db")
		s := at(t, path)
		var acked sync.Map
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				id := session.ID(fmt.Sprint("s", i))
				err := s.Append(bg, id, session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id}})
				if err == nil {
					acked.Store(id, true)
				} else if !errors.Is(err, session.ErrClosed) {
					t.Error(err)
				}
			})
		}
		must(t, s.Close())
		wg.Wait()
		infos, err := sessiontest.Collect(at(t, path).List(bg, session.Query{}))
		must(t, err)
		n := 0
		acked.Range(func(any, any) bool { n++; return true })
		if len(infos) != n {
			t.Fatalf("%d appends were promised, %d are there", n, len(infos))
		}
	}
}

func header(id session.ID) session.Record {
	return session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}}
}

func said(seq session.Seq, parent, text string) session.Record {
	return session.Record{Seq: seq, ID: fmt.Sprintf("e%04d", seq), Parent: parent, Time: sessiontest.Start, Body: sessiontest.User(text)}
}

// A page that is broken is reported, and what does not need it is checked.
func TestCheckBrokenPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 200)
	talk(t, s, "s2", 200)
	must(t, s.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	i := strings.Index(string(b), `say 100"`)
	if i < 0 {
		t.Fatal("the record is not in the file")
	}
	page := i &^ 4095
	copy(b[page:page+100], make([]byte, 100))
	must(t, os.WriteFile(path, b, 0o600))
	if got := reports(t, at(t, path)); len(got[""]) == 0 || len(got["s1"]) == 0 {
		t.Errorf("check reports %q", got)
	}
}
