package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// inbox is what is in the table of that name. Sorting one record into its
// place dirties a page or two, which is most of the work of a transaction with
// many sessions in it. A crowd's records go into one row instead; later those
// of each session are sorted in together: all when the crowd has gone; those of
// one session when somebody reads it; and if the crowd stays, those of a session
// or two in each of its transactions, so that nobody waits long.
//
// A row is removed when all of it is sorted in, some rows at a time. What a
// killed process leaves there may hence be in its place already.
type inbox struct {
	shares  map[*sqlstore.Log]*share
	order   []*share // those that came first come first
	ripe    []*share // likewise
	pending int      // records that are not in their places
	size    int      // their bytes
	held    int      // bytes in all rows
	first   int64    // the first row, if there are rows
	last    int64    // the last one; 0: there is none
	lately  int      // records in it
	due     int      // records to be sorted in if the crowd stays
}

// share is what is in the inbox of one session.
type share struct {
	log   *sqlstore.Log // nil: all of it is in its place
	lines []sqlstore.Line
	size  int
	row   int64 // the first row with some of it
	ripe  bool
	saved bool // the row of its session is that of now
	moved bool // its session has another key
}

// measures say when the inbox is used, and how much is in it.
type measures struct {
	many   int    // appends in one transaction are a crowd
	ripe   amount // of one session is much
	stays  amount // that is not in its place: the crowd is one that stays
	most   amount // likewise: sessions with little are sorted in, too
	max    amount // likewise: all are
	atOnce int    // records are sorted in together, so that nobody waits long
}

// amount is reached with as many records, or as many bytes.
type amount struct{ records, bytes int }

func (a amount) reached(records, bytes int) bool { return records >= a.records || bytes >= a.bytes }

// usual is what is used outside of tests.
var usual = measures{
	many:   8,
	ripe:   amount{96, 64 << 10},
	stays:  amount{32 << 10, 16 << 20},
	most:   amount{48 << 10, 24 << 20},
	max:    amount{64 << 10, 32 << 20},
	atOnce: 512,
}

const (
	quiet   = 10 * 1e6 // nanoseconds after which a crowd is gone
	maxRow  = 1 << 20  // bytes in one row
	maxHeld = 64 << 20 // bytes in all rows, with those that are in their places already
)

// empty reports whether there are no rows.
func (b *inbox) empty() bool { return b.last == 0 }

// takes reports whether there is room for records of so many bytes.
func (b *inbox) takes(records, size int, max amount) bool {
	return !max.reached(b.pending+records, b.size+size) && b.held+size <= maxHeld
}

func weigh(plans []planned) (records, size int) {
	for _, p := range plans {
		records += len(p.lines)
		for _, l := range p.lines {
			size += len(l.Data)
		}
	}
	return records, size
}

// add notes plans, which are in row.
func (b *inbox) add(plans []planned, row int64, ripe amount) {
	if b.shares == nil {
		b.shares = map[*sqlstore.Log]*share{}
	}
	if b.last == 0 {
		b.first = row
	}
	b.last, b.lately = row, 0
	for _, p := range plans {
		sh := b.shares[p.log]
		if sh == nil {
			sh = &share{log: p.log, row: row}
			b.shares[p.log] = sh
			b.order = append(b.order, sh)
		}
		sh.lines, sh.saved = append(sh.lines, p.lines...), false
		for _, l := range p.lines {
			sh.moved = sh.moved || l.Moves
		}
		records, size := weigh([]planned{p})
		sh.size += size
		b.pending, b.size, b.lately = b.pending+records, b.size+size, b.lately+records
		if !sh.ripe && ripe.reached(len(sh.lines), sh.size) {
			sh.ripe = true
			b.ripe = append(b.ripe, sh)
		}
	}
}

// sorted notes that the first n lines of sh are in their places.
func (b *inbox) sorted(sh *share, n int) {
	_, size := weigh([]planned{{nil, sh.lines[:n]}})
	b.pending, b.size, sh.size = b.pending-n, b.size-size, sh.size-size
	clear(sh.lines[:n])
	sh.lines = sh.lines[n:]
	if len(sh.lines) == 0 {
		delete(b.shares, sh.log)
		sh.log.Saved()
		sh.log = nil
	}
}

