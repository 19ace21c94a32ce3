package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

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
	return s.wrap(s.queue.Put(ctx, &sqlstore.Request{ID: id, Recs: recs, Lines: lines}))
}

func (s *Store) writable() error {
	if s.denied != nil {
		return fmt.Errorf("sqlite: %s can be read and not written: %w", s.path, errors.Unwrap(s.denied))
	}
	if s.readOnly {
		return fmt.Errorf("sqlite: %s is open for reading only", s.path)
	}
	return nil
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, id session.ID) error {
	return s.change(ctx, id, false, func(c *conn, _ int64) error {
		// A search index in this database drops its words by a trigger.
		if err := c.Exec("PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		defer c.Exec("PRAGMA secure_delete = FAST")
		return c.exec(sqlstore.TrashSession, sqlstore.Stamp(s.clock.Now()), string(id))
	})
}

// Restore implements session.Store.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	return s.change(ctx, id, true, func(c *conn, _ int64) error {
		return c.exec(sqlstore.TrashSession, nil, string(id))
	})
}

// Purge implements session.Store. What was purged is overwritten in the
// database file, too, and is no longer in the write-ahead log, unless another
// process is just reading there.
func (s *Store) Purge(ctx context.Context, id session.ID) error {
	all := func() error {
		return s.change(ctx, id, true, func(c *conn, n int64) error {
			if err := s.writer.sort(nil); err != nil { // it must not come back from there
				return err
			}
			if err := c.Exec("PRAGMA secure_delete = ON"); err != nil {
				return err
			}
			defer c.Exec("PRAGMA secure_delete = FAST")
			if err := c.exec("DELETE FROM records WHERE pos > $1 AND pos <= $2", pos(n, 0), pos(n, maxSeq)); err != nil {
				return err
			}
			return c.exec(sqlstore.DropSession, n)
		})
	}
	err := all()
	if s.full(err) {
		if err = s.purgeByBits(ctx, id); err == nil {
			err = all()
		}
	}
	if err != nil {
		return err
	}
	return s.wrap(s.queue.Put(ctx, &sqlstore.Request{Do: func() error { _, err := s.writer.shrink(); return err }}))
}

// change does f to the log id, which must be in the trash or not.
func (s *Store) change(ctx context.Context, id session.ID, trashed bool, f func(c *conn, n int64) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	w := &s.writer
	return s.wrap(s.queue.Put(ctx, &sqlstore.Request{Do: func() error {
		var absent error
		err := w.alone(func() error {
			absent = nil
			if err := w.sortOne(id); err != nil {
				return err
			}
			n, in, err := w.row(id)
			if err != nil {
				return err
			}
			if n == 0 || in.Trashed.IsZero() == trashed {
				absent = fmt.Errorf("session %q: %w", id, session.ErrNotFound)
				return nil
			}
			w.book.Drop(id)
			return f(w.c, n)
		})
		return cmp.Or(err, absent)
	}}))
}

// writer is the one connection that writes. Whoever leads the queue uses it.
type writer struct {
	s       *Store
	c       *conn // nil until something is to be written
	version int64 // of the data, as book and inbox know it
	book    sqlstore.Book
	inbox   inbox // what is in the table inbox, if version holds
	crowd   bool  // there was one in this round
	wal     int   // pages in the write-ahead log
	listed  listed
	frames  []byte // for one row of the inbox
	sorting bool   // what another process left: rows may be behind their records

	measures measures

	mending       atomic.Bool // the inbox stays as it is
	checkpointing atomic.Bool
	checkpointed  atomic.Int64 // pages of the log that were copied beside the writer
	settling      atomic.Bool
	crowded       atomic.Int64 // when many wrote together last, in nanoseconds
}

// planned is an append whose outcome is known and not yet written.
type planned struct {
	log   *sqlstore.Log
	lines []sqlstore.Line
}

// Pages in the write-ahead log from which it is checkpointed: beside the
// writer, and, if that does not keep up, by the writer, which also does the
// last of it; a crowd waits for that less often.
const (
	checkpointBeside = 2000
	checkpointLast   = 400
	checkpointCrowd  = 8000
	checkpointNow    = 16000
)

