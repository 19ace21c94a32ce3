package sqlite

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
	"goclaw/store/sqlite/internal/rescue"
)

// How much is read before it is yielded. No connection and no snapshot is held
// while the caller's code runs.
const (
	firstRecords = 1   // reads of one record return fast
	pieceRecords = 256 // the next pieces are 16 times as large as the one before, up to this
	pieceBytes   = 1 << 20
)

// Read implements session.Store. It ends at the record that is the last when
// the reading starts.
func (s *Store) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return s.read(ctx, id, piece{file: s.path, at: max(after, 0)})
}

// ReadChecked implements storekit.Checker.
func (s *Store) ReadChecked(ctx context.Context, id session.ID) iter.Seq2[session.Record, error] {
	return s.read(ctx, id, piece{file: s.path, check: true})
}

// read yields the records of the log id after p.
func (s *Store) read(ctx context.Context, id session.ID, p piece) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		p := p
		for !p.done {
			var paged *rescue.Database
			p.entries = nil
			err := s.query(ctx, func(c *sqlx.Conn) error {
				if err := c.Run("BEGIN"); err != nil {
					return err
				}
				if err := p.locate(c, id); err != nil {
					return err
				}
				if err := p.next(c); err != nil {
					return err
				}
				return c.Run("COMMIT")
			}, func(d *rescue.Database) error {
				paged = d
				return nil
			})
			if err != nil {
				yield(session.Record{}, err)
				return
			}
			for _, e := range p.entries {
				if err := ctx.Err(); err != nil {
					yield(session.Record{}, err)
					return
				}
				if !yield(e.Record, e.Err) {
					return
				}
			}
			if paged != nil {
				s.readPages(ctx, id, p, paged, yield)
				return
			}
		}
	}
}

// readPages yields what follows p, from d. Where d is overwritten while the
// caller's code runs, it continues with the database as it is then.
func (s *Store) readPages(ctx context.Context, id session.ID, p piece, d *rescue.Database, yield func(session.Record, error) bool) {
	for end := session.Seq(0); ; {
		l := d.Find(id)
		if l == nil {
			yield(session.Record{}, session.NotFound("there is no session %q", id))
			return
		}
		if end == 0 {
			end = l.Last()
		}
		for e := range d.Read(l, p.at, p.check) {
			if d.Overwritten() {
				break
			}
			if err := ctx.Err(); err != nil {
				yield(session.Record{}, err)
				return
			}
			if e.Record.Seq > end || !yield(e.Record, e.Err) {
				return
			}
			p.at = max(p.at, e.Record.Seq)
		}
		if !d.Overwritten() {
			return
		}
		var err error
		if d, err = s.rescue(ctx); err != nil {
			yield(session.Record{}, err)
			return
		}
	}
}

// piece is a position in a log and the entries read there.
type piece struct {
	file    string
	n       int64
	at      session.Seq // the last record read
	good    session.Seq // the last record that could be read
	last    session.Seq // the last record to read
	done    bool
	most    int  // records of the next piece; 0: it is the first
	check   bool // compare records with their checksums and their columns
	entries []rescue.Entry
	// misfiled are the records whose columns differ from their lines.
	misfiled []sqlstore.Line
}

// locate finds the log id. A log that is purged during the reading is not found.
func (p *piece) locate(c *sqlx.Conn, id session.ID) error {
	n, err := c.Int("SELECT n FROM sessions WHERE id = $1", string(id))
	if err != nil {
		return err
	}
	if n == 0 || p.n != 0 && p.n != n {
		return session.NotFound("there is no session %q", id)
	}
	if p.n == 0 {
		p.n, p.good = n, p.at
		p.last, err = last(c, n)
	}
	return err
}

// last returns the last record of session n. It asks the log, not the row of the
// session, so that a wrong row cannot hide records.
func last(c *sqlx.Conn, n int64) (session.Seq, error) {
	at, err := c.Int("SELECT max(pos) FROM records WHERE pos > $1 AND pos <= $2", pos(n, 0), pos(n, maxSeq))
	return session.Seq(at & maxSeq), err
}

// These take the first and the last position.
const (
	inRange       = " FROM records WHERE pos >= $1 AND pos <= $2 ORDER BY pos"
	selectRecords = "SELECT pos, id, parent, type, data" + inRange
	selectChecked = "SELECT pos, id, parent, type, data, crc32c, time" + inRange
)

// next reads the next piece. After an error, what was read before it counts.
func (p *piece) next(c *sqlx.Conn) error {
	p.entries = p.entries[:0]
	size, most := 0, max(p.most, firstRecords)
	p.most = min(16*most, pieceRecords)
	query := selectRecords
	if p.check {
		query = selectChecked
	}
	err := c.Each(func(r sqlx.Row) error {
		seq := session.Seq(r.Int(0) & maxSeq)
		if seq <= p.at || seq-p.at > rescue.MaxGap {
			return sqlite3.CORRUPT // a page that is out of place, or a damaged number
		}
		data := r.Bytes(4)
		if err := p.add(c, seq, r, data); err != nil {
			return err
		}
		size += len(data)
		if len(data) > sqlx.LargeValue {
			c.Large = true
		}
		if len(p.entries) >= most || size >= pieceBytes {
			return sqlx.ErrStop
		}
		return nil
	}, query, pos(p.n, int64(p.at)+1), pos(p.n, int64(p.last)))
	p.done = err == nil // no more rows
	if err == sqlx.ErrStop {
		return nil
	}
	return err
}

