// Package jsonl is a session.Store in a folder of plain files: one .jsonl for
// each session, a line for each record, in a layout that OpenClaw or claw0
// reads as well. `tail -f` follows a conversation.
//
// The logs are the truth. Two kinds of projections are computed from them:
// sessions.json for the other programs, and .goclaw/index, which has the list
// row of each log. Both are written now and then, never with an append, and
// they are always compared with the logs. If they are lost, old or damaged, the
// store rebuilds them. The checksums of lines that other programs wrote are in
// .goclaw as well, a file for each log that has such lines.
//
// A log is only ever appended to: by one process at a time, under a lock, in
// one write that is durable before Append returns. The store notices if other
// programs append to a log, replace it or cut it. An incomplete line stays where
// it is; the store ends it with a line end and reports it as damage.
//
// The parts, each knowing only those before it: root (the folder on disk), log
// (one file), projection (the index and sessions.json), folder (which files
// there are) and Store.
package jsonl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/internal/lock"
	"goclaw/store/internal/space"
)

// Options configure a store. The zero value is good.
type Options struct {
	Layout Layout

	// ReadOnlyProjections leaves sessions.json and the index as they are; only
	// Rebuild writes them. It is meant for a store that is only looked at.
	ReadOnlyProjections bool
}

// Store is a folder of logs.
type Store struct {
	*root
	folder   *folder
	proj     *projection
	outlines outlines
	load     sync.Once

	mu     sync.Mutex
	grown  chan struct{} // closed and replaced when a log has grown
	closed bool
	done   chan struct{}
}

// Open opens the store in dir and makes it if it does not exist.
func Open(dir string, opts Options) (*Store, error) { return open(dir, opts, osDisk{}) }

func open(dir string, opts Options, d disk) (*Store, error) {
	if opts.Layout < OpenClaw || opts.Layout > Claw0Old {
		return nil, fmt.Errorf("jsonl: there is no layout %d", int(opts.Layout))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	r := &root{dir: dir, layout: opts.Layout, codec: opts.Layout.form().Codec(), disk: d}
	if err := r.mkdir(r.own("")); err != nil { // durable: batch files rely on it
		// A folder that cannot be written can still be read.
		if st, e := d.lstat(dir); e != nil || st.mode.IsRegular() {
			return nil, fmt.Errorf("jsonl: %w", err)
		}
	}
	st, err := d.lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	r.ino = st.ino
	p := &projection{root: r, readOnly: opts.ReadOnlyProjections, pause: 2 * time.Second, tables: map[string]*table{}}
	f := &folder{root: r, proj: p, seen: map[string]*listing{}, logs: map[session.ID]*log{}, files: map[string]*log{}}
	s := &Store{root: r, folder: f, proj: p, grown: make(chan struct{}), done: make(chan struct{})}
	p.logs = func() []saved { return f.saved(true) }
	f.changed = s.changed
	return s, nil
}

// changed has the projections of l written and limits the memory of outlines.
// The caller holds l.mu.
func (s *Store) changed(l *log) {
	l.unsaved.Store(true)
	s.proj.touch()
	s.outlines.use(l)
}

// enter begins every method.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return session.ErrClosed
	}
	if err := s.here(); err != nil {
		return err
	}
	s.loadIndex()
	return nil
}

func (s *Store) loadIndex() { s.load.Do(func() { s.proj.load(s.folder.load) }) }

// Close writes the projections, unless they are read-only. It may be called
// again.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	close(s.done)
	return s.proj.close()
}

// Path returns the path of the log id, in the trash or not.
func (s *Store) Path(id session.ID) (string, bool) {
	s.loadIndex()
	l, err := s.folder.find(id)
	if l == nil || err != nil {
		return "", false
	}
	return l.where(), true
}

func notFound(id session.ID) error { return session.NotFound("there is no session %q", id) }
func inTrash(id session.ID) error  { return session.NotFound("session %q is in the trash", id) }

// with calls f with the log id held and up to date. If its file is gone, with
// looks for it again.
func (s *Store) with(ctx context.Context, id session.ID, f func(*log) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	for range 4 {
		l, err := s.folder.find(id)
		if err != nil {
			return err
		}
		if l == nil {
			break
		}
		if err := l.use(ctx, func() error { return f(l) }); err != errGone {
			return err
		}
		s.folder.forget(l)
	}
	return notFound(id)
}

// Append implements session.Store.
func (s *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) (err error) {
	defer func() { err = space.Wrap("jsonl", s.dir, err) }()
	if err := s.enter(ctx); err != nil {
		return err
	}
	if len(recs) == 0 {
		return s.appendNothing(ctx, id)
	}
	was := ""
	for range 4 {
		l, err := s.folder.target(id, recs)
		if was != "" && errors.Is(err, session.ErrConflict) { // its file is gone, and there is no other
			return &session.MovedError{Path: was}
		}
		if err != nil {
			return err
		}
		if err = s.appendTo(ctx, l, recs); err != errGone {
			return err
		}
		was = l.where()
		s.folder.forget(l)
	}
	return notFound(id)
}

// appendNothing fails where an append of no records must.
func (s *Store) appendNothing(ctx context.Context, id session.ID) error {
	trashed := false
	err := s.with(ctx, id, func(l *log) error {
		trashed = l.trashed()
		return nil
	})
	switch {
	case trashed:
		return inTrash(id)
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return err
	}
	return storekit.CheckAppend(id, 0, nil)
}

func (s *Store) appendTo(ctx context.Context, l *log, recs []session.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun, err := l.append(ctx, recs, func() (bool, error) {
		if s.folder.known(l.id) == l {
			return true, nil
		}
		return s.folder.locate(l.id)
	})
	if err != nil {
		return err
	}
	s.folder.register(l)
	if begun {
		s.proj.stale(l.live)
	}
	s.mu.Lock()
	close(s.grown)
	s.grown = make(chan struct{})
	s.mu.Unlock()
	return nil
}

// Lock implements session.Store.
func (s *Store) Lock(ctx context.Context, name, who string) (func(), error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if s.layout == OpenClaw {
		if l, err := s.folder.find(session.ID(name)); err == nil && l != nil {
			if h := l.heldByOpenClaw(); h != nil {
				return nil, h
			}
		}
	}
	release, err := lock.Try(s.own("hold-"+storekit.FileName(name)+".lock"), who)
	var h *session.HeldError
	if errors.As(err, &h) {
		h.Name = name
	}
	return release, err
}

// Wait implements session.Waiter. It sees growth by this store at once, by
// others within 50 ms.
func (s *Store) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		s.mu.Lock()
		grown := s.grown
		s.mu.Unlock()
		more := false
		err := s.with(ctx, id, func(l *log) error {
			more = l.view.info.Last > after
			return nil
		})
		if more || err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		tick.Reset(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return session.ErrClosed
		case <-grown:
		case <-tick.C:
		}
	}
}
