package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Append implements session.Store.
func (s *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if err := s.writable(); err != nil {
		return err
	}
	if n := len(recs); n > 0 && recs[n-1].Seq > maxSeq {
		return fmt.Errorf("session %q: record %d is more than a session can have: %w", id, recs[n-1].Seq, session.ErrTooLarge)
	}
	recs, lines, err := sqlstore.Encode(recs)
	if err != nil {
		return err
	}
	return s.wrap(s.queue.put(ctx, &request{id: id, recs: recs, lines: lines}))
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, id session.ID) error {
	return s.change(ctx, id, false, func(c *sqlx.Conn, _ int64) error {
		return c.Run(sqlstore.TrashSession, sqlstore.Stamp(time.Now()), string(id))
	})
}

// Restore implements session.Store.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	return s.change(ctx, id, true, func(c *sqlx.Conn, _ int64) error {
		return c.Run(sqlstore.TrashSession, nil, string(id))
	})
}

// Purge implements session.Store. It overwrites the records in the database file
// and removes them from the write-ahead log, unless another process is reading
// there.
func (s *Store) Purge(ctx context.Context, id session.ID) error {
	err := s.change(ctx, id, true, func(c *sqlx.Conn, n int64) error {
		if err := c.Run("DELETE FROM records WHERE pos > $1 AND pos <= $2", pos(n, 0), pos(n, maxSeq)); err != nil {
			return err
		}
		return c.Run(sqlstore.DropSession, n)
	})
	if err != nil {
		return err
	}
	return s.wrap(s.queue.put(ctx, &request{do: s.writer.shrink}))
}

// change calls f for the log id, which must be in the trash if trashed and must
// not be otherwise. On a full disk it uses the space of the reserve.
func (s *Store) change(ctx context.Context, id session.ID, trashed bool, f func(c *sqlx.Conn, n int64) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	w := &s.writer
	do := func() error {
		var absent error
		err := w.alone(func() error {
			absent = nil
			n, in, err := sessionRow(w.c, id)
			if err != nil {
				return err
			}
			if n == 0 || in.Trashed.IsZero() == trashed {
				absent = session.NotFound("there is no session %q", id)
				return nil
			}
			w.book.drop(id)
			return f(w.c, n)
		})
		return cmp.Or(err, absent)
	}
	return s.wrap(s.queue.put(ctx, &request{do: func() error {
		err := do()
		if s.full(err) && os.Remove(s.reserve()) == nil {
			err = do()
			s.keepReserve()
		}
		return err
	}}))
}

// writer is the one connection that writes. The leader of the queue uses it.
type writer struct {
	s       *Store
	c       *sqlx.Conn // nil until the first write
	unnamed bool       // c has written nothing: the names of its files may not be durable
	version int64      // data_version when book was last valid
	book    book
	wal     int // pages in the write-ahead log
	due     int // pages at which it is checkpointed
}

// room returns the pages at which the write-ahead log is checkpointed: 8 MB, so that
// a page that changes often is copied once for many versions; half of it while
// there is no reserve, which may be for want of space.
func (w *writer) room() int {
	if !w.s.keepReserve() {
		return 1000
	}
	return 2000
}

// serve implements queue.serve.
func (w *writer) serve(ctx context.Context, take func() []*request) error {
	// Close opens no connection for a store that never wrote.
	if w.c != nil || !w.s.closing.Load() {
		if err := w.begin(ctx); err != nil && !(w.s.closing.Load() && errors.Is(err, session.ErrMoved)) {
			return err
		}
	}
	w.serveAll(take())
	return nil
}

func (w *writer) serveAll(reqs []*request) {
	var appends, others []*request
	for _, r := range reqs {
		if r.do != nil {
			others = append(others, r)
		} else {
			appends = append(appends, r)
		}
	}
	if len(appends) > 0 {
		w.appendAll(appends)
		w.s.tell()
	}
	for _, r := range others {
		r.err = r.do()
	}
	if w.c != nil && !w.c.GetAutocommit() { // nothing was written
		_ = w.commit()
	}
}

