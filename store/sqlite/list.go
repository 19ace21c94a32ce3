package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
	"goclaw/store/sqlite/internal/rescue"
)

// List implements session.Store.
func (s *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		infos, err := s.listed(ctx, q)
		if err != nil {
			yield(session.Info{}, err)
			return
		}
		for i, at := range sqlstore.Order(infos) {
			if q.Limit > 0 && i == q.Limit || !yield(infos[at], nil) {
				return
			}
		}
	}
}

// listed returns the sessions that match q, unordered, and perhaps more than its
// limit.
func (s *Store) listed(ctx context.Context, q session.Query) (infos []session.Info, err error) {
	add := func(in session.Info) {
		if q.Match(in) {
			infos = append(infos, in)
		}
	}
	sql, args := sqlstore.SelectSessions(q)
	for _, part := range partsOf(q) { // Match knows more; this spares it most rows
		args = append(args, part)
		sql += fmt.Sprintf(" AND instr(key, $%d) > 0", len(args))
	}
	all := q.ID == "" && q.Key == "" && q.Agent == "" && q.Channel == "" && q.Text == ""
	err = s.query(ctx, func(c *sqlx.Conn) error {
		scan := func(r sqlx.Row) error { _, in := sqlstore.Scan(r); add(in); return nil }
		if all && q.Limit > 0 {
			return latest(c, q, scan)
		}
		if all { // allocate a long list at once
			n, _ := c.Int("SELECT count(*) FROM sessions")
			infos = make([]session.Info, 0, n)
		}
		return c.Each(scan, sql, args...)
	}, func(d *rescue.Database) error {
		infos = nil
		for _, l := range d.Sessions {
			add(d.Info(l))
		}
		return nil
	})
	return infos, err
}

// latest calls scan with the rows of the q.Limit sessions that were used last.
// It chooses them by three columns of all rows. An index would make every append
// write another page; and sorting so many rows takes SQLite four times as long.
func latest(c *sqlx.Conn, q session.Query, scan func(sqlx.Row) error) error {
	type choice struct {
		n      int64
		at, id string
	}
	var chosen []choice
	least := "" // of those that are certain to be chosen
	cut := func() {
		slices.SortFunc(chosen, func(a, b choice) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.id, b.id)) })
		if len(chosen) >= q.Limit {
			chosen = chosen[:q.Limit]
			least = chosen[q.Limit-1].at
		}
	}
	if err := c.Run("BEGIN"); err != nil {
		return err
	}
	trashed := map[bool]string{false: "NULL", true: "NOT NULL"}[q.Trash]
	err := c.Each(func(r sqlx.Row) error {
		at := r.Bytes(1)
		if created := r.Bytes(2); bytes.Compare(at, created) < 0 { // as in sqlstore.Scan
			at = created
		}
		if string(at) >= least {
			if chosen = append(chosen, choice{r.Int(0), string(at), r.Text(3)}); len(chosen) >= 2*q.Limit+100 {
				cut()
			}
		}
		return nil
	}, "SELECT n, updated, created, id FROM sessions WHERE trashed IS "+trashed+" ORDER BY n DESC") // many rows are in this order
	cut()
	for i := 0; i < len(chosen) && err == nil; i++ {
		err = c.Each(scan, sqlstore.SelectNumber, chosen[i].n)
	}
	return cmp.Or(err, c.Run("COMMIT")) // lend rolls back
}

// partsOf returns texts that are in the keys of all sessions that q asks for.
func partsOf(q session.Query) (parts []string) {
	if q.Agent != "" {
		parts = append(parts, q.Agent+":")
	}
	switch {
	case q.Channel == "":
	case session.Key(q.Channel+":x").Parts().Channel == q.Channel: // no agent need come before it
		parts = append(parts, q.Channel)
	default:
		parts = append(parts, ":"+q.Channel)
	}
	return parts
}
