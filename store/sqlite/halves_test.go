package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/internal/sqlstore"
)

func header(id session.ID) session.Record {
	return session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}}
}

func said(seq session.Seq, parent, text string) session.Record {
	return session.Record{Seq: seq, ID: fmt.Sprintf("e%04d", seq), Parent: parent, Time: sessiontest.Start, Body: sessiontest.User(text)}
}

// watching is gathering; it notes the logs that it has opened.
type watching struct {
	gathering
	logs *[]*walFile
}

func (g watching) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := g.gathering.OpenFilename(name, flags)
	if w, ok := f.(*walFile); ok {
		*g.logs = append(*g.logs, w)
	}
	return f, got, err
}

// What a transaction has spilled that is rolled back is never written over what
// another process commits there.
func TestWALRolledBack(t *testing.T) {
	var logs []*walFile
	vfs.Register("watching", watching{gathering{vfs.Find("").(vfs.VFSFilename)}, &logs})
	defer vfs.Unregister("watching")
	path := filepath.Join(t.TempDir(), "sessions.db")
	a, b := at(t, path, func(s *Store) { s.vfs = "watching" }), at(t, path)
	a.writer.settling.Store(true)
	b.writer.settling.Store(true)
	b.writer.checkpointing.Store(true)
	want := sessions(usual.many)
	crowdOf(t, a, want)
	much := func(s *Store, rounds int) {
		text := strings.Repeat("much ", 20_000) // 100 KB
		for range rounds {
			var reqs []*sqlstore.Request
			for id, recs := range want {
				n := len(recs)
				r := session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%03d", n), Parent: recs[n-1].ID, Time: sessiontest.Start, Body: sessiontest.User(text)}
				want[id] = append(recs, r)
				reqs = append(reqs, request(t, id, r))
			}
			batch(t, s, reqs...)
			for _, r := range reqs {
				must(t, r.Err)
			}
		}
	}
	much(a, 15)
	// Another process copies the log into the database, as its writer does from time to time.
	must(t, b.lend(bg, func(c *conn) error {
		_, _, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		return err
	}))
	no := errors.New("no")
	err := a.queue.Put(bg, &sqlstore.Request{Do: func() error {
		return a.writer.alone(func() error {
			if err := a.writer.sort(nil); err != nil {
				return err
			}
			return no
		})
	}})
	if !errors.Is(err, no) {
		t.Fatal(err)
	}
	for _, l := range logs {
		if len(l.kept) > 0 {
			t.Errorf("%d bytes are kept after a rollback", len(l.kept))
		}
	}
	// The other process goes on.
	much(b, 4)
	// And now this one reads.
	for _, s := range []*Store{a, b} {
		for id, recs := range want {
			if got, err := sessiontest.Collect(s.Read(bg, id, 0)); err != nil || len(got) != len(recs) {
				t.Errorf("%s has %d records, want %d (%v)", id, len(got), len(recs), err)
			}
		}
	}
	whole(t, b, want)
	whole(t, a, want)
}

// A new session that is not straight, sorted in by half when its process
// was killed.
func TestInboxHalfSortedCrooked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	branch := func(seq session.Seq) session.Record { // all are answers to the first
		r := said(seq, "e0002", fmt.Sprint("say ", seq))
		if seq == 2 {
			r.Parent = ""
		}
		return r
	}
	recs := []session.Record{header("s03"), branch(2), branch(3), branch(4), branch(5)}
	reqs := []*sqlstore.Request{request(t, "s03", recs...)}
	for id := range want {
		if id != "s03" {
			reqs = append(reqs, request(t, id, header(id)))
			want[id] = []session.Record{header(id)}
		}
	}
	batch(t, s, reqs...)
	do(t, s, func(w *writer) error { return w.sortShare(w.inbox.shares[w.book.Get("s03")], 3) })
	recs = append(recs, branch(6))
	req := request(t, "s03", recs[5])
	batch(t, s, req)
	must(t, req.Err)
	want["s03"] = recs
	// As after a kill: nobody closes s.
	other := at(t, path)
	if err := other.Append(bg, "new", header("new")); err != nil {
		t.Error("append to another session:", err)
	}
	if _, err := sessiontest.Collect(other.Read(bg, "s01", 0)); err != nil {
		t.Error("read another session:", err)
	}
	if _, err := other.Rebuild(bg); err != nil {
		t.Error("rebuild:", err)
	}
	whole(t, other, want)
}

