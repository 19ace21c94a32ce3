package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
)

// maxReaders is how many connections read at once. No connection is held while
// a caller's code runs, so that nobody waits long.
const maxReaders = 4

// readers is a pool of connections that read.
type readers struct {
	db    *database
	slots chan struct{} // one for each connection in use
	mu    sync.Mutex
	idle  []*sqlx.Conn

	closed chan struct{}
}

// usable returns ErrClosed if the pool is closed, or the error of ctx.
func (r *readers) usable(ctx context.Context) error {
	select {
	case <-r.closed:
		return session.ErrClosed
	default:
		return ctx.Err()
	}
}

// lend calls f with a connection.
func (r *readers) lend(ctx context.Context, f func(c *sqlx.Conn) error) error {
	if err := r.usable(ctx); err != nil {
		return err
	}
	select {
	case <-r.closed:
		return session.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case r.slots <- struct{}{}:
	}
	defer func() { <-r.slots }()
	r.mu.Lock()
	var c *sqlx.Conn
	if n := len(r.idle); n > 0 {
		c, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	r.mu.Unlock()
	if c == nil {
		var err error
		if c, err = r.open(); err != nil {
			return err
		}
	}
	c.SetInterrupt(ctx)
	err := f(c)
	c.SetInterrupt(context.Background())
	if !c.GetAutocommit() {
		c.Exec("ROLLBACK")
	}
	if c.Large {
		c.Close()
	} else {
		r.mu.Lock()
		r.idle = append(r.idle, c)
		r.mu.Unlock()
	}
	if ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT) {
		return ctx.Err()
	}
	return r.db.wrap(err)
}

// open opens a connection.
func (r *readers) open() (*sqlx.Conn, error) {
	if err := r.db.places.Check(); err != nil { // of two files, which would be read?
		return nil, err
	}
	c, err := r.db.reader()
	if err != nil {
		return nil, foreign(r.db.path, err)
	}
	return c, nil
}

// lent returns what f makes of a connection.
func lent[T any](ctx context.Context, r *readers, f func(c *sqlx.Conn) (T, error)) (out T, err error) {
	err = r.lend(ctx, func(c *sqlx.Conn) (err error) { out, err = f(c); return err })
	return out, err
}

// shut closes the pool once no connection is in use.
func (r *readers) shut() (err error) {
	close(r.closed)
	for range maxReaders {
		r.slots <- struct{}{}
	}
	for _, c := range r.idle {
		err = errors.Join(err, c.Close())
	}
	r.idle = nil
	return err
}
