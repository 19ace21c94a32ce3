package sqlite

import (
	"container/list"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// tx is what planning an append asks of the database, in the transaction that
// will append.
type tx interface {
	sqlstore.Log
	// session returns the number and the Info of a log; n is 0 if there is no
	// such log.
	session(id session.ID) (n int64, in session.Info, err error)
	// top returns the greatest record id in log n, in byte order.
	top(n int64) (string, error)
}

// book remembers where logs end from one transaction to the next, so that a
// usual append needs no query. It serves one writer, which must call forget
// whenever another process may have written and when a transaction fails.
type book struct {
	logs map[session.ID]*list.Element // of *sqlstore.End
	used list.List                    // the most recent first
	// outlined is the number of records in all outlines.
	outlined int
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
		b.outlined -= e.Value.(*sqlstore.End).Outlined()
		b.used.Remove(e)
		delete(b.logs, id)
	}
}

// plan computes what appending recs makes of the log id. The result is
// remembered: the caller must write it before it plans again, or call forget.
// After an error nothing has changed.
func (b *book) plan(tx tx, id session.ID, recs []session.Record) (*sqlstore.End, error) {
	l, err := b.open(tx, id)
	if err != nil {
		return nil, err
	}
	had := l.Outlined()
	err = l.Plan(tx, recs)
	b.outlined += l.Outlined() - had
	if err != nil {
		return nil, err
	}
	for e := b.used.Back(); e != nil && b.outlined > maxOutlined; e = e.Prev() {
		if old := e.Value.(*sqlstore.End); old != l {
			b.outlined -= old.Outlined()
			old.Forget()
		}
	}
	return l, nil
}

// open returns the log id, from memory or from the database.
func (b *book) open(tx tx, id session.ID) (*sqlstore.End, error) {
	if e := b.logs[id]; e != nil {
		b.used.MoveToFront(e)
		return e.Value.(*sqlstore.End), nil
	}
	n, in, err := tx.session(id)
	if err != nil {
		return nil, err
	}
	l := sqlstore.NewEnd(id)
	if n != 0 {
		l.N, l.Info = n, in
		if l.Top, err = tx.top(n); err != nil {
			return nil, err
		}
	}
	if b.logs == nil {
		b.logs = map[session.ID]*list.Element{}
	}
	b.logs[id] = b.used.PushFront(&l)
	if b.used.Len() > maxLogs {
		b.drop(b.used.Back().Value.(*sqlstore.End).Info.ID)
	}
	return &l, nil
}
