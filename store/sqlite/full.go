package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// shrink copies the write-ahead log into the database and truncates the log. It
// gives up without an error if a reader holds it up for too long.
func (w *writer) shrink() error {
	if err := w.open(); err != nil { // Close may have closed the connection
		return err
	}
	if !w.c.GetAutocommit() {
		if err := w.rollback(nil); err != nil {
			return err
		}
	}
	if err := w.s.places.Check(); err != nil {
		return err
	}
	if err := w.c.BusyTimeout(2 * time.Second); err != nil {
		return err
	}
	_, _, err := w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	// SQLite does not wait for another process that does the same.
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

// reserve is the path of a file that keeps space free beside a larger database.
// It is removed on a full disk, so that a purge has room to write.
func (d *database) reserve() string { return d.path + "-reserve" }

const reserveSize = 4 << 20

// keepReserve creates the reserve if it is missing and there is room for it, and
// reports whether there is one.
func (d *database) keepReserve() bool {
	if st, err := os.Stat(d.path); err != nil || st.Size() < reserveSize {
		return false
	}
	if _, err := os.Stat(d.reserve()); err == nil {
		return true
	}
	if free, ok := d.free(filepath.Dir(d.path)); ok && free < reserveSize {
		return false
	}
	if os.WriteFile(d.reserve(), make([]byte, reserveSize), 0o600) != nil {
		os.Remove(d.reserve())
		return false
	}
	return true
}
