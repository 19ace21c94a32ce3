package inherit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs/readervfs"

	"goclaw/codec"
	"goclaw/session"
)

// database is a database of OpenClaw, read through a snapshot. Its rows are
// read in pieces; if the owner has changed what was read, the piece is read
// again from a new snapshot.
type database struct {
	path string

	mu     sync.Mutex
	snap   *snapshot
	conn   *sqlite3.Conn
	name   string
	tables map[string]bool
	zstd   bool // transcript_events has packed rows
	unpack *zstd.Decoder
}

var databases atomic.Int64

func openDatabase(path string) (*database, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(session.MaxRecord))
	if err != nil {
		return nil, err
	}
	d := &database{path: path, unpack: z}
	if err := d.begin(); err != nil {
		z.Close()
		return nil, err
	}
	return d, nil
}

// begin takes a new snapshot. While the owner copies its log into the database,
// one can be neither the old nor the new: then another is taken.
func (d *database) begin() error {
	for try := 0; ; try++ {
		err := d.tryBegin()
		if err == nil || try == tries || errors.Is(err, fs.ErrPermission) {
			return err
		}
		if _, live := os.Stat(d.path + "-wal"); live != nil {
			return err
		}
		time.Sleep(time.Duration(try) * 5 * time.Millisecond)
	}
}

func (d *database) tryBegin() error {
	d.end()
	snap, err := openSnapshot(d.path)
	if err != nil {
		return err
	}
	d.snap = snap
	d.name = fmt.Sprintf("inherit-%d.db", databases.Add(1))
	readervfs.Create(d.name, snap)
	d.conn, err = sqlite3.Open("file:" + url.PathEscape(d.name) + "?vfs=reader")
	if err == nil {
		err = d.conn.Exec("PRAGMA cache_size = -4000; PRAGMA query_only = ON")
	}
	if err == nil {
		d.tables = map[string]bool{}
		err = d.each("SELECT name FROM sqlite_schema WHERE type = 'table'", nil, func(s *sqlite3.Stmt) error {
			d.tables[s.ColumnText(0)] = true
			return nil
		})
	}
	if err == nil && !snap.current() {
		err = errors.New("it is being written")
	}
	if err == nil && d.tables["transcript_events"] {
		d.zstd = false
		err = d.each("SELECT name FROM pragma_table_info('transcript_events')", nil, func(s *sqlite3.Stmt) error {
			d.zstd = d.zstd || s.ColumnText(0) == "event_zstd"
			return nil
		})
	}
	if err != nil {
		d.end()
		return fmt.Errorf("the database cannot be read: %w", err)
	}
	return nil
}

// end lets go of the snapshot.
func (d *database) end() {
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

func (d *database) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
	d.unpack.Close()
}

// tries is how often a piece is read again while the owner is busy.
const tries = 20

