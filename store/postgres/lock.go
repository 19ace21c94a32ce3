package postgres

import (
	"context"
	"os"
	"sync"
	"time"

	"goclaw/session"
)

// leases are the locks that a Store has. Each is a row, whose expiry by the
// clock of the server is put off while the lock is held, and whose fencing
// number is greater than any before. The row stays when the lock is given back, so
// that whoever takes it next gets its number when it has locked the row.
type leases struct {
	db  *database
	ttl time.Duration

	mu   sync.Mutex
	held map[string]*hold // by name
	stop func()           // ends the renewal; nil if there is none
	done chan struct{}    // closed when it has ended
}

// hold is a lock that is held, or was lost without its holder knowing.
type hold struct {
	fence int64
	who   string
	since time.Time
}

// Lock implements session.Store. A process that gives no sign of life for the
// duration of a lease loses the lock; one on this machine that has ended, at
// once.
func (s *Store) Lock(ctx context.Context, name, who string) (release func(), err error) {
	if err := s.db.writable(); err != nil {
		return nil, err
	}
	var h *hold
	as := callName()
	err = s.db.do(ctx, func() (err error) {
		h, err = s.leases.take(ctx, name, who, as)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { s.leases.release(name, h) }), nil
}

const takeLock = `INSERT INTO goclaw_locks AS l (name, fence, who, pid, process, since, expires)
VALUES ($1, nextval('goclaw_fences'), $2, $3, $4, clock_timestamp(), clock_timestamp() + $5 * interval '1 second')
ON CONFLICT (name) DO UPDATE SET fence = nextval('goclaw_fences'), who = excluded.who, pid = excluded.pid, process = excluded.process,
	since = excluded.since, expires = excluded.expires
WHERE l.expires < clock_timestamp() OR l.fence = $6 OR l.process = excluded.process
RETURNING fence, since`

// take takes the lock called name for the call as. If the call has taken it
// already, and the connection was lost before the answer, it takes it again.
func (l *leases) take(ctx context.Context, name, who, as string) (*hold, error) {
	l.mu.Lock()
	if h := l.held[name]; h != nil {
		l.mu.Unlock()
		return nil, &session.HeldError{Name: name, Who: h.who, PID: os.Getpid(), Since: h.since}
	}
	l.mu.Unlock()
	ended := int64(-1) // the fencing number of a holder that has ended
	for try := 0; ; try++ {
		h := &hold{who: who}
		err := l.db.each(ctx, func(r row) error { h.fence, h.since = r.Int(0), r.at(1); return nil },
			takeLock, text(name), text(who), int64(os.Getpid()), as, l.ttl.Seconds(), ended)
		if err != nil {
			return nil, err
		}
		if h.fence != 0 {
			l.keep(name, h)
			return h, nil
		}
		held := &session.HeldError{Name: name}
		var fence int64
		var process string
		free := true
		err = l.db.each(ctx, func(r row) error {
			fence, held.Who, held.PID, process, held.Since, free = r.Int(0), r.Text(1), int(r.Int(2)), r.Text(3), r.at(4), r.yes(5)
			return nil
		}, "SELECT fence, who, pid, process, since, expires < clock_timestamp() FROM goclaw_locks WHERE name = $1", text(name))
		switch {
		case err != nil:
			return nil, err
		case free && try < 20: // it was released
		case try < 20 && hasEnded(held.PID, process):
			ended = fence
		default:
			return nil, held
		}
	}
}

// keep notes that h is held, and renews it from now on.
func (l *leases) keep(name string, h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[name] = h
	if l.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		l.stop, l.done = stop, make(chan struct{})
		go l.renew(ctx, l.done)
	}
}

// fence returns the fencing number of the lock called name, if it is held.
func (l *leases) fence(name string) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[name]; h != nil {
		return h.fence, true
	}
	return 0, false
}

// release gives back a lock. If the database cannot be reached, the lease ends by
// itself.
func (l *leases) release(name string, h *hold) {
	ctx, cancel := context.WithTimeout(context.Background(), l.ttl)
	defer cancel()
	_ = l.db.do(ctx, func() error {
		_, err := l.db.exec(ctx, "UPDATE goclaw_locks SET expires = '-infinity' WHERE name = $1 AND fence = $2", text(name), h.fence)
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] == h {
		delete(l.held, name)
	}
}

// The rows are locked in the order of their names, as appends do that compare
// fencing numbers.
const renewLocks = `WITH h AS (
	SELECT l.name FROM goclaw_locks l JOIN unnest($2::text[], $3::bigint[]) h (name, fence) ON l.name = h.name AND l.fence = h.fence AND l.expires > '-infinity'
	ORDER BY l.name FOR NO KEY UPDATE OF l
) UPDATE goclaw_locks l SET expires = clock_timestamp() + $1 * interval '1 second' FROM h WHERE l.name = h.name`

// renew puts off the expiry of all locks, three times in the life of a lease,
// until ctx is done. A lock that is no longer ours is not touched: appends under
// it are refused.
func (l *leases) renew(ctx context.Context, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(l.ttl / 3)
	defer tick.Stop()
	var swept time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		names, fences := l.all()
		if len(names) == 0 {
			continue
		}
		short, cancel := context.WithTimeout(ctx, l.ttl)
		// If it fails, the next tick tries again, until the lease has ended.
		_, _ = l.db.exec(short, renewLocks, l.ttl.Seconds(), names, fences)
		cancel()
		if time.Since(swept) > time.Hour {
			swept = time.Now()
			_, _ = l.db.exec(ctx, sweepLocks)
		}
	}
}

// sweepLocks removes rows that nobody has used for long. Whoever waits for the row
// of a lock, with a number that is older, does not wait that long.
const sweepLocks = `DELETE FROM goclaw_locks WHERE name IN
	(SELECT name FROM goclaw_locks WHERE expires < clock_timestamp() - interval '1 day' AND since < clock_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED)`

// all returns the locks that are held.
func (l *leases) all() (names []string, fences []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, h := range l.held {
		names, fences = append(names, text(name)), append(fences, h.fence)
	}
	return names, fences
}

// shut ends the renewal and gives back all locks.
func (l *leases) shut() {
	l.mu.Lock()
	stop, done := l.stop, l.done
	l.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
	names, fences := l.all()
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = l.db.exec(ctx, `UPDATE goclaw_locks l SET expires = '-infinity' FROM unnest($1::text[], $2::bigint[]) h (name, fence)
WHERE l.name = h.name AND l.fence = h.fence`, names, fences) // else they expire
}
