package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// A page that cannot be read loses only what is on it: records around it are
// found by their numbers, session rows by theirs, and a lost row is computed
// from its records. The file is not repaired in place; Recover makes a new store
// of all that can be read.

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

// readable returns the first readable record of session n in (after, last], 0
// if there is none.
func readable(c *sqlx.Conn, n int64, after, last session.Seq) (session.Seq, error) {
	for seq := after + 1; seq <= last; seq++ {
		found := false
		err := c.Each(func(r sqlx.Row) error { found = true; return nil }, "SELECT data FROM records WHERE pos = $1", pos(n, int64(seq)))
		if err == nil && found {
			return seq, nil
		}
		if err != nil && !unreadable(err) {
			return 0, err
		}
	}
	return 0, nil
}

// skip adds damage for the records after p.at that cannot be read.
func (p *piece) skip(c *sqlx.Conn) error {
	from := p.at + 1
	to, err := readable(c, p.n, p.at, p.last)
	switch {
	case err != nil:
		return err
	case to == 0:
		to = p.last
	case to == from: // readable by itself but not in a scan: count it as lost
	default:
		to--
	}
	recs, d := sqlstore.Missing(p.file, from, to)
	d.After = p.good
	d.Reason = fmt.Sprintf("record %d is lost: the file is damaged where it lies, or on the way to it", from)
	if to > from {
		d.Reason = fmt.Sprintf("records %d to %d are lost: the file is damaged where they lie, or on the way to them", from, to)
	}
	p.entries = append(p.entries, entry{err: d})
	for _, r := range recs {
		p.entries = append(p.entries, entry{rec: r})
	}
	p.at = to
	return nil
}

// lastKnown returns the last record of session n according to its row and the
// index of ids, 0 if neither knows.
func lastKnown(c *sqlx.Conn, n int64) session.Seq {
	row, _ := c.Int("SELECT last FROM sessions WHERE n = $1", n)
	at, err := c.Int("SELECT max(pos) FROM records INDEXED BY records_id WHERE session = $1", n)
	if err != nil || at>>32 != n {
		at = 0
	}
	return session.Seq(min(max(row, at&maxSeq), maxSeq))
}

// number returns the number of the session id, 0 if there is none.
func (s *Store) number(c *sqlx.Conn, id session.ID) (int64, error) {
	n, err := c.Int("SELECT n FROM sessions WHERE id = $1", string(id))
	if !unreadable(err) {
		return n, err
	}
	if n, ok := s.found.Load(id); ok {
		return n.(int64), nil
	}
	logs, err := salvage(c, s.path)
	for _, l := range logs {
		s.found.Store(l.info.ID, l.n)
		if l.info.ID == id {
			n = l.n
		}
	}
	return n, err
}

// recovered is the Info of a session of which only the number is known.
func recovered(n int64) session.Info {
	id := fmt.Sprintf("recovered-%d", n)
	return session.Info{ID: session.ID(id), Key: session.Key(id)}
}

// salvage returns all sessions of a damaged file. It tries each number that a
// session may have. The Info of a lost row is computed from the records; only
// whether the session was in the trash is lost.
func salvage(c *sqlx.Conn, path string) ([]log, error) {
	top, err := c.Int("SELECT seq FROM sqlite_sequence WHERE name = 'sessions'")
	if err != nil && !unreadable(err) {
		return nil, err
	}
	if at, err := c.Int("SELECT max(pos) FROM records"); err == nil {
		top = max(top, at>>32)
	}
	var logs []log
	ids := map[session.ID]bool{}
	for n := int64(1); n <= top; n++ {
		l := log{n: n, lost: true}
		err := c.Each(func(r sqlx.Row) error { _, l.info = sqlstore.Scan(r); l.lost = false; return nil }, sqlstore.SelectNumber, n)
		if err != nil && !unreadable(err) {
			return nil, err
		}
		if l.lost {
			end, e := last(c, n)
			if err == nil && e == nil && end == 0 {
				continue // it was purged
			}
			log, e := session.Replay("", records(c, path, n))
			if e != nil && !unreadable(e) {
				return nil, e
			}
			l.info = recovered(n)
			if e == nil {
				l.info = log.Info
			}
		}
		if l.info.ID == "" || ids[l.info.ID] {
			l.info.ID = recovered(n).ID
		}
		ids[l.info.ID] = true
		logs = append(logs, l)
	}
	return logs, nil
}

// findings returns what SQLite finds wrong with the file, except unused pages,
// which are harmless.
func findings(c *sqlx.Conn) (found []string, err error) {
	err = c.Each(func(r sqlx.Row) error {
		for t := range strings.Lines(r.Text(0)) {
			if t = strings.TrimSpace(t); t != "ok" && t != "" && !strings.Contains(t, "never used") && !strings.HasPrefix(t, "***") {
				found = append(found, t)
			}
		}
		return nil
	}, "PRAGMA integrity_check")
	if unreadable(err) {
		found, err = append(found, err.Error()), nil
	}
	return found, err
}
