// Package sqlstore holds what stores in SQL databases share: the columns of a
// session, the statements, and records as lines.
//
// A database has a table of sessions, one row for each log, whose columns are
// the log's Info, and a table of records, whose data column holds the native
// line. The records are the truth. The row of a session is a projection: it is
// written in the same transaction and can be computed from the records.
package sqlstore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/session"
	"goclaw/session/storekit"
)

// columns of a session, in the order of Values and Scan, and those that most
// records change, in the order of Usual.
var (
	columns = []string{"id", "key", "origin_program", "origin_path", "origin_key", "origin_id", "origin_seq", "parent", "cwd", "created",
		"title", "updated", "records", "last", "compactions",
		"spent_input", "spent_output", "spent_cache_read", "spent_cache_write",
		"turns", "provider", "model", "thinking", "used", "leaf", "keep_from", "last_bend"}
	usual = []string{"updated", "records", "last", "spent_input", "spent_output", "spent_cache_read", "spent_cache_write", "turns", "used", "leaf"}
)

// Statements with parameters $1, $2 ... in the order in which they first appear.
var (
	// InsertSession takes Values.
	InsertSession = fmt.Sprintf("INSERT INTO sessions (%s) VALUES (%s)", strings.Join(Columns(), ", "), params(1, len(Columns())))
	// UpdateSession takes Usual and the number of the session.
	UpdateSession = fmt.Sprintf("UPDATE sessions SET %s WHERE n = $%d", assign(usual), len(usual)+1)
	// RewriteSession takes Values and the number of the session.
	RewriteSession = fmt.Sprintf("UPDATE sessions SET %s WHERE n = $%d", assign(Columns()), len(Columns())+1)
	// SelectSession takes an id. Scan reads its rows.
	SelectSession = fmt.Sprintf("SELECT n, trashed, %s FROM sessions WHERE id = $1", strings.Join(Columns(), ", "))
	// SelectNumber takes the number of a session. Scan reads its rows.
	SelectNumber = fmt.Sprintf("SELECT n, trashed, %s FROM sessions WHERE n = $1", strings.Join(Columns(), ", "))

	TrashSession = "UPDATE sessions SET trashed = $1 WHERE id = $2"
	DropSession  = "DELETE FROM sessions WHERE n = $1"
)

// ScanColumns returns the columns that Scan expects, in its order.
func ScanColumns() []string { return append([]string{"n", "trashed"}, Columns()...) }

// Columns returns the columns of Values.
func Columns() []string { return slices.Clone(columns) }

func params(from, n int) string {
	var p []string
	for i := range n {
		p = append(p, fmt.Sprint("$", from+i))
	}
	return strings.Join(p, ", ")
}

func assign(cols []string) string {
	var a []string
	for i, c := range cols {
		a = append(a, fmt.Sprintf("%s = $%d", c, i+1))
	}
	return strings.Join(a, ", ")
}

// Values returns in as the values of all columns: int64 and string.
func Values(in session.Info) []any {
	o := in.Origin
	return []any{
		string(in.ID), string(in.Key), storekit.ProgramOf(o), o.Path, string(o.Key), string(o.ID), int64(o.Seq), in.Parent, in.CWD, Stamp(in.Created),
		in.Title, Stamp(in.Updated), int64(in.Records), int64(in.Last), int64(in.Compactions),
		int64(in.Spent.Input), int64(in.Spent.Output), int64(in.Spent.CacheRead), int64(in.Spent.CacheWrite),
		int64(in.Turns), in.Provider, in.Model, in.Thinking, int64(in.Used), in.Leaf, int64(in.KeepFrom), int64(in.LastBend),
	}
}

// Usual returns the values of the columns that most records change.
func Usual(in session.Info) []any {
	return []any{
		Stamp(in.Updated), int64(in.Records), int64(in.Last),
		int64(in.Spent.Input), int64(in.Spent.Output), int64(in.Spent.CacheRead), int64(in.Spent.CacheWrite),
		int64(in.Turns), int64(in.Used), in.Leaf,
	}
}

// unusual returns in without what Usual returns.
func unusual(in session.Info) session.Info {
	var none session.Info
	in.Updated, in.Records, in.Last, in.Spent, in.Turns, in.Used, in.Leaf = none.Updated, 0, 0, none.Spent, 0, 0, ""
	return in
}

// Row is the current row of a query. The first column is 0; NULL reads as 0
// and "".
type Row interface {
	Int(col int) int64
	Text(col int) string
}

