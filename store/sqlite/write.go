package sqlite

import (
	"context"
	"encoding/binary"
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
	lines, err := sqlstore.Encode(recs)
	if err != nil {
		return err
	}
	r := &sqlstore.Request{ID: id, Lines: lines, Recs: make([]session.Record, len(lines))}
	for i, l := range lines {
		r.Recs[i] = l.Record
	}
	return s.wrap(s.queue.Put(ctx, r))
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
		return w.alone(func() error {
			if err := w.sort(nil); err != nil {
				return err
			}
			n, in, err := w.Session(id)
			if err != nil {
				return err
			}
			if n == 0 || in.Trashed.IsZero() == trashed {
				return fmt.Errorf("session %q: %w", id, session.ErrNotFound)
			}
			w.book.Drop(id)
			return f(w.c, n)
		})
	}}))
}

// writer is the one connection that writes. Whoever leads the queue uses it.
type writer struct {
	s       *Store
	c       *conn // nil until something is to be written
	version int64 // of the data, as book and inbox know it
	book    sqlstore.Book
	inbox   []planned // what is in the table inbox, if version holds
	pending int       // records in it
	size    int       // bytes in it
	many    int       // how many appends at once are a crowd
	crowd   bool      // there was one in this round
	wal     int       // pages in the write-ahead log

	checkpointing atomic.Bool
	checkpointed  atomic.Bool
	settling      atomic.Bool
	crowded       atomic.Int64 // when many wrote together last, in nanoseconds
}

// planned is an append whose outcome is known and not yet written.
type planned struct {
	log   *sqlstore.Log
	lines []sqlstore.Line
}

// When the inbox is used. Sorting one record into its place dirties a page or
// two, which is most of the work of a transaction with many sessions in it. A
// crowd's records go into one row instead; later those of each session are
// sorted in together.
const (
	many       = 8        // appends in one transaction, unless a test says otherwise
	maxRow     = 1 << 20  // bytes in one row
	maxPending = 16 << 10 // records in the inbox
	maxInbox   = 16 << 20 // bytes in the inbox
	quiet      = 10 * 1e6 // nanoseconds after which a crowd is gone
)

// Pages in the write-ahead log from which it is checkpointed: beside the
// writer, and, if that does not keep up, by the writer.
const (
	checkpointBeside = 2000
	checkpointNow    = 16000
)

