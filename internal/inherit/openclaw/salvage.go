package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/internal/pages"
	"goclaw/internal/sqlx"
	"goclaw/session"
)

// A damaged page costs the rows on it, and no others: the rows around it are read
// one by one. A page above them, or one of an index, holds no rows; then they are
// found without SQLite, page by page.

// salvage are the rows of transcript_events that are found page by page, by
// session and number. It is filled when it is needed.
type salvage struct {
	once sync.Once
	file *pages.File
	rows map[string]map[int64]pages.Row
	keys map[string]source.Entry // of sessions, as far as they are found
	err  error
}

// salvaged returns the rows that are found page by page.
func (d *database) salvaged() (map[string]map[int64]pages.Row, error) {
	s := &d.salvage
	s.once.Do(func() {
		s.rows, s.keys = map[string]map[int64]pages.Row{}, map[string]source.Entry{}
		f, err := pages.Open(d.Path)
		if err != nil {
			s.err = err
			return
		}
		s.file = f
		d.AtClose(func() { f.Close() })
		s.err = f.Rows(func(rows []pages.Row) error {
			for _, r := range rows {
				if isNode(r.Types) {
					if v, err := f.Values(r); err == nil {
						if e := readEntry(string(v[0].Bytes), v[2].Bytes); e.ID != "" && e.ID == string(v[1].Bytes) {
							s.keys[e.ID] = e
						}
					}
				}
				if !isEvent(r.Types) {
					continue
				}
				v, err := f.Values(r)
				if err != nil || !bytes.HasPrefix(v[2].Bytes, []byte("{")) && (len(v) < 5 || len(v[4].Bytes) == 0) {
					continue
				}
				id, seq := string(v[0].Bytes), v[1].Int
				if s.rows[id] == nil {
					s.rows[id] = map[int64]pages.Row{}
				}
				if have, ok := s.rows[id][seq]; !ok || (have.Apart || have.Later) && !r.Apart && !r.Later {
					s.rows[id][seq] = r.Bare()
				}
			}
			return nil
		})
	})
	return s.rows, s.err
}

// isEvent reports whether a row can be one of transcript_events: of the tables of
// OpenClaw, no other has these columns.
func isEvent(t []pages.Type) bool {
	text := func(i int) bool { return i >= len(t) || t[i].Text() || t[i].Null() }
	return len(t) >= 3 && t[0].Text() && t[1].Int() && text(2) && (len(t) < 4 || t[3].Int()) &&
		(len(t) < 5 || t[4].Blob() || t[4].Null()) && (len(t) < 6 || t[5].Int() || t[5].Null()) && text(6)
}

// isNode reports whether a row can be one of session_nodes or session_entries: a
// key, an id, and the entry that says the same.
func isNode(t []pages.Type) bool { return len(t) >= 3 && t[0].Text() && t[1].Text() && t[2].Text() }

// broken returns the sessions of a database that SQLite cannot read, because a
// page of its schema is damaged.
func broken(f *source.File) ([]*source.Transcript, error) {
	d, err := newDatabase(&source.Database{Path: f.Path})
	if err != nil {
		return nil, err
	}
	f.DB = d.Database // to be closed
	rows, err := d.salvaged()
	if err != nil {
		return nil, err
	}
	agent := cmp.Or(source.Text(source.AgentOf(f.Path)), "main")
	var out []*source.Transcript
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		p := part{table: inEvents, session: id}
		t := &source.Transcript{
			Program: Program, Path: f.Path, ID: session.ID(source.Text(id)), Archive: "orphan", Size: int64(len(rows[id])) * 2048, Stat: f.Stat, Form: codec.FormNative, Part: fmt.Sprintf("%d#%s", inEvents, id),
			Read: func(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
				left := upTo(-1, rows[id])
				return d.events(ctx, t, p, func() ([]source.Row, error) { return d.byKey(t, p, &left) })
			},
		}
		t.Key = recovered(agent, t.ID)
		if e, ok := d.salvage.keys[id]; ok {
			t.Key, t.Title, t.Archive, t.Listed = session.Key(e.Key), e.Title, "", true
		}
		out = append(out, t)
	}
	return out, nil
}

