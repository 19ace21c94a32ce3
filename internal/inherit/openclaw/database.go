package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime/debug"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/session"
	"goclaw/session/storekit"
)

// database is a database of OpenClaw.
type database struct {
	*source.Database
	packed bool // transcript_events has packed rows
	unpack *zstd.Decoder
}

func newDatabase(d *source.Database) (*database, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(storekit.MaxRecord))
	if err != nil {
		return nil, err
	}
	return &database{Database: d, packed: d.Has("transcript_events", "event_zstd"), unpack: z}, nil
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
		_ = d.Each("SELECT agent_id FROM schema_meta WHERE agent_id <> '' LIMIT 1", nil, func(s *sqlite3.Stmt) error {
			agent = s.ColumnText(0)
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
	if d.Tables[table] {
		err := d.Each("SELECT session_key, "+id+", entry_json FROM "+table+" ORDER BY 1", nil, func(s *sqlite3.Stmt) error {
			key := s.ColumnText(0)
			// Its copies in columns hold what matters beside the title.
			live[s.ColumnText(1)] = source.Entry{Key: key, Title: readEntry(key, s.ColumnRawText(2)).Title}
			taken[key] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	owner := map[string]string{}
	if d.Tables["session_windows"] {
		if err := d.Each("SELECT session_id, session_key FROM session_windows", nil, func(s *sqlite3.Stmt) error {
			owner[s.ColumnText(0)] = s.ColumnText(1)
			return nil
		}); err != nil {
			return nil, err
		}
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
			t.Key, t.Title, t.Listed = session.Key(e.Key), e.Title, true
		} else {
			t.Key, t.Unlisted = recovered(agent, t.ID), p.table == inEvents
		}
		out = append(out, t)
		return t
	}
	err := d.Each("SELECT session_id, max(seq) FROM transcript_events GROUP BY session_id", nil, func(s *sqlite3.Stmt) error {
		id := s.ColumnText(0)
		archive := ""
		if _, ok := live[id]; !ok {
			archive = "window"
			if _, ok := owner[id]; !ok {
				archive = "orphan"
			}
		}
		add(part{table: inEvents, session: id}, archive, (s.ColumnInt64(1)+1)*2048)
		return nil
	})
	if err == nil && d.Tables["session_transcript_cold_archives"] {
		err = d.Each("SELECT session_id, raw_bytes FROM session_transcript_cold_archives", nil, func(s *sqlite3.Stmt) error {
			id := s.ColumnText(0)
			archive := ""
			if _, ok := live[id]; !ok {
				archive = "cold"
			}
			add(part{table: inCold, session: id}, archive, s.ColumnInt64(1))
			return nil
		})
	}
	if err == nil && d.Tables["session_transcript_archives"] {
		err = d.Each("SELECT session_id, generation, session_key, reason, length(archive_blob) FROM session_transcript_archives", nil, func(s *sqlite3.Stmt) error {
			t := add(part{inArchives, s.ColumnText(0), s.ColumnText(1)}, s.ColumnText(3), s.ColumnInt64(4)*4)
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

// records yields the records of t, which is the part p.
func (d *database) records(ctx context.Context, t *source.Transcript, p part) iter.Seq2[session.Record, error] {
	if p.table != inEvents {
		return d.archive(ctx, t, p)
	}
	cols := "seq, octet_length(event_json), NULL, event_json"
	if d.packed {
		cols = "seq, octet_length(event_json), event_zstd, event_json"
	}
	query := "SELECT " + cols + " FROM transcript_events WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
	return func(yield func(session.Record, error) bool) {
		n, after := session.Seq(0), int64(-1)
		for begin := true; ; {
			type row struct {
				seq  int64
				line []byte
				err  error
			}
			var rows []row
			long := false // the next row is, or the last one was
			err := d.View(func() error {
				rows = rows[:0]
				size := 0
				long = false
				err := d.Each(query, []any{p.session, after, int64(pieceRows)}, func(s *sqlite3.Stmt) error {
					r := row{seq: s.ColumnInt64(0)}
					length := s.ColumnInt64(1)
					if s.ColumnType(1) == sqlite3.NULL {
						length = unpackedSize(s.ColumnRawBlob(2))
					}
					if long = length > source.LongLine; long && t.Waits() {
						return errEnough
					}
					if s.ColumnType(1) != sqlite3.NULL {
						r.line = bytes.Clone(s.ColumnRawText(3))
					} else {
						r.line, r.err = d.unpack.DecodeAll(s.ColumnRawBlob(2), nil)
					}
					rows = append(rows, r)
					t.Counted(len(r.line))
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
				yield(session.Record{}, fmt.Errorf("%s: %w", d.Path, err))
				return
			}
			if long {
				if len(rows) == 0 {
					t.Enter()
					continue
				}
				d.Rest()
				debug.FreeOSMemory()
			}
			if len(rows) == 0 {
				return
			}
			for i, r := range rows {
				rows[i].line = nil
				after = r.seq
				rec, err := source.Row(r.line, r.err)
				if err != nil {
					if !yield(session.Record{}, &session.Damage{File: d.Path + "#" + p.session, Line: int(r.seq) + 1, After: n, Size: int64(len(r.line)), Reason: err.Error()}) {
						return
					}
					continue
				}
				if _, ok := rec.Body.(session.Header); begin && !ok {
					n++
					if !yield(session.Record{Seq: n, Time: rec.Time, Body: *t.Header()}, nil) {
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

// archive yields a transcript that is kept whole: in a row, or in a file of
// the folder sessions/cold beside the database.
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
			return d.Each("SELECT rowid, length(archive_blob), encoding = 'zstd' FROM session_transcript_archives WHERE session_id = $1 AND generation = $2", []any{p.session, p.generation}, func(s *sqlite3.Stmt) error {
				b.row, b.size, packed, found = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnBool(2), true
				return nil
			})
		}
		b.table, packed = "session_transcript_cold_archives", true
		return d.Each("SELECT rowid, length(archive_blob), archive_name FROM session_transcript_cold_archives WHERE session_id = $1", []any{p.session}, func(s *sqlite3.Stmt) error {
			b.row, b.size, found = s.ColumnInt64(0), s.ColumnInt64(1), true
			if s.ColumnType(1) == sqlite3.NULL {
				file = filepath.Join(filepath.Dir(filepath.Dir(d.Path)), "sessions", "cold", filepath.Base(s.ColumnText(2)))
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
		f, err := source.OpenFile(file)
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