// serve implements sqlstore.Queue.Serve.
func (w *writer) serve(ctx context.Context, take func() []*sqlstore.Request) error {
	if w.c == nil && w.s.closing.Load() {
		// Closing what was never written to shall cost nothing.
		w.serveAll(take())
		return nil
	}
	if err := w.begin(ctx); err != nil {
		return err
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
	if w.c != nil && !w.c.GetAutocommit() { // nothing was to be done
		w.rollback(nil)
	}
}

// open opens the connection if there is none.
func (w *writer) open() error {
	if w.c != nil {
		return nil
	}
	// Without secure_delete a page that is split keeps a copy of what it gave
	// away, which no Purge finds.
	c, err := w.s.dial(sqlite3.OPEN_READWRITE, "PRAGMA secure_delete = FAST; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 33554432; PRAGMA cache_size = -8000")
	if err != nil {
		return foreign(w.s.path, err)
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
		if err = w.sortUnknown(); err == nil {
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
	w.inbox, w.pending, w.size = nil, 0, 0
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
	if w.cramped() {
		return sqlite3.FULL
	}
	plans := make([]planned, 0, len(reqs))
	for _, r := range reqs {
		var err error
		plans, err = w.plan(plans, r.ID, r.Recs, r.Lines)
		var e *sqlite3.Error
		if errors.As(err, &e) {
			return err
		}
		r.Err = err
	}
	if len(plans) == 0 {
		return nil
	}
	size, records := 0, 0
	for _, p := range plans {
		records += len(p.lines)
		for _, l := range p.lines {
			size += len(l.Data)
		}
	}
	w.crowd = w.crowd || len(plans) >= w.many
	if len(plans) < w.many && len(w.inbox) == 0 || size > maxRow || w.pending+records > maxPending || w.size+size > maxInbox {
		return w.sort(plans)
	}
	if err := w.c.exec("INSERT INTO inbox (data) VALUES ($1)", frames(plans, size)); err != nil {
		return err
	}
	w.inbox = append(w.inbox, plans...)
	w.pending, w.size = w.pending+records, w.size+size
	return nil
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
	if err != nil || len(lines) == 0 {
		return plans, err
	}
	return append(plans, planned{log, lines}), nil
}

// sort writes what is in the inbox, and then plans, into records and
// sessions, session by session.
func (w *writer) sort(plans []planned) error {
	all := plans
	if len(w.inbox) > 0 {
		all = append(w.inbox, plans...)
		if err := w.c.exec("DELETE FROM inbox"); err != nil {
			return err
		}
	}
	var logs []*sqlstore.Log
	lines := make(map[*sqlstore.Log][]planned, len(all))
	for _, p := range all {
		if _, ok := lines[p.log]; !ok {
			logs = append(logs, p.log)
		}
		lines[p.log] = append(lines[p.log], p)
	}
	for _, log := range logs {
		if err := w.save(log, lines[log]); err != nil {
			return err
		}
		for _, p := range lines[log] {
			for _, l := range p.lines {
				if err := w.insert(log.N, l); err != nil {
					return err
				}
			}
		}
		log.Saved()
	}
	w.inbox, w.pending, w.size = nil, 0, 0
	return nil
}

// save writes the row of log, to which plans are added. Its key changes with a
// record that says so, and hardly ever.
func (w *writer) save(log *sqlstore.Log, plans []planned) error {
	for _, p := range plans {
		for _, l := range p.lines {
			if _, ok := l.Record.Body.(session.Moved); ok && log.N != 0 {
				return w.c.exec(sqlstore.RewriteSession, append(sqlstore.Values(log.Info), log.N)...)
			}
		}
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

// insert writes one record: every record that gets into the database passes
// here, so that a projection of records has its place here.
func (w *writer) insert(n int64, l sqlstore.Line) error {
	r := l.Record
	err := w.c.exec("INSERT INTO records (pos, id, parent, type, time, data) VALUES ($1, $2, $3, $4, $5, $6)",
		pos(n, int64(r.Seq)), r.ID, r.Parent, l.Type, sqlstore.Stamp(r.Time), l.Data)
	if errors.Is(err, sqlite3.CONSTRAINT_PRIMARYKEY) || errors.Is(err, sqlite3.CONSTRAINT_ROWID) {
		return fmt.Errorf("session %d has a record %d already, its row must be rebuilt: %w", n, r.Seq, errors.Join(err, session.ErrStale))
	}
	return err
}

// frames returns the row of the inbox that holds plans: for each line the
// session, the position and the bytes.
func frames(plans []planned, size int) []byte {
	b := make([]byte, 0, size+64*len(plans))
	for _, p := range plans {
		for _, l := range p.lines {
			b = binary.AppendUvarint(b, uint64(len(p.log.Info.ID)))
			b = append(b, p.log.Info.ID...)
			b = binary.AppendUvarint(b, uint64(l.Record.Seq))
			b = binary.AppendUvarint(b, uint64(len(l.Data)))
			b = append(b, l.Data...)
		}
	}
	return b
}

// sortUnknown sorts what another process left in the inbox.
func (w *writer) sortUnknown() error {
	var rows [][]byte
	err := w.c.each(func(r row) error {
		rows = append(rows, append([]byte(nil), r.bytes(0)...))
		return nil
	}, "SELECT data FROM inbox ORDER BY n")
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := w.c.exec("DELETE FROM inbox"); err != nil {
		return err
	}
	var plans []planned
	for _, b := range rows {
		for len(b) > 0 {
			var id, line []byte
			var seq uint64
			var ok bool
			if id, b, ok = field(b); ok {
				if seq, b, ok = number(b); ok {
					line, b, ok = field(b)
				}
			}
			if !ok {
				return fmt.Errorf("sqlite: %s: the inbox holds %d bytes that cannot be read", w.s.path, len(b))
			}
			rec, _ := sqlstore.Decode(w.s.path, session.Seq(seq), line, func() (id, parent, typ string) { return "", "", "" })
			recs := []session.Record{rec}
			if plans, err = w.plan(plans, session.ID(id), recs, []sqlstore.Line{sqlstore.NewLine(rec, line)}); err != nil {
				return err
			}
		}
	}
	return w.sort(plans)
}

func number(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, b, false
	}
	return v, b[n:], true
}

func field(b []byte) (f, rest []byte, ok bool) {
	n, rest, ok := number(b)
	if !ok || n > uint64(len(rest)) {
		return nil, b, false
	}
	return rest[:n], rest[n:], true
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
	if w.crowd {
		w.crowd = false
		w.crowded.Store(time.Now().UnixNano())
	}
	if len(w.inbox) > 0 && w.settling.CompareAndSwap(false, true) {
		go w.settleWhenQuiet()
	}
	switch {
	case w.checkpointed.CompareAndSwap(true, false), w.wal >= checkpointNow:
		// What was written in the meantime is little. With it done the log
		// begins anew, and a file that does not grow is synced sooner.
		w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		w.wal = 0
	case w.wal >= checkpointBeside && w.checkpointing.CompareAndSwap(false, true):
		go w.checkpoint()
	}
	if w.c.large {
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
	// learns why.
	_ = w.s.queue.Put(context.Background(), &sqlstore.Request{Do: w.settle})
}

// checkpoint copies the write-ahead log into the database, beside the writer.
// It may fail: the log keeps what it has, and is copied later.
func (w *writer) checkpoint() {
	_ = w.s.lend(context.Background(), func(c *conn) error {
		_, _, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		return err
	})
	w.checkpointed.Store(true)
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

// Session implements sqlstore.Tx.
func (w *writer) Session(id session.ID) (n int64, in session.Info, err error) {
	err = w.c.each(func(r row) error { n, in = sqlstore.Scan(r); return nil }, sqlstore.SelectSession, string(id))
	return n, in, err
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
