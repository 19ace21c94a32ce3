package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// A page of the file that cannot be read costs what lies on it, and nothing
// else: records around it are found by their numbers, rows of sessions by
// theirs, and what only says again what the records say is made anew.

// unreadable reports whether err says that a page of the file cannot be read
// or makes no sense.
func unreadable(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.IOERR_READ) ||
		errors.Is(err, sqlite3.IOERR_SHORT_READ) || errors.Is(err, sqlite3.IOERR_CORRUPTFS)
}

// next returns the first record of session n behind after, up to last, that
// can be read, 0 if there is none.
func next(c *conn, n int64, after, last session.Seq) (session.Seq, error) {
	for seq := after + 1; seq <= last; seq++ {
		found := false
		err := c.each(func(r row) error { found = true; return nil }, "SELECT data FROM records WHERE pos = $1", pos(n, int64(seq)))
		if err == nil && found {
			return seq, nil
		}
		if err != nil && !unreadable(err) {
			return 0, err
		}
	}
	return 0, nil
}

// skip notes the records behind p.at that cannot be read, up to the next one
// that can.
func (p *piece) skip(c *conn) error {
	from := p.at + 1
	to, err := next(c, p.n, p.at, p.last)
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
func lastKnown(c *conn, n int64) session.Seq {
	row, _ := c.int("SELECT last FROM sessions WHERE n = $1", n)
	at, err := c.int("SELECT max(pos) FROM records INDEXED BY records_id WHERE session = $1", n)
	if err != nil || at>>32 != n {
		at = 0
	}
	return session.Seq(min(max(row, at&maxSeq), maxSeq))
}

// salvage is allLogs for a file whose pages cannot all be read: it asks for
// each number that a session may have.
func salvage(c *conn) ([]log, error) {
	top, err := c.int("SELECT seq FROM sqlite_sequence WHERE name = 'sessions'")
	if err != nil && !unreadable(err) {
		return nil, err
	}
	if at, err := c.int("SELECT max(pos) FROM records"); err == nil {
		top = max(top, at>>32)
	}
	var logs []log
	for n := int64(1); n <= top; n++ {
		l := log{n: n}
		err := c.each(func(r row) error {
			_, in := sqlstore.Scan(r)
			l.row = &in
			return nil
		}, sqlstore.SelectNumber, n)
		if err != nil && !unreadable(err) {
			return nil, err
		}
		if l.row == nil {
			some, err := hasRecords(c, n)
			if err != nil {
				return nil, err
			}
			if !some {
				continue
			}
		}
		logs = append(logs, l)
	}
	return logs, nil
}

// hasRecords reports whether there are records of session n, readable or not.
func hasRecords(c *conn, n int64) (bool, error) {
	some, err := c.int("SELECT 1 FROM records INDEXED BY records_id WHERE session = $1 LIMIT 1", n)
	if unreadable(err) {
		some, err = c.int("SELECT 1 FROM records WHERE pos >= $1 AND pos <= $2 LIMIT 1", pos(n, 1), pos(n, maxSeq))
		if unreadable(err) {
			return true, nil // perhaps: that none is there must be known
		}
	}
	return some == 1, err
}

// wounds returns what SQLite finds wrong with a table and its indices, or
// with the whole file if table is empty. That a page is used by nobody harms
// nobody.
func wounds(c *conn, table string) (found []string, err error) {
	sql := "PRAGMA integrity_check"
	if table != "" {
		sql += "(" + table + ")"
	}
	err = c.each(func(r row) error {
		for t := range strings.Lines(r.Text(0)) {
			if t = strings.TrimSpace(t); t != "ok" && t != "" && !strings.Contains(t, "never used") && !strings.HasPrefix(t, "***") {
				found = append(found, t)
			}
		}
		return nil
	}, sql)
	if unreadable(err) {
		found, err = append(found, err.Error()), nil
	}
	return found, err
}

// mend makes anew what is damaged and only says again what the records say:
// the table of sessions, and the index of the records' ids. Of the inbox, in
// which records are for moments only, it keeps what can be read. It returns how many
// rows of sessions it has written. The records stay as they are; the pages
// that are given up stay, too, and are used by nobody.
//
// If anything is damaged, the writer is mending from then on, until the caller
// says otherwise: what is in the inbox is sorted in when all is mended.
func (s *Store) mend(ctx context.Context) (rows int, err error) {
	found := map[string][]string{}
	wounded := 0
	err = s.lend(ctx, func(c *conn) (err error) {
		for _, table := range []string{"inbox", "sessions", numbers, "records"} {
			if found[table], err = wounds(c, table); err != nil {
				return err
			}
			wounded += len(found[table])
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	unread, err := s.unread(ctx)
	if err != nil || wounded+unread == 0 {
		return 0, err
	}
	w := &s.writer
	w.mending.Store(true)
	if len(found["inbox"]) > 0 || unread > 0 {
		if err := s.remakeInbox(); err != nil {
			return 0, s.wrap(err)
		}
	}
	do := func(f func() error) error {
		return s.wrap(s.queue.Put(ctx, &sqlstore.Request{Do: func() error { return w.alone(f) }}))
	}
	if len(found["sessions"])+len(found[numbers]) > 0 {
		if err := do(func() (err error) { rows, err = w.remakeSessions(); return err }); err != nil {
			return 0, err
		}
	}
	if len(found["records"]) > 0 {
		// Without the records there is no index of them: then what is there
		// must do.
		if err := do(w.remakeIndex); err != nil && !unreadable(err) {
			return rows, err
		}
	}
	return rows, nil
}

// numbers is SQLite's own table of the numbers that were given so far. It comes
// into being with the first table that needs it.
const numbers = "sqlite_sequence"

// remakeSessions writes the table of sessions anew. That a log was in the
// trash is known to its row only: one whose row is lost is there again.
func (w *writer) remakeSessions() (rows int, err error) {
	c, done, err := w.aside()
	if err != nil {
		return 0, err
	}
	defer done()
	logs, err := salvage(c)
	if err != nil {
		return 0, err
	}
	infos := make([]session.Info, len(logs))
	ids := map[session.ID]bool{}
	for i, l := range logs {
		s, err := session.Replay(l.id(), records(c, w.s.path, l.n))
		if err != nil {
			return 0, err
		}
		in := s.Info
		if l.row != nil {
			beheaded(l.row, &in)
			in.Trashed = l.row.Trashed
		}
		if in.ID == "" || ids[in.ID] { // whose it is, is lost: it must have a name all the same
			in.ID = session.ID(fmt.Sprintf("recovered-%d", l.n))
		}
		if l.row == nil && in.Key == "" {
			in.Key = session.Key(in.ID)
		}
		ids[in.ID] = true
		infos[i] = in
	}
	schema, err := forgetSchema(w.c, "tbl_name IN ('sessions', '"+numbers+"')")
	if err != nil {
		return 0, err
	}
	var triggers []string
	for _, sql := range schema {
		if strings.HasPrefix(sql, "CREATE TABLE "+numbers) {
			continue
		}
		if strings.HasPrefix(sql, "CREATE TRIGGER") {
			triggers = append(triggers, sql) // not for these rows
			continue
		}
		if err := w.c.Exec(sql); err != nil {
			return 0, err
		}
	}
	for i, in := range infos {
		if err := w.c.exec(sqlstore.InsertSession, sqlstore.Values(in)...); err != nil {
			return 0, err
		}
		var trashed any
		if !in.Trashed.IsZero() {
			trashed = sqlstore.Stamp(in.Trashed)
		}
		if err := w.c.exec("UPDATE sessions SET n = $1, trashed = $2 WHERE id = $3", logs[i].n, trashed, string(in.ID)); err != nil {
			return 0, err
		}
	}
	for _, sql := range triggers {
		if err := w.c.Exec(sql); err != nil {
			return 0, err
		}
	}
	return len(infos), nil
}

// remakeInbox makes the inbox anew with what can be read of it: while it cannot
// be read, nothing can be appended at all.
func (s *Store) remakeInbox() error {
	c, err := s.reader()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	old, err := s.reader() // which may meet what is damaged
	if err != nil {
		return err
	}
	defer old.close()
	var rows [][]byte
	err = eachInboxed(old, func(b []byte, readable int) error {
		if readable > 0 {
			rows = append(rows, b[:readable])
		}
		return nil
	})
	if err != nil {
		return err
	}
	made, err := forgetSchema(c, "name = 'inbox'")
	if err != nil {
		return err
	}
	for _, sql := range made {
		if err := c.Exec(sql); err != nil {
			return err
		}
	}
	for _, b := range rows {
		if err := c.exec("INSERT INTO inbox (data) VALUES ($1)", b); err != nil {
			return err
		}
	}
	return c.exec("COMMIT")
}

// eachInboxed calls f for every row of the inbox that can be read, with the
// number of its bytes that make sense. It asks for each row by its number: one
// that is damaged does not hide those behind it.
func eachInboxed(c *conn, f func(b []byte, readable int) error) error {
	var ns []int64
	top := int64(0)
	err := c.each(func(r row) error { top = r.Int(0); ns = append(ns, top); return nil }, "SELECT n FROM inbox ORDER BY n")
	if unreadable(err) {
		last, e := c.int("SELECT max(n) FROM inbox")
		if e != nil {
			last = top + maxUnseen
		}
		for n := top + 1; n <= last; n++ {
			ns = append(ns, n)
		}
	} else if err != nil {
		return err
	}
	for _, n := range ns {
		var b []byte
		err := c.each(func(r row) error { b = bytes.Clone(r.bytes(0)); return nil }, "SELECT data FROM inbox WHERE n = $1", n)
		if unreadable(err) {
			continue
		}
		if err != nil {
			return err
		}
		rest := b
		for len(rest) > 0 {
			_, next, ok := frame(rest)
			if !ok {
				break
			}
			rest = next
		}
		if err := f(b, len(b)-len(rest)); err != nil {
			return err
		}
	}
	return nil
}

// holds returns an error if the inbox has records of the session id that are not
// in their places.
func holds(c *conn, id session.ID) error {
	if id == "" {
		return nil
	}
	n, err := c.int("SELECT n FROM sessions WHERE id = $1", string(id))
	if err != nil {
		return err
	}
	end := session.Seq(0)
	if n != 0 {
		if end, err = last(c, n); err != nil {
			return err
		}
	}
	return eachInboxed(c, func(b []byte, readable int) error {
		for b = b[:readable]; len(b) > 0; {
			f, rest, _ := frame(b)
			if f.id == id && f.seq > end {
				return fmt.Errorf("session %q: record %d and what follows cannot be put in their places", id, f.seq)
			}
			b = rest
		}
		return nil
	})
}

// maxUnseen is how many rows are asked for where nothing says how many there
// are.
const maxUnseen = 4096

// unread returns how many bytes of the inbox make no sense.
func (s *Store) unread(ctx context.Context) (n int, err error) {
	err = s.lend(ctx, func(c *conn) error {
		n = 0
		return eachInboxed(c, func(b []byte, readable int) error { n += len(b) - readable; return nil })
	})
	return n, err
}

// aside returns a connection that reads what the transaction of w will change,
// in which nothing is changed yet. SQLite refuses to write in a transaction
// that has met a damaged page.
func (w *writer) aside() (c *conn, done func(), err error) {
	for {
		if err := w.sort(nil); err != nil {
			return nil, nil, err
		}
		if err := w.commit(); err != nil {
			return nil, nil, err
		}
		before, err := w.c.int("SELECT total_changes()")
		if err == nil {
			err = w.begin(context.Background())
		}
		if err != nil {
			return nil, nil, err
		}
		after, err := w.c.int("SELECT total_changes()")
		if err != nil {
			return nil, nil, err
		}
		if before == after { // else others have left something in the inbox
			break
		}
	}
	w.book.Forget()
	if c, err = w.s.reader(); err != nil {
		return nil, nil, err
	}
	return c, func() { c.close() }, nil
}

// remakeIndex writes the index of the records' ids anew.
func (w *writer) remakeIndex() error {
	schema, err := forgetSchema(w.c, "name = 'records_id'")
	for _, sql := range schema {
		if err == nil {
			err = w.c.Exec(sql)
		}
	}
	return err
}

// forgetSchema takes what where says out of the schema, and returns the
// statements that made it. Dropping it would need the pages that are damaged.
func forgetSchema(c *conn, where string) (made []string, err error) {
	err = c.each(func(r row) error { made = append(made, r.Text(0)); return nil },
		"SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND "+where+" ORDER BY type = 'table' DESC")
	if err != nil {
		return nil, err
	}
	err = c.Exec("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE " + where)
	// RESET also switches it off, and has the schema read again.
	return made, errors.Join(err, c.Exec("PRAGMA writable_schema = RESET"))
}
