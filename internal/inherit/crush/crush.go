// Package crush reads the sessions of crush: a database in the folder .crush of
// each project, with a row for each session and message. A row changes in place
// while an answer arrives.
//
// It follows the schema that crush publishes (its migrations, and the parts of
// a message as its package message writes them). It was not verified against the
// program.
package crush

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/internal/sqlx"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Program is its name.
const Program = "crush"

// New returns crush as a source.
func New() source.Source { return program{time.Now} }

type program struct{ now func() time.Time }

func (program) Program() string { return Program }
func (program) Joins()          {}

// Unverified implements source.Unverified.
func (program) Unverified() string {
	return "read by its public schema, not verified against the program"
}

// Places has the folder with the list of projects: the sessions are in those.
func (program) Places(home string, getenv func(string) string) []string {
	if getenv("CRUSH_GLOBAL_DATA") != "" {
		return source.Under(home, getenv, "CRUSH_GLOBAL_DATA", "", "")
	}
	return source.Under(home, getenv, "XDG_DATA_HOME", ".local/share", "crush")
}

func (program) Sniff(source.Line, *source.Sniffed) (mine, done bool) { return false, false }

const fileName = "crush.db"

func (program) Named(name string) bool { return name == fileName }

// maxList is how large the list of projects may be.
const maxList = 16 << 20

// Inside knows the folder .crush of a project, and that with the list of
// projects.
func (program) Inside(dir, _ string) (names, elsewhere []string, ok bool, problem error) {
	if _, err := os.Stat(filepath.Join(dir, fileName)); err == nil {
		return []string{fileName}, nil, true, nil
	}
	if filepath.Base(dir) != "crush" {
		return nil, nil, false, nil
	}
	data, err := wholefile.Read(filepath.Join(dir, "projects.json"), maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, false, nil
	}
	var list struct {
		Projects []struct {
			Path string `json:"path"`
			Data string `json:"data_dir"`
		} `json:"projects"`
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, nil, true, &fs.PathError{Op: "read", Path: filepath.Join(dir, "projects.json"), Err: err}
	}
	for _, p := range list.Projects {
		if p.Data == "" {
			p.Data = ".crush"
		}
		if !filepath.IsAbs(p.Data) {
			p.Data = filepath.Join(p.Path, p.Data)
		}
		if _, err := os.Stat(p.Data); !errors.Is(err, fs.ErrNotExist) && filepath.IsAbs(p.Data) {
			elsewhere = append(elsewhere, p.Data)
		}
	}
	return nil, elsewhere, true, nil
}

func (p program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.DB == nil || !f.DB.Tables["sessions"] || !f.DB.Tables["messages"] || !f.DB.Has("messages", "session_id", "role", "parts") {
		return nil, nil
	}
	d := &database{Database: f.DB, now: p.now, summary: "NULL"}
	var out []*source.Transcript
	err := d.View(func() (err error) {
		if !d.Has("sessions", "id", "parent_session_id", "title", "created_at", "updated_at") || !d.Has("messages", "id", "model", "provider", "created_at", "updated_at", "finished_at") {
			return errors.New("it looks like a database of crush, but its tables are not those of any version that goclaw knows")
		}
		d.summary = d.column("messages", "is_summary_message")
		out, err = d.list()
		return err
	})
	return out, err
}

type database struct {
	*source.Database
	now     func() time.Time
	summary string // the column that marks summaries, or NULL
}

// column returns a column of a table, or NULL where a version lacks it. Call it
// within View.
func (d *database) column(table, name string) string {
	if d.Has(table, name) {
		return name
	}
	return "NULL"
}