// upTo returns the numbers after one up to the last of rows: OpenClaw counts
// without gaps.
func upTo(after int64, rows map[int64]pages.Row) (out []int64) {
	if len(rows) == 0 {
		return nil
	}
	for seq, last := after+1, slices.Max(slices.Collect(maps.Keys(rows))); seq <= last; seq++ {
		out = append(out, seq)
	}
	return out
}

// sizes returns the sessions that have events, and the number of the last one.
func (d *database) sizes() (map[string]int64, error) {
	out := map[string]int64{}
	err := d.Each("SELECT session_id, max(seq) FROM transcript_events GROUP BY session_id", nil, func(s sqlx.Row) error {
		out[s.Text(0)] = s.Int(1)
		return nil
	})
	if !source.Damaged(err) {
		return out, err
	}
	rows, err := d.salvaged()
	for id, of := range rows {
		out[id] = max(out[id], slices.Max(slices.Collect(maps.Keys(of))))
	}
	return out, err
}

// seqs returns the numbers of the rows of p after one: as the index has them, else
// those that are found.
func (d *database) seqs(p part, after int64) (out []int64, err error) {
	err = d.View(func() error {
		out = nil
		return d.Each("SELECT seq FROM transcript_events WHERE session_id = $1 AND seq > $2 ORDER BY seq", []any{p.session, after}, func(s sqlx.Row) error {
			out = append(out, s.Int(0))
			return nil
		})
	})
	if !source.Damaged(err) {
		return out, err
	}
	rows, err := d.salvaged()
	if err != nil {
		return nil, err
	}
	return upTo(after, rows[p.session]), nil
}

// byKey reads the next rows of p one by one, and takes their numbers from seqs.
// Those that are lost together are one row with an error.
func (d *database) byKey(t *source.Transcript, p part, seqs *[]int64) (rows []source.Row, err error) {
	packed := "NULL"
	if d.packed {
		packed = "event_zstd"
	}
	query := "SELECT seq, octet_length(event_json), " + packed + ", event_json FROM transcript_events WHERE session_id = $1 AND seq = $2"
	size := 0
	for len(*seqs) > 0 && size < pieceBytes && len(rows) < pieceRows {
		seq := (*seqs)[0]
		*seqs = (*seqs)[1:]
		var found []source.Row
		if d.Tables != nil {
			found, err = d.read(t, query, p.session, seq)
		}
		if source.Damaged(err) || err == nil && len(found) == 0 {
			found, err = d.dug(p, seq)
		}
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			rows = lost(rows, int(seq)+1)
			continue
		}
		rows = append(rows, found...)
		size += len(found[0].Line)
	}
	return rows, nil
}

// lostRows says that rows are on a damaged page.
type lostRows struct{ first, last int }

func (l *lostRows) Error() string {
	if l.first == l.last {
		return fmt.Sprintf("row %d cannot be read: its page of the database is damaged", l.first)
	}
	return fmt.Sprintf("rows %d to %d cannot be read: a page of the database is damaged", l.first, l.last)
}

// lost adds a row that cannot be read, with those before it if there are any.
func lost(rows []source.Row, number int) []source.Row {
	if n := len(rows); n > 0 {
		if l, ok := rows[n-1].Err.(*lostRows); ok && l.last == number-1 {
			l.last = number
			return rows
		}
	}
	return append(rows, source.Row{Number: number, Err: &lostRows{number, number}})
}

// dug returns a row that was found page by page, if it was.
func (d *database) dug(p part, seq int64) ([]source.Row, error) {
	rows, err := d.salvaged()
	r, ok := rows[p.session][seq]
	if err != nil || !ok {
		return nil, err
	}
	v, err := d.salvage.file.Values(r)
	if err != nil {
		return nil, nil // it continues on the damaged page
	}
	out := source.Row{Number: int(seq) + 1, Line: v[2].Bytes}
	if v[2].Null && len(v) > 4 {
		out.Line, out.Err = d.unpacked(v[4].Bytes)
	}
	return []source.Row{out}, nil
}
