package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

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
}

// path returns the path of rel, which is clean.
func (r *root) path(rel string) string { return r.dir + string(filepath.Separator) + rel }

// own returns the path of name in the store's own folder.
func (r *root) own(name string) string { return filepath.Join(r.dir, own, name) }

// mkdir makes dir durably, with its parents up to the store's folder.
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

// scan reads f from the mark from to end. name is the file in a damage report.
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

// lock locks the file name in the store's own folder against every other
// process and every other Store. It is held for moments only.
func (r *root) lock(ctx context.Context, name string) (unlock func(), err error) {
	path := r.own(name + ".lock")
	unlock, err = lock.Wait(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = r.disk.mkdir(filepath.Dir(path)); err == nil {
			unlock, err = lock.Wait(ctx, path)
		}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("jsonl: %w", err)
	}
	return unlock, err
}
