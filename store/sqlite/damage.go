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
	for range 5 { // others may be writing
		d := s.rescued.db
		if d == nil {
			var err error
			if d, err = rescue.Open(ctx, s.path, schema, false); err != nil {
				return nil, err
			}
		}
		if s.rescued.db = d; !d.Changed() {
			return d, nil
		}
		s.rescued.db = nil
	}
	return nil, fmt.Errorf("sqlite: %s is damaged, and is being written to: try again", s.path)
}

// query calls bySQL with a connection. If that meets damage, or if SQL cannot
// read the database, it calls byPage.
func (s *Store) query(ctx context.Context, bySQL func(*sqlx.Conn) error, byPage func(*rescue.Database) error) error {
	if !s.byPage() {
		if err := s.lend(ctx, bySQL); !unreadable(err) {
			return err
		}
	}
	d, err := s.rescue(ctx)
	if err != nil {
		return err
	}
	return byPage(d)
}
