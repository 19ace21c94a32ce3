package postgres

import (
	"container/list"
	"context"
	"sync"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// ends remembers where logs end, so that an append need not ask. What it
// remembers may be old: the statement that appends compares.
type ends struct {
	mu       sync.Mutex
	logs     map[session.ID]*end
	used     list.List // of *end, the most recent first
	outlined int       // records in all outlines
}

// end is the end of one log. Whoever has taken it may use it.
type end struct {
	sqlstore.End
	id    session.ID
	known bool          // End is what the log was when it was last read or written
	free  chan struct{} // holds one token while nobody has it
	users int           // those that have it or wait for it
	at    *list.Element
	count int // its part of ends.outlined
}

// Limits of what is remembered. An outline takes a few hundred bytes for each
// record.
const (
	maxLogs     = 4096
	maxOutlined = 200_000
)

// take gives the caller the end of a log. Appends of one process to one log come
// one after another.
func (m *ends) take(ctx context.Context, id session.ID) (*end, error) {
	m.mu.Lock()
	e := m.logs[id]
	if e == nil {
		e = &end{id: id, free: make(chan struct{}, 1)}
		e.free <- struct{}{}
		if m.logs == nil {
			m.logs = map[session.ID]*end{}
		}
		m.logs[id] = e
		e.at = m.used.PushFront(e)
	}
	m.used.MoveToFront(e.at)
	e.users++
	m.mu.Unlock()
	select {
	case <-e.free:
		return e, nil
	case <-ctx.Done():
		m.mu.Lock()
		e.users--
		m.mu.Unlock()
		return nil, ctx.Err()
	}
}

// give ends what take began.
func (m *ends) give(e *end) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outlined += e.Outlined() - e.count
	e.count = e.Outlined()
	e.free <- struct{}{}
	e.users--
	for at := m.used.Back(); at != nil && (m.used.Len() > maxLogs || m.outlined > maxOutlined); {
		old := at.Value.(*end)
		at = at.Prev()
		if old.users > 0 || old == e {
			continue
		}
		m.outlined -= old.count
		old.Forget()
		old.count = 0
		if m.used.Len() > maxLogs {
			m.used.Remove(old.at)
			delete(m.logs, old.id)
		}
	}
}