// Scan returns the session in r: its number and its Info.
func Scan(r Row) (n int64, in session.Info) {
	col := 1
	num := func() int { col++; return int(r.Int(col - 1)) }
	text := func() string { col++; return r.Text(col - 1) }
	n = r.Int(0)
	if t := text(); t != "" {
		in.Trashed = parseStamp(t)
	}
	in.ID, in.Key = session.ID(text()), session.Key(text())
	storekit.SetProgram(&in.Origin, text())
	in.Origin.Path = text()
	in.Origin.Key, in.Origin.ID, in.Origin.Seq = session.Key(text()), session.ID(text()), session.Seq(num())
	in.Parent, in.CWD, in.Created = text(), text(), parseStamp(text())
	in.Title, in.Updated = text(), parseStamp(text())
	if in.Updated.Before(in.Created) {
		in.Updated = in.Created // rows of forks may hold an older time
	}
	in.Records, in.Last, in.Compactions = num(), session.Seq(num()), num()
	in.Spent.Input, in.Spent.Output, in.Spent.CacheRead, in.Spent.CacheWrite = num(), num(), num(), num()
	in.Turns = num()
	in.Provider, in.Model, in.Thinking = text(), text(), text()
	in.Used, in.Leaf = num(), text()
	in.KeepFrom, in.LastBend = session.Seq(num()), session.Seq(num())
	return n, in
}

// SelectSessions returns a statement that finds at least the sessions of q, and
// its arguments. Scan reads the rows, and q.Match decides. The rows have no
// order and no limit: Order sorts faster than SQL sorts whole rows, and SQLite
// would prepare the statement again for each limit.
func SelectSessions(q session.Query) (sql string, args []any) {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT n, trashed, %s FROM sessions WHERE trashed IS ", strings.Join(Columns(), ", "))
	if q.Trash {
		b.WriteString("NOT ")
	}
	b.WriteString("NULL")
	where := func(col string, v any) {
		args = append(args, v)
		fmt.Fprintf(&b, " AND %s = $%d", col, len(args))
	}
	if q.ID != "" {
		where("id", string(q.ID))
	}
	if q.Key != "" {
		where("key", string(q.Key))
	}
	return b.String(), args
}

// Order returns the indices of infos in the order of List. It sorts copies of the
// times, because an Info is large and the next one is far away.
func Order(infos []session.Info) []int {
	type place struct {
		at time.Time
		i  int
	}
	places := make([]place, len(infos))
	for i := range infos {
		places[i] = place{infos[i].Updated, i}
	}
	slices.SortFunc(places, func(a, b place) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return cmp.Compare(infos[a.i].ID, infos[b.i].ID)
	})
	order := make([]int, len(infos))
	for i, p := range places {
		order[i] = p.i
	}
	return order
}

// Years without exactly four digits follow a mark that sorts them after (or
// before) all others.
const (
	stampForm = "2006-01-02T15:04:05.000000000Z"
	lateMark  = "~"
	earlyMark = "-"
)

// Stamp returns t to the nanosecond, as a text that sorts by time.
func Stamp(t time.Time) string {
	t = t.UTC()
	s := t.Format(stampForm)
	if y := t.Year(); y > 9999 {
		return fmt.Sprintf("%s%06d%s", lateMark, y, s[strings.Index(s, "-"):])
	} else if y < 0 {
		return fmt.Sprintf("%s%06d%s", earlyMark, 1_000_000+y, s[1+strings.Index(s[1:], "-"):])
	}
	return s
}

// parseStamp parses a Stamp. Anything else is the zero time.
func parseStamp(s string) time.Time {
	year, base := 0, 0
	switch {
	case strings.HasPrefix(s, lateMark) && len(s) > 7:
		s = s[1:]
	case strings.HasPrefix(s, earlyMark) && len(s) > 7:
		s, base = s[1:], -1_000_000
	}
	y, rest, _ := strings.Cut(s, "-")
	for _, c := range []byte(y) {
		year = year*10 + int(c-'0')
	}
	if len(rest) != len("01-02T15:04:05.000000000Z") {
		return time.Time{}
	}
	at := func(i, n int) (v int) {
		for _, c := range []byte(rest[i : i+n]) {
			v = v*10 + int(c-'0')
		}
		return v
	}
	return time.Date(year+base, time.Month(at(0, 2)), at(3, 2), at(6, 2), at(9, 2), at(12, 2), at(15, 9), time.UTC)
}

