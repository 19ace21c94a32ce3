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

// A page of the file that cannot be read costs what lies on it, and nothing
// else: records around it are found by their numbers, rows of sessions by
// theirs, and a row that is lost is computed from its records. The file itself
// is not mended: a copy of all that can be read is a new store.

// unreadable reports whether err says that a page of the file cannot be read
// or makes no sense.
func unreadable(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.IOERR_READ) ||
		errors.Is(err, sqlite3.IOERR_SHORT_READ) || errors.Is(err, sqlite3.IOERR_CORRUPTFS)
}

// readable returns the first record of session n after after, up to last, that
// can be read, 0 if there is none.
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

// skip notes the records after p.at that cannot be read, up to the next one
// that can.
func (p *piece) skip(c *sqlx.Conn) error {
	from := p.at + 1
	to, err := readable(c, p.n, p.at, p.last)
	switch {
	case err != nil:
		return err
	case to == 0:
		to = p.last
	case to == from: // what it is read with cannot be: it is as good as lost
	default:
		to--
	}
	recs, d := sqlstore.Missing(p.file, from, to)
	d.After = p.good
	d.Reason = fmt.Sprintf("record %d is lost: the file is damaged where it lies", from)
	if to > from {
		d.Reason = fmt.Sprintf("records %d to %d are lost: the file is damaged where they lie", from, to)
	}
	p.entries = append(p.entries, entry{err: d})
	for _, r := range recs {
		p.entries = append(p.entries, entry{rec: r})
	}
	p.at = to
	return nil
}

// lastKnown returns the last record of session n as the rest of the file
// knows it, 0 if nothing does.
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
	logs, err := s.salvage(c)
	for _, l := range logs {
		s.found.Store(l.info.ID, l.n)
		if l.info.ID == id {
			n = l.n
		}
	}
	return n, err
}

// recovered is what is said of a session of which nothing is known but its
// number.
func recovered(n int64) session.Info {
	id := fmt.Sprintf("recovered-%d", n)
	return session.Info{ID: session.ID(id), Key: session.Key(id)}
}

// salvage returns all sessions of a file whose pages cannot all be read. It
// asks for each number that a session may have. What a row that is lost said
// is computed from the records, apart from what only the row knows: whether the
// session is in the trash.
func (s *Store) salvage(c *sqlx.Conn) ([]log, error) {
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
			log, e := session.Replay("", records(c, s.path, n))
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

// findings returns what SQLite finds wrong with the file. That a page is used
// by nobody harms nobody.
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
