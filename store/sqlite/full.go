package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/store/internal/space"
)

// full reports whether err says that the disk of the database is full.
func (s *Store) full(err error) bool {
	switch {
	case errors.Is(err, sqlite3.FULL), space.Full(err):
		return true
	case errors.Is(err, sqlite3.IOERR): // not all of SQLite's errors say why
		free, ok := s.free(filepath.Dir(s.path))
		return ok && free < 64<<10
	}
	return false
}

// shrink takes the write-ahead log into the database, which gives back the
// space of the log. A reader that it would have to wait for too long is no
// error.
func (w *writer) shrink() error {
	if err := w.open(); err != nil { // a store that is being closed may have none
		return err
	}
	if !w.c.GetAutocommit() {
		if err := w.rollback(nil); err != nil {
			return err
		}
	}
	if err := w.c.BusyTimeout(2 * time.Second); err != nil {
		return err
	}
	_, _, err := w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	// For another who does the same SQLite does not wait.
	for begin := time.Now(); errors.Is(err, sqlite3.BUSY) && time.Since(begin) < 2*time.Second; time.Sleep(time.Millisecond) {
		_, _, err = w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	}
	if errors.Is(err, sqlite3.BUSY) {
		err = nil
	}
	if err == nil {
		w.wal = 0
	}
	return errors.Join(err, w.c.BusyHandler(patience()))
}

// The reserve is a file beside a database of some size. On a full disk it is
// removed, so that there is room for what makes room: to take the write-ahead
// log into the database, and to purge.
func (s *Store) reserve() string { return s.path + "-reserve" }

const reserveSize = 4096 * checkpointPages // what the write-ahead log may hold

// keepReserve makes the reserve if there is none. Where there is no room for
// it, there is none.
func (s *Store) keepReserve() {
	if st, err := os.Stat(s.path); err != nil || st.Size() < reserveSize {
		return
	}
	if _, err := os.Stat(s.reserve()); err == nil {
		return
	}
	if free, ok := s.free(filepath.Dir(s.path)); ok && free < reserveSize {
		return
	}
	if os.WriteFile(s.reserve(), make([]byte, reserveSize), 0o600) != nil {
		os.Remove(s.reserve())
	}
}
