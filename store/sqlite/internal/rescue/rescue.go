// Package rescue reads a database of goclaw's without SQLite, page by page, so
// that damage to any page costs what is on that page. Databases of older schemas
// are read as they are. The file is not changed.
//
// A record keeps its number; a lost one is replaced by a record of no kind. Of a
// session, the header says whose it is, or else its row; if both are lost, its
// id and key are "recovered-" and a number. Pages on SQLite's list of free pages
// are not read, if that list is whole: they may hold what was purged.
package rescue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"goclaw/internal/pages"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Database is what was found on the pages of a database.
type Database struct {
	Sessions []*Session
	Problems []Problem // of what is left out; those of records come with them
	Late     int       // sessions that have records in an inbox

	path              string
	file              *pages.File
	records, sessions table
	found             map[int64][]candidate // rows of records, by the number of their session
	rows              map[int64]row
	inbox             Inbox
	ids               map[session.ID]*Session
}

// Problem is what is wrong with a session, or with none if ID is empty.
type Problem struct {
	ID  session.ID
	Err error
}

// candidate is a row that may be the record at the position of its ID.
type candidate struct {
	pages.Row
	// odd says that its position contradicts its page: it is not what follows
	// the row before it, or is not within the page's range.
	odd bool
}

// row is what the row of a session says.
type row struct {
	session.Info
	later bool // see pages.Row
}

// A record's position is made of the number of its session and its own.
const maxSeq = 1<<32 - 1

