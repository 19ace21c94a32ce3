package postgres

import (
	"context"
	"strconv"

	"goclaw/session"
	"goclaw/session/storekit"
)

// A position is the oldest transaction that was in progress: all before it had
// ended, and what it or a later one writes is reported next time, perhaps again.
const position = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

const (
	selectAll = "SELECT " + position + `, s.id, s.last, s.n, false FROM (SELECT) AS one
LEFT JOIN goclaw_sessions s ON s.trashed IS NULL ORDER BY s.updated DESC, s.id`
	selectChanged = "SELECT " + position + `, c.id, coalesce(s.last, 0), coalesce(s.n, 0), s.n IS NULL OR s.trashed IS NOT NULL
FROM (
	SELECT s.id FROM goclaw_sessions s WHERE s.n IN (SELECT session FROM goclaw_records WHERE xact >= $1)
	UNION SELECT id FROM goclaw_moves WHERE xact >= $1
) c LEFT JOIN goclaw_sessions s ON s.id = c.id ORDER BY s.updated DESC NULLS LAST, c.id`
)

// Changes implements storekit.Feed.
func (s *Store) Changes(ctx context.Context, since string) (ch storekit.Changes, err error) {
	from, err := strconv.ParseInt(since, 10, 64)
	all := err != nil
	err = s.db.do(ctx, func() error {
		ch = storekit.Changes{Now: since, All: all}
		add := func(r row) error {
			ch.Now = strconv.FormatInt(r.Int(0), 10)
			if !r.null(1) {
				ch.Logs = append(ch.Logs, storekit.Change{ID: session.ID(r.Text(1)), Last: session.Seq(r.Int(2)), Written: uint64(r.Int(3)), Gone: r.yes(4)})
			}
			return nil
		}
		if all {
			return s.db.each(ctx, add, selectAll)
		}
		return s.db.each(ctx, add, selectChanged, from)
	})
	return ch, err
}