// Line is a record to be written: its line and the values of the columns beside
// it.
type Line struct {
	Seq    session.Seq
	ID     string
	Parent string
	Type   string
	Time   string // a Stamp
	Data   []byte
	Sum    int64 // the CRC-32C of Data
}

// Encode returns recs and their lines. The times in recs are those of the lines,
// so that both add up to the same.
func Encode(recs []session.Record) ([]session.Record, []Line, error) {
	out, lines := make([]session.Record, len(recs)), make([]Line, len(recs))
	for i, r := range recs {
		data, err := codec.Native.Encode(r)
		if err != nil {
			return nil, nil, err
		}
		if len(r.Raw) == 0 {
			r.Time = r.Time.UTC().Truncate(time.Millisecond)
		}
		out[i], lines[i] = r, NewLine(r, data)
	}
	return out, lines, nil
}

// NewLine returns the Line of r, whose line is data.
func NewLine(r session.Record, data []byte) Line {
	return Line{Seq: r.Seq, ID: r.ID, Parent: r.Parent, Type: typeOf(data), Time: Stamp(r.Time), Data: data, Sum: int64(native.Checksum(data))}
}

// typeOf returns the type of a line.
func typeOf(line []byte) string {
	const first = `{"type":"`
	if rest, ok := bytes.CutPrefix(line, []byte(first)); ok {
		if t, _, ok := bytes.Cut(rest, []byte{'"'}); ok && bytes.IndexByte(t, '\\') < 0 {
			return string(t)
		}
	}
	var l struct{ Type string }
	_ = json.Unmarshal(line, &l) // a malformed line has no type
	return l.Type
}

// Decode returns the record with the line data. If the line cannot be parsed, it
// returns damage and an Unknown that holds the record's place, with the values
// of the columns beside it.
func Decode(file string, seq session.Seq, data []byte, beside func() (id, parent, typ string)) (session.Record, *session.Damage) {
	recs, err := codec.Native.Decode(data)
	if err == nil && len(recs) == 1 {
		recs[0].Seq = seq
		return recs[0], nil
	}
	reason := fmt.Sprintf("record %d holds %d lines", seq, len(recs))
	if err != nil {
		reason = fmt.Sprintf("record %d: %v", seq, err)
	}
	id, parent, typ := beside()
	r := session.Record{Seq: seq, ID: id, Parent: parent, Body: session.Unknown{Type: typ}, Raw: bytes.Clone(data)}
	if id == "" {
		r.Link = session.Blank
	}
	return r, &session.Damage{File: file, After: seq - 1, Size: int64(len(data)), Reason: reason}
}

// Changed returns damage if data is not the line that was written as the record
// seq: sum is its checksum then, if summed. A native line has one of its own as
// well.
func Changed(file string, seq session.Seq, data []byte, sum int64, summed bool) *session.Damage {
	_, err := native.Check(data)
	if got := int64(native.Checksum(data)); summed && got != sum {
		err = fmt.Errorf("its line has the CRC-32C %08x, its checksum is %08x", got, sum)
	}
	if err == nil {
		return nil
	}
	return &session.Damage{File: file, After: seq - 1, Size: int64(len(data)), Changed: seq, Reason: fmt.Sprintf("record %d has changed since it was written: %v", seq, err)}
}

// Missing returns what Read yields for lost records, from from to to: one
// damage, and records that hold their places.
func Missing(file string, from, to session.Seq) ([]session.Record, *session.Damage) {
	d := &session.Damage{File: file, After: from - 1, Reason: fmt.Sprintf("record %d is missing", from)}
	if to > from {
		d.Reason = fmt.Sprintf("records %d to %d are missing", from, to)
	}
	var recs []session.Record
	for seq := from; seq <= to; seq++ {
		recs = append(recs, Lost(seq))
	}
	return recs, d
}

// Lost returns the record that holds the place of a lost one.
func Lost(seq session.Seq) session.Record {
	return session.Record{Seq: seq, Link: session.Blank, Body: session.Unknown{}, Raw: json.RawMessage("null")}
}

// LostHeader returns the header of the session id, made from its row, so that a
// log whose header is lost keeps its key and can be copied.
func LostHeader(id session.ID, in session.Info) session.Record {
	return session.Record{Seq: 1, Time: in.Created, Body: session.Header{
		Version: session.Version, ID: id, Key: in.Key, CWD: in.CWD, Parent: in.Parent, Origin: in.Origin,
	}}
}
