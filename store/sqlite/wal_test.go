package sqlite

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
	"pgregory.net/rapid"
)

// plainFile is a file in memory.
type plainFile struct {
	vfs.File
	data   []byte
	writes int
	synced []byte // as of the last sync
	broken error
}

func (f *plainFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *plainFile) WriteAt(p []byte, off int64) (int, error) {
	if f.broken != nil {
		return 0, f.broken
	}
	f.writes++
	if end := int(off) + len(p); end > len(f.data) {
		f.data = append(f.data, make([]byte, end-len(f.data))...)
	}
	return copy(f.data[off:], p), nil
}

func (f *plainFile) Truncate(size int64) error {
	f.data = f.data[:min(int(size), len(f.data))]
	return nil
}
func (f *plainFile) Sync(vfs.SyncFlag) error { f.synced = bytes.Clone(f.data); return nil }
func (f *plainFile) Size() (int64, error)    { return int64(len(f.data)), nil }
func (f *plainFile) Close() error            { return nil }

// A file whose writes are gathered is the same file to who reads it, and on
// the disk at each sync.
func TestWALFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		below, model := &plainFile{}, &plainFile{}
		f := &walFile{File: below}
		end := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				off, p, q := int64(rapid.IntRange(0, end+10).Draw(t, "off")), make([]byte, 40), make([]byte, 40)
				n, err := f.ReadAt(p, off)
				m, want := model.ReadAt(q, off)
				if n != m || err != want || !bytes.Equal(p, q) {
					t.Fatalf("read %d, %v, %q, want %d, %v, %q", n, err, p, m, want, q)
				}
			case 1:
				size := int64(rapid.IntRange(0, end).Draw(t, "size"))
				if err := errors.Join(f.Truncate(size), model.Truncate(size)); err != nil {
					t.Fatal(err)
				}
			case 2:
				if n, err := f.Size(); err != nil || n != int64(len(model.data)) {
					t.Fatalf("size %d (%v), want %d", n, err, len(model.data))
				}
			case 3:
				if err := f.Sync(0); err != nil || !bytes.Equal(below.synced, model.data) {
					t.Fatalf("%q is on the disk (%v), want %q", below.synced, err, model.data)
				}
			default:
				off := end
				if rapid.IntRange(0, 3).Draw(t, "elsewhere") == 0 {
					off = rapid.IntRange(0, end).Draw(t, "off")
				}
				p := rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "bytes")
				if _, err := f.WriteAt(p, int64(off)); err != nil {
					t.Fatal(err)
				}
				model.WriteAt(p, int64(off))
				end = off + len(p)
			}
		}
	})
}

// What is written one behind the other is one write, and a disk that refuses
// it is said at the sync.
func TestWALFileGathers(t *testing.T) {
	below := &plainFile{}
	f := &walFile{File: below}
	write := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := f.WriteAt(make([]byte, 1000), int64(1000*i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(50)
	if err := f.Sync(0); err != nil || below.writes != 1 || len(below.synced) != 50_000 {
		t.Errorf("%d writes (%v) of %d bytes, want one of 50000", below.writes, err, len(below.synced))
	}
	below.broken = errors.New("no")
	write(3)
	if err := f.Sync(0); err != below.broken {
		t.Errorf("sync says %v, want %v", err, below.broken)
	}
	below.broken, below.writes = nil, 0
	write(1000)
	if below.writes != 3 || cap(f.kept) > 2*maxKept {
		t.Errorf("%d writes before a sync, with %d bytes of memory", below.writes, cap(f.kept))
	}
}
