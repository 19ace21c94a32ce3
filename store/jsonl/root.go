package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"goclaw/internal/codec"
	"goclaw/session"
)

// root is the folder of a store and the form of the lines in it. It knows
// nothing of logs.
type root struct {
	dir    string
	layout Layout
	codec  codec.Codec
	clock  session.Clock
	disk   disk
}

// path returns the path of rel, which is clean.
func (r *root) path(rel string) string { return r.dir + string(filepath.Separator) + rel }

// own returns the path of name in the store's own folder.
func (r *root) own(name string) string { return filepath.Join(r.dir, own, name) }

// mkdir makes dir, and makes it durable up to the store's folder.
func (r *root) mkdir(dir string) error {
	if _, err := r.disk.lstat(dir); err == nil {
		return nil
	}
	if err := r.disk.mkdir(dir); err != nil {
		return err
	}
	for d := dir; d != r.dir && len(d) > len(r.dir); {
		d = filepath.Dir(d)
		if err := r.disk.syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// scan reads f from the mark from to end. name stands for f in damage.
func (r *root) scan(name string, f io.ReaderAt, from mark, end int64) *codec.Scanner {
	return codec.NewScanner(name, io.NewSectionReader(f, from.off, end-from.off),
		codec.Options{Form: r.layout.form(), Offset: from.off, Line: from.line - 1, After: from.seq - 1})
}

// decode returns the records of the lines b.
func (r *root) decode(b []byte) ([]session.Record, error) {
	var recs []session.Record
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		rec, err := r.codec.Decode(line)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec...)
	}
	return recs, nil
}

// flock locks the file name in the store's own folder against every other
// process and every other Store. It is held for moments only, so that waiting
// means looking again soon.
func (r *root) flock(ctx context.Context, name string) (unlock func(), err error) {
	path := r.own(name + ".lock")
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, 2*time.Millisecond) {
		f := flock.New(path, flock.SetPermissions(0o600))
		ok, err := f.TryLock()
		if errors.Is(err, fs.ErrNotExist) {
			if err = r.disk.mkdir(filepath.Dir(path)); err == nil {
				ok, err = f.TryLock()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("jsonl: lock %s: %w", path, err)
		}
		if ok {
			// Purge removes lock files: one that has no name locks nothing.
			mine, err := f.Stat()
			if err == nil {
				var st stat
				st, err = r.disk.lstat(path)
				if err == nil && st.ino == statOf(mine).ino {
					return func() { f.Unlock() }, nil
				}
			}
			f.Unlock()
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("jsonl: lock %s: %w", path, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}
