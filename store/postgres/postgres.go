// Package postgres keeps sessions in a PostgreSQL database that any number of
// processes on any number of machines share.
//
// An append is one call of a function of the database: it compares where the log
// ends, adds the records and brings the row of the session up to date, in one
// round trip, which appends to other sessions share if they come while others are
// on their way. Nothing needs
// a connection of its own or the state of one, so that all works behind a pooler
// that lends a connection for one transaction; only the listener, whose
// notifications are hints, is better off without one.
//
// A lock is a row with an expiry, which its holder renews, and a fencing number.
// An append of a holder whose row has another number now is refused.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/session"
)

// Store is a database of sessions. It implements session.Store,
// session.Waiter, storekit.Feed, storekit.Checker and storekit.Redactions.
type Store struct {
	db     *database
	ends   ends
	group  group
	leases leases
	watch  watch
	close  func() error
}

// database is the connections of a Store.
type database struct {
	pool     *pool
	place    string // host and database, for messages
	readOnly bool
	several  bool          // there are several hosts
	patience time.Duration // how long a lost connection is tried again

	closed  chan struct{}
	calls   sync.RWMutex // held for reading by every call
	closing bool
}

// Options change how a database is opened.
type Options struct {
	// ReadOnly never changes the database, not even to create its tables.
	ReadOnly bool
	// Lease is how long a lock outlives the last sign of life of its holder; 0
	// means 15 seconds.
	Lease time.Duration
	// Patience is how long a call goes on trying when the connection is lost; 0
	// means 20 seconds, or a minute if the DSN has several hosts.
	Patience time.Duration
	// Answer is how long the server may keep silent when an answer is awaited,
	// before the connection counts as lost; 0 means 20 seconds.
	Answer time.Duration
}

// Defaults of Options and of the pool. With several hosts a standby may take over:
// with Patroni's own settings that takes 30 to 40 seconds.
const (
	defaultLease    = 15 * time.Second
	defaultPatience = 20 * time.Second
	severalPatience = time.Minute
	defaultAnswer   = 20 * time.Second
	defaultConns    = 16
	// readOnlyPatience is for a single host that takes no writes. It may stand for
	// several: then another answers soon.
	readOnlyPatience = 5 * time.Second
)

// Open opens the database dsn, a URL "postgres://user:password@host/name?..." or
// words "host=... dbname=...", with the parameters of libpq and these:
// pool_max_conns, goclaw_lease and goclaw_patience (durations, for Options). Of
// several hosts it uses the one that takes writes, unless target_session_attrs says
// otherwise; if there is none while one of them answers, it waits for one to take
// over. It creates the tables if there are none. Its errors never show a password.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	cfg, opts, most, err := parse(dsn, opts)
	if err != nil {
		return nil, err
	}
	db := &database{pool: newPool(cfg, most, opts.Answer, opts.ReadOnly), place: placeOf(cfg), several: several(cfg), readOnly: opts.ReadOnly,
		patience: opts.Patience, closed: make(chan struct{})}
	s := &Store{db: db}
	s.group.db = db
	s.leases = leases{db: db, ttl: opts.Lease, held: map[string]*hold{}}
	s.watch = watch{db: db, config: cfg, waiting: map[*waiter]bool{}, kick: make(chan struct{}, 1)}
	s.close = sync.OnceValue(s.shut)
	err = db.prepare(ctx)
	if db.several && failing(err) { // a standby may be about to take over
		err = db.again(ctx, func() error { return db.prepare(ctx) })
	}
	if err != nil {
		db.pool.close()
		return nil, &Error{Place: db.place, Err: err}
	}
	return s, nil
}

// Parameters of a DSN that are not for the server.
const (
	leaseParam    = "goclaw_lease"
	patienceParam = "goclaw_patience"
	connsParam    = "pool_max_conns"
)