// serve implements sqlstore.Queue.Serve.
func (w *writer) serve(ctx context.Context, take func() []*sqlstore.Request) error {
	if w.c == nil && w.s.closing.Load() {
		// Closing what was never written to shall cost nothing.
		w.serveAll(take())
		return nil
	}
	err := w.begin(ctx)
	if err != nil && w.s.full(err) && w.c != nil {
		if done, e := w.shrink(); done && e == nil {
			err = w.begin(ctx)
		}
	}
	if err != nil {
		return err
	}
	// Those who were served last come again while this is done.
	if err := w.sortSome(); err != nil {
		err = w.rollback(err)
		if w.s.full(err) {
			_, e := w.shrink()
			err = errors.Join(err, e)
		}
		if e := w.begin(ctx); e != nil {
			return errors.Join(err, e)
		}
	}
	w.serveAll(take())
	return nil
}

func (w *writer) serveAll(reqs []*sqlstore.Request) {
	var appends, others []*sqlstore.Request
	for _, r := range reqs {
		if r.Do != nil {
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
		r.Err = r.Do()
	}
	if w.c != nil && !w.c.GetAutocommit() { // nothing else was to be done
		_ = w.commit() // if it fails, the inbox keeps what it has
	}
}

// sound returns an error if the transaction began while the store was mended:
// then what is in the inbox is not known.
func (w *writer) sound() error {
	if w.version == -1 {
		return fmt.Errorf("sqlite: %s: %w", w.s.path, errMending)
	}
	return nil
}

var errMending = errors.New("the file is being repaired: try again")

// open opens the connection if there is none.
func (w *writer) open() error {
	if w.c != nil {
		return nil
	}
	// Without secure_delete a page that is split keeps a copy of what it gave
	// away, which no Purge finds. That a record has a session is seen to here;
	// to ask for each record would take a fifth of the time.
	c, err := w.s.dial(sqlite3.OPEN_READWRITE, "PRAGMA foreign_keys = OFF; PRAGMA secure_delete = FAST; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 33554432; PRAGMA cache_size = -8000")
	if err != nil {
		return foreign(w.s.path, err)
	}
	if err := w.listed.register(c); err != nil {
		c.close()
		return err
	}
	c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error { w.wal = pages; return nil })
	w.c, w.version = c, -1
	return nil
}

// begin begins a transaction; while others write it waits, as long as ctx
// allows. What another process wrote since the last one makes everything
// remembered worthless.
func (w *writer) begin(ctx context.Context) error {
	if err := w.open(); err != nil {
		return err
	}
	w.c.SetInterrupt(ctx)
	err := w.c.exec("BEGIN IMMEDIATE")
	w.c.SetInterrupt(context.Background())
	if err != nil {
		return err
	}
	v, err := w.c.int("PRAGMA data_version")
	if err == nil && v != w.version {
		w.forget()
		if w.mending.Load() {
			w.version = -1
		} else if err = w.sortUnknown(); err == nil {
			w.version = v
		}
	}
	if err != nil {
		return w.rollback(err)
	}
	return nil
}

func (w *writer) forget() {
	w.book.Forget()
	w.inbox = inbox{}
}

// rollback ends the transaction and returns err. The database no longer has
// what is remembered of it.
func (w *writer) rollback(err error) error {
	w.forget()
	w.version = -1
	if !w.c.GetAutocommit() {
		err = errors.Join(err, w.c.exec("ROLLBACK"))
	}
	return err
}

// commit ends the transaction.
func (w *writer) commit() error {
	if err := w.c.exec("COMMIT"); err != nil {
		return w.rollback(err)
	}
	return nil
}

