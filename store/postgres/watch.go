package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/session"
)

// channel is the channel of notifications: each says that something changed
// somewhere.
const channel = "goclaw"

// How often. Notifications are hints: whoever waits looks at the sessions that
// it waits for, when one comes and after every poll.
const (
	notifyEvery = 20 * time.Millisecond
	poll        = 250 * time.Millisecond
	relisten    = time.Second
	// The connection of the listener is tried after so long without a word.
	stillThere = 30 * time.Second
	// blind is how long a waiter is kept waiting while the database cannot be
	// asked.
	blind = 30 * time.Second
)

// watch wakes those that wait for records, and tells other processes of ours.
type watch struct {
	db     *database
	config *pgconn.Config

	mu      sync.Mutex
	waiting map[*waiter]bool
	started bool          // look and listen run
	kick    chan struct{} // look at once
	unsaid  bool          // something changed since the last notification
	saying  bool          // say runs
	work    sync.WaitGroup
}

// waiter is one Wait.
type waiter struct {
	id    session.ID
	after session.Seq
	woken chan error // one value, nil or why the waiting ends
}

// Wait implements session.Waiter.
func (s *Store) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	w := &waiter{id: id, after: after, woken: make(chan error, 1)}
	m := &s.watch
	if err := m.db.enter(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.waiting[w] = true
	if !m.started {
		m.started = true
		ctx, stop := context.WithCancel(context.Background())
		m.work.Go(func() { <-m.db.closed; stop() })
		m.work.Go(func() { m.look(ctx) })
		m.work.Go(func() { m.listen(ctx) })
	}
	m.mu.Unlock()
	m.db.leave()
	m.wake()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiting, w)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.db.closed:
		return session.ErrClosed
	case err := <-w.woken:
		return err
	}
}

// wake has look look at once.
func (m *watch) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// grew is called when this process has appended to a log.
func (m *watch) grew(id session.ID, last session.Seq) {
	m.mu.Lock()
	for w := range m.waiting {
		if w.id == id && last > w.after {
			m.end(w, nil)
		}
	}
	m.mu.Unlock()
	m.changed()
}

// end ends a waiting. The caller has locked m.mu.
func (m *watch) end(w *waiter, err error) {
	delete(m.waiting, w)
	w.woken <- err
}

// look looks at the sessions that are waited for, until ctx is done.
func (m *watch) look(ctx context.Context) {
	seen := time.Now() // when the database last answered
	for ctx.Err() == nil {
		m.mu.Lock()
		var ids []string
		for w := range m.waiting {
			ids = append(ids, text(string(w.id)))
		}
		m.mu.Unlock()
		if len(ids) == 0 {
			seen = time.Now()
			select {
			case <-ctx.Done():
			case <-m.kick:
			}
			continue
		}
		last := map[session.ID]session.Seq{}
		err := m.db.each(ctx, func(r row) error {
			last[session.ID(r.Text(0))] = session.Seq(r.Int(1))
			return nil
		}, "SELECT id, last FROM goclaw_sessions WHERE id = ANY($1)", ids)
		if err == nil {
			seen = time.Now()
		}
		m.mu.Lock()
		for w := range m.waiting {
			switch {
			case err != nil && (!lost(err) || time.Since(seen) > max(blind, m.db.patience)):
				m.end(w, m.db.wrap(err))
			case last[w.id] > w.after:
				m.end(w, nil)
			}
		}
		m.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-m.kick:
		case <-time.After(poll):
		}
	}
}

// listen wakes look at each notification, until ctx is done. It has a connection
// of its own. It ends if there is a pooler, which would deliver notifications to
// whoever has the server's connection then: look looks without them, too.
func (m *watch) listen(ctx context.Context) {
	for ctx.Err() == nil {
		config := m.config.Copy()
		config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { m.wake() }
		if c, err := pgconn.ConnectConfig(ctx, config); err == nil {
			var pooled bool
			pooled, err = behindPooler(ctx, c)
			if pooled {
				hangUp(c)
				return
			}
			for err == nil {
				err = listenOn(ctx, c)
			}
			hangUp(c)
		}
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

// behindPooler reports whether c leads to a pooler: it gives its clients numbers of
// processes that are not those of the server's.
func behindPooler(ctx context.Context, c *pgconn.PgConn) (pooled bool, err error) {
	_, err = query(ctx, c, func(r row) error { pooled = r.Int(0) != int64(c.PID()); return nil }, "SELECT pg_backend_pid()")
	return pooled, err
}

// listenOn has c listen, and waits for notifications until it has been quiet for
// a while.
func listenOn(ctx context.Context, c *pgconn.PgConn) error {
	short, cancel := context.WithTimeout(ctx, defaultAnswer)
	err := c.Exec(short, "LISTEN "+channel).Close() // fails if it is a standby now
	cancel()
	for err == nil {
		short, cancel = context.WithTimeout(ctx, stillThere)
		err = c.WaitForNotification(short)
		quiet := short.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && quiet && !c.IsClosed() {
			return nil
		}
	}
	return err
}

// changed has other processes told of a change, soon and once for many.
func (m *watch) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unsaid = true
	if m.saying {
		return
	}
	m.saying = true
	m.work.Go(m.say)
}

// say notifies until nothing is unsaid.
func (m *watch) say() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), relisten)
		m.mu.Lock()
		m.unsaid = false
		m.mu.Unlock()
		_, _ = m.db.exec(ctx, "SELECT pg_notify($1, '')", channel) // only a hint
		cancel()
		select {
		case <-m.db.closed:
		case <-time.After(notifyEvery):
		}
		m.mu.Lock()
		if !m.unsaid {
			m.saying = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
}

// shut ends all that runs. What is unsaid is said.
func (m *watch) shut() { m.work.Wait() }
