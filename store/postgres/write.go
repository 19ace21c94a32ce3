package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// maxSeq is the last number that a record can have.
const maxSeq = math.MaxInt32

// Append implements session.Store.
func (s *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if err := s.db.writable(); err != nil {
		return err
	}
	if n := len(recs); n > 0 && recs[n-1].Seq > maxSeq {
		return fmt.Errorf("session %q: record %d is more than a session can have: %w", id, recs[n-1].Seq, session.ErrTooLarge)
	}
	recs, lines, err := sqlstore.Encode(recs)
	if err != nil {
		return err
	}
	if err := s.db.enter(ctx); err != nil {
		return err
	}
	defer s.db.leave()
	e, err := s.ends.take(ctx, id)
	if err != nil {
		return err
	}
	defer s.ends.give(e)
	a := appending{s: s, ctx: ctx, id: id, recs: recs, lines: lines, end: e}
	err = s.db.again(ctx, a.try)
	if err != nil {
		e.known = false
		if err = s.db.wrap(err); a.sent && lost(err) {
			err = fmt.Errorf("%w; it is not known whether record %d of session %q was written", err, a.lines[0].Seq, id)
		}
		return err
	}
	if len(recs) > 0 {
		s.watch.grew(id, e.Info.Last)
	}
	return nil
}

// appending is one call of Append.
type appending struct {
	s     *Store
	ctx   context.Context
	id    session.ID
	recs  []session.Record
	lines []sqlstore.Line
	end   *end
	sent  bool // the records were sent, and may be there although the connection was lost
}

// try appends the records. It may be called again after the connection was lost.
func (a *appending) try() error {
	if a.likely() && a.plan() == nil { // if not, what the log is decides
		if done, err := a.write(); done || err != nil {
			return err
		}
	}
	for range 5 { // others may append meanwhile
		if err := a.load(); err != nil {
			return err
		}
		if a.sent {
			if there, err := a.there(); there || err != nil {
				return err
			}
		}
		if err := a.plan(); err != nil || len(a.recs) == 0 {
			if errors.Is(err, session.ErrConflict) && len(a.recs) > 0 { // most likely because of whoever has the lock now
				err = cmp.Or(a.refused(), err)
			}
			return err
		}
		if done, err := a.write(); done || err != nil {
			return err
		}
		if err := a.refused(); err != nil {
			return err
		}
	}
	return fmt.Errorf("session %q: others append to it all the time: %w", a.id, session.ErrConflict)
}

// likely reports whether the records follow what is remembered of the log, or
// begin one of which nothing is. The statement compares.
func (a *appending) likely() bool {
	if a.sent || len(a.recs) == 0 {
		return false
	}
	e, first := a.end, a.recs[0].Seq
	if !e.known && first == 1 {
		e.End, e.known = sqlstore.NewEnd(a.id), true
	}
	return e.known && e.Info.Last == first-1 && e.Info.Trashed.IsZero()
}

// plan makes the end of the log that which the records lead to.
func (a *appending) plan() error {
	log := &logOf{db: a.s.db, ctx: a.ctx}
	e := a.end
	if e.N != 0 {
		if err := log.expect(e.N, e.Top, a.recs); err != nil {
			e.known = false
			return err
		}
	}
	err := e.Plan(log, a.recs)
	if err != nil {
		e.known = false
	}
	return err
}

// load reads where the log ends.
func (a *appending) load() error {
	e := a.end
	e.known = false
	var n int64
	var in session.Info
	var top string
	err := a.s.db.each(a.ctx, func(r row) error {
		n, in = sqlstore.Scan(r)
		top = r.Text(len(r) - 1)
		return nil
	}, selectEnd, text(string(a.id)))
	if err != nil {
		return err
	}
	if n == 0 {
		e.End = sqlstore.NewEnd(a.id)
	} else if err := e.Reload(&logOf{db: a.s.db, ctx: a.ctx}, n, in, top); err != nil {
		return err
	}
	e.known = true
	return nil
}

// there reports whether the log has the records already: they were sent, and the
// connection was lost before the answer.
func (a *appending) there() (bool, error) {
	e, last := a.end, a.lines[len(a.lines)-1]
	if e.N == 0 || e.Info.Last < last.Seq {
		return false, nil
	}
	same := 0
	err := a.s.db.each(a.ctx, func(r row) error {
		if l := a.lines[session.Seq(r.Int(0))-a.lines[0].Seq]; l.ID == r.Text(1) && int32(l.Sum) == int32(r.Int(2)) {
			same++
		}
		return nil
	}, "SELECT seq, id, crc32c FROM goclaw_records WHERE session = $1 AND seq BETWEEN $2 AND $3", e.N, int64(a.lines[0].Seq), int64(last.Seq))
	if err != nil || same < len(a.lines) {
		return false, err
	}
	e.known = false // others may have appended since
	// What is seen need not be confirmed by a standby yet: the wait for it ends when
	// the connection does. A commit after it waits for both.
	_, err = a.s.db.exec(a.ctx, "UPDATE goclaw_sessions SET last = last WHERE n = $1", e.N)
	return err == nil, err
}