// alone does f in a transaction. If the disk is full, it tries again with what
// the write-ahead log gives back.
func (w *writer) alone(f func() error) error {
	err := w.try(f)
	if !w.s.full(err) || w.c == nil {
		return err
	}
	if done, e := w.shrink(); !done || e != nil {
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

// appendAll performs reqs in the transaction that has begun, and ends it. If
// the transaction fails, each is tried in one of its own, so that the one it
// failed for does not harm the others.
func (w *writer) appendAll(reqs []*sqlstore.Request) {
	err := w.alone(func() error { return w.append(reqs) })
	if err == nil {
		return
	}
	for _, r := range reqs {
		r.Err = err
		if len(reqs) > 1 {
			r.Err = nil
			if err := w.alone(func() error { return w.append([]*sqlstore.Request{r}) }); err != nil {
				r.Err = err
			}
		}
	}
}

// append plans reqs one after the other, sets the Err of those that are
// refused, and writes the others. An error is of the database or the disk, and
// of all.
func (w *writer) append(reqs []*sqlstore.Request) error {
	if err := w.sound(); err != nil {
		return err
	}
	if w.cramped(reqs) {
		return sqlite3.FULL
	}
	plans := make([]planned, 0, len(reqs))
	for _, r := range reqs {
		var err error
		plans, err = w.plan(plans, r.ID, r.Recs, r.Lines)
		var e *sqlite3.Error
		if errors.As(err, &e) || err != nil && w.c.GetAutocommit() {
			return err
		}
		r.Err = err
	}
	if len(plans) == 0 {
		return nil
	}
	w.crowd = w.crowd || len(plans) >= w.measures.many
	records, size := weigh(plans)
	switch {
	case len(plans) < w.measures.many && w.inbox.empty(), !w.inbox.takes(records, size, w.measures.max):
		return w.sort(plans)
	case size > maxRow:
		return w.place(plans)
	}
	return w.put(plans)
}

// plan returns plans with one more. If that takes the whole log, all that is
// planned so far is written first.
func (w *writer) plan(plans []planned, id session.ID, recs []session.Record, lines []sqlstore.Line) ([]planned, error) {
	log, err := w.book.Plan(w, id, recs)
	if err == sqlstore.ErrUnsaved {
		if err := w.sort(plans); err != nil {
			return plans, err
		}
		plans = plans[:0]
		log, err = w.book.Plan(w, id, recs)
	}
	if err != nil || len(recs) == 0 {
		return plans, err
	}
	return append(plans, planned{log, lines}), nil
}

// save writes the row of log. Its key changes with a record that says so, and
// hardly ever.
func (w *writer) save(log *sqlstore.Log, moved bool) error {
	if moved && log.N != 0 {
		return w.c.exec(sqlstore.RewriteSession, append(sqlstore.Values(log.Info), log.N)...)
	}
	if log.N != 0 {
		return w.c.exec(sqlstore.UpdateSession, append(sqlstore.Growing(log.Info), log.N)...)
	}
	if err := w.c.exec(sqlstore.InsertSession, sqlstore.Values(log.Info)...); err != nil {
		return err
	}
	log.N = w.c.LastInsertRowID()
	return nil
}

// insert writes records of session n: every record that gets into the database
// passes here, so that a projection of records has its place here.
func (w *writer) insert(n int64, lines []sqlstore.Line) error {
	err := w.listed.insert(w.c, n, lines)
	if errors.Is(err, sqlite3.CONSTRAINT_PRIMARYKEY) || errors.Is(err, sqlite3.CONSTRAINT_ROWID) {
		return fmt.Errorf("session %d has one of the records %d to %d already, its row must be rebuilt: %w",
			n, lines[0].Seq, lines[len(lines)-1].Seq, errors.Join(err, session.ErrStale))
	}
	return err
}

// settle sorts what is in the inbox.
func (w *writer) settle() error {
	return w.alone(func() error { return w.sort(nil) })
}

// after implements sqlstore.Queue.After.
func (w *writer) after() {
	if w.c == nil {
		return
	}
	now := time.Now().UnixNano()
	if w.crowd {
		w.crowd = false
		w.crowded.Store(now)
	}
	crowd := now < w.crowded.Load()+quiet
	if !w.inbox.empty() && w.settling.CompareAndSwap(false, true) {
		go w.settleWhenQuiet()
	}
	copied, due := int(w.checkpointed.Load()), checkpointBeside
	switch {
	case copied > 0:
		due = checkpointLast
	case crowd:
		due = checkpointCrowd / 2
	}
	switch {
	case copied > 0 && w.wal-copied < due && (!crowd || w.wal >= checkpointCrowd), w.wal >= checkpointNow:
		// With this done the log begins anew, and a file that does not grow is
		// synced sooner.
		w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		w.wal = 0
		w.checkpointed.Store(0)
	case w.wal-copied >= due && w.checkpointing.CompareAndSwap(false, true):
		go w.checkpoint()
	}
	if w.c.large && w.inbox.empty() { // with it, what is in the inbox would be forgotten
		w.hangUp()
	}
}

// hangUp closes the connection; the next one who writes opens another.
func (w *writer) hangUp() error {
	c := w.c
	w.c = nil
	w.forget()
	if c == nil {
		return nil
	}
	return c.close()
}

// settleWhenQuiet settles the inbox once no crowd has used it for a while.
func (w *writer) settleWhenQuiet() {
	for {
		rest := w.crowded.Load() + quiet - time.Now().UnixNano()
		if rest <= 0 {
			break
		}
		select {
		case <-w.s.closed:
			return
		case <-time.After(time.Duration(rest)):
		}
	}
	w.settling.Store(false)
	// If it fails, the inbox keeps what it has, and the next one who reads
	// learns why. If the crowd is there again, it is left to the next time.
	_ = w.s.settle(context.Background(), func(up *upTo) (bool, error) {
		if w.crowd || w.crowded.Load()+quiet > time.Now().UnixNano() {
			return false, nil
		}
		return w.settleUpTo(up)
	})
}

// checkpoint copies the write-ahead log into the database, beside the writer.
// It may fail: the log keeps what it has, and is copied later.
func (w *writer) checkpoint() {
	_ = w.s.lend(context.Background(), func(c *conn) error {
		_, copied, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		w.checkpointed.Store(int64(max(copied, 0)))
		return err
	})
	w.checkpointing.Store(false)
}

// shut settles the inbox and closes the connection.
func (w *writer) shut() error {
	if w.c == nil {
		return nil
	}
	err := w.settle()
	return errors.Join(err, w.hangUp())
}

// row returns the number of a session and what its row says.
func (w *writer) row(id session.ID) (n int64, in session.Info, err error) {
	err = w.c.each(func(r row) error { n, in = sqlstore.Scan(r); return nil }, sqlstore.SelectSession, string(id))
	return n, in, err
}

// Session implements sqlstore.Tx.
func (w *writer) Session(id session.ID) (n int64, in session.Info, err error) {
	n, in, err = w.row(id)
	if err != nil || n == 0 || w.sorting {
		return n, in, err
	}
	// Nothing may be promised that will not find its place free.
	end, err := w.end(n)
	if err == nil && end > in.Last {
		err = fmt.Errorf("session %q: its log ends at record %d, its row says %d and must be rebuilt: %w", id, end, in.Last, session.ErrStale)
	}
	return n, in, err
}

// end is last in a transaction that writes: what SQLite has rolled back because
// it could not be read must not go on.
func (w *writer) end(n int64) (session.Seq, error) {
	seq, err := last(w.c, n)
	if err == nil && w.c.GetAutocommit() {
		err = fmt.Errorf("the end of session %d: %w", n, sqlite3.IOERR_READ)
	}
	return seq, err
}

// Find implements sqlstore.Tx.
func (w *writer) Find(n int64, record string) (session.Seq, error) {
	at, err := w.c.int("SELECT min(pos) FROM records WHERE session = $1 AND id = $2", n, record)
	return session.Seq(at & maxSeq), err
}

// Top implements sqlstore.Tx.
func (w *writer) Top(n int64) (string, error) {
	return w.c.text("SELECT max(id) FROM records WHERE session = $1", n)
}

// Records implements sqlstore.Tx.
func (w *writer) Records(n int64) iter.Seq2[session.Record, error] { return records(w.c, w.s.path, n) }

// records yields the log n, and damage together with what holds its place.
func records(c *conn, path string, n int64) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		p := piece{file: path, n: n}
		var err error
		if p.last, err = last(c, n); err != nil {
			yield(session.Record{}, err)
			return
		}
		for !p.done {
			if err := p.read(c); err != nil {
				yield(session.Record{}, err)
				return
			}
			for _, e := range p.entries {
				if !yield(e.rec, e.err) {
					return
				}
			}
		}
	}
}
