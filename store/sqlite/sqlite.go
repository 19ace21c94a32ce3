// Package sqlite keeps sessions in one SQLite database.
//
// Appends are durable when they return (WAL, synchronous=FULL). Those that
// come at the same time, to whatever sessions, share one transaction and one
// fsync. Readers hold up nobody. Any number of processes may use a database.
//
// The native line of each record is in records.data; sessions has one row for
// each log and is a projection that Rebuild computes again.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/internal/lock"
	"goclaw/store/internal/space"
)

// Store is a database of sessions. It implements session.Store,
// session.Waiter and storekit.Feed.
type Store struct {
	path     string
	readOnly bool
	denied   error  // why it is read only, if nobody has asked for it
	vfs      string // SQLite's way to the files; "": the usual one
	free     func(dir string) (bytes int64, ok bool)
	still    bool                // nobody writes to it: it is read as it lies there
	older    bool                // it has an older schema and stays as it is
	late     map[session.ID]late // what an older version left to be put in place, if that cannot be done
	found    sync.Map            // session.ID to int64: sessions whose rows cannot be read
	clock    session.Clock

	queue      queue
	writer     writer
	rebuilding sync.Mutex
	feed       feed

	slots chan struct{} // one for each connection that reads
	mu    sync.Mutex
	idle  []*sqlx.Conn
	grown chan struct{} // closed and replaced when records were appended

	waiters atomic.Int32
	closing atomic.Bool
	closed  chan struct{}
	close   func() error
}

// Option changes how a database is opened.
type Option func(*Store)

// ReadOnly opens a database that exists, and refuses to change it.
func ReadOnly() Option { return func(s *Store) { s.readOnly = true } }

// WithVFS names the SQLite VFS that the files are reached through.
func WithVFS(name string) Option { return func(s *Store) { s.vfs = name } }

// WithClock says when things are put into the trash.
func WithClock(c session.Clock) Option { return func(s *Store) { s.clock = c } }

// maxReaders is how many connections read at once. None is held while a
// caller's code runs, so that nobody waits long.
const maxReaders = 4

