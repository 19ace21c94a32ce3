package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// What is read at once, before it is yielded. No connection is held and no
// snapshot is kept while the caller looks at it.
const (
	firstRecords = 16 // who looks at one record shall not wait for more
	pieceRecords = 256
	pieceBytes   = 1 << 20
)

// Read implements session.Store. The log is read as far as it goes when the
// reading begins.
func (s *Store) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		p := piece{file: s.path, at: max(after, 0)}
		lend := func(ctx context.Context, f func(*conn) error) error { return s.with(ctx, id, f) }
		for !p.done {
			err := lend(ctx, func(c *conn) error {
				if err := c.exec("BEGIN"); err != nil {
					return err
				}
				if err := p.open(c, id); err != nil {
					return err
				}
				if err := p.read(c); err != nil {
					return err
				}
				// SQLite commits nothing that has met a damaged page, not even
				// a reading; lend ends it then.
				if err := c.exec("COMMIT"); !unreadable(err) {
					return err
				}
				return nil
			})
			if err != nil {
				yield(session.Record{}, err)
				return
			}
			lend = s.lend // where to end is known
			for _, e := range p.entries {
				if err := ctx.Err(); err != nil {
					yield(session.Record{}, err)
					return
				}
				if !yield(e.rec, e.err) {
					return
				}
			}
		}
	}
}

// piece is a place in a log, and what comes next there.
type piece struct {
	file    string
	n       int64
	at      session.Seq // read so far
	good    session.Seq // the last record that could be read
	last    session.Seq // where to end
	done    bool
	many    bool // not the first piece
	entries []entry
}

type entry struct {
	rec session.Record
	err error
}

// open finds the log id. A log that was purged while it was read is gone.
func (p *piece) open(c *conn, id session.ID) error {
	n, err := c.int("SELECT n FROM sessions WHERE id = $1", string(id))
	if err != nil {
		return err
	}
	if n == 0 || p.n != 0 && p.n != n {
		return fmt.Errorf("session %q: %w", id, session.ErrNotFound)
	}
	if p.n == 0 {
		p.n, p.good = n, p.at
		p.last, err = last(c, n)
	}
	return err
}

// last returns the last record of session n. It asks the log itself, so that
// a wrong row cannot hide records.
func last(c *conn, n int64) (session.Seq, error) {
	at, err := c.int("SELECT max(pos) FROM records WHERE pos > $1 AND pos <= $2", pos(n, 0), pos(n, maxSeq))
	if unreadable(err) {
		if seq := lastKnown(c, n); seq > 0 {
			return seq, nil
		}
	}
	return session.Seq(at & maxSeq), err
}

// It begins at a record, not behind one, which may be on a damaged page.
const selectRecords = "SELECT pos, id, parent, type, data FROM records WHERE pos >= $1 AND pos <= $2 ORDER BY pos"

// read reads the next piece. What cannot be read costs itself only.
func (p *piece) read(c *conn) error {
	p.entries = p.entries[:0]
	size, most := 0, firstRecords
	if p.many {
		most = pieceRecords
	}
	p.many = true
	err := c.each(func(r row) error {
		seq := session.Seq(r.Int(0) & maxSeq)
		if seq <= p.at {
			return sqlite3.CORRUPT // a page that is out of place
		}
		p.missing(seq - 1)
		data := r.bytes(4)
		rec, d := sqlstore.Decode(p.file, seq, data, func() (id, parent, typ string) { return r.Text(1), r.Text(2), r.Text(3) })
		if d != nil {
			d.After = p.good
			p.entries = append(p.entries, entry{err: d})
		} else {
			p.good = seq
		}
		p.entries = append(p.entries, entry{rec: rec})
		p.at = seq
		size += len(data)
		if len(data) > largeValue {
			c.large = true
		}
		if len(p.entries) >= most || size >= pieceBytes {
			return errStop
		}
		return nil
	}, selectRecords, pos(p.n, int64(p.at)+1), pos(p.n, int64(p.last)))
	if unreadable(err) {
		err = p.skip(c)
		p.done = p.at >= p.last
		return err
	}
	p.done = err == nil // there is no more
	return stopped(err)
}

// missing notes that nothing was found up to the record to.
func (p *piece) missing(to session.Seq) {
	if to <= p.at {
		return
	}
	recs, d := sqlstore.Missing(p.file, p.at+1, to)
	d.After = p.good
	p.entries = append(p.entries, entry{err: d})
	for _, r := range recs {
		p.entries = append(p.entries, entry{rec: r})
	}
	p.at = to
}

