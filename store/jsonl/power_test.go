//go:build unix

package jsonl

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// powered is a disk that knows what a power failure would leave at the worst: of
// each file the bytes at its last sync, of each folder the names at its last
// sync. One goroutine uses it.
type powered struct {
	disk
	synced func() // called after each sync
	last   int
	ids    map[uint64]int // of the files and folders with these inodes, which are used again
	names  map[int]map[string]int
	data   map[int][]byte
}

// id returns a number for the file or folder name, a new one if it is new.
func (d *powered) id(name string, isNew bool) int {
	st, err := d.disk.lstat(name)
	if err != nil {
		return -1
	}
	if _, ok := d.ids[st.ino]; !ok || isNew {
		d.last++
		d.ids[st.ino] = d.last
	}
	return d.ids[st.ino]
}

func (d *powered) open(name string, flag int) (file, error) {
	_, missing := d.disk.lstat(name)
	f, err := d.disk.open(name, flag)
	if err != nil {
		return nil, err
	}
	return poweredFile{f, d, name, d.id(name, missing != nil)}, nil
}

func (d *powered) mkdir(name string) error {
	made := name
	for {
		if _, err := d.disk.lstat(filepath.Dir(made)); err == nil {
			break
		}
		made = filepath.Dir(made)
	}
	if err := d.disk.mkdir(name); err != nil {
		return err
	}
	for p := name; len(p) >= len(made); p = filepath.Dir(p) {
		d.names[d.id(p, true)] = map[string]int{}
	}
	for p := name; len(p) >= len(made); p = filepath.Dir(p) {
		d.list(filepath.Dir(p))
	}
	return nil
}

func (d *powered) syncDir(name string) error {
	if err := d.disk.syncDir(name); err != nil {
		return err
	}
	d.list(name)
	d.synced()
	return nil
}

func (d *powered) list(dir string) {
	names := map[string]int{}
	files, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, f := range files {
		names[f.Name()] = d.id(filepath.Join(dir, f.Name()), false)
	}
	d.names[d.id(dir, false)] = names
}

type poweredFile struct {
	file
	d    *powered
	name string
	id   int
}

func (f poweredFile) Sync() error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	st, err := f.file.stat()
	if err != nil {
		return err
	}
	b := make([]byte, st.size)
	if len(b) > 0 {
		g, err := os.ReadFile(f.name) // the file may be open for writing only
		if err != nil {
			return err
		}
		copy(b, g)
	}
	f.d.data[f.id] = b
	f.d.synced()
	return nil
}

// cut writes to the folder to what a power failure would leave of the one with
// the number id.
func (d *powered) cut(t *testing.T, id int, to string) {
	for name, of := range d.names[id] {
		path := filepath.Join(to, name)
		if _, folder := d.names[of]; folder {
			must(t, os.MkdirAll(path, 0o700))
			d.cut(t, of, path)
			continue
		}
		if b, ok := d.data[of]; ok || filepath.Ext(name) == ext {
			must(t, os.WriteFile(path, b, 0o600))
		}
	}
}

// No record that was acknowledged depends on a name or a byte that was not
// synced, and what was purged does not come back: a power failure after any
// sync leaves what was acknowledged. With -soak it runs for that long.
func TestPowerFailure(t *testing.T) {
	long, err := time.ParseDuration(flag.Lookup("soak").Value.String())
	must(t, err)
	end, cuts := time.Now().Add(long), 0
	for round := 0; (round < 3 || time.Now().Before(end)) && !t.Failed(); round++ {
		cuts += powerRound(t, layouts[round%len(layouts)], uint64(round), 8)
	}
	t.Logf("%d power failures", cuts)
}

func powerRound(t *testing.T, y Layout, seed uint64, steps int) (cuts int) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	base := t.TempDir()
	dir := filepath.Join(base, "new", "store")
	d := &powered{disk: osDisk{}, ids: map[uint64]int{}, names: map[int]map[string]int{}, data: map[int][]byte{}}
	d.synced = func() {}
	d.list(base)
	kept, purged := map[session.ID]int{}, map[session.ID]bool{}
	check := func() {
		if t.Failed() {
			return
		}
		cuts++
		into, err := os.MkdirTemp("", "cut")
		must(t, err)
		defer os.RemoveAll(into)
		d.cut(t, d.id(base, false), into)
		st, err := Open(filepath.Join(into, "new", "store"), Options{Layout: y, ReadOnlyProjections: true})
		must(t, err)
		defer st.Close()
		for id, n := range kept {
			if got, damage := readAll(t, st, id); len(got) < n || len(damage) > 0 {
				t.Errorf("round %d, power failure %d: %s has %d records (%v), %d were acknowledged", seed, cuts, id, len(got), damage, n)
			}
		}
		for id := range purged {
			if got, _ := readAll(t, st, id); len(got) > 0 {
				t.Errorf("round %d, power failure %d: %s was purged and has %d records", seed, cuts, id, len(got))
			}
		}
	}
	d.synced = check
	open := func() *Store {
		st, err := open(dir, Options{Layout: y}, d)
		must(t, err)
		st.proj.pause = time.Hour // nothing happens by itself
		return st
	}
	st := open()
	defer func() { st.Close() }()
	for i := 0; i < steps && !t.Failed(); i++ {
		id := session.ID(fmt.Sprint("s", rnd.IntN(6)))
		switch rnd.IntN(10) {
		case 0:
			must(t, st.Close())
			st = open()
		case 1, 2:
			if kept[id] == 0 {
				continue
			}
			must(t, st.Delete(t.Context(), id))
			check()
			if rnd.IntN(2) == 0 {
				must(t, st.Restore(t.Context(), id))
				check()
				continue
			}
			delete(kept, id)
			must(t, st.Purge(t.Context(), id))
			purged[id] = true
			check()
		default:
			if purged[id] {
				continue
			}
			var recs []session.Record
			for range 1 + rnd.IntN(3) {
				n := kept[id] + len(recs)
				r := session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("e%06d", n), Link: session.Given, Time: sessiontest.Start, Body: sessiontest.User("said")}
				if n == 0 {
					r = session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key("main:cli:" + id), Version: session.Version}}
				} else if n > 1 {
					r.Parent = fmt.Sprintf("e%06d", n-1)
				}
				recs = append(recs, r)
			}
			must(t, st.Append(t.Context(), id, recs...))
			kept[id] += len(recs)
			check()
		}
	}
	return cuts
}
