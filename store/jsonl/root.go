package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"goclaw/internal/codec"
	"goclaw/session"
	"goclaw/store/internal/lock"
)

// root is the folder of a store and the form of the lines in it. It knows
// nothing of logs.
type root struct {
	dir    string
	layout Layout
	codec  codec.Codec
	disk   disk

	ino   uint64   // of dir when it was opened
	named sync.Map // folders whose names are durable
}

// path returns the path of rel, which is clean.
func (r *root) path(rel string) string { return r.dir + string(filepath.Separator) + rel }

// own returns the path of name in the store's own folder.
func (r *root) own(name string) string { return filepath.Join(r.dir, own, name) }

// mkdir makes dir durably, with its parents.
func (r *root) mkdir(dir string) error {
	if _, err := r.disk.lstat(dir); err == nil {
		return nil
	}
	return r.disk.mkdir(dir)
}

// durable makes the names of dir, which is in the store, and of its parents
// durable: another process may have made them and not come to that. It does so
// once.
func (r *root) durable(dir string) error {
	if _, ok := r.named.Load(dir); ok {
		return nil
	}
	for d := dir; len(d) >= len(r.dir); d = filepath.Dir(d) {
		if err := r.disk.syncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	r.named.Store(dir, true)
	return nil
}

// here returns an error if dir is not the folder that was opened: nobody could
// find what is written to it, or what was written before.
func (r *root) here() error {
	st, err := r.disk.lstat(r.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.ino != r.ino {
		return &session.MovedError{Path: r.dir}
	}
	return err
}

// scan reads f from the mark from to end. name is the file in a damage report.
func (r *root) scan(name string, f io.ReaderAt, from mark, end int64) *codec.Scanner {
	return r.scanEach(name, f, from, end, nil)
}

// scanEach is scan that calls each with each line.
func (r *root) scanEach(name string, f io.ReaderAt, from mark, end int64, each func(n int, line []byte)) *codec.Scanner {
	return codec.NewScanner(name, io.NewSectionReader(f, from.off, end-from.off),
		codec.Options{Form: r.layout.form(), Offset: from.off, Line: from.line - 1, After: from.seq - 1, Each: each})
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

// lock locks the file name in the store's own folder against every other
// process and every other Store. It is held for moments only.
func (r *root) lock(ctx context.Context, name string) (unlock func(), err error) {
	path := r.own(name + ".lock")
	unlock, err = lock.Wait(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := r.here(); err != nil {
			return nil, err
		}
		if err = r.disk.mkdir(filepath.Dir(path)); err == nil {
			unlock, err = lock.Wait(ctx, path)
		}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("jsonl: %w", err)
	}
	return unlock, err
}
