package jsonl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Piece is a file of a store at one moment: a log with its Info, or a file of
// checksums or a sessions.json without one.
type Piece struct {
	Path string // relative to the store
	Info session.Info
	io.Reader
}

// Pieces yields every file that a copy of s needs, while other processes
// may write: each log as it is between two appends. A piece can be read until
// the next is asked for.
func Pieces(ctx context.Context, s *Store) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if err := s.enter(ctx); err != nil {
			yield(Piece{}, err)
			return
		}
		if err := s.folder.sync(); err != nil {
			yield(Piece{}, err)
			return
		}
		var tables []string
		for _, l := range s.folder.all() {
			// Before the log: there must not be more of them than lines.
			sums, _, _ := readFile(s.disk, s.sumsPath(l.id))
			p, f, err := s.folder.piece(ctx, l)
			if err == errGone {
				continue // it was purged
			}
			if err == nil {
				if table := s.layout.index(filepath.Dir(l.live)); !slices.Contains(tables, table) {
					tables = append(tables, table)
				}
			}
			more := yield(p, err)
			if f != nil {
				f.Close()
			}
			if more && err == nil && len(sums) > 0 {
				more = yield(Piece{Path: filepath.Join(own, filepath.Base(s.sumsPath(l.id))), Reader: bytes.NewReader(sums)}, nil)
			}
			if !more || err != nil {
				return
			}
		}
		for _, table := range tables {
			f, err := s.disk.open(s.path(table), os.O_RDONLY)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				yield(Piece{}, err)
				return
			}
			more := yield(Piece{Path: table, Reader: io.NewSectionReader(f, 0, 1<<62)}, nil)
			f.Close()
			if !more {
				return
			}
		}
	}
}

// piece returns the file of l, which may have moved to the trash or back. It is
// errGone if there is none.
func (f *folder) piece(ctx context.Context, l *log) (p Piece, open file, err error) {
	for range 4 {
		err = l.use(ctx, func() (err error) {
			p = Piece{Path: l.at().rel, Info: l.info()}
			if open, err = f.disk.open(l.where(), os.O_RDONLY); err != nil {
				return gone(err)
			}
			p.Reader = io.NewSectionReader(open, 0, l.view.stat.size)
			return nil
		})
		if err != errGone {
			return p, open, err
		}
		f.forget(l)
		next, err := f.find(l.id)
		if err != nil || next == nil || next == l {
			return p, nil, cmp.Or(err, errGone)
		}
		l = next
	}
	return p, nil, errGone
}

// Replace puts the folder from, which nobody has open, in the place of the store
// dir, which becomes the folder aside. It reports whether there was one. A
// process that has the store open appends nothing more.
func Replace(dir, from, aside string) (was bool, err error) {
	err = os.Rename(dir, aside)
	if was = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("jsonl: %w", err)
	}
	if err := os.Rename(from, dir); err != nil {
		if was {
			err = errors.Join(err, os.Rename(aside, dir))
		}
		return false, fmt.Errorf("jsonl: %w", err)
	}
	return was, wholefile.SyncDir(filepath.Dir(dir))
}
