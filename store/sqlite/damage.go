package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/store/sqlite/internal/rescue"
)

// Where SQLite meets damage, the database is read page by page instead: a page
// that cannot be read loses only what is on it. The file is not repaired in
// place; Recover makes a new store of all that can be read.

// DamagedError is damage of the file that an operation has met.
type DamagedError struct {
	Path string
	Err  error
	what string // has happened, for the text; "": nothing but Err
}

func (e *DamagedError) Error() string {
	if e.what != "" {
		return fmt.Sprintf("sqlite: %s %s: %v", e.Path, e.what, e.Err)
	}
	return fmt.Sprintf("sqlite: %s: %v", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// unreadable reports whether err means that a page of the file cannot be read or
// is malformed.
func unreadable(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.IOERR_READ) ||
		errors.Is(err, sqlite3.IOERR_SHORT_READ) || errors.Is(err, sqlite3.IOERR_CORRUPTFS)
}

// rescued is the database as it was last read page by page.
type rescued struct {
	mu sync.Mutex
	db *rescue.Database
}

// forget is called when the database was written.
func (r *rescued) forget() {
	r.mu.Lock()
	r.db = nil // whoever reads it has it open until then
	r.mu.Unlock()
}

// rescue returns the database, read page by page. It is read again only if it
// has changed.
func (s *Store) rescue(ctx context.Context) (*rescue.Database, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.rescued.mu.Lock()
	defer s.rescued.mu.Unlock()
	if d := s.rescued.db; d != nil && !d.Changed() && !d.Overwritten() {
		return d, nil
	}
	for range tries { // others may be writing
		d, err := rescue.Open(ctx, s.path, schema, false)
		if err != nil {
			return nil, err
		}
		if !d.Overwritten() {
			s.rescued.db = d
			return d, nil
		}
		d.Close()
	}
	return nil, restless(s.path)
}

// tries is how often a damaged file is read page by page, if others write where
// it is read.
const tries = 5

func restless(path string) error {
	return fmt.Errorf("sqlite: %s is damaged, and is being written to: try again", path)
}

// query calls bySQL with a connection. If that meets damage, or if SQL cannot
// read the database, it calls byPage, and again if the file was overwritten
// meanwhile.
func (s *Store) query(ctx context.Context, bySQL func(*sqlx.Conn) error, byPage func(*rescue.Database) error) error {
	if !s.byPage() {
		if err := s.lend(ctx, bySQL); !unreadable(err) {
			return err
		}
	}
	for range tries {
		d, err := s.rescue(ctx)
		if err != nil {
			return err
		}
		if err := byPage(d); !d.Overwritten() {
			return err
		}
	}
	return restless(s.path)
}
