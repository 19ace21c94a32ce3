package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/store/internal/space"
	"goclaw/store/internal/sqlstore"
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
// space of the log. It reports whether that was done. A reader that it would
// have to wait for too long is no error.
func (w *writer) shrink() (bool, error) {
	if !w.c.GetAutocommit() {
		if err := w.rollback(nil); err != nil {
			return false, err
		}
	}
	if err := w.c.BusyTimeout(2 * time.Second); err != nil {
		return false, err
	}
	_, _, err := w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	// For another who does the same SQLite does not wait.
	for begin := time.Now(); errors.Is(err, sqlite3.BUSY) && time.Since(begin) < 2*time.Second; time.Sleep(time.Millisecond) {
		_, _, err = w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	}
	if err == nil {
		w.wal = 0
	}
	return err == nil, w.c.BusyHandler(patience())
}

// reserve is what appends leave of a disk, so that there is room for what
// makes room.
const reserve = 256 << 10

// cramped reports whether the disk has no more room than what the write-ahead
// log needs to be taken into the database, what the inbox needs to be sorted
// in, and the reserve. Pages of the database that are free are room in it.
func (w *writer) cramped(reqs []*sqlstore.Request) bool {
	const page = 4096
	free, ok := w.s.free(filepath.Dir(w.s.path))
	log := page*int64(w.wal) + 2*int64(w.inbox.size)
	if n := len(w.inbox.shares) + len(reqs); n > 1 { // each dirties pages of its own
		log += 6 * page * int64(n)
	}
	for _, r := range reqs {
		for _, l := range r.Lines {
			log += 2 * int64(len(l.Data))
		}
	}
	if !ok || free >= reserve+2*log {
		return false
	}
	pages, err := w.c.int("PRAGMA freelist_count")
	return err != nil || page*pages < log+reserve/4 || free < reserve/4
}

// purgeBits is how many records are removed at once on a full disk.
const purgeBits = 8

// purgeByBits removes the records of a log in the trash a few at a time, the
// last ones first, for a disk on which there is no room for the write-ahead
// log of all of them.
func (s *Store) purgeByBits(ctx context.Context, id session.ID) error {
	for {
		left := int64(0)
		err := s.change(ctx, id, true, func(c *conn, n int64) error {
			if err := s.writer.sort(nil); err != nil {
				return err
			}
			if err := c.Exec("PRAGMA secure_delete = ON"); err != nil {
				return err
			}
			defer c.Exec("PRAGMA secure_delete = FAST")
			err := c.exec(`DELETE FROM records WHERE pos IN (SELECT pos FROM records WHERE pos > $1 AND pos <= $2 ORDER BY pos DESC LIMIT $3)`,
				pos(n, 0), pos(n, maxSeq), int64(purgeBits))
			if err != nil {
				return err
			}
			left, err = c.int("SELECT 1 FROM records WHERE pos > $1 AND pos <= $2 LIMIT 1", pos(n, 0), pos(n, maxSeq))
			return err
		})
		if err == nil {
			err = s.queue.Put(ctx, &sqlstore.Request{Do: func() error { _, err := s.writer.shrink(); return err }})
		}
		if err != nil || left == 0 {
			return s.wrap(err)
		}
	}
}