// read does f with the database at one moment. f may be called again.
func (d *database) read(f func() error) error {
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

// each calls row for every row of a query.
func (d *database) each(sql string, args []any, row func(*sqlite3.Stmt) error) error {
	s, _, err := d.conn.Prepare(sql)
	if err != nil {
		return err
	}
	defer s.Close()
	for i, a := range args {
		switch a := a.(type) {
		case string:
			err = s.BindText(i+1, a)
		case int64:
			err = s.BindInt64(i+1, a)
		}
		if err != nil {
			return err
		}
	}
	for s.Step() {
		if err := row(s); err != nil {
			return err
		}
	}
	return s.Err()
}

// database looks at a database.
func (f *finder) database(path string, st stat, named bool) {
	d, err := openDatabase(path)
	if err != nil {
		f.problem(path, err)
		return
	}
	list := d.list
	if _, ok := d.earlier(); ok {
		list = d.earlierSessions
	} else if !d.tables["transcript_events"] {
		if named {
			f.problem(path, errors.New("not a database of sessions that is known here"))
		}
		d.close()
		return
	}
	f.c.databases = append(f.c.databases, d)
	var found []*Transcript
	err = d.read(func() error {
		found, err = list()
		return err
	})
	if err != nil {
		f.problem(path, err)
	}
	f.c.Transcripts = append(f.c.Transcripts, found...)
}

// list returns the transcripts of a database. Which tables say whose they are
// has changed over time: session_nodes and session_windows since schema 14,
// session_entries before.
func (d *database) list() ([]*Transcript, error) {
	agent := text(agentOf(d.path))
	if agent == "" && d.tables["schema_meta"] {
		// Not every version names its agent there.
		_ = d.each("SELECT agent_id FROM schema_meta WHERE agent_id <> '' LIMIT 1", nil, func(s *sqlite3.Stmt) error {
			agent = s.ColumnText(0)
			return nil
		})
	}
	agent = or(agent, "main")
	live := map[string]entry{} // by session
	taken := map[string]bool{} // keys
	table, id := "session_nodes", "current_session_id"
	if !d.tables[table] {
		table, id = "session_entries", "session_id"
	}
	if d.tables[table] {
		err := d.each("SELECT session_key, "+id+", entry_json FROM "+table+" ORDER BY 1", nil, func(s *sqlite3.Stmt) error {
			var e rawEntry
			_ = json.Unmarshal(s.ColumnRawText(2), &e) // its copies in columns hold what matters
			key := s.ColumnText(0)
			en := e.openClaw(key)
			live[s.ColumnText(1)] = entry{Key: key, Title: en.Title}
			taken[key] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	owner := map[string]string{}
	if d.tables["session_windows"] {
		if err := d.each("SELECT session_id, session_key FROM session_windows", nil, func(s *sqlite3.Stmt) error {
			owner[s.ColumnText(0)] = s.ColumnText(1)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	var out []*Transcript
	add := func(id, archive string, blob int, size int64) *Transcript {
		t := &Transcript{Program: OpenClaw, Path: d.path, ID: session.ID(text(id)), Archive: archive, Size: size, stat: d.snap.stat, form: codec.FormNative, old: d, window: id, blob: blob}
		if e, ok := live[id]; ok && archive == "" {
			t.Key, t.Title, t.listed = session.Key(e.Key), e.Title, true
		} else {
			t.Key, t.unlisted = recovered(agent, t.ID), blob == inEvents
		}
		out = append(out, t)
		return t
	}
	err := d.each("SELECT session_id, max(seq) FROM transcript_events GROUP BY session_id", nil, func(s *sqlite3.Stmt) error {
		id := s.ColumnText(0)
		archive := ""
		if _, ok := live[id]; !ok {
			archive = "window"
			if _, ok := owner[id]; !ok {
				archive = "orphan"
			}
		}
		add(id, archive, inEvents, (s.ColumnInt64(1)+1)*2048)
		return nil
	})
	if err == nil && d.tables["session_transcript_cold_archives"] {
		err = d.each("SELECT session_id, raw_bytes FROM session_transcript_cold_archives", nil, func(s *sqlite3.Stmt) error {
			id := s.ColumnText(0)
			archive := ""
			if _, ok := live[id]; !ok {
				archive = "cold"
			}
			add(id, archive, inCold, s.ColumnInt64(1))
			return nil
		})
	}
	if err == nil && d.tables["session_transcript_archives"] {
		err = d.each("SELECT session_id, generation, session_key, reason, length(archive_blob) FROM session_transcript_archives", nil, func(s *sqlite3.Stmt) error {
			t := add(s.ColumnText(0), s.ColumnText(3), inArchives, s.ColumnInt64(4)*4)
			t.window = s.ColumnText(0) + "\x00" + s.ColumnText(1)
			if key := s.ColumnText(2); key != "" && !taken[key] {
				t.Key = session.Key(key)
			}
			return nil
		})
	}
	return out, err
}

// piece is how many rows, and about how many bytes, are read at once.
const (
	pieceRows  = 500
	pieceBytes = 2 << 20
)

// records yields the events of t behind the row after.
func (d *database) records(ctx context.Context, t *Transcript, after int64) iter.Seq2[session.Record, error] {
	if t.blob != inEvents {
		return d.archive(ctx, t)
	}
	if t.Program == EarlierGoclaw {
		return d.earlierRecords(ctx, t)
	}
	cols := "seq, octet_length(event_json), NULL, event_json"
	if d.zstd {
		cols = "seq, octet_length(event_json), event_zstd, event_json"
	}
	query := "SELECT " + cols + " FROM transcript_events WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
	return func(yield func(session.Record, error) bool) {
		n := session.Seq(0)
		for begin := true; ; {
			type row struct {
				seq  int64
				line []byte
				err  error
			}
			var rows []row
			long := false // the next row is, or the last one was
			err := d.read(func() error {
				rows = rows[:0]
				size := 0
				long = false
				err := d.each(query, []any{t.window, after, int64(pieceRows)}, func(s *sqlite3.Stmt) error {
					r := row{seq: s.ColumnInt64(0)}
					length := s.ColumnInt64(1)
					if s.ColumnType(1) == sqlite3.NULL {
						length = unpackedSize(s.ColumnRawBlob(2))
					}
					if long = length > longLine; long && !t.inside && t.gate != nil {
						return errEnough
					}
					if s.ColumnType(1) != sqlite3.NULL {
						r.line = bytes.Clone(s.ColumnRawText(3))
					} else {
						r.line, r.err = d.unpack.DecodeAll(s.ColumnRawBlob(2), nil)
					}
					rows = append(rows, r)
					t.counted(len(r.line))
					if size += len(r.line); size > pieceBytes {
						return errEnough
					}
					return nil
				})
				if err == errEnough {
					err = nil
				}
				return err
			})
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(session.Record{}, fmt.Errorf("%s: %w", d.path, err))
				return
			}
			if long {
				if len(rows) == 0 {
					t.enter()
					continue
				}
				d.rest() // its memory grows, and does not shrink
				debug.FreeOSMemory()
			}
			if len(rows) == 0 {
				return
			}
			for i, r := range rows {
				rows[i].line = nil
				after = r.seq
				rec, err := event(r.line, r.err)
				if err != nil {
					if !yield(session.Record{}, &session.Damage{File: d.path + "#" + t.window, Line: int(r.seq) + 1, After: n, Size: int64(len(r.line)), Reason: err.Error()}) {
						return
					}
					continue
				}
				if _, ok := rec.Body.(session.Header); begin && !ok {
					n++
					if !yield(session.Record{Seq: n, Time: rec.Time, Body: *t.header()}, nil) {
						return
					}
				}
				begin = false
				n++
				rec.Seq = n
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

var errEnough = errors.New("enough")

// unpackedSize is the size that a packed row says it has, 0 if it does not.
func unpackedSize(packed []byte) int64 {
	var h zstd.Header
	if h.Decode(packed) != nil {
		return 0
	}
	return int64(h.FrameContentSize)
}

// rest lets go of the snapshot until something is read again.
func (d *database) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
}

// event reads the line of a row. It has one, whatever its spacing.
func event(line []byte, err error) (session.Record, error) {
	if err != nil {
		return session.Record{}, fmt.Errorf("a packed row that cannot be unpacked: %w", err)
	}
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

// archive yields a transcript that is kept whole: in a row, or in a file of
// the folder sessions/cold beside the database.
func (d *database) archive(ctx context.Context, t *Transcript) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		r, packed, err := d.whole(t)
		if err != nil {
			yield(session.Record{}, fmt.Errorf("%s: %w", d.path, err))
			return
		}
		defer r.Close()
		file := Transcript{Path: d.path + "#" + string(t.ID), ID: t.ID, form: codec.FormNative}
		counted := reader{r, t}
		if !packed {
			file.scan(ctx, counted, position{}, nil, yield)
			return
		}
		z, err := unpack(counted)
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		defer z.Close()
		file.scan(ctx, z, position{}, nil, yield)
	}
}

// whole opens what is kept of t, and reports whether it is packed.
func (d *database) whole(t *Transcript) (r io.ReadCloser, packed bool, err error) {
	b := &blob{d: d, table: "session_transcript_archives"}
	found, file := false, ""
	err = d.read(func() error {
		if t.blob == inArchives {
			id, generation, _ := strings.Cut(t.window, "\x00")
			return d.each("SELECT rowid, length(archive_blob), encoding = 'zstd' FROM session_transcript_archives WHERE session_id = $1 AND generation = $2", []any{id, generation}, func(s *sqlite3.Stmt) error {
				b.row, b.size, packed, found = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnBool(2), true
				return nil
			})
		}
		b.table, packed = "session_transcript_cold_archives", true
		return d.each("SELECT rowid, length(archive_blob), archive_name FROM session_transcript_cold_archives WHERE session_id = $1", []any{t.window}, func(s *sqlite3.Stmt) error {
			b.row, b.size, found = s.ColumnInt64(0), s.ColumnInt64(1), true
			if s.ColumnType(1) == sqlite3.NULL {
				file = filepath.Join(filepath.Dir(filepath.Dir(d.path)), "sessions", "cold", filepath.Base(s.ColumnText(2)))
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, false, err
	case !found:
		return nil, false, errors.New("its archive is no longer there")
	case file != "":
		f, err := OpenFile(file)
		if err != nil {
			return nil, false, err
		}
		return f, packed, nil
	}
	return b, packed, nil
}

// blob reads a value of a row piece by piece, however large it is.
type blob struct {
	d     *database
	table string
	row   int64
	size  int64
	off   int64
	buf   []byte
	rest  []byte // of buf
}

// blobPiece is how much of a value is read at once.
const blobPiece = 1 << 20

func (b *blob) Close() error { return nil }

func (b *blob) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.off == b.size {
			return 0, io.EOF
		}
		if b.buf == nil {
			b.buf = make([]byte, min(blobPiece, b.size))
		}
		piece := b.buf[:min(int64(len(b.buf)), b.size-b.off)]
		err := b.d.read(func() error {
			v, err := b.d.conn.OpenBlob("main", b.table, "archive_blob", b.row, false)
			if err != nil {
				return err
			}
			defer v.Close()
			if v.Size() != b.size {
				return errors.New("its archive has changed")
			}
			if _, err := v.Seek(b.off, io.SeekStart); err != nil {
				return err
			}
			_, err = io.ReadFull(v, piece)
			return err
		})
		if err != nil {
			return 0, err
		}
		b.off += int64(len(piece))
		b.rest = piece
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
