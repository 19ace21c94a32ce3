package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// smallDisk is a file system on which the files of a folder may have so many
// bytes together.
type smallDisk struct {
	vfs.VFSFilename
	dir  string
	size int64
}

func (d *smallDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, got, err
	}
	return &smallFile{passing{f}, d}, got, nil
}

// free is the space that is left, of which the file of shared memory takes its
// part.
func (d *smallDisk) free() int64 {
	free := d.size
	files, _ := filepath.Glob(filepath.Join(d.dir, "*"))
	for _, p := range files {
		if st, err := os.Stat(p); err == nil {
			free -= st.Size()
		}
	}
	return free
}

// passing is a file that passes on what SQLite asks of a database.
type passing struct{ vfs.File }

func (f passing) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f passing) PersistWAL() bool               { return vfsutil.WrapPersistWAL(f.File) }
func (f passing) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(f.File, keep) }

type smallFile struct {
	passing
	disk *smallDisk
}

func (f *smallFile) WriteAt(p []byte, off int64) (int, error) {
	if size, err := f.File.Size(); err != nil || off+int64(len(p))-size > f.disk.free() {
		return 0, sqlite3.FULL
	}
	return f.File.WriteAt(p, off)
}

// On a full disk nothing that was promised is lost, the error says what it is
// about, and what is removed makes room.
func TestFullDisk(t *testing.T) {
	for _, size := range []int64{14, 16, 20} {
		t.Run(fmt.Sprintf("%d MB", size), func(t *testing.T) { fillDisk(t, size<<20) })
	}
}

func fillDisk(t *testing.T, size int64) {
	dir := t.TempDir()
	disk := &smallDisk{vfs.Find("").(vfs.VFSFilename), dir, size}
	vfs.Register("small", disk)
	defer vfs.Unregister("small")
	s := at(t, filepath.Join(dir, "sessions.db"), func(s *Store) {
		s.vfs = "small"
		s.free = func(string) (int64, bool) { return disk.free(), true }
	})
	fill := func() (kept map[session.ID]int, err error) {
		kept = map[session.ID]int{}
		for i := 0; ; i++ {
			id := session.ID(fmt.Sprintf("s%d", i))
			for seq := session.Seq(1); seq <= 40; seq++ {
				r := session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}}
				if seq > 1 {
					r = session.Record{Seq: seq, ID: fmt.Sprint(id, "-", seq), Link: session.Blank, Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("x", 10_000))}
				}
				if err := s.Append(bg, id, r); err != nil {
					return kept, err
				}
				kept[id]++
			}
		}
	}
	kept, err := fill()
	if want := "no space left on the disk of " + s.path + ": free some and try again"; err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "no space") != 1 {
		t.Errorf("an append to a full disk: %v, want %q", err, want)
	}
	if !errors.Is(err, session.ErrFull) {
		t.Errorf("an append to a full disk: %v does not wrap %v", err, session.ErrFull)
	}
	if len(kept) < 5 {
		t.Fatalf("%d sessions fill the disk", len(kept))
	}
	whole := func() {
		t.Helper()
		for id, n := range kept {
			recs, err := sessiontest.Collect(s.Read(bg, id, 0))
			if err != nil || len(recs) != n {
				t.Errorf("%s has %d records (%v), %d were promised", id, len(recs), err, n)
			}
		}
	}
	whole()
	if _, err := os.Stat(s.reserve()); err != nil {
		t.Error("there is no reserve:", err)
	}
	must(t, s.Delete(bg, "s1"))
	must(t, s.Purge(bg, "s1"))
	delete(kept, "s1")
	whole()
	// Its room is for others now.
	for seq := session.Seq(1); seq <= 20; seq++ {
		r := session.Record{Seq: seq, ID: fmt.Sprint("new-", seq), Link: session.Blank, Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("x", 10_000))}
		if seq == 1 {
			r = session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: "new", Key: "new", Version: session.Version}}
		}
		must(t, s.Append(bg, "new", r))
	}
	whole()
	if got := reports(t, s); len(got) != 0 {
		t.Errorf("check reports %q", got)
	}
}

// Many writers fill the disk.
func TestFullDiskManyWriters(t *testing.T) {
	for _, size := range []int{1000, 20_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := t.TempDir()
			disk := &smallDisk{vfs.Find("").(vfs.VFSFilename), dir, 20 << 20}
			vfs.Register("small", disk)
			defer vfs.Unregister("small")
			s := at(t, filepath.Join(dir, "sessions.db"), func(s *Store) {
				s.vfs = "small"
				s.free = func(string) (int64, bool) { return disk.free(), true }
			})
			text := strings.Repeat("x", size)
			kept := map[session.ID]int{}
			for full := false; !full; {
				var reqs []*request
				for i := range 16 {
					id := session.ID(fmt.Sprintf("s%02d", i))
					r := header(id)
					if kept[id] > 0 {
						r = session.Record{Seq: session.Seq(kept[id] + 1), ID: fmt.Sprintf("e%06d", kept[id]), Link: session.Given, Time: sessiontest.Start, Body: sessiontest.User(text)}
						if kept[id] > 1 {
							r.Parent = fmt.Sprintf("e%06d", kept[id]-1)
						}
					}
					reqs = append(reqs, newRequest(t, id, r))
				}
				if err := s.writer.begin(bg); err != nil {
					t.Log("begin:", err)
					break
				}
				s.writer.serveAll(reqs)
				s.writer.after()
				for _, r := range reqs {
					if r.err == nil {
						kept[r.id]++
					} else {
						full = true
						t.Log(r.id, r.err)
						break
					}
				}
			}
			t.Logf("%d bytes free", disk.free())
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

// An error of SQLite that does not say why is of a full disk if the disk is
// full.
func TestFull(t *testing.T) {
	left := int64(0)
	s := &database{path: "/x/sessions.db", free: func(string) (int64, bool) { return left, true }}
	for _, c := range []struct {
		err  error
		left int64
		want bool
	}{
		{sqlite3.FULL, 1 << 30, true},
		{fmt.Errorf("write: %w", syscall.ENOSPC), 1 << 30, true},
		{fmt.Errorf("write: %w", syscall.EDQUOT), 1 << 30, true},
		{sqlite3.IOERR, 0, true},
		{sqlite3.IOERR_WRITE, 4096, true},
		{sqlite3.IOERR, 1 << 30, false},
		{sqlite3.CORRUPT, 0, false},
		{nil, 0, false},
	} {
		left = c.left
		if got := s.full(c.err); got != c.want {
			t.Errorf("full(%v) with %d bytes left is %v", c.err, c.left, got)
		}
	}
}

// Large records are taken on a disk with room for them, also while the log is
// just being copied into the database.
func TestLargeWithRoom(t *testing.T) {
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	s.free = func(string) (int64, bool) { return 100 << 20, true }
	for i := range 20 {
		id := session.ID(fmt.Sprint("s", i))
		must(t, s.Append(bg, id, header(id), said(2, "", strings.Repeat("x", 9<<20))))
	}
}