// parse parses a DSN, and returns the options with those that it has and the
// defaults. most is how many connections there may be.
func parse(dsn string, opts Options) (c *pgconn.Config, with Options, most int, err error) {
	if c, err = pgconn.ParseConfig(dsn); err != nil {
		return nil, opts, 0, unparsed(dsn, err)
	}
	with, most = opts, defaultConns
	with.Lease, with.Patience, with.Answer = defaultLease, defaultPatience, defaultAnswer
	if several(c) {
		with.Patience = severalPatience
	}
	for name, to := range map[string]*time.Duration{leaseParam: &with.Lease, patienceParam: &with.Patience} {
		v, ok := c.RuntimeParams[name]
		if !ok {
			continue
		}
		delete(c.RuntimeParams, name)
		if *to, err = time.ParseDuration(v); err != nil || *to < 100*time.Millisecond {
			return nil, opts, 0, fmt.Errorf("postgres: %s is %q, not a duration such as 15s", name, v)
		}
	}
	with.Lease, with.Patience, with.Answer = cmp.Or(opts.Lease, with.Lease), cmp.Or(opts.Patience, with.Patience), cmp.Or(opts.Answer, with.Answer)
	if v, ok := c.RuntimeParams[connsParam]; ok {
		delete(c.RuntimeParams, connsParam)
		if most, err = strconv.Atoi(v); err != nil || most < 1 {
			return nil, opts, 0, fmt.Errorf("postgres: %s is %q, not a number of connections", connsParam, v)
		}
	}
	complete(c, dsn)
	return c, with, most, nil
}

// complete fills in what a DSN leaves out.
func complete(c *pgconn.Config, dsn string) {
	if c.Database == "" {
		c.Database = c.User
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "goclaw"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
		if several(c) {
			c.ConnectTimeout = 5 * time.Second // there are others to ask
		}
	}
	if several(c) && c.ValidateConnect == nil && !strings.Contains(dsn, "target_session_attrs") {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c.DialFunc = dialer.DialContext
}

// enter begins a call. The caller must call leave if there is no error.
func (db *database) enter(ctx context.Context) error {
	db.calls.RLock()
	err := ctx.Err()
	if db.closing {
		err = session.ErrClosed
	}
	if err != nil {
		db.calls.RUnlock()
	}
	return err
}

func (db *database) leave() { db.calls.RUnlock() }

// do calls f, which must do nothing if the connection is lost or do the same
// when it is called again, until it succeeds or the connection has been lost for
// too long.
func (db *database) do(ctx context.Context, f func() error) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.leave()
	return db.wrap(db.again(ctx, f))
}

// again is do within a call.
func (db *database) again(ctx context.Context, f func() error) error {
	var begin time.Time // when the connection was lost
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 300*time.Millisecond) {
		err := f()
		if err != nil && ctx.Err() != nil && (lost(err) || errors.Is(err, ctx.Err())) {
			return ctx.Err()
		}
		if err == nil || !lost(err) {
			return err
		}
		if begin.IsZero() {
			begin = time.Now()
		}
		patience := db.patience
		if readOnly(err) && !db.several {
			patience = min(patience, readOnlyPatience)
		}
		if time.Since(begin) >= patience {
			return err
		}
		if readOnly(err) {
			db.pool.reset() // another server may be the primary now
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// each calls f with the rows of a query.
func (db *database) each(ctx context.Context, f func(row) error, sql string, args ...any) error {
	return db.pool.lend(ctx, func(c *pgconn.PgConn) error {
		_, err := query(ctx, c, f, sql, args...)
		return err
	})
}

// slowly is each for a statement that may take any time.
func (db *database) slowly(ctx context.Context, f func(row) error, sql string, args ...any) error {
	return db.pool.lend(ctx, func(c *pgconn.PgConn) error {
		allow(c, 0)
		defer allow(c, db.pool.answer)
		_, err := query(ctx, c, f, sql, args...)
		return err
	})
}

// exec runs a statement and returns how many rows it concerned.
func (db *database) exec(ctx context.Context, sql string, args ...any) (n int64, err error) {
	err = db.pool.lend(ctx, func(c *pgconn.PgConn) error {
		n, err = query(ctx, c, nil, sql, args...)
		return err
	})
	return n, err
}

func (db *database) writable() error {
	if db.readOnly {
		return fmt.Errorf("postgres: %s is open for reading only", db.place)
	}
	return nil
}

// Close gives back the locks, waits for calls in progress and closes the
// connections.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	close(s.db.closed)
	s.db.calls.Lock()
	s.db.closing = true
	s.db.calls.Unlock()
	s.leases.shut()
	s.group.work.Wait()
	s.watch.shut()
	s.db.pool.close()
	return nil
}
