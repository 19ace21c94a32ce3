// Package opencode reads the sessions of opencode: a database with a row for
// each session, message and part of a message. The rows change in place while
// an answer arrives.
package opencode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/internal/sqlx"
	"goclaw/session"
)

// Program is its name.
const Program = "opencode"

// New returns opencode as a source.
func New() source.Source { return program{time.Now} }

type program struct{ now func() time.Time }

func (program) Program() string { return Program }
func (program) Joins()          {}

func (program) Places(home string, getenv func(string) string) []string {
	return source.Under(home, getenv, "XDG_DATA_HOME", ".local/share", "opencode")
}

func (program) Sniff(source.Line, *source.Sniffed) (mine, done bool) { return false, false }

// fileName is how it names its database; builds other than the released ones
// have their own.
var fileName = regexp.MustCompile(`^opencode(-[\w.-]+)?\.db$`)

func (program) Named(name string) bool { return fileName.MatchString(name) }

// Inside knows its folder, which also holds snapshots of the user's files.
func (program) Inside(dir, _ string) (names, elsewhere []string, ok bool, problem error) {
	found, _ := os.ReadDir(dir) // what cannot be read is reported by whoever looks through it
	old := false
	for _, e := range found {
		switch {
		case fileName.MatchString(e.Name()) && e.Type().IsRegular():
			names = append(names, e.Name())
		case e.Name() == "storage" && e.IsDir():
			_, err := os.Stat(filepath.Join(dir, "storage", "session"))
			old = err == nil
		}
	}
	if len(names) == 0 && old && filepath.Base(dir) == Program {
		return nil, nil, true, errors.New("the files of an older opencode, which goclaw does not read: a newer opencode moves them into its database when it starts")
	}
	return names, nil, len(names) > 0, nil
}

func (p program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.DB == nil {
		return nil, nil
	}
	if has := f.DB.Tables; !has["session"] || !has["message"] || !has["part"] {
		if fileName.MatchString(filepath.Base(f.Path)) && has["sessions"] && has["messages"] {
			return nil, errors.New("the database of the first program named opencode, which became crush: goclaw does not read it")
		}
		return nil, nil
	}
	d := &database{Database: f.DB, now: p.now}
	var out []*source.Transcript
	err := d.View(func() (err error) {
		if !d.Has("session", "id", "parent_id", "directory", "title", "revert", "time_created", "time_updated", "time_archived") ||
			!d.Has("message", "id", "session_id", "time_created", "time_updated", "data") || !d.Has("part", "id", "message_id", "session_id", "time_updated", "data") {
			return errors.New("it looks like a database of opencode, but its tables are not those of any version that goclaw knows (1.2 to 1.18)")
		}
		out, err = d.list()
		return err
	})
	if err == nil && d.later > 0 {
		f.Problem(source.Problem{Path: d.Path, What: fmt.Sprintf("%d messages are in the table session_message of a newer opencode, which goclaw does not read", d.later), Unread: true})
	}
	return out, err
}

type database struct {
	*source.Database
	now   func() time.Time
	later int64 // messages that only a newer version reads
}

// extent is how much there is of a session.
type extent struct{ rows, bytes, updated int64 }

// extents counts the rows of a table for each session. Neither the text of the
// rows nor the pages that it overflows to are read.
func (d *database) extents(table string, into map[string]extent) error {
	return d.Each("SELECT session_id, count(*), sum(octet_length(data)), max(time_updated) FROM "+table+" GROUP BY session_id", nil, func(s sqlx.Row) error {
		e := into[s.Text(0)]
		into[s.Text(0)] = extent{e.rows + s.Int(1), e.bytes + s.Int(2), max(e.updated, s.Int(3))}
		return nil
	})
}

// unnamed is the title of a session that has none yet.
var unnamed = regexp.MustCompile(`^(New|Child) session - \d{4}-`)