// seconds reads a time. Some versions write milliseconds.
func seconds(n int64) time.Time {
	if n > 1e11 {
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// one is a session in the database.
type one struct {
	id, summary string // summary is the message that sums up what came before it
	begun       time.Time
}

// list returns the sessions. A session is in the folder that .crush is in.
func (d *database) list() (out []*source.Transcript, err error) {
	type extent struct{ rows, bytes, updated int64 }
	sizes := map[string]extent{}
	if err := d.Each("SELECT session_id, count(*), sum(octet_length(parts)), max(updated_at) FROM messages GROUP BY session_id", nil, func(s sqlx.Row) error {
		sizes[s.Text(0)] = extent{s.Int(1), s.Int(2), s.Int(3)}
		return nil
	}); err != nil {
		return nil, err
	}
	cwd := filepath.Dir(filepath.Dir(d.Path))
	query := fmt.Sprintf("SELECT id, parent_session_id, title, created_at, updated_at, %s, %s FROM sessions ORDER BY id", d.column("sessions", "summary_message_id"), d.column("sessions", "workspace_cwd"))
	err = d.Each(query, nil, func(s sqlx.Row) error {
		o := one{id: s.Text(0), summary: s.Text(5), begun: seconds(s.Int(3))}
		size := sizes[o.id]
		changed := seconds(max(size.updated, s.Int(4)))
		t := &source.Transcript{
			Program: Program, Path: d.Path, ID: session.ID(source.Text(o.id)), CWD: source.Text(cwd), Size: size.bytes + 512, Form: Program, Part: o.id,
			Stat: source.Stat{Ino: d.Stat().Ino, Size: size.bytes, MTime: changed.UnixNano(), Extra: size.rows<<32 ^ s.Int(4) ^ source.Fresh(d.now(), changed)},
			Read: func(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
				return d.records(ctx, t, o)
			},
		}
		if own := s.Text(6); own != "" {
			t.CWD = source.Text(own)
		}
		if title := strings.TrimSpace(s.Text(2)); !strings.EqualFold(title, "New Session") && !strings.EqualFold(title, "Untitled Session") {
			t.Title = title
		}
		t.Key = source.ProjectKey(Program, t.CWD, t.ID)
		if parent := s.Text(1); parent != "" {
			t.Archive = session.Subagent
			t.Key = source.ProjectKey(Program, t.CWD, session.ID(source.Text(parent))) + ":" + session.Key(t.ID)
		}
		out = append(out, t)
		return nil
	})
	return out, err
}

// pieceBytes is about how much is read at once.
const pieceBytes = 256 << 10

// records yields the records of t, header first.
func (d *database) records(ctx context.Context, t *source.Transcript, o one) iter.Seq2[session.Record, error] {
	w := &writer{one: o, now: d.now}
	var order []int64 // rowids
	begun := false
	next := func() (rows []source.Row, err error) {
		if !begun {
			begun = true
			if err := d.View(func() error {
				order = nil
				return d.Each("SELECT rowid FROM messages WHERE session_id = $1 ORDER BY created_at, rowid", []any{o.id}, func(s sqlx.Row) error {
					order = append(order, s.Int(0))
					return nil
				})
			}); err != nil {
				return nil, err
			}
		}
		for len(w.rows) == 0 && len(order) > 0 {
			list, err := d.messages(t, &order)
			if err != nil {
				return nil, err
			}
			for _, m := range list {
				if !w.message(m) {
					order = nil
					break
				}
			}
		}
		rows, w.rows = w.rows, nil
		return rows, nil
	}
	head := session.Record{Time: o.begun, Body: *t.Header()}
	return d.Records(ctx, t, o.id, next, func(session.Record) (session.Record, bool) { return head, true })
}

// messages returns the next of the messages in order, and takes them from it.
// One that is long is read only when t may read such.
func (d *database) messages(t *source.Transcript, order *[]int64) (out []message, err error) {
	query := "SELECT id, role, octet_length(parts), model, provider, created_at, updated_at, finished_at, " + d.summary + ", parts FROM messages WHERE rowid = $1"
	rest := *order
	err = d.View(func() error {
		rest, out = *order, nil
		for size := 0; len(rest) > 0 && size < pieceBytes; rest = rest[1:] {
			err := d.Each(query, []any{rest[0]}, func(s sqlx.Row) error {
				if s.Int(2) > source.LongLine && t.Waits() {
					if len(out) > 0 {
						return sqlx.ErrStop
					}
					t.Enter()
				}
				out = append(out, message{id: s.Text(0), role: s.Text(1), model: s.Text(3), provider: s.Text(4), created: seconds(s.Int(5)), updated: seconds(s.Int(6)), finished: s.Int(7) != 0, summary: s.Int(8) != 0, parts: append([]byte{}, s.ColumnRawText(9)...)})
				size += int(s.Int(2))
				return nil
			})
			if err == sqlx.ErrStop {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	*order = rest
	return out, err
}