// open opens the connection if there is none.
func (w *writer) open() error {
	if w.c != nil {
		return nil
	}
	if err := w.s.places.Check(); err != nil {
		return err
	}
	// With secure_delete no page keeps a copy of what Purge removes. Foreign
	// keys would cost a query for each record; append ensures the session.
	c, err := w.s.dial(sqlite3.OPEN_READWRITE, "PRAGMA foreign_keys = OFF; PRAGMA secure_delete = ON; "+pragmas+"; PRAGMA cache_size = -8000")
	if err != nil {
		return foreign(w.s.path, err)
	}
	c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error { w.wal = pages; return nil })
	w.c, w.version, w.due, w.unnamed = c, -1, w.room(), true
	return nil
}

// begin starts a transaction. It waits for other processes as long as ctx
// allows, and forgets the book if another process has written.
func (w *writer) begin(ctx context.Context) error {
	if err := w.open(); err != nil {
		return err
	}
	w.c.SetInterrupt(ctx)
	err := w.c.Run("BEGIN IMMEDIATE")
	w.c.SetInterrupt(context.Background())
	if err != nil {
		return err
	}
	v, err := w.c.Int("PRAGMA data_version")
	if err == nil {
		err = w.s.places.Check()
	}
	if err == nil && w.unnamed {
		err = w.s.named()
		w.unnamed = err != nil
	}
	if err != nil {
		return w.rollback(err)
	}
	if v != w.version {
		w.book.forget()
		w.version = v
	}
	return nil
}

// rollback ends the transaction, forgets the book and returns err.
func (w *writer) rollback(err error) error {
	w.book.forget()
	if !w.c.GetAutocommit() {
		err = errors.Join(err, w.c.Run("ROLLBACK"))
	}
	return err
}

// commit ends the transaction. If the files were moved meanwhile, the outcome is
// an error: nobody can reach what was written.
func (w *writer) commit() error {
	err := w.c.Run("COMMIT")
	if err == nil {
		err = w.s.places.Check()
	}
	if err != nil {
		return w.rollback(err)
	}
	w.s.rescued.forget()
	return nil
}

// alone calls f in a transaction. On a full disk it shrinks the write-ahead log
// and tries again.
func (w *writer) alone(f func() error) error {
	err := w.try(f)
	if !w.s.full(err) || w.c == nil {
		return err
	}
	if e := w.shrink(); e != nil {
		return errors.Join(err, e)
	}
	return w.try(f)
}

func (w *writer) try(f func() error) error {
	if w.c == nil || w.c.GetAutocommit() {
		if err := w.begin(context.Background()); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return w.rollback(err)
	}
	return w.commit()
}

// appendAll performs reqs in the current transaction and commits it. If that
// fails, it tries each request in a separate transaction, so that one cannot
// fail the others.
func (w *writer) appendAll(reqs []*request) {
	err := w.alone(func() error { return w.append(reqs) })
	if err == nil {
		return
	}
	for _, r := range reqs {
		r.err = err
		if len(reqs) > 1 {
			r.err = nil
			if err := w.alone(func() error { return w.append([]*request{r}) }); err != nil {
				r.err = err
			}
		}
	}
}

// append writes reqs in order and sets the err of those that are refused. It
// returns errors of the database or the disk, which concern all.
func (w *writer) append(reqs []*request) error {
	for _, r := range reqs {
		log, err := w.book.plan(w, r.id, r.recs)
		var e *sqlite3.Error
		if errors.As(err, &e) || err != nil && w.c.GetAutocommit() {
			return err
		}
		if r.err = err; err != nil || len(r.lines) == 0 {
			continue
		}
		if err := w.save(log); err != nil {
			return err
		}
		if err := w.insert(log.N, r.lines); err != nil {
			return err
		}
	}
	return nil
}

// save writes the row of log.
func (w *writer) save(log *sqlstore.End) (err error) {
	switch {
	case log.N == 0:
		log.N, err = insertSession(w.c, log.Info)
	case log.Unusual:
		err = w.c.Run(sqlstore.RewriteSession, append(sqlstore.Values(log.Info), log.N)...)
	default:
		err = w.c.Run(sqlstore.UpdateSession, append(sqlstore.Usual(log.Info), log.N)...)
	}
	return err
}

// insertSession writes the row of a new session and returns its number.
func insertSession(c *sqlx.Conn, in session.Info) (int64, error) {
	err := c.Run(sqlstore.InsertSession, sqlstore.Values(in)...)
	return c.LastInsertRowID(), err
}

