package sqlite

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
	"goclaw/store/sqlite/internal/rescue"
)

// settle moves the records in the inbox of a database of schema 1 to their
// places and drops the table. Bytes that cannot be parsed stay in it; Check
// reports them.
func settle(c *sqlx.Conn, path string) error {
	in, cut := rescue.Inbox{}, map[int64][]byte{}
	err := c.Each(func(r sqlx.Row) error {
		if rest := in.Add(path, bytes.Clone(r.Bytes(1))); len(rest) > 0 {
			cut[r.Int(0)] = rest
		}
		return nil
	}, "SELECT n, data FROM inbox ORDER BY n")
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(in)) {
		if err := place(c, path, id, in[id]); err != nil {
			return fmt.Errorf("session %q: %w", id, err)
		}
	}
	// Later purges do not reach copies in free pages: overwrite them.
	if err := c.Exec("PRAGMA secure_delete = ON; DELETE FROM inbox"); err != nil {
		return err
	}
	for n, b := range cut {
		if err := c.Run("INSERT INTO inbox (n, data) VALUES ($1, $2)", n, b); err != nil {
			return err
		}
	}
	if len(cut) == 0 {
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

// checkInbox reports what is left in an inbox.
func checkInbox(c *sqlx.Conn, path string, report func(session.ID, error)) error {
	is, err := c.Int("SELECT 1 FROM sqlite_schema WHERE name = 'inbox'")
	if err != nil || is == 0 {
		return err
	}
	size, err := c.Int("SELECT sum(length(data)) FROM inbox")
	if size > 0 {
		report("", fmt.Errorf("sqlite: %s: %d bytes of the records appended last, of any session, cannot be read: %w", path, size, session.ErrStale))
	}
	return err
}
