package sqlite

import (
	"container/list"
	"errors"
	"fmt"
	"iter"

	"goclaw/session"
	"goclaw/session/storekit"
)

// tx is what planning an append asks of the database, in the transaction that
// will append.
type tx interface {
	// session returns the number and the Info of a log; n is 0 if there is no
	// such log.
	session(id session.ID) (n int64, in session.Info, err error)
	// find returns the first record with an id in log n, 0 if there is none.
	find(n int64, record string) (session.Seq, error)
	// top returns the greatest record id in log n, in byte order.
	top(n int64) (string, error)
	// records yields log n. It yields damage together with the record that
	// holds its place.
	records(n int64) iter.Seq2[session.Record, error]
}

// book remembers where logs end from one transaction to the next, so that a
// usual append needs no query. It serves one writer, which must call forget
// whenever another process may have written and when a transaction fails.
type book struct {
	logs map[session.ID]*list.Element // of *logEnd
	used list.List                    // the most recent first
	// outlined is the number of records in all outlines.
	outlined int
}

// logEnd is the end of one log.
type logEnd struct {
	n    int64 // its number in the database; 0: it is new
	info session.Info

	top     string           // the greatest record id
	outline *session.Outline // of a log that is not straight
}

// Limits of a book. An outline takes a few hundred bytes for each record; the
// one in use is always kept.
const (
	maxLogs     = 4096
	maxOutlined = 200_000
)

// forget forgets everything.
func (b *book) forget() {
	b.logs, b.outlined = nil, 0
	b.used.Init()
}

// drop forgets one log.
func (b *book) drop(id session.ID) {
	if e := b.logs[id]; e != nil {
		b.dropOutline(e.Value.(*logEnd))
		b.used.Remove(e)
		delete(b.logs, id)
	}
}

func (b *book) dropOutline(l *logEnd) {
	if l.outline != nil {
		b.outlined -= l.outline.Records
		l.outline = nil
	}
}

// plan computes what appending recs makes of the log id. The result is
// remembered: the caller must write it before it plans again, or call forget.
// After an error nothing has changed.
func (b *book) plan(tx tx, id session.ID, recs []session.Record) (*logEnd, error) {
	l, err := b.open(tx, id)
	if err != nil {
		return nil, err
	}
	if !l.info.Trashed.IsZero() {
		return nil, session.NotFound("session %q is in the trash", id)
	}
	if err := storekit.CheckAppend(id, l.info.Last, recs); err != nil {
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
			return nil, err // cannot happen after CheckAppend
		}
		l.top = max(l.top, r.ID)
	}
	b.outlined += len(recs)
	trashed := l.info.Trashed
	l.info = l.outline.Info
	l.info.Trashed = trashed
	return l, nil
}

// open returns the log id, from memory or from the database.
func (b *book) open(tx tx, id session.ID) (*logEnd, error) {
	if e := b.logs[id]; e != nil {
		b.used.MoveToFront(e)
		return e.Value.(*logEnd), nil
	}
	n, in, err := tx.session(id)
	if err != nil {
		return nil, err
	}
	l := &logEnd{n: n, info: in}
	if n == 0 {
		l.info = session.NewOutline(id).Info
	} else if l.top, err = tx.top(n); err != nil {
		return nil, err
	}
	if b.logs == nil {
		b.logs = map[session.ID]*list.Element{}
	}
	b.logs[id] = b.used.PushFront(l)
	if b.used.Len() > maxLogs {
		b.drop(b.used.Back().Value.(*logEnd).info.ID)
	}
	return l, nil
}

// add counts recs, all or none. It reports false if the log does not simply
// continue with them.
func (l *logEnd) add(tx tx, recs []session.Record) (ok bool, err error) {
	in, top := l.info, l.top
	var added map[string]session.Seq // the first record of each id among recs, made on first use
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
		if seq := added[id]; seq != 0 || l.n == 0 {
			return seq
		}
		var seq session.Seq
		seq, err = tx.find(l.n, id)
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
	l.info, l.top = in, top
	return true, nil
}

// outline reads the whole log. The outline is kept as long as the log is
// remembered.
func (b *book) outline(tx tx, l *logEnd) error {
	o := session.NewOutline(l.info.ID)
	if l.n != 0 {
		for r, err := range tx.records(l.n) {
			var d *session.Damage
			if errors.As(err, &d) {
				continue // the record that holds its place comes next
			}
			if err != nil {
				return err
			}
			if err := o.Apply(r); err != nil {
				return err
			}
		}
	}
	if o.Last != l.info.Last {
		return staleRow(l.info.ID, o.Last, l.info.Last)
	}
	l.outline = o
	b.outlined += o.Records
	for e := b.used.Back(); e != nil && b.outlined > maxOutlined; e = e.Prev() {
		if old := e.Value.(*logEnd); old != l {
			b.dropOutline(old)
		}
	}
	return nil
}

// staleRow says that the row of a session does not know where its log ends.
func staleRow(id session.ID, last, row session.Seq) error {
	return fmt.Errorf("session %q: its log ends at record %d, its row says %d and must be rebuilt: %w", id, last, row, session.ErrStale)
}
