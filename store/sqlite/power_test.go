//go:build unix

package sqlite

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"goclaw/internal/wholefile"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// powered is a file system that knows what a power failure would leave at the
// worst: of each file the bytes at its last sync, and of the folder the names at
// its last sync.
type powered struct {
	vfs.VFSFilename
	dir    string
	synced func() // called after each sync

	mu    sync.Mutex
	names map[string]uint64 // to inodes
	data  map[uint64][]byte
}

func (p *powered) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := p.VFSFilename.OpenFilename(name, flags)
	if err != nil || name == nil {
		return f, got, err
	}
	return &poweredFile{passing{f}, p, name.String()}, got, nil
}

type poweredFile struct {
	passing
	p    *powered
	name string
}

// HasMoved implements vfs.FileHasMoved.
func (f *poweredFile) HasMoved() (bool, error) { return f.File.(vfs.FileHasMoved).HasMoved() }

func (f *poweredFile) Sync(flags vfs.SyncFlag) error {
	if err := f.File.Sync(flags); err != nil {
		return err
	}
	f.p.keep(f.File.(interface{ Stat() (fs.FileInfo, error) }), f.name)
	f.p.synced()
	return nil
}

func inode(fi fs.FileInfo) uint64 { return uint64(fi.Sys().(*syscall.Stat_t).Ino) }

// keep notes the bytes of a file that was synced.
func (p *powered) keep(f interface{ Stat() (fs.FileInfo, error) }, name string) {
	fi, err := f.Stat()
	if err != nil {
		panic(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data[inode(fi)] = b
}

// syncDir replaces database.syncDir.
func (p *powered) syncDir(dir string) error {
	if err := wholefile.SyncDir(dir); err != nil {
		return err
	}
	p.list()
	p.synced()
	return nil
}

func (p *powered) list() {
	files, err := os.ReadDir(p.dir)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = map[string]uint64{}
	for _, f := range files {
		if fi, err := f.Info(); err == nil && fi.Mode().IsRegular() {
			p.names[f.Name()] = inode(fi)
		}
	}
}

// settle has everything synced.
func (p *powered) settle() {
	p.list()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data = map[uint64][]byte{}
	for name, ino := range p.names {
		p.data[ino], _ = os.ReadFile(filepath.Join(p.dir, name))
	}
}

// cut writes to dir what a power failure would leave.
func (p *powered) cut(t *testing.T, dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, ino := range p.names {
		if !strings.HasSuffix(name, "-shm") {
			must(t, os.WriteFile(filepath.Join(dir, name), p.data[ino], 0o600))
		}
	}
}

// No record that was acknowledged depends on a name or a byte that was not
// synced: a power failure after any sync leaves them all. With -soak it runs for
// that long.
func TestPowerFailure(t *testing.T) {
	long, err := time.ParseDuration(flag.Lookup("soak").Value.String())
	must(t, err)
	end, cuts := time.Now().Add(long), 0
	for round := 0; round < 1 || time.Now().Before(end); round++ {
		cuts += powerRound(t, uint64(round), 14)
	}
	t.Logf("%d power failures", cuts)
}

func powerRound(t *testing.T, seed uint64, steps int) (cuts int) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	p := &powered{VFSFilename: vfs.Find("").(vfs.VFSFilename), dir: dir, names: map[string]uint64{}, data: map[uint64][]byte{}}
	kept := map[session.ID]int{}
	p.synced = func() {
		if t.Failed() {
			return
		}
		cuts++
		into, err := os.MkdirTemp("", "cut")
		must(t, err)
		defer os.RemoveAll(into)
		p.cut(t, into)
		s, err := Open(filepath.Join(into, "sessions.db"))
		if err != nil {
			t.Errorf("round %d, power failure %d: %v", seed, cuts, err)
			return
		}
		defer s.Close()
		for id, n := range kept {
			if got, err := sessiontest.Collect(s.Read(bg, id, 0)); len(got) < n || err != nil {
				t.Errorf("round %d, power failure %d: %s has %d records (%v), %d were acknowledged", seed, cuts, id, len(got), err, n)
			}
		}
	}
	vfs.Register("powered", p)
	defer vfs.Unregister("powered")
	open := func() *Store {
		s, err := Open(path, func(s *Store) { s.vfs, s.syncDir = "powered", p.syncDir })
		must(t, err)
		return s
	}
	s := open()
	defer func() { s.Close() }()
	for i := 0; i < steps && !t.Failed(); i++ {
		id := session.ID(fmt.Sprint("s", rnd.IntN(5)))
		switch rnd.IntN(12) {
		case 0: // another program closes it last, and removes the write-ahead log
			must(t, s.Close())
			other, err := sqlite3.Open(path)
			must(t, err)
			must(t, other.Exec("SELECT count(*) FROM records"))
			must(t, other.Close())
			p.settle()
			s = open()
		case 1:
			must(t, s.Close())
			s = open()
		case 2:
			if kept[id] > 0 {
				delete(kept, id)
				must(t, s.Delete(bg, id))
				must(t, s.Purge(bg, id))
			}
		default:
			r := header(id)
			if n := kept[id]; n > 0 {
				r = session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%06d", n), Link: session.Blank, Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat("x", rnd.IntN(30_000)))}
			}
			must(t, s.Append(bg, id, r))
			kept[id]++
			p.synced() // what is there without any more syncs
		}
	}
	return cuts
}
