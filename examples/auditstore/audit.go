// Package auditstore is a custom store: goclaw's SQLite store, with
// a line in a second file for every append. Its test shows that it keeps every
// promise of session.Store.
package auditstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// Store is a session.Store that says what it did.
type Store struct {
	*sqlite.Store
	audit *os.File
}

// Open opens the store in dir, which is made if it is missing.
func Open(dir string) (*Store, error) {
	st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "audit.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		st.Close()
		return nil, err
	}
	return &Store{st, f}, nil
}

// Append appends, and then writes a line about it. The records are durable when
// the line is written.
func (s *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if err := s.Store.Append(ctx, id, recs...); err != nil || len(recs) == 0 {
		return err
	}
	fmt.Fprintf(s.audit, "%s %d-%d\n", id, recs[0].Seq, recs[len(recs)-1].Seq)
	return nil
}

// Close releases both files.
func (s *Store) Close() error {
	s.audit.Close()
	return s.Store.Close()
}