// Open reads the database at path, whose current schema is given. With all set,
// it takes also what is in damaged or unfinished parts of the write-ahead log,
// which may never have been acknowledged.
func Open(ctx context.Context, path, schema string, all bool) (*Database, error) {
	f, err := pages.Open(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	d := &Database{
		path: path, file: f, records: newTable(schema, "records"), sessions: newTable(schema, "sessions"),
		found: map[int64][]candidate{}, rows: map[int64]row{}, inbox: Inbox{}, ids: map[session.ID]*Session{},
	}
	err = f.Rows(func(rows []pages.Row) error {
		if all || !rows[0].Later { // the rows of a page are from one frame
			d.take(rows)
		}
		return ctx.Err()
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	d.assemble()
	return d, nil
}

// Close closes the file.
func (d *Database) Close() error { return d.file.Close() }

// Changed reports whether the file was written since it was opened.
func (d *Database) Changed() bool { return d.file.Changed() }

// Overwritten reports whether what is read of d may be something else by now: not
// if the file has only grown since it was opened.
func (d *Database) Overwritten() bool { return d.file.Overwritten() }

// PageSize returns the size of a page in bytes.
func (d *Database) PageSize() int64 { return d.file.PageSize() }

// Find returns the session id, nil if there is none.
func (d *Database) Find(id session.ID) *Session { return d.ids[id] }

var errFound = errors.New("found")

// HasRecords reports whether the file at path has a row of the table records,
// whatever else is in it.
func HasRecords(path, schema string) bool {
	f, err := pages.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	t := newTable(schema, "records")
	err = f.Rows(func(rows []pages.Row) error {
		for _, r := range rows {
			if !t.fits(r) {
				continue
			}
			if v, err := f.Values(r); err == nil && json.Valid(t.value(v, "data").Bytes) {
				return errFound
			}
		}
		return nil
	})
	return err == errFound
}

// take notes the rows of a page.
func (d *Database) take(rows []pages.Row) {
	var page []candidate
	for _, r := range rows {
		switch {
		case d.records.fits(r) && r.ID>>32 > 0 && r.ID&maxSeq > 0:
			c := candidate{r.Bare(), r.Apart}
			if n := len(page); n > 0 && !follows(page[n-1].ID, r.ID) {
				page[n-1].odd, c.odd = true, true
			}
			page = append(page, c)
		case d.sessions.fits(r):
			if v, err := d.file.Values(r); err == nil {
				in := d.sessions.info(r.ID, v)
				old, ok := d.rows[r.ID]
				if newer := in.Last > old.Last || in.Last == old.Last && r.Later && !old.later; in.ID != "" && (newer || !ok) {
					d.rows[r.ID] = row{in, r.Later}
				}
			}
		case len(r.Types) == 2 && r.Types[0].Null() && r.Types[1].Blob() && d.mayHaveInbox():
			if v, err := d.file.Values(r); err == nil {
				d.takeInbox(v[1].Bytes)
			}
		}
	}
	for _, c := range page {
		d.found[c.ID>>32] = append(d.found[c.ID>>32], c)
	}
}

// follows reports whether the record at b can come right after that at a: it
// continues its session or begins another.
func follows(a, b int64) bool { return b == a+1 || b>>32 > a>>32 && b&maxSeq == 1 }

// mayHaveInbox reports whether the database may be of schema 1.
func (d *Database) mayHaveInbox() bool {
	return d.file.Header == nil || binary.BigEndian.Uint32(d.file.Header[60:]) == 1
}

// takeInbox notes the lines in b, which may be a row of another table.
func (d *Database) takeInbox(b []byte) {
	in := Inbox{}
	in.Add(d.path, b)
	for id, lines := range in {
		for _, l := range lines {
			if l.Seq > 0 && bytes.HasPrefix(l.Data, []byte("{")) && json.Valid(l.Data) {
				d.inbox[id] = append(d.inbox[id], l)
			}
		}
	}
}

// problem notes what is wrong.
func (d *Database) problem(id session.ID, format string, args ...any) {
	d.Problems = append(d.Problems, Problem{id, fmt.Errorf(format, args...)})
}

// assemble makes sessions from the rows.
func (d *Database) assemble() {
	numbers := maps.Clone(d.found)
	for n := range d.rows {
		numbers[n] = nil
	}
	rowless := 0
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		s := d.session(n)
		d.add(s)
		if !s.Known {
			rowless++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.inbox)) {
		if d.ids[id] == nil { // it is nowhere else
			d.add(&Session{ID: id, row: session.Info{ID: id, Key: session.Key(id)}, Known: true})
		}
	}
	if rowless > 0 {
		d.problem("", "%s: %d session rows are lost: what they said is computed from the records, except which sessions were in the trash", d.path, rowless)
	}
	d.found, d.rows, d.inbox = nil, nil, nil
}

// add adds s, with its lines in the inbox.
func (d *Database) add(s *Session) {
	if lines := d.inbox[s.ID]; len(lines) > 0 {
		s.late = true
		d.Late++
		s.addLines(lines)
	}
	d.Sessions, d.ids[s.ID] = append(d.Sessions, s), s
}

// Session is what is known of a session.
type Session struct {
	ID    session.ID
	Known bool // its row is known
	row   session.Info
	late  bool // it has records in the inbox, which the row may not count
	spots []spot
}

// Trashed reports whether the row of s says that it is in the trash.
func (s *Session) Trashed() bool { return s.Known && !s.row.Trashed.IsZero() }

// Last returns the number of the last record that is known.
func (s *Session) Last() session.Seq {
	last := s.row.Last
	if n := len(s.spots); n > 0 {
		last = max(last, s.spots[n-1].seq)
	}
	return last
}

// spot is a record by its number, the rows that may be it, and its line if that
// is in the inbox.
type spot struct {
	seq  session.Seq
	rows []candidate
	line []byte
}

// session returns session n. Its row is made up if it is not known.
func (d *Database) session(n int64) *Session {
	r, known := d.rows[n]
	s := &Session{row: r.Info, Known: known, spots: d.spots(n)}
	if !known {
		s.row = Recovered(n)
	}
	s.ID = s.row.ID
	if len(s.spots) > 0 && s.spots[0].seq == 1 {
		first, doubt, _ := d.record(s.spots[0])
		if h, ok := first.Body.(session.Header); ok && h.ID != "" && (doubt == nil || !known) {
			if s.ID = h.ID; known && h.ID != r.ID {
				d.problem(s.ID, "its row says that its id is %q: one of them is damaged", r.ID)
				s.Known = false
			}
			if !s.Known {
				s.row = session.Info{ID: h.ID, Key: h.Key}
			}
		}
	}
	if d.ids[s.ID] != nil {
		d.problem(s.ID, "another session has this id: this one becomes %s", Recovered(n).ID)
		s.ID = Recovered(n).ID
	}
	return s
}

// Recovered is the Info of a session of which only the number is known.
func Recovered(n int64) session.Info {
	id := fmt.Sprintf("recovered-%d", n)
	return session.Info{ID: session.ID(id), Key: session.Key(id)}
}

// MaxGap limits how many lost records in a row are replaced. A number that is
// further away is damaged.
const MaxGap = 1 << 20

// spots groups the rows of session n by number, the best row of each first. It
// leaves out odd rows that have no neighbour and are not known to the row of the
// session: their number is damaged.
func (d *Database) spots(n int64) (out []spot) {
	all := d.found[n]
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.ID, b.ID) })
	r, known := d.rows[n]
	last := session.Seq(0)
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].ID == all[i].ID {
			j++
		}
		p := spot{seq: session.Seq(all[i].ID & maxSeq), rows: slices.Clone(all[i:j])}
		before := i > 0 && all[i-1].ID == all[i].ID-1
		after := j < len(all) && all[j].ID == all[i].ID+1
		if !before && !after && !(known && p.seq <= r.Last) {
			p.rows = slices.DeleteFunc(p.rows, func(c candidate) bool {
				if c.odd {
					d.problem("", "%s: page %d has a row that says it is record %d of session %d, which contradicts the rows around it: it is left out", d.path, c.Page, p.seq, n)
				}
				return c.odd
			})
		}
		slices.SortStableFunc(p.rows, func(a, b candidate) int { return cmp.Compare(rank(a), rank(b)) })
		switch {
		case len(p.rows) == 0:
		case p.seq-last > MaxGap:
			d.problem("", "%s: page %d has a row that says it is record %d of session %d, and there is none from %d: it is left out", d.path, p.rows[0].Page, p.seq, n, last+1)
		default:
			out, last = append(out, p), p.seq
		}
		i = j
	}
	return out
}

func rank(c candidate) (r int) {
	if c.odd {
		r += 2
	}
	if c.Later {
		r++
	}
	return r
}

// addLines adds lines that are in the inbox.
func (s *Session) addLines(lines []sqlstore.Line) {
	for _, l := range lines {
		i, ok := slices.BinarySearchFunc(s.spots, l.Seq, func(p spot, seq session.Seq) int { return cmp.Compare(p.seq, seq) })
		if !ok {
			s.spots = slices.Insert(s.spots, i, spot{seq: l.Seq})
		}
		s.spots[i].line = l.Data
	}
}