// write sends the records. It reports false if the log does not end where it
// should, or the lock was lost.
func (a *appending) write() (done bool, err error) {
	e := a.end
	w := &write{id: text(string(a.id)), n: e.N, after: a.lines[0].Seq - 1, lines: a.lines, values: allTexts(e.Info)}
	if name, fence, held := a.lock(); held {
		w.lock, w.fence = text(name), fence
	}
	err = a.s.group.send(a.ctx, w)
	if err == nil && w.got != 0 {
		e.N = w.got
		return true, nil
	}
	e.known = false
	a.sent = a.sent || unknown(err)
	if code(err) == uniqueViolation {
		err = fmt.Errorf("session %q has record %d already, its row must be rebuilt: %w", a.id, a.lines[0].Seq, errors.Join(err, session.ErrStale))
	}
	return false, err
}

// lock returns the lock that a is under, if this process has one: that of the
// session, or that of the key under which a session begins.
func (a *appending) lock() (name string, fence int64, held bool) {
	name = string(a.id)
	if fence, held = a.s.leases.fence(name); held {
		return name, fence, true
	}
	if h, ok := a.recs[0].Body.(session.Header); ok {
		name = session.KeyLock(h.Key)
		fence, held = a.s.leases.fence(name)
	}
	return name, fence, held
}

// refused returns why a log took no records although it ends where it should: the
// lock was lost.
func (a *appending) refused() error {
	name, fence, held := a.lock()
	if !held {
		return nil
	}
	var now int64
	err := a.s.db.each(a.ctx, func(r row) error { now = r.Int(0); return nil },
		"SELECT fence FROM goclaw_locks WHERE name = $1", text(name))
	if err != nil || now == fence {
		return err
	}
	return fmt.Errorf("session %q: the lock was lost, because this process gave no sign of life for %v, and another may have gone on: %w", a.id, a.s.leases.ttl, session.ErrConflict)
}

// params are the parameters of a statement.
type params []any

// add returns the place of v in a statement.
func (p *params) add(v any) string {
	*p = append(*p, v)
	return fmt.Sprint("$", len(*p))
}

// list adds values, and returns their places.
func (p *params) list(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = p.add(v)
	}
	return out
}

// logOf reads logs for planning.
type logOf struct {
	db   *database
	ctx  context.Context
	seqs map[string]session.Seq // of the ids that expect asked for
}

// expect finds the ids that planning recs may ask for, in one query.
func (l *logOf) expect(n int64, top string, recs []session.Record) error {
	var ids []string
	for _, r := range recs {
		first := r.ID
		switch b := r.Body.(type) {
		case session.Compaction:
			first = b.FirstKept
		case session.Reset:
			first = b.FirstKept
		}
		for _, id := range []string{r.ID, first} {
			if id != "" && id <= top {
				ids = append(ids, text(id))
			}
		}
	}
	l.seqs = map[string]session.Seq{}
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		l.seqs[id] = 0
	}
	return l.db.each(l.ctx, func(r row) error {
		l.seqs[string(r[0])] = session.Seq(r.Int(1))
		return nil
	}, "SELECT id, min(seq) FROM goclaw_records WHERE session = $1 AND id = ANY($2) GROUP BY id", n, ids)
}

// Find implements sqlstore.Log.
func (l *logOf) Find(n int64, record string) (seq session.Seq, err error) {
	if seq, ok := l.seqs[text(record)]; ok {
		return seq, nil
	}
	err = l.db.each(l.ctx, func(r row) error { seq = session.Seq(r.Int(0)); return nil },
		"SELECT coalesce(min(seq), 0) FROM goclaw_records WHERE session = $1 AND id = $2", n, text(record))
	return seq, err
}

// Records implements sqlstore.Log.
func (l *logOf) Records(n int64, after session.Seq) iter.Seq2[session.Record, error] {
	p := piece{db: l.db, n: n, at: after, good: after}
	return p.follow(l.ctx, "")
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, "UPDATE goclaw_sessions SET trashed = $2 WHERE id = $1 AND trashed IS NULL RETURNING n", sqlstore.Stamp(time.Now()))
}

// Restore implements session.Store.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, "UPDATE goclaw_sessions SET trashed = NULL WHERE id = $1 AND trashed IS NOT NULL RETURNING n")
}

// Purge implements session.Store. What it removes is in the files of the
// database until the server vacuums the tables.
func (s *Store) Purge(ctx context.Context, id session.ID) error {
	return s.move(ctx, id, "DELETE FROM goclaw_sessions WHERE id = $1 AND trashed IS NOT NULL RETURNING n), "+
		"r AS (DELETE FROM goclaw_records WHERE session IN (SELECT n FROM s)")
}

// move changes the row of a session by sql, and notes that for the feed.
func (s *Store) move(ctx context.Context, id session.ID, sql string, args ...any) error {
	if err := s.db.writable(); err != nil {
		return err
	}
	sent, found := false, int64(0)
	err := s.db.do(ctx, func() error {
		if sent { // it may have been done
			found = 1
		}
		n, err := s.db.exec(ctx, "WITH s AS ("+sql+`)
INSERT INTO goclaw_moves (id, xact) SELECT $1, pg_current_xact_id()::text::bigint FROM s
ON CONFLICT (id) DO UPDATE SET xact = excluded.xact`, append([]any{text(string(id))}, args...)...)
		found, sent = max(found, n), unknown(err)
		return err
	})
	if err == nil && found == 0 {
		return session.NotFound("there is no session %q", id)
	}
	if err == nil {
		s.watch.changed()
	}
	return err
}