// put writes plans into one row of the inbox.
func (w *writer) put(plans []planned) error {
	w.frames = frames(w.frames[:0], plans)
	if err := w.c.exec("INSERT INTO inbox (data) VALUES ($1)", w.frames); err != nil {
		return err
	}
	w.inbox.add(plans, w.c.LastInsertRowID(), w.measures.ripe)
	w.inbox.held += len(w.frames)
	return nil
}

// sortSome sorts in about as many records as came last, if the crowd stays.
func (w *writer) sortSome() error {
	b := &w.inbox
	b.due += b.lately + b.lately/8
	if b.due < w.measures.atOnce {
		return nil
	}
	for most := b.due; most > 0; {
		sh := b.next(w.measures)
		if sh == nil {
			break
		}
		n := min(most, len(sh.lines))
		most -= n
		if err := w.sortShare(sh, n); err != nil {
			return err
		}
	}
	b.due = 0
	return w.remove()
}

// next returns what is to be sorted in while the crowd stays, nil if nothing is.
func (b *inbox) next(m measures) *share {
	from := &b.ripe
	switch {
	case !m.stays.reached(b.pending, b.size):
		return nil
	case m.most.reached(b.pending, b.size):
		from = &b.order
	}
	for len(*from) > 0 {
		if sh := (*from)[0]; sh.log != nil {
			return sh
		}
		*from = (*from)[1:]
	}
	return nil
}

// sortOne sorts in what is there of the session id.
func (w *writer) sortOne(id session.ID) error {
	if err := w.sound(); err != nil {
		return err
	}
	if sh := w.inbox.shares[w.book.Get(id)]; sh != nil {
		return w.sortShare(sh, len(sh.lines))
	}
	return nil
}

// sortShare writes the first n lines of sh into their places, and the rest of
// the append that the last of them is of: who reads sees all of it or nothing.
// The row of their session says all that was planned: it is written with the
// last line, unless there is none.
func (w *writer) sortShare(sh *share, n int) error {
	for n > 0 && n < len(sh.lines) && !sh.lines[n-1].End {
		n++
	}
	if sh.log.N == 0 || !sh.saved && n == len(sh.lines) {
		if err := w.save(sh.log, sh.moved); err != nil {
			return err
		}
		sh.saved = true
	}
	if err := w.insert(sh.log.N, sh.lines[:n]); err != nil {
		return err
	}
	w.inbox.sorted(sh, n)
	return nil
}

// remove removes the rows that are in their places, all of them.
func (w *writer) remove() error {
	b := &w.inbox
	row := b.last
	left := b.order[:0]
	for _, sh := range b.order {
		if sh.log != nil {
			left = append(left, sh)
			row = min(row, sh.row-1)
		}
	}
	clear(b.order[len(left):])
	b.order = left
	if b.empty() || row < b.first {
		return nil
	}
	from := b.first
	if row == b.last {
		*b = inbox{}
	} else {
		b.held -= b.held / int(b.last-b.first+1) * int(row-b.first+1)
		b.first = row + 1
	}
	return w.wipe(from, row)
}