// The same with a straight session and a compaction.
func TestInboxHalfSortedFold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	for range 6 {
		crowdOf(t, s, want)
	}
	do(t, s, func(w *writer) error { return w.sortShare(w.inbox.order[0], 3) })
	var reqs []*sqlstore.Request
	for id, recs := range want {
		n := len(recs)
		r := session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%03d", n), Parent: recs[n-1].ID, Time: sessiontest.Start, Body: session.Compaction{Summary: "s", FirstKept: recs[n-2].ID}}
		want[id] = append(recs, r)
		reqs = append(reqs, request(t, id, r))
	}
	batch(t, s, reqs...)
	for _, r := range reqs {
		must(t, r.Err)
	}
	whole(t, at(t, path), want)
}

// A purged text that has passed through the inbox.
func TestInboxPurge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	var reqs []*sqlstore.Request
	for i := range usual.many {
		id := session.ID(fmt.Sprint("s", i))
		recs := []session.Record{header(id), said(2, "", strings.Repeat("hello ", 100))}
		if i == 3 {
			recs = append(recs, said(3, "e0002", strings.Repeat("the password is swordfish ", 1000)))
		}
		reqs = append(reqs, request(t, id, recs...))
	}
	batch(t, s, reqs...)
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

// A crowd fills the disk.
func TestFullDiskCrowd(t *testing.T) {
	for _, size := range []int{1000, 20_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := t.TempDir()
			disk := &smallDisk{vfs.Find("").(vfs.VFSFilename), dir, 12 << 20}
			vfs.Register("small", gathering{disk})
			defer vfs.Unregister("small")
			s := at(t, filepath.Join(dir, "sessions.db"), func(s *Store) {
				s.vfs = "small"
				s.free = func(string) (int64, bool) { return disk.free(), true }
			})
			s.writer.settling.Store(true) // the crowd stays
			text := strings.Repeat("x", size)
			want := sessions(16)
			kept := map[session.ID]int{}
			for full := false; !full; {
				var reqs []*sqlstore.Request
				for id := range want {
					r := header(id)
					if kept[id] > 0 {
						r = session.Record{Seq: session.Seq(kept[id] + 1), ID: fmt.Sprintf("e%06d", kept[id]), Link: session.Given, Time: sessiontest.Start, Body: sessiontest.User(text)}
						if kept[id] > 1 {
							r.Parent = fmt.Sprintf("e%06d", kept[id]-1)
						}
					}
					reqs = append(reqs, request(t, id, r))
				}
				if err := s.writer.begin(bg); err != nil {
					t.Log("begin:", err)
					break
				}
				if err := s.writer.sortSome(); err != nil {
					t.Log("sortSome:", err)
				}
				s.writer.serveAll(reqs)
				s.writer.after()
				for _, r := range reqs {
					if r.Err == nil {
						kept[r.ID]++
					} else {
						full = true
						t.Log(r.ID, r.Err)
						break
					}
				}
			}
			t.Logf("%d bytes free, %d records pending (%d bytes)", disk.free(), s.writer.inbox.pending, s.writer.inbox.size)
			for id, n := range kept {
				recs, err := sessiontest.Collect(s.Read(bg, id, 0))
				if err != nil || len(recs) < n {
					t.Errorf("%s has %d records (%v), %d were promised", id, len(recs), err, n)
					break
				}
			}
			if err := s.Delete(bg, "s01"); err != nil {
				t.Error("delete:", err)
			}
			if err := s.Purge(bg, "s01"); err != nil {
				t.Error("purge:", err)
			}
			s.Close()
			disk.size += 64 << 20
			s = at(t, filepath.Join(dir, "sessions.db"), func(s *Store) { s.vfs = "small" })
			for id, n := range kept {
				recs, err := sessiontest.Collect(s.Read(bg, id, 0))
				if (err != nil || len(recs) < n) && id != "s01" {
					t.Errorf("with room: %s has %d records (%v), %d were promised", id, len(recs), err, n)
				}
			}
			if got := reports(t, s); len(got) != 0 {
				t.Errorf("check reports %q", got)
			}
		})
	}
}