// list returns the sessions.
func (d *database) list() (out []*source.Transcript, err error) {
	sizes := map[string]extent{}
	for _, table := range []string{"message", "part"} {
		if err := d.extents(table, sizes); err != nil {
			return nil, err
		}
	}
	if d.later = 0; d.Tables["session_message"] {
		if err := d.Each("SELECT count(*) FROM session_message", nil, func(s sqlx.Row) error { d.later = s.Int(0); return nil }); err != nil {
			return nil, err
		}
	}
	err = d.Each("SELECT id, parent_id, directory, title, revert, time_created, time_updated, time_archived FROM session ORDER BY id", nil, func(s sqlx.Row) error {
		o := one{id: s.Text(0), begun: time.UnixMilli(s.Int(5)).UTC(), updated: time.UnixMilli(s.Int(6)).UTC()}
		var revert struct{ MessageID, PartID string }
		_ = json.Unmarshal(s.ColumnRawText(4), &revert) // NULL: nothing was taken back
		o.revert, o.revertPart = revert.MessageID, revert.PartID
		size := sizes[o.id]
		changed := max(size.updated, s.Int(6))
		t := &source.Transcript{
			Program: Program, Path: d.Path, ID: session.ID(source.Text(o.id)), CWD: source.Text(s.Text(2)), Size: size.bytes + 512, Form: Program, Part: o.id,
			// Of the session alone: a new message in another one does not make
			// this one look changed.
			Stat: source.Stat{Ino: d.Stat().Ino, Size: size.bytes, MTime: changed * int64(time.Millisecond), Extra: size.rows<<32 ^ s.Int(6) ^ source.Fresh(d.now(), time.UnixMilli(changed))},
			Read: func(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
				return d.records(ctx, t, o)
			},
		}
		if title := s.Text(3); !unnamed.MatchString(title) {
			t.Title = title
		}
		t.Key = source.ProjectKey(Program, t.CWD, t.ID)
		switch parent := s.Text(1); {
		case parent != "":
			t.Archive = session.Subagent
			t.Key = source.ProjectKey(Program, t.CWD, session.ID(source.Text(parent))) + ":" + session.Key(t.ID)
		case s.Int(7) != 0:
			t.Archive = session.Archived
		}
		out = append(out, t)
		return nil
	})
	return out, err
}

// one is a session in the database.
type one struct {
	id             string
	begun, updated time.Time
	// Everything from this message on was taken back, or from this part of it.
	revert, revertPart string
}

// records yields the records of t, header first.
func (d *database) records(ctx context.Context, t *source.Transcript, o one) iter.Seq2[session.Record, error] {
	w := &writer{one: o, now: d.now, ids: map[string]string{}}
	var last message
	done := false
	next := func() (rows []source.Row, err error) {
		for len(rows) == 0 && !done {
			list, err := d.messages(t, o.id, last)
			if err != nil {
				return nil, err
			}
			done = len(list) == 0
			for _, m := range list {
				if last = m; !w.message(m) {
					done = true
					break
				}
			}
			if done {
				w.end()
			}
			rows, w.rows = w.rows, nil
		}
		return rows, nil
	}
	head := session.Record{Time: o.begun, Body: *t.Header()}
	return d.Records(ctx, t, o.id, next, func(session.Record) (session.Record, bool) { return head, true })
}

// pieceBytes is about how much is read at once.
const pieceBytes = 256 << 10

// message is a row of the table message, with its parts.
type message struct {
	id               string
	created, updated int64
	data             []byte
	parts            []part
}

type part struct {
	id   string
	data []byte
}

// messages returns the next messages of a session after one, none at the end.
// One with a long part is read only when t may read such.
func (d *database) messages(t *source.Transcript, id string, after message) (out []message, err error) {
	const query = `SELECT m.id, m.time_created, max(m.time_updated, ifnull(p.time_updated, 0)), m.data, p.id, octet_length(p.data), p.data
		FROM message m LEFT JOIN part p ON p.message_id = m.id
		WHERE m.session_id = $1 AND (m.time_created, m.id) > ($2, $3) ORDER BY m.time_created, m.id, p.id`
	for {
		var m *message
		waits, size := false, 0
		err := d.View(func() error {
			out, m, waits, size = nil, nil, false, 0
			err := d.Each(query, []any{id, cmp.Or(after.created, -1), after.id}, func(s sqlx.Row) error {
				if m == nil || string(s.Bytes(0)) != m.id {
					if m != nil {
						out = append(out, *m)
						m = nil
					}
					if size > pieceBytes {
						return sqlx.ErrStop
					}
					m = &message{id: s.Text(0), created: s.Int(1), data: append([]byte{}, s.ColumnRawText(3)...)}
					size += len(m.data)
				}
				if s.Int(5) > source.LongLine && t.Waits() {
					m, waits = nil, true
					return sqlx.ErrStop
				}
				m.updated = max(m.updated, s.Int(2))
				if p := s.Text(4); p != "" {
					m.parts = append(m.parts, part{p, append([]byte{}, s.ColumnRawText(6)...)})
					size += int(s.Int(5))
				}
				return nil
			})
			if err == sqlx.ErrStop {
				return nil
			}
			if err == nil && m != nil {
				out = append(out, *m)
			}
			return err
		})
		if err != nil || !waits || len(out) > 0 {
			return out, err
		}
		t.Enter()
	}
}
