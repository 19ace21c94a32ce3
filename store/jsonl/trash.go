package jsonl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"goclaw/session"
	"goclaw/store/internal/space"
)

// Delete implements session.Store: it moves the log to the folder trash beside
// it.
func (s *Store) Delete(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, false, func(l *log) error {
		at := time.Now().UTC().Truncate(time.Millisecond)
		return s.folder.move(l, trashName(l.live, at), at)
	})
}

// Restore implements session.Store.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, true, func(l *log) error {
		if _, err := s.disk.lstat(s.path(l.live)); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, fmt.Errorf("there is a file at %s", s.path(l.live)))
		}
		return s.folder.move(l, l.live, time.Time{})
	})
}

// Purge implements session.Store.
func (s *Store) Purge(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, true, func(l *log) error {
		path := l.where()
		if err := s.disk.remove(path); err != nil {
			return err
		}
		l.view = view{}
		s.folder.forget(l)
		_ = s.disk.remove(s.sumsPath(id))
		// Removed while it is locked: a process that waits for it locks a new one.
		_ = s.disk.remove(s.own(lockName(id) + ".lock"))
		return s.disk.syncDir(filepath.Dir(path))
	})
}

// move calls f with the log id held and locked, if it is in the
// trash or not, as trashed says.
func (s *Store) move(ctx context.Context, id session.ID, trashed bool, f func(*log) error) error {
	return space.Wrap("jsonl", s.dir, s.with(ctx, id, func(l *log) error {
		unlock, err := l.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if _, err := s.disk.lstat(l.where()); err != nil {
			return gone(err) // another process was quicker
		}
		if l.trashed() != trashed || l.view.info.Records == 0 {
			return notFound(id)
		}
		if err := f(l); err != nil {
			return fmt.Errorf("jsonl: session %q: %w", id, err)
		}
		return nil
	}))
}
