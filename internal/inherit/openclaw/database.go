package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/internal/sqlx"
	"goclaw/internal/wholefile"
	"goclaw/session"
	"goclaw/session/storekit"
)

// database is a database of OpenClaw.
type database struct {
	*source.Database
	packed  bool // transcript_events has packed rows
	unpack  *zstd.Decoder
	damaged []string // tables
	salvage salvage
}

// around calls row for the rows of a table that are not on damaged pages. It is
// well if there is no such table.
func (d *database) around(columns, table string, row func(sqlx.Row) error) error {
	if !d.Tables[table] {
		return nil
	}
	damaged, err := d.Around(columns, table, row)
	if damaged {
		d.damaged = append(d.damaged, table)
	}
	return err
}

func newDatabase(d *source.Database) (*database, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(storekit.MaxRecord))
	if err != nil {
		return nil, err
	}
	return &database{Database: d, packed: d.Tables != nil && d.Has("transcript_events", "event_zstd"), unpack: z}, nil
}

// part is one session in a database: its rows, or an archive of it.
type part struct {
	table      int
	session    string
	generation string // of an archive
}

// The tables that a database keeps transcripts in.
const (
	inEvents = iota
	inArchives
	inCold
)

func (p part) window() string {
	if p.table == inArchives {
		return p.session + "\x00" + p.generation
	}
	return p.session
}

// list returns the transcripts of a database. Which tables say whose they are
// has changed over time: session_nodes and session_windows since schema 14,
// session_entries before.
func (d *database) list() ([]*source.Transcript, error) {
	agent := source.Text(source.AgentOf(d.Path))
	if agent == "" && d.Tables["schema_meta"] {
		// Not every version names its agent there.
		_ = d.Each("SELECT agent_id FROM schema_meta WHERE agent_id <> '' LIMIT 1", nil, func(s sqlx.Row) error {
			agent = s.Text(0)
			return nil
		})
	}
	agent = cmp.Or(agent, "main")
	live := map[string]source.Entry{} // by session
	taken := map[string]bool{}        // keys
	table, id := "session_nodes", "current_session_id"
	if !d.Tables[table] {
		table, id = "session_entries", "session_id"
	}
	err := d.around("session_key, "+id+", entry_json", table, func(s sqlx.Row) error {
		key := s.Text(1)
		// Its copies in columns hold everything that matters except the title and when it was archived.
		e := readEntry(key, s.ColumnRawText(3))
		live[s.Text(2)] = source.Entry{Key: key, Title: e.Title, Away: e.Away}
		taken[key] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	owner := map[string]bool{}
	if err := d.around("session_id", "session_windows", func(s sqlx.Row) error {
		owner[s.Text(1)] = true
		return nil
	}); err != nil {
		return nil, err
	}
	var out []*source.Transcript
	add := func(p part, archive string, size int64) *source.Transcript {
		t := &source.Transcript{
			Program: Program, Path: d.Path, ID: session.ID(source.Text(p.session)), Archive: archive, Size: size, Stat: d.Stat(), Form: codec.FormNative,
			Part: fmt.Sprintf("%d#%s", p.table, p.window()), Whole: p.table != inEvents,
			Read: func(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
				return d.records(ctx, t, p)
			},
		}
		if e, ok := live[p.session]; ok && archive == "" {
			t.Key, t.Title, t.Away, t.Listed = session.Key(e.Key), e.Title, e.Away, true
		} else {
			t.Key, t.Unlisted = recovered(agent, t.ID), p.table == inEvents
		}
		out = append(out, t)
		return t
	}
	sizes, err := d.sizes()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(sizes)) {
		archive := ""
		if _, ok := live[id]; !ok {
			archive = "window"
			if !owner[id] {
				archive = "orphan"
			}
		}
		add(part{table: inEvents, session: id}, archive, (sizes[id]+1)*2048)
	}
	err = d.around("session_id, raw_bytes", "session_transcript_cold_archives", func(s sqlx.Row) error {
		id := s.Text(1)
		archive := ""
		if _, ok := live[id]; !ok {
			archive = "cold"
		}
		add(part{table: inCold, session: id}, archive, s.Int(2))
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = d.around("session_id, generation, session_key, reason, length(archive_blob)", "session_transcript_archives", func(s sqlx.Row) error {
		t := add(part{inArchives, s.Text(1), s.Text(2)}, s.Text(4), s.Int(5)*4)
		if key := s.Text(3); key != "" && !taken[key] {
			t.Key = session.Key(key)
		}
		return nil
	})
	return out, err
}

// piece is how many rows, and about how many bytes, are read at once.
const (
	pieceRows  = 500
	pieceBytes = 2 << 20
)

// records yields the records of t, which is the part p.
func (d *database) records(ctx context.Context, t *source.Transcript, p part) iter.Seq2[session.Record, error] {
	if p.table != inEvents {
		return d.archive(ctx, t, p)
	}
	after := int64(-1)
	var around []int64 // the rows that are left, if a page of them is damaged
	next := func() ([]source.Row, error) {
		if around != nil {
			return d.byKey(t, p, &around)
		}
		rows, err := d.rows(t, p, after)
		if source.Damaged(err) {
			if around, err = d.seqs(p, after); err != nil || len(around) == 0 {
				return nil, err
			}
			return d.byKey(t, p, &around)
		}
		if len(rows) > 0 {
			after = int64(rows[len(rows)-1].Number) - 1
		}
		return rows, err
	}
	return d.events(ctx, t, p, next)
}

// events yields the records of the rows that next returns.
func (d *database) events(ctx context.Context, t *source.Transcript, p part, next func() ([]source.Row, error)) iter.Seq2[session.Record, error] {
	return d.Records(ctx, t, p.session, next, func(first session.Record) (session.Record, bool) {
		_, header := first.Body.(session.Header)
		return session.Record{Time: first.Time, Body: *t.Header()}, !header
	})
}

// rows returns the next rows of p. A row with a long line is read only when t
// may read such lines.
func (d *database) rows(t *source.Transcript, p part, after int64) (rows []source.Row, err error) {
	packed := "NULL"
	if d.packed {
		packed = "event_zstd"
	}
	query := "SELECT seq, octet_length(event_json), " + packed + ", event_json FROM transcript_events WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
	return d.read(t, query, p.session, after, int64(pieceRows))
}

// read returns the rows of a query for the rows of a session. Those before a
// damaged page come without an error.
func (d *database) read(t *source.Transcript, query string, args ...any) (rows []source.Row, err error) {
	for {
		long := false // the next row is, or the last one was
		err := d.View(func() error {
			rows, long = nil, false
			size := 0
			return d.Each(query, args, func(s sqlx.Row) error {
				r := source.Row{Number: int(s.Int(0)) + 1}
				plain, length := s.ColumnType(1) != sqlite3.NULL, s.Int(1)
				if !plain {
					length = unpackedSize(s.Bytes(2))
				}
				if long = length > source.LongLine; long && t.Waits() {
					return sqlx.ErrStop
				}
				if plain {
					r.Line = bytes.Clone(s.ColumnRawText(3))
				} else {
					r.Line, r.Err = d.unpacked(s.Bytes(2))
				}
				rows = append(rows, r)
				if size += len(r.Line); size > pieceBytes {
					return sqlx.ErrStop
				}
				return nil
			})
		})
		if source.Damaged(err) && len(rows) > 0 {
			err = nil
		}
		if err != nil && !errors.Is(err, sqlx.ErrStop) {
			return nil, err
		}
		if long && len(rows) == 0 {
			t.Enter()
			continue
		}
		if long {
			d.Rest()
			debug.FreeOSMemory()
		}
		return rows, nil
	}
}

// unpacked returns a packed row.
func (d *database) unpacked(packed []byte) ([]byte, error) {
	line, err := d.unpack.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("a compressed row cannot be decompressed: %w", err)
	}
	return line, nil
}

// unpackedSize is the size that a packed row says it has, 0 if it does not.
func unpackedSize(packed []byte) int64 {
	var h zstd.Header
	if h.Decode(packed) != nil {
		return 0
	}
	return int64(h.FrameContentSize)
}

// archive yields a transcript that is kept whole: in a row, or in a file of
// the folder sessions/cold next to the database.
func (d *database) archive(ctx context.Context, t *source.Transcript, p part) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		r, packed, err := d.whole(p)
		if err != nil {
			yield(session.Record{}, fmt.Errorf("%s: %w", d.Path, err))
			return
		}
		defer r.Close()
		file := source.Transcript{Path: d.Path + "#" + string(t.ID), ID: t.ID, Form: codec.FormNative}
		counted := t.Counting(r)
		if !packed {
			file.Scan(ctx, counted, source.Position{}, nil, yield)
			return
		}
		z, err := source.Unpack(counted)
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		defer z.Close()
		file.Scan(ctx, z, source.Position{}, nil, yield)
	}
}

