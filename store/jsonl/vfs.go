package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"goclaw/internal/wholefile"
)

// disk has every file operation of the store but locking. Tests use one that
// fails at a chosen operation.
type disk interface {
	open(name string, flag int) (file, error)
	lstat(name string) (stat, error)
	readDir(name string) ([]fs.DirEntry, error)
	mkdir(name string) error // with its parents; the names of those it makes are durable
	rename(from, to string) error
	remove(name string) error
	syncDir(name string) error
}

// file is an open file. Write appends if it was opened with O_APPEND.
type file interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Sync() error
	Truncate(size int64) error
	stat() (stat, error)
}

// stat tells one state of a file from another.
type stat struct {
	ino   uint64 // 0 where there is none
	size  int64
	mtime int64 // in ns
	mode  fs.FileMode
}

// generation returns a number for a file in the state a. It is never 0.
func (a stat) generation() uint64 {
	return a.ino*0x9e3779b97f4a7c15 ^ uint64(a.mtime)*0xc2b2ae3d27d4eb4f ^ uint64(a.size) | 1
}

// same reports whether a and b are states of one file that was not written in
// between.
func (a stat) same(b stat) bool {
	return a.ino == b.ino && a.size == b.size && a.mtime == b.mtime
}

// osDisk is the disk of the operating system.
type osDisk struct{}

type osFile struct{ *os.File }

func (osDisk) open(name string, flag int) (file, error) {
	f, err := os.OpenFile(name, flag|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) readDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osDisk) mkdir(name string) error                    { return wholefile.Mkdir(name) }
func (osDisk) syncDir(name string) error                  { return wholefile.SyncDir(name) }
func (osDisk) rename(from, to string) error               { return os.Rename(from, to) }
func (osDisk) remove(name string) error                   { return os.Remove(name) }

func (f osFile) stat() (stat, error) {
	fi, err := f.File.Stat()
	if err != nil {
		return stat{}, err
	}
	return statOf(fi), nil
}

func (f osFile) Sync() error { return datasync(f.File) }

// readFile returns all of a small regular file.
func readFile(d disk, name string) ([]byte, stat, error) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, stat{}, err
	}
	defer f.Close()
	st, err := f.stat()
	if err != nil {
		return nil, stat{}, err
	}
	if !st.mode.IsRegular() {
		return nil, stat{}, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	b := make([]byte, st.size)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, stat{}, err
	}
	return b[:n], st, nil
}

// replaceFile replaces the file name with one that has content b. There is always the
// old one or the new one, also after a crash.
func replaceFile(d disk, name string, b []byte, durable bool) error {
	tmp := name + ".tmp"
	if err := writeFile(d, tmp, b, durable); err != nil {
		_ = d.remove(tmp)
		return err
	}
	if err := d.rename(tmp, name); err != nil {
		_ = d.remove(tmp)
		return err
	}
	if durable {
		return d.syncDir(filepath.Dir(name))
	}
	return nil
}

func writeFile(d disk, name string, b []byte, durable bool) error {
	f, err := d.open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// denied reports whether err says that nothing can be written there.
func denied(err error) bool { return errors.Is(err, fs.ErrPermission) || readOnly(err) }
