package rescue

import (
	"cmp"
	"fmt"
	"iter"

	"goclaw/internal/pages"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Entry is a record of a log, or damage to it: then Err is a *session.Damage.
type Entry struct {
	Record session.Record
	Err    error
	Lost   bool // the record holds the place of one that is lost
}

// Read yields the records of s that follow after, and damage before the records
// that it concerns. Records in doubt are reported if check is set.
func (d *Database) Read(s *Session, after session.Seq, check bool) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		at := after
		var why error // the records after at are lost
		for _, p := range s.spots {
			if p.seq <= after {
				continue
			}
			rec, doubt, ok := d.record(p)
			if h, header := rec.Body.(session.Header); p.seq == 1 && (!header || h.ID != s.ID) {
				ok = false
			}
			if !ok {
				why = cmp.Or(why, doubt)
				continue
			}
			if !d.gap(s, at, p.seq-1, why, yield) {
				return
			}
			if doubt != nil && check {
				doubt := &session.Damage{File: d.path, After: at, Size: int64(len(rec.Raw)), Changed: p.seq, Reason: doubt.Error()}
				if !yield(Entry{Err: doubt}) {
					return
				}
			}
			if !yield(Entry{Record: rec}) {
				return
			}
			at, why = p.seq, nil
		}
		if s.Known && s.row.Last > at {
			d.gap(s, at, min(s.row.Last, at+MaxGap), why, yield)
		}
	}
}

// gap yields what replaces the records after at up to to. The header is made
// from what is known of the session. It reports false if yield does.
func (d *Database) gap(s *Session, at, to session.Seq, why error, yield func(Entry) bool) bool {
	if to <= at {
		return true
	}
	from := at + 1
	what, cause := fmt.Sprintf("record %d is", from), "the file is damaged where it lies"
	if to > from {
		what, cause = fmt.Sprintf("records %d to %d are", from, to), "the file is damaged where they lie"
	}
	if why != nil {
		cause = why.Error()
	}
	reason := fmt.Sprintf("%s lost: %s", what, cause)
	if from == 1 {
		reason += fmt.Sprintf("; its header is made from what is known without it: its key is %q", s.row.Key)
	}
	if !yield(Entry{Err: &session.Damage{File: d.path, After: at, Reason: reason}}) {
		return false
	}
	for seq := from; seq <= to; seq++ {
		r := sqlstore.Lost(seq)
		if seq == 1 {
			r = sqlstore.LostHeader(s.ID, s.row)
		}
		if !yield(Entry{Record: r, Lost: true}) {
			return false
		}
	}
	return true
}

// Info returns the Info of s: from its row, or computed from its records, except
// whether it is in the trash, if the row is lost or may be older.
func (d *Database) Info(s *Session) session.Info {
	if s.Known && !s.late {
		return s.row
	}
	o := session.NewOutline(s.ID)
	for e := range d.Read(s, 0, false) {
		if e.Err == nil && o.Apply(e.Record) != nil {
			break // cannot happen: they are in order
		}
	}
	o.Info.Trashed = s.row.Trashed
	return o.Info
}

// record returns the record at p: that of the first row whose line can be parsed
// and agrees with its checksum and with the columns next to it. If there is no such
// row, doubt says what is wrong with the one returned; it is not ok if none can be
// parsed.
func (d *Database) record(p spot) (rec session.Record, doubt error, ok bool) {
	for _, c := range p.rows {
		r, v, err := d.decode(c, p.seq)
		wrong := err
		if err == nil {
			wrong = d.doubt(c, p.seq, r, v)
		}
		if wrong == nil {
			return r, nil, true
		}
		wrong = fmt.Errorf("page %d: %w", c.Page, wrong)
		if err == nil && !ok {
			rec, doubt, ok = r, wrong, true
		}
		doubt = cmp.Or(doubt, wrong)
	}
	if p.line != nil {
		if r, damage := sqlstore.Decode(d.path, p.seq, p.line, nothing); damage == nil {
			return r, nil, true
		}
	}
	return rec, doubt, ok
}

// decode returns the record in a row, and the values of the row.
func (d *Database) decode(c candidate, seq session.Seq) (session.Record, []pages.Value, error) {
	v, err := d.file.Values(c.Row)
	if err != nil {
		return session.Record{}, nil, err
	}
	r, damage := sqlstore.Decode(d.path, seq, d.records.value(v, "data").Bytes, nothing)
	if damage != nil {
		return session.Record{}, nil, fmt.Errorf("%s", damage.Reason)
	}
	return r, v, nil
}

// doubt returns what is wrong with the record r, which was read from the values
// of a row.
func (d *Database) doubt(c candidate, seq session.Seq, r session.Record, v []pages.Value) error {
	value := func(column string) pages.Value { return d.records.value(v, column) }
	text := func(column string) string { return string(value(column).Bytes) }
	sum := value("crc32c")
	if d := sqlstore.Changed(d.path, seq, value("data").Bytes, sum.Int, !sum.Null); d != nil {
		return fmt.Errorf("%s", d.Reason)
	}
	l := sqlstore.NewLine(r, value("data").Bytes)
	switch {
	case text("id") != l.ID || text("parent") != l.Parent || text("type") != l.Type || text("time") != l.Time:
		return fmt.Errorf("the line of record %d differs from the columns next to it: one of them is damaged", seq)
	case c.Later && sum.Null:
		return fmt.Errorf("record %d is from a damaged or unfinished part of the write-ahead log: it may be damaged", seq)
	}
	return nil
}
