package postgres

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// How much is read before it is yielded. No connection and no snapshot is held
// while the caller's code runs.
const (
	pieceRecords = 256
	pieceBytes   = 1 << 20
)

// Read implements session.Store. It ends at the record that is the last when
// the reading starts.
func (s *Store) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	p := piece{db: s.db, at: max(after, 0), good: max(after, 0)}
	return p.follow(ctx, id)
}

// ReadChecked implements storekit.Checker.
func (s *Store) ReadChecked(ctx context.Context, id session.ID) iter.Seq2[session.Record, error] {
	p := piece{db: s.db, check: true}
	return p.follow(ctx, id)
}

// piece is a position in a log and the entries read there.
type piece struct {
	db      *database
	n       int64
	at      session.Seq // the last record read
	good    session.Seq // the last record that could be read
	last    session.Seq // the last record to read; 0: not known
	done    bool
	check   bool // compare records with their checksums
	whole   bool // read what is there, whatever the row of the session says
	entries []entry
}

type entry struct {
	rec session.Record
	err error
}

// follow yields the records after p of the log id; "" means log p.n, within
// another call.
func (p piece) follow(ctx context.Context, id session.ID) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		p := p
		for !p.done {
			var err error
			if id == "" {
				err = p.read(ctx, id)
			} else {
				err = p.db.do(ctx, func() error { return p.read(ctx, id) })
			}
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

// selectRecords returns the row of a session and, with it, its next records: so
// many, and of these as many as begin within so many bytes. There is one row
// without a record if there are none.
const selectRecords = `SELECT s.n, s.last, r.seq, r.id, r.parent, r.type, r.data, r.crc32c
FROM goclaw_sessions s LEFT JOIN LATERAL (
	SELECT p.* FROM (
		SELECT q.*, sum(octet_length(q.data)::bigint) OVER (ORDER BY q.seq) - octet_length(q.data) AS before
		FROM (SELECT * FROM goclaw_records WHERE session = s.n AND seq > $2 ORDER BY seq LIMIT $3) q
	) p WHERE p.before < $4
) r ON true WHERE `

// read reads the next piece.
func (p *piece) read(ctx context.Context, id session.ID) error {
	where, arg := "s.id = $1", any(text(string(id)))
	if id == "" {
		where, arg = "s.n = $1", any(p.n)
	}
	next := *p // the connection may be lost, and the piece read again
	next.entries, next.done = nil, true
	found, rows := false, 0
	err := p.db.each(ctx, func(r row) error {
		if next.n != 0 && next.n != r.Int(0) { // it was purged, and begun again
			return nil
		}
		found = true
		next.n = r.Int(0)
		if next.last == 0 {
			next.last = session.Seq(r.Int(1))
			if next.whole {
				next.last = maxSeq
			}
		}
		seq := session.Seq(r.Int(2))
		if r.null(2) || seq > next.last {
			return nil
		}
		rows++
		next.add(seq, bytes.Clone(r[6]), int32(r.Int(7)), func() (string, string, string) { return r.Text(3), r.Text(4), r.Text(5) })
		next.done = next.at >= next.last
		return nil
	}, selectRecords+where+" ORDER BY r.seq", arg, int64(p.at), int64(pieceRecords), int64(pieceBytes))
	if err != nil {
		return err
	}
	if !found && id != "" {
		return session.NotFound("there is no session %q", id)
	}
	if rows == 0 && next.at < next.last && !next.whole {
		next.missing(next.last)
	}
	*p = next
	return nil
}

// add adds the record seq.
func (p *piece) add(seq session.Seq, data []byte, sum int32, beside func() (id, parent, typ string)) {
	p.missing(seq - 1)
	rec, d := sqlstore.Decode(p.db.place, seq, data, beside)
	if d != nil {
		d.After = p.good
		p.entries = append(p.entries, entry{err: d})
	} else {
		p.good = seq
		if p.check {
			if d := sqlstore.Changed(p.db.place, seq, data, int64(uint32(sum)), true); d != nil {
				p.entries = append(p.entries, entry{err: d})
			}
		}
	}
	p.entries = append(p.entries, entry{rec: rec})
	p.at = seq
}

// missing adds damage for the records up to to, which were not found.
func (p *piece) missing(to session.Seq) {
	if to <= p.at {
		return
	}
	recs, d := sqlstore.Missing(p.db.place, p.at+1, to)
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
		var infos []session.Info
		err := s.db.do(ctx, func() error {
			infos = nil
			sql, args := selectSessions(q)
			return s.db.each(ctx, func(r row) error {
				if _, in := sqlstore.Scan(r); q.Match(in) {
					infos = append(infos, in)
				}
				return nil
			}, sql, args...)
		})
		if err != nil {
			yield(session.Info{}, err)
			return
		}
		for i, in := range infos {
			if q.Limit > 0 && i == q.Limit || !yield(in, nil) {
				return
			}
		}
	}
}

var (
	scanColumns = "s." + strings.Join(sqlstore.ScanColumns(), ", s.")
	// selectEnd takes the id of a session. The last column is its greatest record
	// id.
	selectEnd = "SELECT " + scanColumns + ", coalesce((SELECT max(id) FROM goclaw_records WHERE session = s.n), '') FROM goclaw_sessions s WHERE s.id = $1"
)

// selectSessions returns the statement for q. It selects more than q only if
// q.Text is a text that PostgreSQL does not take.
func selectSessions(q session.Query) (sql string, args []any) {
	var p params
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT %s FROM goclaw_sessions s WHERE trashed IS ", scanColumns)
	if q.Trash {
		b.WriteString("NOT ")
	}
	b.WriteString("NULL")
	for _, c := range []struct{ column, value string }{{"id", string(q.ID)}, {"key", string(q.Key)}, {"agent", q.Agent}, {"channel", q.Channel}} {
		if c.value != "" {
			fmt.Fprintf(&b, " AND %s = %s", c.column, p.add(text(c.value)))
		}
	}
	exact := true
	if q.Text != "" {
		var t string
		if t, exact = wordsOf(q); exact {
			fmt.Fprintf(&b, " AND position(%s IN words) > 0", p.add(t))
		}
	}
	b.WriteString(" ORDER BY minute DESC, updated DESC, id")
	if q.Limit > 0 && exact {
		fmt.Fprintf(&b, " LIMIT %d", q.Limit)
	}
	return b.String(), p
}

// Redactions implements storekit.Redactions. It finds them by the beginning of
// their ids.
func (s *Store) Redactions(ctx context.Context, id session.ID, after session.Seq) (found []session.Record, err error) {
	from, to := session.RedactionPrefix, session.RedactionPrefix[:len(session.RedactionPrefix)-1]+"."
	err = s.db.do(ctx, func() error {
		found = nil
		return s.db.each(ctx, func(r row) error {
			rec, _ := sqlstore.Decode(s.db.place, session.Seq(r.Int(0)), bytes.Clone(r[2]), func() (string, string, string) { return r.Text(1), "", "" })
			if _, ok := rec.Body.(session.Redaction); ok {
				found = append(found, rec)
			}
			return nil
		}, `SELECT r.seq, r.id, r.data FROM goclaw_records r JOIN goclaw_sessions s ON s.n = r.session
WHERE s.id = $1 AND r.id >= $2 AND r.id < $3 AND r.seq > $4 ORDER BY r.seq`, text(string(id)), from, to, int64(max(after, 0)))
	})
	return found, err
}
