// Package sqlite keeps sessions in one SQLite database.
//
// Appends are durable when they return (WAL, synchronous=FULL). Appends that
// come at the same time, to any sessions, share one transaction and one sync.
// Readers and writers do not block each other. Any number of processes may use
// a database.
//
// The native line of each record is in records.data. The table sessions has one
// row for each log: a projection that Rebuild computes from the records.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/wholefile"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/internal/lock"
	"goclaw/store/internal/space"
	"goclaw/store/sqlite/internal/files"
)

// Store is a database of sessions. It implements session.Store,
// session.Waiter and storekit.Feed.
type Store struct {
	database
	readers
	rescued rescued

	queue      queue
	writer     writer
	rebuilding sync.Mutex
	feed       feed

	growing sync.Mutex
	grown   chan struct{} // closed and replaced when records were appended
	waiters atomic.Int32
	closing atomic.Bool
	close   func() error
}

// Option changes how a database is opened.
type Option func(*Store)

// ReadOnly opens an existing database and never changes it.
func ReadOnly() Option { return func(s *Store) { s.readOnly = true } }

// WithVFS names the SQLite VFS to use.
func WithVFS(name string) Option { return func(s *Store) { s.vfs = name } }

// OnCopy has f called with the path of a copy of the database, which Open makes
// if the write-ahead log is damaged in the middle: SQLite drops what follows.
func OnCopy(f func(path string)) Option { return func(s *Store) { s.copied = f } }

// OnDamage has f called with the reason if a database is so damaged that it can
// only be read, and only in part.
func OnDamage(f func(err error)) Option { return func(s *Store) { s.doubted = f } }

// Open opens the database path. It creates the file (0600) and its folder
// (0700) if they do not exist. A file of another kind, or of a newer version,
// is refused and left as it is. A file without write permission, or one of which
// the end is missing, is opened for reading, and methods that would change it
// return the reason. A file that is damaged further gives a *DamagedError.
func Open(path string, opts ...Option) (*Store, error) {
	abs, err := files.Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s := &Store{
		database: database{path: abs, free: space.Free, syncDir: wholefile.SyncDir},
		grown:    make(chan struct{}),
	}
	s.readers = readers{db: &s.database, slots: make(chan struct{}, maxReaders), closed: make(chan struct{})}
	s.writer.s = s
	s.queue.serve, s.queue.after = s.writer.serve, s.writer.after
	s.close = sync.OnceValue(s.shut)
	for _, o := range opts {
		o(s)
	}
	if err := s.prepare(); err != nil {
		if filepath.Base(abs) != filepath.Base(path) {
			err = fmt.Errorf("%w (%s is a link to it)", err, path)
		}
		return nil, err
	}
	before := files.Look(abs)
	c, v, err := s.first()
	if err != nil && s.readOnly && files.LogSize(abs) == 0 {
		// The file for shared memory cannot be created here. Without it SQLite
		// reads a database only if it is told that no process writes to it.
		s.still = true
		c, v, err = s.first()
	}
	if unreadable(err) && !errors.Is(err, sqlite3.NOTADB) && s.marked() {
		s.cut, s.readOnly, s.denied = true, true, err
		if s.doubted != nil {
			s.doubted(err)
		}
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case v == schemaVersion:
	case s.readOnly && v == 0:
		err = fmt.Errorf("sqlite: %s is an empty database", abs)
	case s.readOnly:
		s.older = v
	default:
		err = s.create(c)
		if v > 0 && (unreadable(err) || s.full(err)) {
			s.readOnly, s.denied, s.older, err = true, err, v, nil
		}
	}
	if err == nil {
		if v == 0 { // SQLite removes the log of an empty database
			before.OnlyDatabase()
		}
		err = s.opened(c, before)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	s.feed.c = c
	return s, nil
}

// Lock implements session.Store. The locks are files in the folder locks beside
// the database.
func (s *Store) Lock(ctx context.Context, name, who string) (release func(), err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if err := s.places.Check(); err != nil { // the folder of a lock is made
		return nil, err
	}
	release, err = lock.Try(filepath.Join(filepath.Dir(s.path), "locks", storekit.FileName(name)+".lock"), who)
	var held *session.HeldError
	if errors.As(err, &held) {
		held.Name = name
	}
	return release, err
}

// Close waits for appends in progress and closes the database.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.closing.Store(true)
	err := s.queue.close(&request{do: s.writer.hangUp})
	err = errors.Join(err, s.readers.shut())
	return errors.Join(err, s.feed.close())
}