// Open opens the database path, making it (0600) and its folder (0700) if
// there is none. A file that is something else, or that a newer version
// wrote, is refused and left as it is. One that may be read and not written is
// opened for reading, and whatever would change it says why it cannot.
func Open(path string, opts ...Option) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s := &Store{
		path: abs, clock: session.System{}, free: space.Free,
		slots: make(chan struct{}, maxReaders), grown: make(chan struct{}), closed: make(chan struct{}),
	}
	s.writer.s = s
	s.queue.serve, s.queue.after = s.writer.serve, s.writer.after
	s.close = sync.OnceValue(s.shut)
	for _, o := range opts {
		o(s)
	}
	if err := s.files(); err != nil {
		return nil, err
	}
	c, v, err := s.first()
	if err != nil && s.readOnly && s.settled() {
		// Without a file to share, which cannot be made here, SQLite reads a
		// database only if it is told that nobody writes to it.
		s.still = true
		c, v, err = s.first()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case v == schemaVersion:
	case s.readOnly && v == 0:
		err = fmt.Errorf("sqlite: %s is an empty database", abs)
	case s.readOnly:
		err = s.readOlder(c, v)
	default:
		err = s.create(c)
		if v > 0 && (unreadable(err) || s.full(err)) {
			s.readOnly, s.denied = true, err
			err = s.readOlder(c, v)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	s.idle = append(s.idle, c)
	return s, nil
}

// readOlder prepares the reading of a database that stays at the schema v.
func (s *Store) readOlder(c *sqlx.Conn, v int) error {
	s.older = true
	err := c.Exec(newNames)
	if err == nil && v == 1 {
		err = s.overlay(c)
	}
	return s.wrap(err)
}

// first opens the first connection, and returns the version of the schema.
func (s *Store) first() (c *sqlx.Conn, v int, err error) {
	if c, err = s.reader(); err != nil {
		return nil, 0, foreign(s.path, err)
	}
	// Another may just be making it: what is asked must be of one moment.
	if err = c.Run("BEGIN"); err == nil {
		v, err = version(c, s.path)
		err = errors.Join(err, c.Run("ROLLBACK"))
	}
	if err != nil {
		c.Close()
	}
	return c, v, err
}

// files makes the files that are missing. SQLite would make them with the
// mode that the umask leaves.
func (s *Store) files() error {
	st, err := os.Stat(s.path)
	switch {
	case err == nil && st.IsDir():
		return fmt.Errorf("sqlite: %s is a folder", s.path)
	case s.readOnly && err != nil:
		return fmt.Errorf("sqlite: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
		if err := touch(s.path); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("sqlite: %w", err)
	case st.Size() > 0 && !s.readOnly: // an empty database has no WAL
		err := s.side()
		if err == nil {
			err = mayWrite(s.path)
		}
		if denied(err) {
			s.readOnly, s.denied, s.vfs, err = true, errors.Unwrap(err), readVFS, nil
		}
		return err
	}
	return nil
}

// mayWrite tells why path may not be written to.
func mayWrite(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return f.Close()
}

// settled reports whether all there is stands in the database file itself.
func (s *Store) settled() bool {
	st, err := os.Stat(s.path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0
}

// side makes the files that stand beside a database with a write-ahead log.
func (s *Store) side() error {
	if err := touch(s.path + "-wal"); err != nil {
		return err
	}
	return touch(s.path + "-shm")
}

func touch(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return f.Close()
}

// create makes the database what it shall be.
func (s *Store) create(c *sqlx.Conn) error {
	// Others may be doing the same: changing the mode does not wait for them.
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		mode, err := c.Text("PRAGMA journal_mode = WAL")
		if err == nil && mode == "wal" {
			break
		}
		if err == nil {
			return fmt.Errorf("sqlite: %s cannot have a write-ahead log (its journal is %q): is it on a network drive?", s.path, mode)
		}
		if !errors.Is(err, sqlite3.BUSY) || time.Since(begin) > maxWait {
			return foreign(s.path, err)
		}
	}
	if err := s.side(); err != nil {
		return err
	}
	if err := migrate(c, s.path); err != nil {
		return err
	}
	// The names of the new files must survive a crash, too.
	dir, err := os.Open(filepath.Dir(s.path))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// pragmas are those of every connection.
const pragmas = "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 33554432; PRAGMA wal_autocheckpoint = 0"

// reader opens a connection for reading.
func (s *Store) reader() (*sqlx.Conn, error) {
	flags := sqlite3.OPEN_READWRITE
	if s.readOnly {
		flags = sqlite3.OPEN_READONLY
	}
	pragmas := pragmas + "; PRAGMA cache_size = -4000;"
	if s.older {
		pragmas += newNames
	}
	return s.dial(flags, pragmas)
}

func (s *Store) dial(flags sqlite3.OpenFlag, pragmas string) (*sqlx.Conn, error) {
	q := url.Values{}
	if s.vfs != "" {
		q.Set("vfs", s.vfs)
	}
	if s.still {
		q.Set("immutable", "1")
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}
	return dial(u.String(), flags|sqlite3.OPEN_URI, pragmas)
}

// lend lends f a connection.
func (s *Store) lend(ctx context.Context, f func(c *sqlx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return session.ErrClosed
	default:
	}
	select {
	case <-s.closed:
		return session.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case s.slots <- struct{}{}:
	}
	defer func() { <-s.slots }()
	s.mu.Lock()
	var c *sqlx.Conn
	if n := len(s.idle); n > 0 {
		c, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	s.mu.Unlock()
	if c == nil {
		var err error
		if c, err = s.reader(); err != nil {
			return foreign(s.path, err)
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
		s.mu.Lock()
		s.idle = append(s.idle, c)
		s.mu.Unlock()
	}
	if ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT) {
		return ctx.Err()
	}
	return s.wrap(err)
}

// wrap says which file an error of SQLite is about.
func (s *Store) wrap(err error) error {
	if errors.Is(err, session.ErrFull) {
		return err
	}
	if s.full(err) {
		return &space.Error{Store: "sqlite", Path: s.path, Err: err}
	}
	var e *sqlite3.Error
	var code sqlite3.ErrorCode
	var more sqlite3.ExtendedErrorCode
	if errors.As(err, &e) || errors.As(err, &code) || errors.As(err, &more) {
		return fmt.Errorf("sqlite: %s: %w", s.path, err)
	}
	return err
}

// Lock implements session.Store. The locks are files beside the database, in
// the folder locks.
func (s *Store) Lock(ctx context.Context, name, who string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-s.closed:
		return nil, session.ErrClosed
	default:
	}
	release, err = lock.Try(filepath.Join(filepath.Dir(s.path), "locks", storekit.FileName(name)+".lock"), who)
	var held *session.HeldError
	if errors.As(err, &held) {
		held.Name = name
	}
	return release, err
}

// Close waits for what is being written, and closes the database.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.closing.Store(true)
	err := s.queue.close(&request{do: s.writer.hangUp})
	close(s.closed)
	for range maxReaders { // wait for those who read
		s.slots <- struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		err = errors.Join(err, c.Close())
	}
	s.idle = nil
	return errors.Join(err, s.feed.close())
}