// wipe removes rows of the inbox, and overwrites where they were: a Purge does
// not find it there.
func (w *writer) wipe(from, to int64) error {
	if err := w.c.exec("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	err := w.c.exec("DELETE FROM inbox WHERE n >= $1 AND n <= $2", from, to)
	return errors.Join(err, w.c.exec("PRAGMA secure_delete = FAST"))
}

// cut leaves rest of a row.
func (w *writer) cut(n int64, rest []byte) error {
	if err := w.wipe(n, n); err != nil {
		return err
	}
	return w.c.exec("INSERT INTO inbox (n, data) VALUES ($1, $2)", n, rest)
}

// upTo is the row up to which the inbox is settled.
type upTo struct {
	row   int64
	known bool
}

// settleUpTo sorts in some of what is in the inbox up to a row, the last one
// when it is called first. It reports whether there is more.
func (w *writer) settleUpTo(up *upTo) (more bool, err error) {
	err = w.alone(func() error {
		b := &w.inbox
		if !up.known {
			*up = upTo{b.last, true}
		}
		left := w.measures.atOnce
		for _, sh := range b.order {
			if sh.log == nil {
				continue
			}
			if more = sh.row <= up.row && left == 0; more || sh.row > up.row {
				break
			}
			n := min(left, len(sh.lines))
			left -= n
			if err := w.sortShare(sh, n); err != nil {
				return err
			}
			if more = sh.log != nil; more {
				break
			}
		}
		return w.remove()
	})
	return more && err == nil, err
}

// place writes plans, and what is in the inbox of their sessions, into records
// and sessions.
func (w *writer) place(plans []planned) error {
	b := &w.inbox
	b.add(plans, b.last, w.measures.ripe)
	for _, p := range plans {
		if sh := b.shares[p.log]; sh != nil {
			if err := w.sortShare(sh, len(sh.lines)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sort writes what is in the inbox, and then plans, into records and
// sessions, session by session.
func (w *writer) sort(plans []planned) error {
	b := &w.inbox
	b.add(plans, b.last, w.measures.ripe)
	for _, sh := range b.order {
		if sh.log == nil {
			continue
		}
		if err := w.sortShare(sh, len(sh.lines)); err != nil {
			return err
		}
	}
	from, to := b.first, b.last
	*b = inbox{}
	if to == 0 {
		return nil
	}
	return w.wipe(from, to)
}

// frames appends to b the row of the inbox that holds plans: for each line the
// session, the position and the bytes.
func frames(b []byte, plans []planned) []byte {
	for _, p := range plans {
		for _, l := range p.lines {
			b = binary.AppendUvarint(b, uint64(len(p.log.Info.ID)))
			b = append(b, p.log.Info.ID...)
			b = binary.AppendUvarint(b, uint64(l.Seq))
			b = binary.AppendUvarint(b, uint64(len(l.Data)))
			b = append(b, l.Data...)
		}
	}
	return b
}

// sortUnknown sorts what another process left in the inbox, in a transaction
// for every few megabytes. A row that cannot be read to its end stays, for
// Check to tell of it.
func (w *writer) sortUnknown() error {
	w.sorting = true
	defer func() { w.sorting = false }()
	for at := int64(1); ; {
		next, err := w.sortSomeUnknown(at)
		if err != nil || next == 0 {
			return err
		}
		v, err := w.c.int("PRAGMA data_version")
		if err == nil {
			err = w.c.exec("COMMIT")
		}
		if err == nil {
			err = w.c.exec("BEGIN IMMEDIATE")
		}
		if err != nil {
			return err
		}
		at = next
		if now, err := w.c.int("PRAGMA data_version"); err != nil {
			return err
		} else if now != v { // somebody was faster
			w.forget()
			at = 1
		}
	}
}

// maxUnknown is how many bytes are sorted at once of what another process left.
const maxUnknown = 4 << 20

// sortSomeUnknown sorts the rows from a row on, and returns where to go on, 0 if
// there is no more.
func (w *writer) sortSomeUnknown(from int64) (next int64, err error) {
	u := unknown{w: w, logs: map[session.ID]*unknownLog{}}
	var rows []int64
	rests := map[int64][]byte{} // what cannot be read of a row
	size := 0
	err = w.c.each(func(r row) error {
		n, b := r.Int(0), bytes.Clone(r.bytes(1))
		size += len(b)
		all := len(b)
		for len(b) > 0 {
			f, rest, ok := frame(b)
			if !ok {
				break
			}
			if err := u.plan(f); err != nil {
				return err
			}
			b = rest
		}
		if len(b) == 0 {
			rows = append(rows, n)
		} else if len(b) < all {
			rests[n] = b
		}
		if size >= maxUnknown {
			next = n + 1
			return errStop
		}
		return nil
	}, "SELECT n, data FROM inbox WHERE n >= $1 ORDER BY n", from)
	if err = stopped(err); err == nil {
		err = w.sort(u.plans)
	}
	for id, l := range u.logs {
		if l.behind {
			w.book.Drop(id) // it does not know what was added
		}
	}
	if err == nil {
		err = u.mend()
	}
	for n, b := range rests { // what is in its place must not come again
		if err == nil {
			err = w.cut(n, b)
		}
	}
	for _, n := range rows {
		if err == nil {
			err = w.wipe(n, n)
		}
	}
	return next, err
}

// unknown is what another process left in the inbox. Some of it may be in its
// place already; and the row of a session may be behind its records, or ahead
// of them.
type unknown struct {
	w     *writer
	plans []planned
	logs  map[session.ID]*unknownLog
}

type unknownLog struct {
	log    *sqlstore.Log
	end    session.Seq // of the records
	behind bool        // some that the row counts are only planned to be written
	torn   bool        // something is missing, or is not what it was
}

// plan adds what is to be done for f.
func (u *unknown) plan(f framed) error {
	w := u.w
	l := u.logs[f.id]
	if l == nil {
		log, err := w.book.Open(w, f.id)
		if err != nil {
			return err
		}
		l = &unknownLog{log: log}
		if log.N != 0 {
			if l.end, err = w.end(log.N); err != nil {
				return err
			}
		}
		u.logs[f.id] = l
	}
	rec, damage := sqlstore.Decode(w.s.path, f.seq, f.line, func() (id, parent, typ string) { return "", "", "" })
	var lines []sqlstore.Line
	if f.seq > l.end {
		lines = []sqlstore.Line{sqlstore.NewLine(rec, f.line)}
		l.end = f.seq
	}
	covered := f.seq <= l.log.Info.Last
	// What a damaged file has lost of the inbox is lost; the rest is not.
	l.torn = l.torn || !covered && (damage != nil || f.seq > l.log.Info.Last+1)
	if covered || l.torn {
		u.plans = append(u.plans, planned{l.log, lines})
		l.behind = l.behind || covered && len(lines) > 0
		return nil
	}
	if l.behind { // planning asks for them
		if err := w.sort(u.plans); err != nil {
			return err
		}
		u.plans = nil
		for id, l := range u.logs {
			if !l.behind {
				continue
			}
			l.behind = false
			w.book.Drop(id) // it does not know what was added
			var err error
			if l.log, err = w.book.Open(w, id); err != nil {
				return err
			}
		}
	}
	plans, err := w.plan(u.plans, f.id, []session.Record{rec}, lines)
	var e *sqlite3.Error
	if err != nil && !errors.As(err, &e) && !w.c.GetAutocommit() {
		l.torn = true
		plans, err = append(plans, planned{l.log, lines}), nil
	}
	u.plans = plans
	if log := w.book.Get(f.id); log != nil && !l.torn { // it may have been read again
		l.log = log
	}
	return err
}

// mend writes the rows of the sessions of which something is missing.
func (u *unknown) mend() error {
	for id, l := range u.logs {
		if !l.torn {
			continue
		}
		s, err := session.Replay(id, records(u.w.c, u.w.s.path, l.log.N))
		if err != nil {
			return err
		}
		beheaded(&l.log.Info, &s.Info)
		if err := u.w.c.exec(sqlstore.RewriteSession, append(sqlstore.Values(s.Info), l.log.N)...); err != nil {
			return err
		}
		u.w.book.Drop(id)
	}
	return nil
}

// framed is a line in a row of the inbox.
type framed struct {
	id   session.ID
	seq  session.Seq
	line []byte
}

func frame(b []byte) (f framed, rest []byte, ok bool) {
	id, b, ok := field(b)
	if !ok {
		return f, b, false
	}
	seq, b, ok := number(b)
	if !ok {
		return f, b, false
	}
	line, b, ok := field(b)
	return framed{session.ID(id), session.Seq(seq), line}, b, ok
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
