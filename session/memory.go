package session

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Memory is a Store in memory: the plainest thing that keeps the promises,
// apart from surviving its process. It is the measure for the others.
type Memory struct {
	mu     sync.Mutex
	logs   map[ID]*memLog
	held   map[ID]*HeldError
	closed bool
	grown  chan struct{} // closed and replaced at every append
}

type memLog struct {
	outline *Outline
	recs    []Record
	trashed time.Time
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{logs: map[ID]*memLog{}, held: map[ID]*HeldError{}, grown: make(chan struct{})}
}

func (m *Memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// Append implements Store.
func (m *Memory) Append(ctx context.Context, id ID, recs ...Record) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	l := m.logs[id]
	last := Seq(0)
	if l != nil {
		if !l.trashed.IsZero() {
			return NotFound("session %q is in the trash", id)
		}
		last = l.outline.Last
	}
	if err := CheckAppend(id, last, recs); err != nil || len(recs) == 0 {
		return err
	}
	if l == nil {
		l = &memLog{outline: NewOutline(id)}
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

// CheckAppend says whether recs may be appended to the log id whose last
// record is last. Every Store asks it, so that they refuse alike.
func CheckAppend(id ID, last Seq, recs []Record) error {
	if id == "" {
		return fmt.Errorf("session: a log needs an id")
	}
	if err := checkID("session", string(id)); err != nil {
		return err
	}
	for i, r := range recs {
		if want := last + Seq(i) + 1; r.Seq != want {
			return fmt.Errorf("session %q: record %d cannot follow record %d: %w", id, r.Seq, want-1, ErrConflict)
		}
		if r.Body == nil {
			return fmt.Errorf("session %q: record %d has no body", id, r.Seq)
		}
		h, header := r.Body.(Header)
		switch {
		case r.Seq == 1 && !header:
			return fmt.Errorf("session %q: a log begins with a header, not with %T", id, r.Body)
		case r.Seq == 1 && h.ID != id:
			return fmt.Errorf("session %q: its header names session %q", id, h.ID)
		case len(r.Raw) > MaxRecord:
			return fmt.Errorf("session %q: record %d has %d bytes, the limit is %d: %w", id, r.Seq, len(r.Raw), MaxRecord, ErrTooLarge)
		case r.Raw == nil && bodySize(r.Body) > MaxRecord:
			return fmt.Errorf("session %q: record %d is larger than %d bytes: %w", id, r.Seq, MaxRecord, ErrTooLarge)
		case r.Seq == 1 && !utf8.ValidString(string(h.Key)):
			return fmt.Errorf("session %q: its key %q is not UTF-8", id, h.Key)
		}
		if m, ok := r.Body.(Moved); ok && !utf8.ValidString(string(m.Key)) {
			return fmt.Errorf("session %q: its key %q is not UTF-8", id, m.Key)
		}
		if err := checkID("record", r.ID); err != nil {
			return err
		}
	}
	return nil
}

// checkID refuses the ids that a line of JSON or a column of text cannot
// give back as they were.
func checkID(what, id string) error {
	if !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return fmt.Errorf("session: %s id %q is not UTF-8 or has a NUL", what, id)
	}
	return nil
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, id ID, after Seq) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := m.enter(ctx); err != nil {
			yield(Record{}, err)
			return
		}
		l := m.logs[id]
		var recs []Record
		if l != nil {
			recs = l.recs
		}
		m.mu.Unlock()
		if l == nil {
			yield(Record{}, NotFound("there is no session %q", id))
			return
		}
		for _, r := range recs[min(max(after, 0), Seq(len(recs))):] {
			if err := ctx.Err(); err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// List implements Store.
func (m *Memory) List(ctx context.Context, q Query) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := m.enter(ctx); err != nil {
			yield(Info{}, err)
			return
		}
		var infos []Info
		for _, l := range m.logs {
			in := l.outline.Info
			in.Trashed = l.trashed
			if q.Match(in) {
				infos = append(infos, in)
			}
		}
		m.mu.Unlock()
		Sort(infos)
		for i, in := range infos {
			if q.Limit > 0 && i == q.Limit || !yield(in, nil) {
				return
			}
		}
	}
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, id ID) error {
	return m.change(ctx, id, false, func(l *memLog) { l.trashed = time.Now() })
}

// Restore implements Store.
func (m *Memory) Restore(ctx context.Context, id ID) error {
	return m.change(ctx, id, true, func(l *memLog) { l.trashed = time.Time{} })
}

// Purge implements Store.
func (m *Memory) Purge(ctx context.Context, id ID) error {
	return m.change(ctx, id, true, func(*memLog) { delete(m.logs, id) })
}

func (m *Memory) change(ctx context.Context, id ID, trashed bool, f func(*memLog)) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	l := m.logs[id]
	if l == nil || l.trashed.IsZero() == trashed {
		return NotFound("there is no session %q", id)
	}
	f(l)
	return nil
}

// Lock implements Store.
func (m *Memory) Lock(ctx context.Context, id ID, who string) (func(), error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if h := m.held[id]; h != nil {
		return nil, h
	}
	h := &HeldError{ID: id, Who: who, PID: os.Getpid(), Since: time.Now()}
	m.held[id] = h
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.held, id)
	}), nil
}

// Wait implements Waiter.
func (m *Memory) Wait(ctx context.Context, id ID, after Seq) error {
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

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.grown) // whoever waits sees it now
	}
	return nil
}
