package sqlite

import (
	"bytes"
	"encoding/binary"
	"fmt"

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
		b.pending, b.size, b.held, b.lately = b.pending+records, b.size+size, b.held+size, b.lately+records
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
	if sh := w.inbox.shares[w.book.Get(id)]; sh != nil {
		return w.sortShare(sh, len(sh.lines))
	}
	return nil
}

// sortShare writes the first n lines of sh into their places. The row of their
// session says all that was planned: it is written with the last of them,
// unless there is none.
func (w *writer) sortShare(sh *share, n int) error {
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
	if row == b.last {
		*b = inbox{}
		return w.c.exec("DELETE FROM inbox")
	}
	b.held -= b.held / int(b.last-b.first+1) * int(row-b.first+1)
	b.first = row + 1
	return w.c.exec("DELETE FROM inbox WHERE n <= $1", row)
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
	rows := !b.empty()
	*b = inbox{}
	if !rows {
		return nil
	}
	return w.c.exec("DELETE FROM inbox")
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

// sortUnknown sorts what another process left in the inbox.
func (w *writer) sortUnknown() error {
	at, err := w.c.int("SELECT min(n) FROM inbox")
	if err != nil || at == 0 {
		return err
	}
	w.sorting = true
	defer func() { w.sorting = false }()
	u := unknown{w: w, ends: map[session.ID]session.Seq{}, torn: map[session.ID]bool{}}
	for more := true; more; {
		size := 0
		more = false
		err := w.c.each(func(r row) error {
			at = r.Int(0) + 1
			b := bytes.Clone(r.bytes(1))
			for len(b) > 0 {
				f, rest, ok := frame(b)
				if !ok {
					return fmt.Errorf("sqlite: %s: the inbox holds %d bytes that cannot be read", w.s.path, len(b))
				}
				if err := u.plan(f); err != nil {
					return err
				}
				size += len(b) - len(rest)
				b = rest
			}
			if size >= maxUnknown {
				more = true
				return errStop
			}
			return nil
		}, "SELECT n, data FROM inbox WHERE n >= $1 ORDER BY n", at)
		if err = stopped(err); err == nil {
			err = w.sort(u.plans)
			u.plans = nil
		}
		if err != nil {
			return err
		}
	}
	if err := u.mend(); err != nil {
		return err
	}
	return w.c.exec("DELETE FROM inbox")
}

// maxUnknown is how many bytes are sorted at once of what another process left.
const maxUnknown = 4 << 20

// unknown is what another process left in the inbox. Some of it may be in its
// place already; and the row of a session may be behind its records, or ahead
// of them.
type unknown struct {
	w     *writer
	plans []planned
	ends  map[session.ID]session.Seq // of the records
	torn  map[session.ID]bool        // something of them is missing
}

// plan adds what is to be done for f.
func (u *unknown) plan(f framed) error {
	log, err := u.w.book.Open(u.w, f.id)
	if err != nil {
		return err
	}
	end, ok := u.ends[f.id]
	if !ok && log.N != 0 {
		if end, err = last(u.w.c, log.N); err != nil {
			return err
		}
	}
	rec, _ := sqlstore.Decode(u.w.s.path, f.seq, f.line, func() (id, parent, typ string) { return "", "", "" })
	var lines []sqlstore.Line
	if f.seq > end {
		lines = []sqlstore.Line{sqlstore.NewLine(rec, f.line)}
	}
	u.ends[f.id] = max(end, f.seq)
	// What a damaged file has lost of the inbox is lost; the rest is not.
	u.torn[f.id] = u.torn[f.id] || f.seq > log.Info.Last+1
	if f.seq <= log.Info.Last || u.torn[f.id] {
		u.plans = append(u.plans, planned{log, lines})
		return nil
	}
	u.plans, err = u.w.plan(u.plans, f.id, []session.Record{rec}, lines)
	return err
}

// mend writes the rows of the sessions of which something is missing.
func (u *unknown) mend() error {
	for id, torn := range u.torn {
		if !torn {
			continue
		}
		n := u.w.book.Get(id).N
		s, err := session.Replay(id, records(u.w.c, u.w.s.path, n))
		if err == nil {
			err = u.w.c.exec(sqlstore.RewriteSession, append(sqlstore.Values(s.Info), n)...)
		}
		if err != nil {
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
