package jsonl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"goclaw/session"
	"goclaw/store/internal/space"
)

// Delete implements session.Store: the log moves to the folder trash beside
// it, as it is.
func (s *Store) Delete(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, false, func(l *log) error {
		at := s.clock.Now().UTC().Truncate(time.Millisecond)
		return s.relocate(l, trashName(l.live, at), at)
	})
}

// Restore implements session.Store.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, true, func(l *log) error {
		if _, err := s.disk.lstat(s.path(l.live)); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, fmt.Errorf("there is a file at %s", s.path(l.live)))
		}
		return s.relocate(l, l.live, time.Time{})
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
		s.forget(l)
		// Removed while it is locked: a process that waits for it locks a new one.
		_ = s.disk.remove(s.own(lockName(id) + ".lock"))
		return s.disk.syncDir(filepath.Dir(path))
	})
}

// move calls f with the log id held and locked, if it is where it must be.
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
		if l.at().trashed.IsZero() == trashed || l.view.info.Records == 0 {
			return notFound(id)
		}
		if err := f(l); err != nil {
			return fmt.Errorf("jsonl: session %q: %w", id, err)
		}
		return nil
	}))
}

// relocate moves l's file to the path rel.
func (s *Store) relocate(l *log, rel string, trashed time.Time) error {
	from, to := l.where(), s.path(rel)
	if err := s.mkdir(filepath.Dir(to)); err != nil {
		return err
	}
	if err := s.disk.rename(from, to); err != nil {
		return err
	}
	s.mu.Lock()
	at := *l.at()
	if s.files[at.rel] == l {
		delete(s.files, at.rel)
	}
	at.rel, at.trashed = rel, trashed
	l.spot.Store(&at)
	l.unsaved.Store(true)
	s.files[rel] = l
	s.lost = true
	s.stale(l.live)
	s.later()
	s.mu.Unlock()
	if err := s.disk.syncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return s.disk.syncDir(filepath.Dir(from))
}

// foreignHold returns who holds the log id by OpenClaw's own kind of lock: a
// file beside the log that names a process, for half an hour at most.
func (s *Store) foreignHold(id session.ID) *session.HeldError {
	if s.layout != OpenClaw {
		return nil
	}
	if _, ok := s.Path(id); !ok {
		return nil
	}
	s.mu.Lock()
	l := s.logs[id]
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	var note struct {
		PID       int       `json:"pid"`
		CreatedAt time.Time `json:"createdAt"`
	}
	b, _, err := readFile(s.disk, s.path(l.live)+".lock")
	if err != nil || json.Unmarshal(b, &note) != nil || note.PID <= 0 || !alive(note.PID) || s.clock.Now().Sub(note.CreatedAt) > 30*time.Minute {
		return nil
	}
	return &session.HeldError{Name: string(id), Who: "openclaw", PID: note.PID, Since: note.CreatedAt}
}
