package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
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
	return s.read(ctx, id, s.checked(0))
}

// checked is the beginning of the log n, whose records are compared with their
// checksums.
func (d *database) checked(n int64) piece {
	return piece{file: d.path, n: n, check: true, summed: d.older == 0}
}

func (s *Store) read(ctx context.Context, id session.ID, p piece) iter.Seq2[session.Record, error] {
	if l, ok := s.late[id]; ok {
		return l.after(s.path, p.at, p.follow(ctx, s, id))
	}
	return p.follow(ctx, s, id)
}

// follow yields the records of the log id after p.
func (p piece) follow(ctx context.Context, s *Store, id session.ID) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		p := p
		for !p.done {
			err := s.lend(ctx, func(c *sqlx.Conn) error {
				if err := c.Run("BEGIN"); err != nil {
					return err
				}
				if err := p.locate(c, s, id); err != nil {
					return err
				}
				if err := p.read(c); err != nil {
					return err
				}
				// After a damaged page SQLite refuses to commit even a read
				// transaction; lend rolls it back.
				if err := c.Run("COMMIT"); !unreadable(err) {
					return err
				}
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
				if !yield(e.rec, e.err) {
					return
				}
			}
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
	check   bool // compare records with their checksums
	summed  bool // the table has a column for them
	entries []entry
}

type entry struct {
	rec session.Record
	err error
}

// locate finds the log id. A log that is purged during the reading is not found.
func (p *piece) locate(c *sqlx.Conn, s *Store, id session.ID) error {
	n, err := s.number(c, id)
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
	if unreadable(err) {
		if seq := lastKnown(c, n); seq > 0 {
			return seq, nil
		}
	}
	return session.Seq(at & maxSeq), err
}

// The range starts at a record, not after one: that one may be on a damaged page.
const (
	inRange       = " FROM records WHERE pos >= $1 AND pos <= $2 ORDER BY pos"
	selectRecords = "SELECT pos, id, parent, type, data" + inRange
	selectSummed  = "SELECT pos, id, parent, type, data, crc32c" + inRange
)

// read reads the next piece and skips what cannot be read.
func (p *piece) read(c *sqlx.Conn) error {
	first := p.at == 0
	err := p.next(c)
	if err == nil && first {
		err = p.header(c)
	}
	return err
}

// header replaces a header that cannot be read with one made from the row of the
// session, so that the log keeps its key and can be copied.
func (p *piece) header(c *sqlx.Conn) error {
	var damage *session.Damage
	for i, e := range p.entries {
		errors.As(e.err, &damage)
		if e.rec.Seq != 1 {
			continue
		}
		if _, ok := e.rec.Body.(session.Header); ok {
			return nil
		}
		in := recovered(p.n)
		err := c.Each(func(r sqlx.Row) error { _, in = sqlstore.Scan(r); return nil }, sqlstore.SelectNumber, p.n)
		if err != nil && !unreadable(err) {
			return err
		}
		p.entries[i].rec = session.Record{Seq: 1, Time: in.Created, Body: session.Header{
			Version: session.Version, ID: in.ID, Key: in.Key, CWD: in.CWD, Parent: in.Parent, Origin: in.Origin,
		}}
		if damage != nil {
			damage.Reason += fmt.Sprintf("; that its key is %q is known from its row only", in.Key)
		}
		return nil
	}
	return nil
}

// next reads the next piece, without header's repair.
func (p *piece) next(c *sqlx.Conn) error {
	p.entries = p.entries[:0]
	size, most := 0, max(p.most, firstRecords)
	p.most = min(16*most, pieceRecords)
	query := selectRecords
	if p.check && p.summed {
		query = selectSummed
	}
	err := c.Each(func(r sqlx.Row) error {
		seq := session.Seq(r.Int(0) & maxSeq)
		if seq <= p.at {
			return sqlite3.CORRUPT // a page that is out of place
		}
		p.missing(seq - 1)
		data := r.Bytes(4)
		rec, d := sqlstore.Decode(p.file, seq, data, func() (id, parent, typ string) { return r.Text(1), r.Text(2), r.Text(3) })
		if d != nil {
			d.After = p.good
			p.entries = append(p.entries, entry{err: d})
		} else {
			p.good = seq
			if d := p.changed(seq, r); d != nil {
				p.entries = append(p.entries, entry{err: d})
			}
		}
		p.entries = append(p.entries, entry{rec: rec})
		p.at = seq
		size += len(data)
		if len(data) > sqlx.LargeValue {
			c.Large = true
		}
		if len(p.entries) >= most || size >= pieceBytes {
			return sqlx.ErrStop
		}
		return nil
	}, query, pos(p.n, int64(p.at)+1), pos(p.n, int64(p.last)))
	if unreadable(err) {
		err = p.skip(c)
		p.done = p.at >= p.last
		return err
	}
	p.done = err == nil // no more rows
	if err == sqlx.ErrStop {
		return nil
	}
	return err
}

// changed returns damage if the record seq, in the row r, is to be compared with
// its checksum and differs.
func (p *piece) changed(seq session.Seq, r sqlx.Row) *session.Damage {
	switch {
	case !p.check:
		return nil
	case p.summed && r.ColumnType(5) != sqlite3.NULL:
		return sqlstore.Changed(p.file, seq, r.Bytes(4), r.Int(5), true)
	}
	return sqlstore.Changed(p.file, seq, r.Bytes(4), 0, false)
}

// missing adds damage for the records up to to, which were not found.
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
		infos, err := listed(ctx, s, q)
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
func listed(ctx context.Context, s *Store, q session.Query) (infos []session.Info, err error) {
	add := func(in session.Info) {
		if _, late := s.late[in.ID]; !late && q.Match(in) {
			infos = append(infos, in)
		}
	}
	sql, args := sqlstore.SelectSessions(q)
	for _, part := range partsOf(q) { // Match knows more; this spares it most rows
		args = append(args, part)
		sql += fmt.Sprintf(" AND instr(key, $%d) > 0", len(args))
	}
	all := q.ID == "" && q.Key == "" && q.Agent == "" && q.Channel == "" && q.Text == ""
	err = s.lend(ctx, func(c *sqlx.Conn) error {
		scan := func(r sqlx.Row) error { _, in := sqlstore.Scan(r); add(in); return nil }
		var err error
		if all && q.Limit > 0 && len(s.late) == 0 {
			err = latest(c, q, scan)
		} else {
			if all { // allocate a long list at once
				n, _ := c.Int("SELECT count(*) FROM sessions")
				infos = make([]session.Info, 0, n)
			}
			err = c.Each(scan, sql, args...)
		}
		if !unreadable(err) {
			return err
		}
		infos = nil
		logs, err := salvage(c, s.path)
		for _, l := range logs {
			add(l.info)
		}
		return err
	})
	for _, l := range s.late {
		if q.Match(l.info) {
			infos = append(infos, l.info)
		}
	}
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
		last, err := lent(ctx, &s.readers, func(c *sqlx.Conn) (int64, error) {
			return c.Int("SELECT last FROM sessions WHERE id = $1", string(id))
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
	_, late := s.late[id]
	if !late {
		err = s.lend(ctx, func(c *sqlx.Conn) error {
			n, err := s.number(c, id)
			if err != nil || n == 0 {
				return err
			}
			from, to := session.RedactionPrefix, session.RedactionPrefix[:len(session.RedactionPrefix)-1]+"."
			return c.Each(func(r sqlx.Row) error {
				seq := session.Seq(r.Int(0) & maxSeq)
				rec, _ := sqlstore.Decode(s.path, seq, r.Bytes(4), func() (id, parent, typ string) { return r.Text(1), r.Text(2), r.Text(3) })
				if _, ok := rec.Body.(session.Redaction); ok {
					found = append(found, rec)
				}
				return nil
			}, selectRedactions, n, from, to, pos(n, int64(max(after, 0))))
		})
	}
	if !late && !unreadable(err) {
		return found, err
	}
	found = nil
	for r, err := range s.Read(ctx, id, after) {
		var d *session.Damage
		if err != nil && !errors.As(err, &d) {
			return nil, err
		}
		if _, ok := r.Body.(session.Redaction); ok && err == nil {
			found = append(found, r)
		}
	}
	return found, nil
}
