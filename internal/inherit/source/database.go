package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs/readervfs"

	"goclaw/internal/codec"
	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Database is a database of another program, read through a snapshot. Its rows
// are read in pieces; if the owner has changed what was read, the piece is read
// again from a new snapshot.
type Database struct {
	Path   string
	Tables map[string]bool

	mu   sync.Mutex
	snap *snapshot
	conn *sqlx.Conn
	name string

	ending sync.Mutex
	then   []func() // what Close does as well
}

var databases atomic.Int64

// OpenDatabase opens the database at path for reading.
func OpenDatabase(path string) (*Database, error) {
	d := &Database{Path: path}
	if err := d.begin(); err != nil {
		return nil, err
	}
	return d, nil
}

// begin takes a new snapshot. While the owner copies its log into the database,
// one can be neither the old nor the new: then another is taken.
func (d *Database) begin() error {
	for try := 0; ; try++ {
		err := d.tryBegin()
		if err == nil || try == tries || errors.Is(err, fs.ErrPermission) {
			return err
		}
		if _, live := os.Stat(d.Path + "-wal"); live != nil {
			return err
		}
		time.Sleep(time.Duration(try) * 5 * time.Millisecond)
	}
}

func (d *Database) tryBegin() error {
	d.end()
	snap, err := openSnapshot(d.Path)
	if err != nil {
		return err
	}
	d.snap = snap
	d.name = fmt.Sprintf("inherit-%d.db", databases.Add(1))
	readervfs.Create(d.name, snap)
	d.conn, err = sqlx.Open("file:"+url.PathEscape(d.name)+"?vfs=reader", sqlite3.OPEN_READONLY|sqlite3.OPEN_URI, func(c *sqlx.Conn) error {
		return c.Exec("PRAGMA cache_size = -4000; PRAGMA query_only = ON")
	})
	if err == nil {
		d.Tables = map[string]bool{}
		err = d.Each("SELECT name FROM sqlite_schema WHERE type = 'table'", nil, func(s sqlx.Row) error {
			d.Tables[s.Text(0)] = true
			return nil
		})
	}
	if err == nil && !snap.current() {
		err = errors.New("it is being written")
	}
	if err != nil {
		d.end()
		return fmt.Errorf("the database cannot be read: %w", err)
	}
	return nil
}

// end closes the snapshot.
func (d *Database) end() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
	if d.snap != nil {
		readervfs.Delete(d.name)
		d.snap.close()
		d.snap = nil
	}
}

// Close ends the reading.
func (d *Database) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
	d.ending.Lock()
	defer d.ending.Unlock()
	for _, f := range d.then {
		f()
	}
	d.then = nil
}

// AtClose has f called when the reading ends.
func (d *Database) AtClose(f func()) {
	d.ending.Lock()
	defer d.ending.Unlock()
	d.then = append(d.then, f)
}

// tries is how often a piece is read again while the owner is busy.
const tries = 20

// View does f with the database at one moment. f may be called again.
func (d *Database) View(f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for try := 0; ; try++ {
		if d.snap == nil || !d.snap.current() {
			if err := d.begin(); err != nil {
				return err
			}
		}
		err := f()
		if d.snap.current() {
			return err
		}
		if try == tries {
			return errors.Join(errors.New("it changes faster than it can be read"), err)
		}
		time.Sleep(time.Duration(try) * 5 * time.Millisecond)
	}
}

// Each calls row for every row of a query, until it returns an error.
func (d *Database) Each(sql string, args []any, row func(sqlx.Row) error) error {
	return d.conn.Each(row, sql, args...)
}

// Damaged reports whether an error says that the database itself is damaged: of
// one that is whole, SQLite never says so.
func Damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.IOERR_SHORT_READ)
}

// maxGap is how many numbers of rows are tried to find the end of a damaged page.
const maxGap = 10_000

// Around calls row for the rows of a table, and skips those on damaged pages, if
// damaged is true. The columns come after the number of the row. Call it within
// View.
func (d *Database) Around(columns, table string, row func(sqlx.Row) error) (damaged bool, err error) {
	last, skip := int64(0), int64(0)
	for {
		met := false
		err := d.Each("SELECT rowid, "+columns+" FROM "+table+" NOT INDEXED WHERE rowid > $1 ORDER BY rowid", []any{last + skip}, func(s sqlx.Row) error {
			last, met = s.Int(0), true
			return row(s)
		})
		if !Damaged(err) {
			return damaged, err
		}
		damaged = true
		if skip++; met {
			skip = 1
		}
		if skip > maxGap {
			return true, nil
		}
	}
}

