package sqlstore

import (
	"container/list"
	"errors"
	"fmt"
	"iter"

	"goclaw/session"
	"goclaw/session/storekit"
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

	top     string           // no record has a greater id
	outline *session.Outline // of a log that is not straight
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

// Plan says what appending recs to the log id makes of it. What it returns is
// remembered: the caller must write it before it plans again, or Forget. After
// an error nothing is changed.
func (b *Book) Plan(tx Tx, id session.ID, recs []session.Record) (*Log, error) {
	l, err := b.open(tx, id)
	if err != nil {
		return nil, err
	}
	if !l.Info.Trashed.IsZero() {
		return nil, session.NotFound("session %q is in the trash", id)
	}
	if err := storekit.CheckAppend(id, l.Info.Last, recs); err != nil {
		return nil, err
	}
	if l.outline == nil {
		ok, err := l.add(tx, recs)
		if ok || err != nil {
			return l, err
		}
		if err := b.outline(tx, l); err != nil {
			return nil, err
		}
	}
	for _, r := range recs {
		if err := l.outline.Apply(r); err != nil {
			return nil, err // CheckAppend has seen to it
		}
		l.top = max(l.top, r.ID)
	}
	b.outlined += len(recs)
	trashed := l.Info.Trashed
	l.Info = l.outline.Info
	l.Info.Trashed = trashed
	return l, nil
}

// open returns the log id, remembered or read.
func (b *Book) open(tx Tx, id session.ID) (*Log, error) {
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
	if b.used.Len() > maxLogs {
		b.Drop(b.used.Back().Value.(*Log).Info.ID)
	}
	return l, nil
}

// add counts recs if the log and they are straight, all or none.
func (l *Log) add(tx Tx, recs []session.Record) (ok bool, err error) {
	in, top := l.Info, l.top
	var added map[string]session.Seq // the first of each id among recs, once one is asked for
	at := 0
	find := func(id string) session.Seq {
		if id > top || err != nil {
			return 0
		}
		if added == nil {
			added = make(map[string]session.Seq, len(recs))
			for _, r := range recs[:at] {
				if added[r.ID] == 0 {
					added[r.ID] = r.Seq
				}
			}
		}
		if seq := added[id]; seq != 0 || l.N == 0 {
			return seq
		}
		var seq session.Seq
		seq, err = tx.Find(l.N, id)
		return seq
	}
	for i, r := range recs {
		at = i
		if !in.Add(r, find) || err != nil {
			return false, err
		}
		top = max(top, r.ID)
		if added != nil && added[r.ID] == 0 {
			added[r.ID] = r.Seq
		}
	}
	l.Info, l.top = in, top
	return true, nil
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