const insertRecord = " INTO records (pos, id, parent, type, time, data, crc32c) VALUES ($1, $2, $3, $4, $5, $6, $7)"

// rowsAtOnce is how many records one statement inserts at most: SQLite then
// finds the place of most of them without a search.
const rowsAtOnce = 16

// insertRows is insertRecord for rowsAtOnce records. Those that were inserted
// before one that cannot be are rolled back with the transaction: nothing has to
// be kept for the statement's own rollback.
var insertRows = "INSERT OR FAIL" + insertRecord + strings.Repeat(", (?, ?, ?, ?, ?, ?, ?)", rowsAtOnce-1)

// insert writes records of session n.
func (w *writer) insert(n int64, lines []sqlstore.Line) error {
	args := make([]any, 0, 7*rowsAtOnce)
	for len(lines) > 0 {
		sql, rows := "INSERT"+insertRecord, lines[:1]
		if few := lines[:min(len(lines), rowsAtOnce)]; len(few) == rowsAtOnce && small(few) {
			sql, rows = insertRows, few
		}
		lines = lines[len(rows):]
		args = args[:0]
		for _, l := range rows {
			args = append(args, pos(n, int64(l.Seq)), l.ID, l.Parent, l.Type, l.Time, l.Data, l.Sum)
		}
		err := w.c.Run(sql, args...)
		if errors.Is(err, sqlite3.CONSTRAINT_PRIMARYKEY) || errors.Is(err, sqlite3.CONSTRAINT_ROWID) {
			return fmt.Errorf("session %d has record %d already, or one after it: its row must be rebuilt: %w", n, rows[0].Seq, errors.Join(err, session.ErrStale))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// small reports whether lines are short: SQLite has a copy of all that one
// statement inserts.
func small(lines []sqlstore.Line) bool {
	size := 0
	for _, l := range lines {
		size += len(l.Data)
	}
	return size < 64<<10
}

// after implements queue.after.
func (w *writer) after() {
	if w.c == nil {
		return
	}
	if w.wal >= w.due && w.s.places.Check() == nil {
		// If it fails, the log keeps its pages and is copied later.
		total, copied, _ := w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		w.wal, w.due = 0, w.room()
		if copied < total { // a reader needs the rest: the log keeps growing
			w.due += total
		}
	}
	if w.c.Large {
		w.hangUp()
	}
}

// hangUp closes the connection; the next write opens another.
func (w *writer) hangUp() error {
	c := w.c
	w.c = nil
	w.book.forget()
	if c == nil {
		return nil
	}
	return c.Close()
}

// sessionRow returns the number of a session, 0 if there is none, and the Info
// in its row.
func sessionRow(c *sqlx.Conn, id session.ID) (n int64, in session.Info, err error) {
	err = c.Each(func(r sqlx.Row) error { n, in = sqlstore.Scan(r); return nil }, sqlstore.SelectSession, string(id))
	return n, in, err
}

// session implements tx.
func (w *writer) session(id session.ID) (n int64, in session.Info, err error) {
	n, in, err = sessionRow(w.c, id)
	if err != nil || n == 0 {
		return n, in, err
	}
	// A record must not be accepted if its place is taken.
	end, err := last(w.c, n)
	switch {
	case err == nil && w.c.GetAutocommit():
		// SQLite has rolled back because a page could not be read.
		err = fmt.Errorf("the end of session %q: %w", id, sqlite3.IOERR_READ)
	case err == nil && end > in.Last:
		err = sqlstore.StaleRow(id, end, in.Last)
	}
	return n, in, err
}

// Find implements sqlstore.Log.
func (w *writer) Find(n int64, record string) (session.Seq, error) {
	at, err := w.c.Int("SELECT min(pos) FROM records WHERE session = $1 AND id = $2", n, record)
	return session.Seq(at & maxSeq), err
}

// top implements tx.
func (w *writer) top(n int64) (string, error) {
	return w.c.Text("SELECT max(id) FROM records WHERE session = $1", n)
}

// Records implements sqlstore.Log.
func (w *writer) Records(n int64, after session.Seq) iter.Seq2[session.Record, error] {
	return (&piece{file: w.s.path, n: n, at: after, good: after}).records(w.c)
}