// add adds the record seq, with the line data in the row r, and what is missing
// before it.
func (p *piece) add(c *sqlx.Conn, seq session.Seq, r sqlx.Row, data []byte) error {
	if err := p.missing(c, seq-1); err != nil {
		return err
	}
	rec, d := sqlstore.Decode(p.file, seq, data, func() (id, parent, typ string) { return r.Text(1), r.Text(2), r.Text(3) })
	switch {
	case d != nil:
		d.After = p.good
	case p.check:
		if d = sqlstore.Changed(p.file, seq, data, r.Int(5), r.ColumnType(5) != sqlite3.NULL); d != nil {
			break // its columns are not wrong
		}
		l := sqlstore.NewLine(rec, data)
		if r.Text(1) != l.ID || r.Text(2) != l.Parent || r.Text(3) != l.Type || r.Text(6) != l.Time {
			l.Data = nil
			p.misfiled = append(p.misfiled, l)
		}
	}
	if d == nil || d.Changed > 0 {
		p.good = seq
	}
	return p.put(c, rec, d)
}

// missing adds what replaces the records up to to, which were not found.
func (p *piece) missing(c *sqlx.Conn, to session.Seq) error {
	if to <= p.at {
		return nil
	}
	recs, d := sqlstore.Missing(p.file, p.at+1, to)
	d.After = p.good
	for _, r := range recs {
		if err := p.put(c, r, d); err != nil {
			return err
		}
		d = nil
	}
	return nil
}

// put adds a record, and damage before it if there is any. A header that cannot
// be read is made from the row of the session.
func (p *piece) put(c *sqlx.Conn, rec session.Record, d *session.Damage) error {
	if _, ok := rec.Body.(session.Header); !ok && rec.Seq == 1 {
		in := rescue.Recovered(p.n)
		if err := c.Each(func(r sqlx.Row) error { _, in = sqlstore.Scan(r); return nil }, sqlstore.SelectNumber, p.n); err != nil {
			return err
		}
		rec = sqlstore.LostHeader(in.ID, in)
		if d != nil {
			d.Reason += fmt.Sprintf("; that its key is %q is known from its row only", in.Key)
		}
	}
	if d != nil {
		p.entries = append(p.entries, rescue.Entry{Err: d})
	}
	p.entries = append(p.entries, rescue.Entry{Record: rec})
	p.at = rec.Seq
	return nil
}

// records yields the log p.n in one go.
func (p *piece) records(c *sqlx.Conn) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		var err error
		for p.last, err = last(c, p.n); !p.done && err == nil; {
			err = p.next(c)
			for _, e := range p.entries {
				if !yield(e.Record, e.Err) {
					return
				}
			}
		}
		if err != nil {
			yield(session.Record{}, err)
		}
	}
}

// records yields the log n, and damage together with the record that holds its
// place.
func records(c *sqlx.Conn, path string, n int64) iter.Seq2[session.Record, error] {
	return (&piece{file: path, n: n}).records(c)
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
		s.growing.Lock()
		grown := s.grown
		s.growing.Unlock()
		last := session.Seq(0)
		err := s.query(ctx, func(c *sqlx.Conn) error {
			n, err := c.Int("SELECT last FROM sessions WHERE id = $1", string(id))
			last = session.Seq(n)
			return err
		}, func(d *rescue.Database) error {
			if l := d.Find(id); l != nil {
				last = d.Info(l).Last
			}
			return nil
		})
		if err != nil || last > after {
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

// tell wakes all Waits.
func (s *Store) tell() {
	if s.waiters.Load() == 0 {
		return
	}
	s.growing.Lock()
	defer s.growing.Unlock()
	close(s.grown)
	s.grown = make(chan struct{})
}

// selectRedactions finds redactions by the beginning of their ids, which the
// index of ids knows.
const selectRedactions = "SELECT pos, id, parent, type, data FROM records WHERE session = $1 AND id >= $2 AND id < $3 AND pos > $4 ORDER BY pos"

// Redactions implements storekit.Redactions.
func (s *Store) Redactions(ctx context.Context, id session.ID, after session.Seq) (found []session.Record, err error) {
	after = max(after, 0)
	add := func(r session.Record) {
		if _, ok := r.Body.(session.Redaction); ok {
			found = append(found, r)
		}
	}
	err = s.query(ctx, func(c *sqlx.Conn) error {
		n, err := c.Int("SELECT n FROM sessions WHERE id = $1", string(id))
		if err != nil || n == 0 {
			return err
		}
		from, to := session.RedactionPrefix, session.RedactionPrefix[:len(session.RedactionPrefix)-1]+"."
		return c.Each(func(r sqlx.Row) error {
			rec, _ := sqlstore.Decode(s.path, session.Seq(r.Int(0)&maxSeq), r.Bytes(4), func() (id, parent, typ string) { return r.Text(1), r.Text(2), r.Text(3) })
			add(rec)
			return nil
		}, selectRedactions, n, from, to, pos(n, int64(after)))
	}, func(d *rescue.Database) error {
		found = nil
		if l := d.Find(id); l != nil {
			for e := range d.Read(l, after, false) {
				add(e.Record)
			}
		}
		return nil
	})
	return found, err
}
