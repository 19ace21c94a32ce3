package postgres

import (
	"context"
	"fmt"
	"strconv"

	"goclaw/session"
	"goclaw/session/storekit"
)

// A position is a number of a transaction: all before it had ended, and what it or
// a later one writes is reported next time, perhaps again. It is the oldest that
// was in progress, but at most the next after the newest of which something was
// seen. Only the numbers before that are never given again: after a crash, or by a
// standby that is promoted, those are that left no trace, such as the number of a
// transaction that was undone.
//
// Numbers from next on are of transactions to come: where they are in a table, it
// was dumped on another server and restored on this one, and they say nothing.
const positions = `(SELECT pg_snapshot_xmin(s)::text::bigint AS oldest, pg_snapshot_xmax(s)::text::bigint AS next FROM pg_current_snapshot() s) p`

// How far back the first position looks for the newest transaction of which
// something was seen: most often it is near.
const traceNear, traceFar = 1000, 1_000_000

var selectAll = fmt.Sprintf(`SELECT least(p.oldest, coalesce(greatest(
		coalesce((SELECT max(xact) FROM goclaw_records WHERE xact >= p.oldest - %d AND xact < p.next),
			(SELECT max(xact) FROM goclaw_records WHERE xact >= p.oldest - %d AND xact < p.next)),
		(SELECT max(xact) FROM goclaw_moves WHERE xact < p.next)) + 1, p.oldest - %[2]d)),
	false, s.id, s.last, s.n, false
FROM `+positions+` LEFT JOIN goclaw_sessions s ON s.trashed IS NULL`, traceNear, traceFar)

// selectChanged takes a position. The second column reports whether the position
// is one that the server has not reached: it is not the one that gave it, or was
// set back.
const selectChanged = `WITH p AS MATERIALIZED (SELECT * FROM ` + positions + `),
r AS (SELECT session, max(xact) AS xact FROM goclaw_records WHERE xact >= $1 AND xact < (SELECT next FROM p) GROUP BY session),
m AS (SELECT id, xact FROM goclaw_moves WHERE xact >= $1 AND xact < (SELECT next FROM p))
SELECT least(p.oldest, greatest((SELECT max(xact) FROM r), (SELECT max(xact) FROM m), $1 - 1) + 1),
	p.oldest < $1, c.id, coalesce(s.last, 0), coalesce(s.n, 0), s.n IS NULL OR s.trashed IS NOT NULL
FROM p
LEFT JOIN (SELECT s.id FROM goclaw_sessions s WHERE s.n IN (SELECT session FROM r) UNION SELECT id FROM m) c ON true
LEFT JOIN goclaw_sessions s ON s.id = c.id`

// Changes implements storekit.Feed.
func (s *Store) Changes(ctx context.Context, since string) (ch storekit.Changes, err error) {
	from, err := strconv.ParseInt(since, 10, 64)
	all := err != nil
	err = s.db.do(ctx, func() error {
		if !all {
			back := false
			if ch, back, err = s.changes(ctx, selectChanged, from); err != nil || !back {
				return err
			}
		}
		ch, _, err = s.changes(ctx, selectAll)
		ch.All = true
		return err
	})
	return ch, err
}

// changes returns what a statement selects, and whether the position is one that
// the server has not reached.
func (s *Store) changes(ctx context.Context, sql string, args ...any) (ch storekit.Changes, back bool, err error) {
	err = s.db.each(ctx, func(r row) error {
		ch.Now, back = strconv.FormatInt(r.Int(0), 10), r.yes(1)
		if !r.null(2) {
			ch.Logs = append(ch.Logs, storekit.Change{ID: session.ID(r.Text(2)), Last: session.Seq(r.Int(3)), Written: uint64(r.Int(4)), Gone: r.yes(5)})
		}
		return nil
	}, sql, args...)
	return ch, back, err
}
