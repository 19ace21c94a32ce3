// Package memory keeps sessions in memory: the simplest store that keeps every
// promise of session.Store except surviving its process. Other stores are
// tested against it.
package memory

import (
	"context"
	"iter"
	"os"
	"sync"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
)

// Store is a session.Store in memory.
type Store struct {
	mu     sync.Mutex
	logs   map[session.ID]*log
	held   map[string]*session.HeldError
	closed bool
	grown  chan struct{} // closed and replaced at every append
}

type log struct {
	outline *session.Outline
	recs    []session.Record
	trashed time.Time
}

// New returns an empty store.
func New() *Store {
	return &Store{logs: map[session.ID]*log{}, held: map[string]*session.HeldError{}, grown: make(chan struct{})}
}

func (m *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return session.ErrClosed
	}
	return nil
}

// Append implements session.Store.
func (m *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	l := m.logs[id]
	last := session.Seq(0)
	if l != nil {
		if !l.trashed.IsZero() {
			return session.NotFound("session %q is in the trash", id)
		}
		last = l.outline.Last
	}
	if err := storekit.CheckAppend(id, last, recs); err != nil || len(recs) == 0 {
		return err
	}
	if l == nil {
		l = &log{outline: session.NewOutline(id)}
		m.logs[id] = l
	}
	for _, r := range recs {
		if err := l.outline.Apply(r); err != nil {
			return err
		}
		l.recs = append(l.recs, r)
	}
	close(m.grown)
	m.grown = make(chan struct{})
	return nil
}

// Read implements session.Store.
func (m *Store) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		if err := m.enter(ctx); err != nil {
			yield(session.Record{}, err)
			return
		}
		l := m.logs[id]
		var recs []session.Record
		if l != nil {
			recs = l.recs
		}
		m.mu.Unlock()
		if l == nil {
			yield(session.Record{}, session.NotFound("there is no session %q", id))
			return
		}
		for _, r := range recs[min(max(after, 0), session.Seq(len(recs))):] {
			if err := ctx.Err(); err != nil {
				yield(session.Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// List implements session.Store.
func (m *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		if err := m.enter(ctx); err != nil {
			yield(session.Info{}, err)
			return
		}
		var infos []session.Info
		for _, l := range m.logs {
			in := l.outline.Info
			in.Trashed = l.trashed
			if q.Match(in) {
				infos = append(infos, in)
			}
		}
		m.mu.Unlock()
		storekit.Sort(infos)
		for i, in := range infos {
			if q.Limit > 0 && i == q.Limit || !yield(in, nil) {
				return
			}
		}
	}
}

// Delete implements session.Store.
func (m *Store) Delete(ctx context.Context, id session.ID) error {
	return m.change(ctx, id, false, func(l *log) { l.trashed = time.Now() })
}

// Restore implements session.Store.
func (m *Store) Restore(ctx context.Context, id session.ID) error {
	return m.change(ctx, id, true, func(l *log) { l.trashed = time.Time{} })
}

// Purge implements session.Store.
func (m *Store) Purge(ctx context.Context, id session.ID) error {
	return m.change(ctx, id, true, func(*log) { delete(m.logs, id) })
}

func (m *Store) change(ctx context.Context, id session.ID, trashed bool, f func(*log)) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	l := m.logs[id]
	if l == nil || l.trashed.IsZero() == trashed {
		return session.NotFound("there is no session %q", id)
	}
	f(l)
	return nil
}

// Lock implements session.Store.
func (m *Store) Lock(ctx context.Context, name, who string) (func(), error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if h := m.held[name]; h != nil {
		return nil, h
	}
	h := &session.HeldError{Name: name, Who: who, PID: os.Getpid(), Since: time.Now()}
	m.held[name] = h
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.held, name)
	}), nil
}

// Wait implements session.Waiter.
func (m *Store) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	grown := m.grown
	l := m.logs[id]
	more := l != nil && l.outline.Last > after
	m.mu.Unlock()
	if more {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-grown:
		return nil
	}
}

// Close implements session.Store.
func (m *Store) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.grown) // whoever waits sees it now
	}
	return nil
}
