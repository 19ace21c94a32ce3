package sqlite

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
	"sort"
	"strings"

	"goclaw/internal/pages"
	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Recovered says what Recover has found.
type Recovered struct {
	Sessions int
	Records  int
	Lost     int // records that are known to have been there
}

// Recover appends to dst, which should be empty, every session of the database
// at path that has a record on a page that can be read. It does not need SQLite,
// so that damage to any page costs what is on that page. The file is not
// changed. With no dst, it only says what it would do.
//
// A record keeps its number; a lost one is replaced by a record of no kind and
// reported. Of a session, the header says whose it is, or else its row; if both
// are lost, its id and key are "recovered-" and a number. Pages on SQLite's list
// of free pages are not read, if that list is whole: they may hold what was
// purged.
func Recover(ctx context.Context, path string, dst session.Store, report func(session.ID, error)) (Recovered, error) {
	path, err := resolve(path)
	if err != nil {
		return Recovered{}, fmt.Errorf("sqlite: %w", err)
	}
	f, err := pages.Open(path)
	if err != nil {
		return Recovered{}, fmt.Errorf("sqlite: %w", err)
	}
	defer f.Close()
	s := &salvager{path: path, file: f, dst: dst, report: report, rows: map[int64]sessionFound{}, taken: map[session.ID]bool{}}
	s.inbox = map[session.ID][]sqlstore.Line{}
	err = f.Rows(func(rows []pages.Row) error {
		s.take(rows)
		return ctx.Err()
	})
	if err == nil {
		err = s.all(ctx)
	}
	if err == nil && f.Changed() {
		err = fmt.Errorf("sqlite: %s was written to while it was read: try again when no program uses it", path)
	}
	return s.done, err
}

// HasRecords reports whether the file at path has a row of the table records,
// whatever else is in it.
func HasRecords(path string) bool {
	path, err := resolve(path)
	if err != nil {
		return false
	}
	f, err := pages.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	err = f.Rows(func(rows []pages.Row) error {
		for _, r := range rows {
			if v, err := f.Values(r); recordTable.fits(r) && err == nil && json.Valid(recordTable.bytes(v, "data")) {
				return sqlx.ErrStop
			}
		}
		return nil
	})
	return err == sqlx.ErrStop
}

// table is how the rows of a table are stored.
type table struct {
	columns []string
	kinds   string // of the columns: n is the number of the row, T a text or NULL
	least   int    // later versions add columns after these
}

var (
	sessionTable = stored("sessions", "nttttt"+"T"+"iiii"+"ttt"+"iiiii"+"t"+"ii"+"tttttt"+"i")
	recordTable  = stored("records", "nttttb")
	inboxTable   = table{[]string{"n", "data"}, "nb", 2}
)

// stored returns the table name as schema creates it. Generated columns are not
// stored.
func stored(name, kinds string) table {
	t := table{kinds: kinds, least: len(kinds)}
	_, text, _ := strings.Cut(schema, "CREATE TABLE "+name+" (\n")
	text, _, _ = strings.Cut(text, "\n)")
	for line := range strings.Lines(text) {
		if column, _, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.Contains(line, "GENERATED") {
			t.columns = append(t.columns, column)
		}
	}
	return t
}

// fits reports whether r can be a row of t.
func (t table) fits(r pages.Row) bool {
	if r.ID <= 0 || len(r.Types) < t.least || len(r.Types) > len(t.columns)+8 {
		return false
	}
	for i, k := range t.kinds {
		v := r.Types[i]
		ok := false
		switch k {
		case 'n':
			ok = v.Null()
		case 't':
			ok = v.Text()
		case 'T':
			ok = v.Text() || v.Null()
		case 'i':
			ok = v.Int()
		case 'b':
			ok = v.Blob() || v.Text()
		}
		if !ok {
			return false
		}
	}
	return true
}

// bytes returns the text or blob in a column, nil if there is none.
func (t table) bytes(v []pages.Value, column string) []byte {
	if i := slices.Index(t.columns, column); i >= 0 && i < len(v) {
		return v[i].Bytes
	}
	return nil
}

// number returns the number in a column, if there is one.
func (t table) number(v []pages.Value, column string) (n int64, ok bool) {
	i := slices.Index(t.columns, column)
	if i < 0 || i >= len(v) || v[i].Null {
		return 0, false
	}
	return v[i].Int, true
}

// infoRow is a row of the table sessions as sqlstore.Scan reads it.
type infoRow struct {
	n      int64
	values []pages.Value
}

var scanColumns = sqlstore.ScanColumns()

func (r infoRow) Int(col int) int64 {
	if col == 0 {
		return r.n
	}
	if i := slices.Index(sessionTable.columns, scanColumns[col]); i >= 0 && i < len(r.values) {
		return r.values[i].Int
	}
	return 0
}

