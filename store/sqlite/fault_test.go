package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// readFault is a file system on which one read fails.
type readFault struct {
	vfs.VFSFilename
	left *atomic.Int64 // reads until then
}

func (d readFault) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, got, err
	}
	return &readFaultFile{passing{f}, d}, got, nil
}

type readFaultFile struct {
	passing
	d readFault
}

func (f *readFaultFile) ReadAt(p []byte, off int64) (int, error) {
	if f.d.left.Add(-1) == 0 {
		return 0, sqlite3.IOERR_READ
	}
	return f.File.ReadAt(p, off)
}

// A read that fails once while something is appended costs that append at most:
// what is refused is not there, and what is there is not refused.
func TestReadFault(t *testing.T) {
	var left atomic.Int64
	vfs.Register("readfault", readFault{vfs.Find("").(vfs.VFSFilename), &left})
	defer vfs.Unregister("readfault")
	for n := int64(1); n < 40; n++ {
		path := filepath.Join(t.TempDir(), "sessions.db")
		s := at(t, path)
		for i := range 30 {
			talk(t, s, session.ID(fmt.Sprint("s", i)), 60)
		}
		must(t, s.Close())
		left.Store(0)
		s = at(t, path, WithVFS("readfault"))
		talk(t, s, "warm", 2)
		r := func(i int) *request {
			return newRequest(t, session.ID(fmt.Sprint("s", i)), session.Record{Seq: 62, ID: "e061", Parent: "e060", Time: sessiontest.Start, Body: sessiontest.User("on")})
		}
		reqs := []*request{r(5), r(15)}
		left.Store(n)
		batch(t, s, reqs...)
		hit := left.Load() <= 0
		left.Store(0)
		for _, r := range reqs {
			in, err := session.Stat(bg, s, r.id)
			must(t, err)
			if r.err != nil && in.Last == 62 || r.err == nil && in.Last != 62 || errors.Is(r.err, session.ErrConflict) {
				t.Errorf("read %d fails: append to %s: %v; it ends at %d", n, r.id, r.err, in.Last)
			}
		}
		if got := reports(t, s); len(got) != 0 {
			t.Errorf("read %d fails: check reports %q", n, got)
		}
		s.Close()
		if !hit {
			break
		}
	}
}