// Stat is the identity of the database, its write-ahead log included. Call it
// within View, or before anything else.
func (d *Database) Stat() Stat { return d.snap.stat }

// Has reports whether a table has all of the columns. Call it within View, or
// before anything else.
func (d *Database) Has(table string, columns ...string) bool {
	found := map[string]bool{}
	err := d.Each("SELECT name FROM pragma_table_info($1)", []any{table}, func(s sqlx.Row) error {
		found[s.Text(0)] = true
		return nil
	})
	return err == nil && !slices.ContainsFunc(columns, func(c string) bool { return !found[c] })
}

// Blob calls read with a value of a row. Call it within View.
func (d *Database) Blob(table, column string, row int64, read func(*sqlite3.Blob) error) error {
	b, err := d.conn.OpenBlob("main", table, column, row, false)
	if err != nil {
		return err
	}
	defer b.Close()
	return read(b)
}

// Rest closes the snapshot until something is read again: its memory grows with
// each read, and does not shrink.
func (d *Database) Rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
}

// Settled is how long a message must be unchanged to be taken for one that is not
// going to be finished, where a program changes its rows in place.
const Settled = 10 * time.Minute

// Fresh is part of the identity of a session that was changed at that time: it
// differs once nothing in it is waited for any more.
func Fresh(now, changed time.Time) int64 {
	if now.Sub(changed) < Settled {
		return 1 << 62
	}
	return 0
}

// Row is a row that holds a record: as its line, or as one that was made of it.
type Row struct {
	Number int // to name it by
	Line   []byte
	Record *session.Record // nil: it is read from Line
	Err    error           // why there is none
}

// Records yields the records of t, one of the sessions in d. next returns their
// rows piece by piece, none at the end. head returns the header that is due
// before the first record, if one is.
func (d *Database) Records(ctx context.Context, t *Transcript, part string, next func() ([]Row, error), head func(first session.Record) (session.Record, bool)) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		n := session.Seq(0)
		put := func(r session.Record) bool {
			n++
			r.Seq = n
			return yield(r, nil)
		}
		begin := func(first session.Record) bool {
			h, due := head(first)
			return !due || put(h)
		}
		for {
			rows, err := next()
			if err = errors.Join(err, ctx.Err()); err != nil {
				yield(session.Record{}, fmt.Errorf("%s: %w", d.Path, err))
				return
			}
			if len(rows) == 0 {
				if n == 0 {
					begin(session.Record{})
				}
				return
			}
			for i, r := range rows {
				rows[i].Line = nil
				t.Counted(len(r.Line))
				rec, err := r.record()
				if err != nil {
					d := &session.Damage{File: d.Path + "#" + part, Line: r.Number, After: n, Size: int64(len(r.Line)), Reason: err.Error()}
					if !yield(session.Record{}, d) {
						return
					}
					continue
				}
				if n == 0 && !begin(rec) || !put(rec) {
					return
				}
			}
		}
	}
}

// record reads the line of a row, whatever its spacing.
func (r Row) record() (session.Record, error) {
	switch {
	case r.Err != nil:
		return session.Record{}, r.Err
	case r.Record != nil && len(r.Record.Raw) > storekit.MaxRecord:
		return session.Record{}, fmt.Errorf("a message of %d bytes, the limit is %d", len(r.Record.Raw), storekit.MaxRecord)
	case r.Record != nil && strings.IndexByte(r.Record.ID, 0) < 0:
		return *r.Record, nil
	}
	line := r.Line
	if bytes.IndexByte(line, '\n') >= 0 {
		var b bytes.Buffer
		if json.Compact(&b, line) == nil {
			line = b.Bytes()
		}
	}
	recs, err := codec.Native.Decode(line)
	switch {
	case err != nil:
		return session.Record{}, err
	case len(recs) != 1:
		return session.Record{}, errors.New("an empty row")
	case strings.IndexByte(recs[0].ID, 0) >= 0:
		return session.Record{}, errors.New("an id with a NUL")
	}
	return recs[0], nil
}