func (r infoRow) Text(col int) string { return string(sessionTable.bytes(r.values, scanColumns[col])) }

// salvager collects what is on the pages of a damaged database.
type salvager struct {
	path   string
	file   *pages.File
	dst    session.Store
	report func(session.ID, error)

	found []candidate            // rows of records
	rows  map[int64]sessionFound // of sessions, by number
	inbox map[session.ID][]sqlstore.Line
	taken map[session.ID]bool // ids of sessions that are done
	done  Recovered
	// rowless is how many sessions have no row.
	rowless int
}

// candidate is a row that may be the record at the position of its ID.
type candidate struct {
	pages.Row
	// odd says that its position contradicts its page: it is not what follows
	// the row before it, or is not within the page's range.
	odd bool
}

// sessionFound is what the row of a session says.
type sessionFound struct {
	session.Info
	later bool // see pages.Row
}

// take notes the rows of a page.
func (s *salvager) take(rows []pages.Row) {
	first := len(s.found)
	for _, r := range rows {
		switch {
		case recordTable.fits(r) && r.ID>>32 > 0 && r.ID&maxSeq > 0:
			c := candidate{r.Bare(), r.Apart}
			if n := len(s.found); n > first && !follows(s.found[n-1].ID, r.ID) {
				s.found[n-1].odd, c.odd = true, true
			}
			s.found = append(s.found, c)
		case sessionTable.fits(r):
			if v, err := s.file.Values(r); err == nil {
				_, in := sqlstore.Scan(infoRow{r.ID, v})
				old, ok := s.rows[r.ID]
				if newer := in.Last > old.Last || in.Last == old.Last && r.Later && !old.later; in.ID != "" && (newer || !ok) {
					s.rows[r.ID] = sessionFound{in, r.Later}
				}
			}
		case inboxTable.fits(r) && len(r.Types) == 2 && s.mayHaveInbox():
			if v, err := s.file.Values(r); err == nil {
				s.takeInbox(v[1].Bytes)
			}
		}
	}
}

// takeInbox notes the lines in b, which may be a row of another table.
func (s *salvager) takeInbox(b []byte) {
	in := inboxed{map[session.ID][]sqlstore.Line{}, nil}
	in.take(s.path, b)
	for id, lines := range in.lines {
		for _, l := range lines {
			if l.Seq > 0 && bytes.HasPrefix(l.Data, []byte("{")) && json.Valid(l.Data) {
				s.inbox[id] = append(s.inbox[id], l)
			}
		}
	}
}

// follows reports whether the record at b can come right after that at a: it
// continues its session or begins another.
func follows(a, b int64) bool { return b == a+1 || b>>32 > a>>32 && b&maxSeq == 1 }

// mayHaveInbox reports whether the database may be of schema 1.
func (s *salvager) mayHaveInbox() bool {
	return s.file.Header == nil || binary.BigEndian.Uint32(s.file.Header[60:]) == 1
}

// all appends every session to dst.
func (s *salvager) all(ctx context.Context) error {
	sort.SliceStable(s.found, func(i, j int) bool { return s.found[i].ID < s.found[j].ID })
	numbers := map[int64][]candidate{}
	for rest := s.found; len(rest) > 0; {
		n := rest[0].ID >> 32
		end := slices.IndexFunc(rest, func(c candidate) bool { return c.ID>>32 != n })
		if end < 0 {
			end = len(rest)
		}
		numbers[n], rest = rest[:end], rest[end:]
	}
	var order []int64
	for n := range numbers {
		order = append(order, n)
	}
	for n := range s.rows {
		if numbers[n] == nil {
			order = append(order, n)
		}
	}
	slices.Sort(order)
	for _, n := range order {
		if err := s.one(ctx, n, s.spots(n, numbers[n])); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.inbox)) { // sessions that are nowhere else
		if !s.taken[id] {
			s.rows[0] = sessionFound{Info: session.Info{ID: id, Key: session.Key(id)}}
			if err := s.one(ctx, 0, nil); err != nil {
				return err
			}
		}
	}
	if s.rowless > 0 {
		s.report("", fmt.Errorf("%s: %d session rows are lost: what they said is computed from the records, except which sessions were in the trash", s.path, s.rowless))
	}
	return nil
}

// spot is a record by its number, the rows that may be it, and its line if that
// is in the inbox.
type spot struct {
	seq  session.Seq
	rows []candidate
	line []byte
}

