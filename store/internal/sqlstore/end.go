package sqlstore

import (
	"errors"
	"fmt"
	"iter"

	"goclaw/session"
	"goclaw/session/storekit"
)

// Log is what planning an append asks of the database.
type Log interface {
	// Find returns the first record with an id in log n, 0 if there is none.
	Find(n int64, record string) (session.Seq, error)
	// Records yields the records of log n that follow after. It yields damage
	// together with the record that holds its place.
	Records(n int64, after session.Seq) iter.Seq2[session.Record, error]
}

// End is where a log ends: what an append needs to know of it.
type End struct {
	N    int64 // its number in the database; 0: it is new
	Info session.Info
	Top  string // the greatest record id, in byte order

	Unusual bool // Plan changed columns that UpdateSession does not write

	outline *session.Outline // of a log that is not straight
}

// NewEnd returns the end of a log that has no records.
func NewEnd(id session.ID) End { return End{Info: session.NewOutline(id).Info} }

// Outlined returns how many records are held in memory.
func (e *End) Outlined() int {
	if e.outline == nil {
		return 0
	}
	return e.outline.Records
}

// Forget drops the outline. The next append that needs it reads the log.
func (e *End) Forget() { e.outline = nil }

// Reload makes e the end of a log as its row says now: the number of the log, its
// Info and its greatest record id. An outline is kept, and what others appended
// is read.
func (e *End) Reload(log Log, n int64, in session.Info, top string) error {
	o := e.outline
	if n != e.N || e.Info.Last > in.Last {
		o = nil
	}
	if o != nil && o.Last < in.Last {
		if err := apply(o, log.Records(n, o.Last)); err != nil {
			return err
		}
	}
	if o != nil && o.Last != in.Last { // it has grown since
		o = nil
	}
	*e = End{N: n, Info: in, Top: top, outline: o}
	return nil
}

// Plan makes e the end of its log after recs. If that is an error, or recs are
// not written then, e must not be used again unless the error is of
// storekit.CheckAppend or says that the log is in the trash.
func (e *End) Plan(log Log, recs []session.Record) error {
	id := e.Info.ID
	if !e.Info.Trashed.IsZero() {
		return session.NotFound("session %q is in the trash", id)
	}
	if err := storekit.CheckAppend(id, e.Info.Last, recs); err != nil {
		return err
	}
	before := e.Info
	defer func() { e.Unusual = unusual(before) != unusual(e.Info) }()
	if e.outline == nil {
		ok, err := e.add(log, recs)
		if ok || err != nil {
			return err
		}
		if err := e.read(log); err != nil {
			return err
		}
	}
	for _, r := range recs {
		if err := e.outline.Apply(r); err != nil {
			return err // cannot happen after CheckAppend
		}
		e.Top = max(e.Top, r.ID)
	}
	trashed := e.Info.Trashed
	e.Info = e.outline.Info
	e.Info.Trashed = trashed
	return nil
}

// add counts recs, all or none. It reports false if the log does not simply
// continue with them.
func (e *End) add(log Log, recs []session.Record) (ok bool, err error) {
	in, top := e.Info, e.Top
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
		if seq := added[id]; seq != 0 || e.N == 0 {
			return seq
		}
		var seq session.Seq
		seq, err = log.Find(e.N, id)
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
	e.Info, e.Top = in, top
	return true, nil
}

// read outlines the whole log.
func (e *End) read(log Log) error {
	o := session.NewOutline(e.Info.ID)
	if e.N != 0 {
		if err := apply(o, log.Records(e.N, 0)); err != nil {
			return err
		}
	}
	if o.Last != e.Info.Last {
		return StaleRow(e.Info.ID, o.Last, e.Info.Last)
	}
	e.outline = o
	return nil
}

// apply adds recs to o.
func apply(o *session.Outline, recs iter.Seq2[session.Record, error]) error {
	for r, err := range recs {
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
	return nil
}

// StaleRow says that the row of a session does not know where its log ends.
func StaleRow(id session.ID, last, row session.Seq) error {
	return fmt.Errorf("session %q: its log ends at record %d, its row says %d and must be rebuilt: %w", id, last, row, session.ErrStale)
}
