package sqlstore

import (
	"container/list"
	"errors"
	"fmt"
	"iter"

	"goclaw/session"
)

// Tx is what planning an append asks of a database, in the transaction that
// will append.
type Tx interface {
	// Session returns the number and the Info of a log, n 0 if there is none.
	Session(id session.ID) (n int64, in session.Info, err error)
	// Find returns the first record with an id in log n, 0 if there is none.
	Find(n int64, record string) (session.Seq, error)
	// Top returns the greatest id of a record in log n, by its bytes.
	Top(n int64) (string, error)
	// Records yields log n. It may yield damage together with what holds its
	// place.
	Records(n int64) iter.Seq2[session.Record, error]
}

// Book remembers where logs end, from one transaction to the next, so that
// the everyday append asks the database nothing. It is for one writer, which
// must Forget whenever another may have written, and when a transaction
// fails.
type Book struct {
	logs map[session.ID]*list.Element // of *Log
	used list.List                    // the latest first
	// outlined is the number of records in all outlines.
	outlined int
}

// Log is the end of one log.
type Log struct {
	N    int64 // its number in the database; 0: it is new
	Info session.Info

	top     string                 // no record has a greater id
	unsaved []named                // planned, and not in the database
	byID    map[string]session.Seq // unsaved, once there are many
	outline *session.Outline       // of a log that is not straight
}

type named struct {
	ID  string
	Seq session.Seq
}

// What a Book holds at most. An outline takes some hundred bytes for each
// record; the outline in use is always held.
const (
	maxLogs     = 4096
	maxOutlined = 200_000
)

// Forget forgets everything.
func (b *Book) Forget() {
	b.logs, b.outlined = nil, 0
	b.used.Init()
}

// Drop forgets one log.
func (b *Book) Drop(id session.ID) {
	if e := b.logs[id]; e != nil {
		b.bare(e.Value.(*Log))
		b.used.Remove(e)
		delete(b.logs, id)
	}
}

// bare drops l's outline.
func (b *Book) bare(l *Log) {
	if l.outline != nil {
		b.outlined -= l.outline.Records
		l.outline = nil
	}
}

// Get returns the log id as remembered, or nil.
func (b *Book) Get(id session.ID) *Log {
	if e := b.logs[id]; e != nil {
		return e.Value.(*Log)
	}
	return nil
}

// Saved says that the records planned for l so far are in the database.
func (l *Log) Saved() {
	clear(l.unsaved)
	l.unsaved, l.byID = l.unsaved[:0], nil
}

// ErrUnsaved says that planning needs the whole log: save what was planned so
// far, and plan again.
var ErrUnsaved = errors.New("sqlstore: the log has records that are not in the database")

// Plan says what appending recs to the log id makes of it. What it returns is
// remembered: the caller must either write it or Forget. After an error
// nothing is changed.
func (b *Book) Plan(tx Tx, id session.ID, recs []session.Record) (*Log, error) {
	l, err := b.Open(tx, id)
	if err != nil {
		return nil, err
	}
	if !l.Info.Trashed.IsZero() {
		return nil, fmt.Errorf("session %q is in the trash: %w", id, session.ErrNotFound)
	}
	if err := session.CheckAppend(id, l.Info.Last, recs); err != nil {
		return nil, err
	}
	if l.outline == nil {
		ok, err := l.add(tx, recs)
		if ok || err != nil {
			return l, err
		}
		if len(l.unsaved) > 0 {
			return nil, ErrUnsaved
		}
		if err := b.outline(tx, l); err != nil {
			return nil, err
		}
	}
	for _, r := range recs {
		if err := l.outline.Apply(r); err != nil {
			return nil, err // CheckAppend has seen to it
		}
		l.plan(r)
	}
	b.outlined += len(recs)
	trashed := l.Info.Trashed
	l.Info = l.outline.Info
	l.Info.Trashed = trashed
	return l, nil
}

// Open returns the log id, remembered or read.
func (b *Book) Open(tx Tx, id session.ID) (*Log, error) {
	if e := b.logs[id]; e != nil {
		b.used.MoveToFront(e)
		return e.Value.(*Log), nil
	}
	n, in, err := tx.Session(id)
	if err != nil {
		return nil, err
	}
	l := &Log{N: n, Info: in}
	if n == 0 {
		l.Info = session.NewOutline(id).Info
	} else if l.top, err = tx.Top(n); err != nil {
		return nil, err
	}
	if b.logs == nil {
		b.logs = map[session.ID]*list.Element{}
	}
	b.logs[id] = b.used.PushFront(l)
	// What has unsaved records is known here alone. All may have some: then
	// there is no use in looking at all of them.
	for e, tries := b.used.Back(), 16; e != nil && tries > 0 && b.used.Len() > maxLogs; tries-- {
		old := e
		e = e.Prev()
		if l := old.Value.(*Log); len(l.unsaved) == 0 {
			b.Drop(l.Info.ID)
		}
	}
	return l, nil
}

// add counts recs if the log and they are straight, all or none.
func (l *Log) add(tx Tx, recs []session.Record) (ok bool, err error) {
	in, top, unsaved := l.Info, l.top, len(l.unsaved)
	find := func(id string) session.Seq {
		if id > l.top {
			return 0
		}
		if at := l.planned(id); at != 0 {
			return at
		}
		if l.N == 0 || err != nil {
			return 0
		}
		var at session.Seq
		at, err = tx.Find(l.N, id)
		return at
	}
	for _, r := range recs {
		if !in.Add(r, find) || err != nil {
			l.top, l.unsaved, l.byID = top, l.unsaved[:unsaved], nil
			return false, err
		}
		l.plan(r)
	}
	l.Info = in
	return true, nil
}

func (l *Log) plan(r session.Record) {
	u := named{r.ID, r.Seq}
	l.unsaved = append(l.unsaved, u)
	l.top = max(l.top, r.ID)
	if l.byID != nil {
		l.index(u)
	}
}

func (l *Log) index(r named) {
	if _, again := l.byID[r.ID]; !again {
		l.byID[r.ID] = r.Seq
	}
}

// planned returns the first unsaved record with an id, or 0.
func (l *Log) planned(id string) session.Seq {
	if len(l.unsaved) < 32 {
		for _, r := range l.unsaved {
			if r.ID == id {
				return r.Seq
			}
		}
		return 0
	}
	if l.byID == nil {
		l.byID = make(map[string]session.Seq, 2*len(l.unsaved))
		for _, r := range l.unsaved {
			l.index(r)
		}
	}
	return l.byID[id]
}

// outline reads the whole log, once for as long as it is remembered.
func (b *Book) outline(tx Tx, l *Log) error {
	o := session.NewOutline(l.Info.ID)
	if l.N != 0 {
		for r, err := range tx.Records(l.N) {
			var d *session.Damage
			if errors.As(err, &d) {
				continue // what holds its place comes next
			}
			if err != nil {
				return err
			}
			if r.Seq > l.Info.Last { // it is being planned
				break
			}
			if err := o.Apply(r); err != nil {
				return err
			}
		}
	}
	if o.Last != l.Info.Last {
		return fmt.Errorf("session %q: its log ends at record %d, its row says %d: %w", l.Info.ID, o.Last, l.Info.Last, session.ErrStale)
	}
	l.outline = o
	b.outlined += o.Records
	for e := b.used.Back(); e != nil && b.outlined > maxOutlined; e = e.Prev() {
		if old := e.Value.(*Log); old != l {
			b.bare(old)
		}
	}
	return nil
}