// A byte of a line in the inbox has changed.
func TestInboxByte(t *testing.T) {
	for name, where := range map[string]func(b []byte) int{
		"header": func(b []byte) int { return bytes.IndexByte(b, '{') },
		"line":   func(b []byte) int { return len(b) - 1 },
		"frame":  func(b []byte) int { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			s := at(t, path)
			s.writer.settling.Store(true)
			talk(t, s, "old", 3)
			want := sessions(usual.many)
			crowdOf(t, s, want)
			crowdOf(t, s, want)
			var data []byte
			n := int64(1)
			if name == "line" {
				n = 2
			}
			must(t, s.lend(bg, func(c *conn) error {
				return c.each(func(r row) error { data = bytes.Clone(r.bytes(0)); return nil }, "SELECT data FROM inbox WHERE n = $1", n)
			}))
			data[where(data)] ^= 0x80
			must(t, s.lend(bg, func(c *conn) error { return c.exec("UPDATE inbox SET data = $1 WHERE n = $2", data, n) }))
			other := at(t, path)
			if _, err := sessiontest.Collect(other.Read(bg, "old", 0)); err != nil {
				t.Error("another session is read:", err)
			}
			if err := other.Append(bg, "new", header("new")); err != nil {
				t.Error("another session is begun:", err)
			}
			if _, err := other.Rebuild(bg); err != nil {
				t.Error("rebuild:", err)
			}
			if err := other.Append(bg, "new2", header("new2")); err != nil {
				t.Error("after a rebuild another session is begun:", err)
			}
		})
	}
}

// One page of the inbox is damaged.
func TestInboxPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	crowdOf(t, s, want)
	for round := range 4 {
		var reqs []*sqlstore.Request
		for id, recs := range want {
			n := len(recs)
			r := session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%03d", n), Parent: recs[n-1].ID, Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat(fmt.Sprintf("round %d ", round), 1000))}
			want[id] = append(recs, r)
			reqs = append(reqs, request(t, id, r))
		}
		batch(t, s, reqs...)
	}
	must(t, s.lend(bg, func(c *conn) error {
		_, _, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
		return err
	}))
	b, err := os.ReadFile(path)
	must(t, err)
	// As after a kill, and a page in the middle of round 1 is lost.
	dir := t.TempDir()
	damaged := filepath.Join(dir, "sessions.db")
	hurt := bytes.Index(b, []byte(strings.Repeat("round 1 ", 600)))
	for i := range 4096 {
		b[hurt/4096*4096+4096+i] = 0
	}
	must(t, os.WriteFile(damaged, b, 0o600))
	other := at(t, damaged)
	if _, err := other.Rebuild(bg); err != nil {
		t.Fatal("rebuild:", err)
	}
	lost := 0
	for id, recs := range want {
		got := 0
		for r, err := range other.Read(bg, id, 0) {
			if err == nil && string(r.Raw) != "null" {
				got++
			} else if err != nil && got == 0 {
				t.Log(err)
			}
		}
		lost += len(recs) - got
	}
	if lost > usual.many {
		t.Errorf("%d records are lost, %d were on the row", lost, usual.many)
	}
}

// Something is missing in an inbox of more sessions than the book holds.
func TestInboxTornOfMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(4200)
	crowdOf(t, s, want)
	crowdOf(t, s, want)
	must(t, s.lend(bg, func(c *conn) error { return c.exec("DELETE FROM inbox WHERE n = 1") }))
	other := at(t, path)
	if err := other.writer.begin(bg); err != nil { // as every append does
		t.Fatal(err)
	}
	must(t, other.writer.commit())
	for id := range want {
		in, err := session.Stat(bg, other, id)
		must(t, err)
		if in.Last != 2 {
			t.Fatal(id, in.Last)
		}
	}
}

// A reader sees half of an append.
func TestInboxWholeAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	s.writer.settling.Store(true)
	want := sessions(usual.many)
	crowdOf(t, s, want)
	// with() of a Read: settles, and then, before it reads, a crowd comes.
	must(t, s.settle(bg, func(*upTo) (bool, error) {
		return false, s.writer.alone(func() error { return s.writer.sortOne("s03") })
	}))
	var reqs []*sqlstore.Request
	for id := range want {
		reqs = append(reqs, request(t, id, said(2, "", "two"), said(3, "e0002", "three"), said(4, "e0003", "four")))
	}
	batch(t, s, reqs...)
	s.writer.measures = measures{many: 8, ripe: amount{2, 1 << 20}, stays: amount{1, 1 << 20}, most: amount{1, 2 << 20}, max: amount{4000, 4 << 20}, atOnce: 2}
	s.writer.inbox.due, s.writer.inbox.lately = 0, 2
	for range 20 {
		do(t, s, func(w *writer) error { w.inbox.lately = 2; return nil })
		p := piece{file: s.path}
		must(t, s.lend(bg, func(c *conn) error {
			if err := p.open(c, "s03"); err != nil {
				return err
			}
			return p.read(c)
		}))

		if n := len(p.entries); n != 1 && n != 4 {
			t.Errorf("a reader sees %d records of appends of 1 and 3", n)
		}
	}
}