// List implements session.Store.
func (s *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		infos, err := s.list(ctx, q)
		if unreadable(err) {
			err = fmt.Errorf("%w: %w", err, session.ErrStale) // the records have it all
		}
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

// halfList is how many sessions are so many that two connections list them,
// each one half. Taking a row apart is what takes long.
const halfList = 2000

// list returns what q asks for, in no order.
func (s *Store) list(ctx context.Context, q session.Query) (infos []session.Info, err error) {
	all := q.ID == "" && q.Key == ""
	if all && q.Limit > 0 && q.Limit < halfList/2 {
		err := s.with(ctx, "", func(c *conn) (err error) { infos, err = newest(c, q); return err })
		return infos, err
	}
	sql, args := sqlstore.SelectSessions(q)
	collect := func(c *conn, to *[]session.Info, sql string, args ...any) error {
		return c.each(func(r row) error {
			if _, in := sqlstore.Scan(r); q.Match(in) {
				*to = append(*to, in)
			}
			return nil
		}, sql, args...)
	}
	var half int64
	err = s.with(ctx, q.ID, func(c *conn) error {
		if all {
			n, err := c.int("SELECT max(n) FROM sessions")
			if err != nil || n >= halfList {
				half = n / 2
				return err
			}
		}
		return collect(c, &infos, sql, args...)
	})
	if err != nil || half == 0 {
		return infos, err
	}
	var other []session.Info
	done := make(chan error, 1)
	go func() {
		done <- s.lend(ctx, func(c *conn) error { return collect(c, &other, sql+" AND n > $1", half) })
	}()
	err = s.lend(ctx, func(c *conn) error { return collect(c, &infos, sql+" AND n <= $1", half) })
	if e := <-done; err == nil {
		err = e
	}
	return append(infos, other...), err
}

// newest returns the sessions that q asks for, up to its limit. To choose them
// takes some of the columns; all of them are read of the chosen only.
func newest(c *conn, q session.Query) (infos []session.Info, err error) {
	if err := c.exec("BEGIN"); err != nil {
		return nil, err
	}
	sql := "SELECT n, max(updated, created), id, key, title FROM sessions WHERE trashed IS NULL"
	in := session.Info{}
	if q.Trash {
		sql = strings.TrimSuffix(sql, "NULL") + "NOT NULL"
		in.Trashed = time.Unix(0, 0)
	}
	type chosen struct {
		n           int64
		updated, id string
	}
	var best []chosen
	cut := func() {
		slices.SortFunc(best, func(a, b chosen) int { return cmp.Or(cmp.Compare(b.updated, a.updated), cmp.Compare(a.id, b.id)) })
		best = best[:min(len(best), q.Limit)]
	}
	oldest := "" // of those that are enough
	all := q.Agent == "" && q.Channel == "" && q.Text == ""
	err = c.each(func(r row) error {
		if string(r.s.ColumnRawText(1)) < oldest {
			return nil
		}
		ch := chosen{r.Int(0), r.Text(1), r.Text(2)}
		if !all {
			if in.ID, in.Key, in.Title = session.ID(ch.id), session.Key(r.Text(3)), r.Text(4); !q.Match(in) {
				return nil
			}
		}
		if best = append(best, ch); len(best) > 2*q.Limit {
			cut()
			oldest = best[len(best)-1].updated
		}
		return nil
	}, sql)
	if err != nil {
		return nil, err
	}
	cut()
	for _, ch := range best {
		err := c.each(func(r row) error { _, in := sqlstore.Scan(r); infos = append(infos, in); return nil }, sqlstore.SelectNumber, ch.n)
		if err != nil {
			return nil, err
		}
	}
	return infos, c.exec("COMMIT")
}

// poll is how often Wait looks for what other processes append.
const poll = 80 * time.Millisecond

// Wait implements session.Waiter.
func (s *Store) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		s.mu.Lock()
		grown := s.grown
		s.mu.Unlock()
		var last int64
		err := s.with(ctx, id, func(c *conn) (err error) {
			last, err = c.int("SELECT last FROM sessions WHERE id = $1", string(id))
			return err
		})
		if err != nil || session.Seq(last) > after {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return session.ErrClosed
		case <-grown:
		case <-tick.C:
		}
	}
}

// tell wakes those who wait.
func (s *Store) tell() {
	if s.waiters.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.grown)
	s.grown = make(chan struct{})
}
