package sqlite

import (
	"context"
	"fmt"
	"iter"

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
	if q.Limit > 0 && q == (session.Query{Trash: q.Trash, Limit: q.Limit}) {
		sql, args = sql+latest(q.Trash), append(args, q.Limit)
	}
	err = s.query(ctx, func(c *sqlx.Conn) error {
		if q == (session.Query{Trash: q.Trash}) { // allocate a long list at once
			n, _ := c.Int("SELECT count(*) FROM sessions")
			infos = make([]session.Info, 0, n)
		}
		return c.Each(func(r sqlx.Row) error { _, in := sqlstore.Scan(r); add(in); return nil }, sql, args...)
	}, func(d *rescue.Database) error {
		infos = nil
		for _, l := range d.Sessions {
			add(d.Info(l))
		}
		return nil
	})
	return infos, err
}

// latest returns a condition for the sessions that were used last, as many as
// its parameter says. A session is not older than its creation, as in
// sqlstore.Scan. Choosing them here would take 3 ms instead of 5, of 10,000
// sessions; an index would make every append write another page.
func latest(trash bool) string {
	where := "trashed IS NULL"
	if trash {
		where = "trashed IS NOT NULL"
	}
	return " AND n IN (SELECT n FROM sessions WHERE " + where + " ORDER BY max(updated, created) DESC, id LIMIT $1)"
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
