package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Check reads all logs and reports what is wrong: records that cannot be read,
// are missing or differ from their checksums, and rows of sessions that differ
// from what their logs add up to. The id is empty for problems of no session.
func (s *Store) Check(ctx context.Context, report func(session.ID, error)) error {
	lone, err := s.lone(ctx)
	if err != nil {
		return err
	}
	for _, n := range lone {
		report("", fmt.Errorf("postgres: %s: the records of session %d have no row: %w", s.db.place, n, session.ErrStale))
	}
	return s.eachRow(ctx, func(in session.Info) error {
		now, err := s.replay(ctx, in.ID, func(d *session.Damage) { report(in.ID, d) })
		if errors.Is(err, session.ErrNotFound) { // it was purged meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		d := differences(in, now)
		if d == "" {
			return nil
		}
		if again, err := session.Stat(ctx, s, in.ID); err != nil || again.Last != in.Last {
			return nil // it has grown meanwhile, or is gone
		}
		report(in.ID, fmt.Errorf("its row differs from its log: %s: %w", d, session.ErrStale))
		return nil
	})
}

// Rebuild computes the rows of all sessions from their logs and returns how many
// it changed. It never changes a record. It also removes rows of locks that nobody
// has used for long.
func (s *Store) Rebuild(ctx context.Context) (changed int, err error) {
	if err := s.db.writable(); err != nil {
		return 0, err
	}
	err = s.db.do(ctx, func() error {
		_, err := s.db.exec(ctx, sweepLocks)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = s.eachRow(ctx, func(in session.Info) error {
		now, err := s.replay(ctx, in.ID, func(*session.Damage) {})
		if err != nil || differences(in, now) == "" {
			if errors.Is(err, session.ErrNotFound) {
				return nil
			}
			return err
		}
		now.ID, now.Trashed = in.ID, in.Trashed
		var p params
		set := p.list(allValues(now))
		for i, c := range allColumns() {
			set[i] = c + " = " + set[i]
		}
		// Only if nobody has written since.
		sql := fmt.Sprintf("UPDATE goclaw_sessions SET %s WHERE id = %s AND last = %s", strings.Join(set, ", "), p.add(text(string(in.ID))), p.add(int64(in.Last)))
		return s.db.do(ctx, func() error {
			n, err := s.db.exec(ctx, sql, p...)
			changed += int(n)
			return err
		})
	})
	return changed, err
}

// eachRow calls f with the rows of all sessions.
func (s *Store) eachRow(ctx context.Context, f func(session.Info) error) error {
	for _, trash := range []bool{false, true} {
		for in, err := range s.List(ctx, session.Query{Trash: trash}) {
			if err == nil {
				err = f(in)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// replay returns what a log adds up to.
func (s *Store) replay(ctx context.Context, id session.ID, damaged func(*session.Damage)) (session.Info, error) {
	o := session.NewOutline(id)
	p := piece{db: s.db, check: true, whole: true}
	for r, err := range p.follow(ctx, id) {
		var d *session.Damage
		if errors.As(err, &d) {
			damaged(d)
			continue
		}
		if err == nil {
			err = o.Apply(r)
		}
		if err != nil {
			return session.Info{}, err
		}
	}
	return o.Info, nil
}

// lone returns the numbers of records that belong to no session.
func (s *Store) lone(ctx context.Context) (ns []int64, err error) {
	err = s.db.do(ctx, func() error {
		ns = nil
		return s.db.slowly(ctx, func(r row) error {
			ns = append(ns, r.Int(0))
			return nil
		}, "SELECT DISTINCT r.session FROM goclaw_records r WHERE NOT EXISTS (SELECT FROM goclaw_sessions s WHERE s.n = r.session) ORDER BY 1 LIMIT 100")
	})
	return ns, err
}

// differences describes in what the row of a session differs from what its log
// adds up to.
func differences(row, log session.Info) string {
	var out []string
	a, b := sqlstore.Values(row), sqlstore.Values(log)
	for i, c := range sqlstore.Columns() {
		if a[i] != b[i] {
			out = append(out, fmt.Sprintf("%s is %v, should be %v", c, a[i], b[i]))
		}
	}
	return strings.Join(out, "; ")
}
