package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Databases of schema 1 have a table inbox. Each of its rows holds the records
// that many sessions appended in one transaction. Some of them may be in the
// table records as well, under the same numbers.

// inboxed is the lines in the inbox by session, and the bytes of rows that
// cannot be parsed.
type inboxed struct {
	lines map[session.ID][]sqlstore.Line
	cut   map[int64][]byte
}

// readInbox reads the inbox and skips rows on pages that cannot be read.
func readInbox(c *sqlx.Conn, path string) (in inboxed, err error) {
	in = inboxed{map[session.ID][]sqlstore.Line{}, map[int64][]byte{}}
	const maxSkip = 4096 // rows that cannot be read, one after another
	for at, skipped := int64(0), 0; skipped < maxSkip; {
		err = c.Each(func(r sqlx.Row) error {
			at, skipped = r.Int(0), 0
			if rest := in.take(path, bytes.Clone(r.Bytes(1))); len(rest) > 0 {
				in.cut[at] = rest
			}
			return nil
		}, "SELECT n, data FROM inbox WHERE n > $1 ORDER BY n", at)
		if !unreadable(err) {
			return in, err
		}
		at, skipped = at+1, skipped+1
	}
	return in, err
}

// take parses a row: the session, the number and the line of each record. It
// returns the rest that cannot be parsed.
func (in inboxed) take(path string, b []byte) (rest []byte) {
	for len(b) > 0 {
		id, rest, ok := field(b)
		seq, n := binary.Uvarint(rest)
		if !ok || n <= 0 {
			return b
		}
		data, rest, ok := field(rest[n:])
		if !ok {
			return b
		}
		rec, _ := sqlstore.Decode(path, session.Seq(seq), data, func() (id, parent, typ string) { return "", "", "" })
		in.lines[session.ID(id)] = append(in.lines[session.ID(id)], sqlstore.NewLine(rec, data))
		b = rest
	}
	return nil
}

func field(b []byte) (f, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// settle moves the records of the inbox to their places and drops the table.
// Bytes that cannot be parsed stay in it; Check reports them.
func settle(c *sqlx.Conn, path string) error {
	in, err := readInbox(c, path)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(in.lines)) {
		if err := place(c, path, id, in.lines[id]); err != nil {
			return fmt.Errorf("session %q: %w", id, err)
		}
	}
	// Later purges do not reach copies in free pages: overwrite them.
	if err := c.Exec("PRAGMA secure_delete = ON; DELETE FROM inbox"); err != nil {
		return err
	}
	for n, b := range in.cut {
		if err := c.Run("INSERT INTO inbox (n, data) VALUES ($1, $2)", n, b); err != nil {
			return err
		}
	}
	if len(in.cut) == 0 {
		return c.Exec("DROP TABLE inbox")
	}
	return nil
}

// place writes the lines that are missing, and the row of the session.
func place(c *sqlx.Conn, path string, id session.ID, lines []sqlstore.Line) error {
	n, _, err := sessionRow(c, id)
	if err == nil && n == 0 {
		n, err = insertSession(c, session.NewOutline(id).Info)
	}
	if err != nil {
		return err
	}
	for _, l := range lines {
		if err := c.Run("INSERT OR IGNORE"+insertRecord, pos(n, int64(l.Seq)), l.ID, l.Parent, l.Type, l.Time, l.Data, l.Sum); err != nil {
			return err
		}
	}
	s, err := session.Replay(id, records(c, path, n))
	if err != nil {
		return err
	}
	return c.Run(sqlstore.RewriteSession, append(sqlstore.Values(s.Info), n)...)
}

// late is a session with records in the inbox of a database that cannot be
// settled, because it is read-only or damaged.
type late struct {
	info  session.Info
	lines []sqlstore.Line
}

// overlay reads the inbox of a database that stays at schema 1, so that Read and
// List include it.
func (s *Store) overlay(c *sqlx.Conn) error {
	in, err := readInbox(c, s.path)
	if err != nil && !unreadable(err) {
		return err
	}
	s.late = map[session.ID]late{}
	for id, lines := range in.lines {
		l := late{lines: lines}
		_, row, err := sessionRow(c, id)
		n := int64(0)
		if err == nil || unreadable(err) {
			n, err = s.number(c, id)
		}
		if err != nil {
			return err
		}
		log, err := session.Replay(id, l.after(s.path, 0, records(c, s.path, n)))
		if err != nil {
			return err
		}
		l.info, l.info.Trashed = log.Info, row.Trashed
		s.late[id] = l
	}
	return nil
}

// after yields placed, the records in the table, and then those that are only in
// the inbox.
func (l late) after(path string, last session.Seq, placed iter.Seq2[session.Record, error]) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for r, err := range placed {
			if errors.Is(err, session.ErrNotFound) || unreadable(err) { // all that is known of it is in the inbox
				break
			}
			last = max(last, r.Seq)
			if !yield(r, err) {
				return
			}
		}
		for _, line := range l.lines {
			if line.Seq <= last {
				continue
			}
			p := piece{file: path, at: last, good: last}
			p.missing(line.Seq - 1)
			rec, d := sqlstore.Decode(path, line.Seq, line.Data, func() (id, parent, typ string) { return line.ID, line.Parent, line.Type })
			if d != nil {
				p.entries = append(p.entries, entry{err: d})
			}
			for _, e := range append(p.entries, entry{rec: rec}) {
				if !yield(e.rec, e.err) {
					return
				}
			}
			last = line.Seq
		}
	}
}

// checkInbox reports what is left in an inbox.
func checkInbox(c *sqlx.Conn, path string, report func(session.ID, error)) error {
	is, err := c.Int("SELECT 1 FROM sqlite_schema WHERE name = 'inbox'")
	if err != nil || is == 0 {
		return err
	}
	in, err := readInbox(c, path)
	if unreadable(err) {
		report("", fmt.Errorf("sqlite: %s: some of the records appended last, of any session, cannot be read: %w", path, err))
		err = nil
	}
	size := 0
	for _, b := range in.cut {
		size += len(b)
	}
	if size > 0 {
		report("", fmt.Errorf("sqlite: %s: %d bytes of the records appended last, of any session, cannot be read: %w", path, size, session.ErrStale))
	}
	if len(in.lines) > 0 {
		report("", fmt.Errorf("sqlite: %s: an older version left records of %d sessions to be moved to their places: open it once where it can be written", path, len(in.lines)))
	}
	return err
}