// spots groups the rows of session n by number, the best row of each first. It
// leaves out odd rows that have no neighbour and are not known to the row of the
// session: their number is damaged.
func (s *salvager) spots(n int64, all []candidate) (out []spot) {
	row, known := s.rows[n]
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].ID == all[i].ID {
			j++
		}
		p := spot{seq: session.Seq(all[i].ID & maxSeq), rows: slices.Clone(all[i:j])}
		before := i > 0 && all[i-1].ID == all[i].ID-1
		after := j < len(all) && all[j].ID == all[i].ID+1
		if !before && !after && !(known && p.seq <= row.Last) {
			p.rows = slices.DeleteFunc(p.rows, func(c candidate) bool {
				if c.odd {
					s.report("", fmt.Errorf("%s: page %d has a row that says it is record %d of session %d, which contradicts the rows around it: it is left out", s.path, c.Page, p.seq, n))
				}
				return c.odd
			})
		}
		sort.SliceStable(p.rows, func(i, j int) bool { return rank(p.rows[i]) < rank(p.rows[j]) })
		if len(p.rows) > 0 {
			out = append(out, p)
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

// withInbox adds the lines of session id that are in the inbox.
func (s *salvager) withInbox(spots []spot, id session.ID) []spot {
	lines := s.inbox[id]
	if len(lines) == 0 {
		return spots
	}
	for _, l := range lines {
		spots = append(spots, spot{seq: l.Seq, line: l.Data})
	}
	sort.SliceStable(spots, func(i, j int) bool { return spots[i].seq < spots[j].seq })
	var out []spot
	for _, p := range spots {
		if n := len(out); n > 0 && out[n-1].seq == p.seq {
			out[n-1].line = p.line
			continue
		}
		out = append(out, p)
	}
	return out
}

// record returns the record at p: that of the first row whose line can be parsed
// and agrees with its checksum and with the columns next to it. If there is no such
// row, doubt says what is wrong with the one returned; it is not ok if none can be
// parsed.
func (s *salvager) record(p spot) (rec session.Record, doubt error, ok bool) {
	for _, c := range p.rows {
		v, err := s.file.Values(c.Row)
		if err != nil {
			doubt = cmp.Or(doubt, fmt.Errorf("page %d: %w", c.Page, err))
			continue
		}
		r, err := s.decode(p.seq, recordTable.bytes(v, "data"))
		if err != nil {
			doubt = cmp.Or(doubt, fmt.Errorf("page %d: %w", c.Page, err))
			continue
		}
		wrong := s.doubt(c, p.seq, r, v)
		if wrong == nil {
			return r, nil, true
		}
		if !ok {
			rec, doubt, ok = r, fmt.Errorf("page %d: %w", c.Page, wrong), true
		}
	}
	if r, err := s.decode(p.seq, p.line); p.line != nil && err == nil {
		return r, nil, true
	}
	return rec, doubt, ok
}

// doubt returns what is wrong with the record r, which was read from the values
// of a row.
func (s *salvager) doubt(c candidate, seq session.Seq, r session.Record, v []pages.Value) error {
	data := recordTable.bytes(v, "data")
	column := func(name string) string { return string(recordTable.bytes(v, name)) }
	sum, summed := recordTable.number(v, "crc32c")
	if d := sqlstore.Changed(s.path, seq, data, sum, summed); d != nil {
		return errors.New(d.Reason)
	}
	l := sqlstore.NewLine(r, data)
	switch {
	case column("id") != l.ID || column("parent") != l.Parent || column("type") != l.Type || column("time") != l.Time:
		return fmt.Errorf("the line of record %d differs from the columns next to it: one of them is damaged", seq)
	case c.Later && !summed:
		return fmt.Errorf("record %d is from a damaged or unfinished part of the write-ahead log: it may be damaged", seq)
	}
	return nil
}

func (s *salvager) decode(seq session.Seq, data []byte) (session.Record, error) {
	r, d := sqlstore.Decode(s.path, seq, data, func() (string, string, string) { return "", "", "" })
	if d != nil {
		return r, errors.New(d.Reason)
	}
	return r, nil
}

// maxGap limits how many lost records in a row are replaced. A number that is
// further away is damaged.
const maxGap = 1 << 20

// one appends the session n, whose records are at spots.
func (s *salvager) one(ctx context.Context, n int64, spots []spot) error {
	row, known := s.rows[n]
	in := recovered(n)
	if known {
		in = row.Info
	}
	var key session.Key // that the header says
	if len(spots) > 0 && spots[0].seq == 1 {
		first, doubt, _ := s.record(spots[0])
		if h, ok := first.Body.(session.Header); ok && h.ID != "" && (doubt == nil || !known) {
			in.ID, key = h.ID, h.Key
		}
	}
	if known && in.ID != row.ID {
		s.report(in.ID, fmt.Errorf("its row says that its id is %q: one of them is damaged", row.ID))
		in, known = session.Info{ID: in.ID, Key: key}, false
	}
	if s.taken[in.ID] {
		s.report(in.ID, fmt.Errorf("another session has this id: this one becomes %s", recovered(n).ID))
		in.ID = recovered(n).ID
	}
	s.taken[in.ID] = true
	spots = s.withInbox(spots, in.ID)
	l := restored{salvager: s, ctx: ctx, info: in}
	for _, p := range spots {
		if err := l.keep(p); err != nil {
			return err
		}
	}
	if known {
		l.tail(row.Last)
	} else {
		s.rowless++
	}
	if err := l.flush(); err != nil || l.at == 0 {
		return err
	}
	s.done.Sessions++
	if s.dst != nil && known && !row.Trashed.IsZero() {
		return s.dst.Delete(ctx, in.ID)
	}
	return nil
}

// restored is a session that is being appended to a new store.
type restored struct {
	*salvager
	ctx   context.Context
	info  session.Info // what is known of it without its header
	at    session.Seq  // the last record that was added
	why   error        // of the records lost since
	batch []session.Record
	size  int
}

// keep adds the record at p, and what is lost before it.
func (l *restored) keep(p spot) error {
	rec, doubt, ok := l.record(p)
	h, header := rec.Body.(session.Header)
	if ok && p.seq == 1 && (!header || h.ID != l.info.ID) {
		ok = false
		if header { // its id is another session's
			l.info.Key = h.Key
		}
	}
	if !ok {
		l.why = cmp.Or(l.why, doubt)
		return nil
	}
	if p.seq-l.at > maxGap {
		l.report(l.info.ID, fmt.Errorf("a row says that it is record %d, and there is none from %d: it is left out", p.seq, l.at+1))
		return nil
	}
	if doubt != nil {
		l.report(l.info.ID, doubt)
	}
	if err := l.gap(p.seq - 1); err != nil {
		return err
	}
	l.done.Records++
	return l.add(rec)
}

// gap replaces the lost records up to to. The header is made from what is known
// of the session.
func (l *restored) gap(to session.Seq) error {
	if to <= l.at {
		return nil
	}
	from := l.at + 1
	recs, d := sqlstore.Missing(l.path, from, to)
	l.lost(from, to, d)
	for i, r := range recs {
		if r.Seq == 1 {
			in := l.info
			recs[i] = session.Record{Seq: 1, Time: in.Created, Body: session.Header{
				Version: session.Version, ID: in.ID, Key: in.Key, CWD: in.CWD, Parent: in.Parent, Origin: in.Origin,
			}}
		}
		if err := l.add(recs[i]); err != nil {
			return err
		}
	}
	return nil
}

// lost reports that records are lost.
func (l *restored) lost(from, to session.Seq, d *session.Damage) {
	d.Reason = fmt.Sprintf("record %d is lost", from)
	if to > from {
		d.Reason = fmt.Sprintf("records %d to %d are lost", from, to)
	}
	if l.why != nil {
		d.Reason += ": " + l.why.Error()
	}
	if from == 1 {
		d.Reason += fmt.Sprintf("; its header is made from what is known without it: its key is %q", l.info.Key)
	}
	l.why = nil
	l.done.Lost += int(min(to-from+1, maxGap))
	l.report(l.info.ID, d)
}

// tail reports the records that are lost after the last one that was added. The
// row of the session says that there were so many. They are not replaced: nothing
// comes after them.
func (l *restored) tail(last session.Seq) {
	switch {
	case l.at == 0:
		l.done.Lost += int(min(last, maxGap))
		l.report(l.info.ID, fmt.Errorf("nothing is left of it: its row says that its key was %q and that it had %d records", l.info.Key, last))
	case last > l.at:
		l.lost(l.at+1, last, &session.Damage{File: l.path, After: l.at})
	}
}

func (l *restored) add(r session.Record) error {
	l.at = r.Seq
	l.batch = append(l.batch, r)
	l.size += len(r.Raw)
	if len(l.batch) < 1000 && l.size < 4<<20 {
		return nil
	}
	return l.flush()
}

// flush appends the batch. A record that the store refuses is replaced.
func (l *restored) flush() error {
	defer func() { l.batch, l.size = l.batch[:0], 0 }()
	if l.dst == nil || len(l.batch) == 0 {
		return l.ctx.Err()
	}
	if err := l.dst.Append(l.ctx, l.info.ID, l.batch...); err == nil || l.ctx.Err() != nil {
		return err
	}
	for _, r := range l.batch {
		err := l.dst.Append(l.ctx, l.info.ID, r)
		if err == nil {
			continue
		}
		recs, _ := sqlstore.Missing(l.path, r.Seq, r.Seq)
		if e := l.dst.Append(l.ctx, l.info.ID, recs...); e != nil {
			return err
		}
		l.report(l.info.ID, fmt.Errorf("record %d cannot be kept: %w", r.Seq, err))
		l.done.Records--
		l.done.Lost++
	}
	return nil
}