// whole opens what is kept of p, and reports whether it is packed.
func (d *database) whole(p part) (r io.ReadCloser, packed bool, err error) {
	b := &blob{d: d, table: "session_transcript_archives"}
	found, file := false, ""
	err = d.View(func() error {
		if p.table == inArchives {
			return d.Each("SELECT rowid, length(archive_blob), encoding = 'zstd' FROM session_transcript_archives WHERE session_id = $1 AND generation = $2", []any{p.session, p.generation}, func(s sqlx.Row) error {
				b.row, b.size, packed, found = s.Int(0), s.Int(1), s.ColumnBool(2), true
				return nil
			})
		}
		b.table, packed = "session_transcript_cold_archives", true
		return d.Each("SELECT rowid, length(archive_blob), archive_name FROM session_transcript_cold_archives WHERE session_id = $1", []any{p.session}, func(s sqlx.Row) error {
			b.row, b.size, found = s.Int(0), s.Int(1), true
			if s.ColumnType(1) == sqlite3.NULL {
				file = filepath.Join(filepath.Dir(filepath.Dir(d.Path)), "sessions", "cold", filepath.Base(s.Text(2)))
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
		f, err := wholefile.Open(file)
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
		err := b.d.View(func() error {
			return b.d.Blob(b.table, "archive_blob", b.row, func(v *sqlite3.Blob) error {
				if v.Size() != b.size {
					return errors.New("its archive has changed")
				}
				if _, err := v.Seek(b.off, io.SeekStart); err != nil {
					return err
				}
				_, err := io.ReadFull(v, piece)
				return err
			})
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
