// Package gemini reads the sessions of Gemini CLI: a file for each, in a folder
// for each project. A file of lines says what changes; older versions wrote one
// object.
package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Program is its name.
const Program = "gemini-cli"

const form codec.Form = Program

// New returns Gemini CLI as a source.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }
func (program) Joins()          {}

// Places has the folders of all projects: each may have a folder chats.
func (program) Places(home string, getenv func(string) string) []string {
	if dir := getenv("GEMINI_CLI_HOME"); dir != "" {
		return source.Under(home, getenv, "GEMINI_CLI_HOME", "", ".gemini/tmp")
	}
	return source.Under(home, getenv, "", ".gemini", "tmp")
}

// old is how older versions named the files of sessions, which are no lines.
var old = regexp.MustCompile(`^session-[\w.-]+\.json$`)

func (program) Named(name string) bool { return old.MatchString(name) }

// Inside knows the folder of a project, which also holds logs and what tools
// have printed.
func (program) Inside(dir, _ string) (names, elsewhere []string, ok bool, problem error) {
	if filepath.Base(filepath.Dir(dir)) != "tmp" {
		return nil, nil, false, nil
	}
	fi, err := os.Stat(filepath.Join(dir, "chats"))
	return []string{"chats"}, nil, err == nil && fi.IsDir(), nil
}

// first is the first line of a file, and an older file as a whole.
type first struct {
	SessionID   string          `json:"sessionId"`
	ProjectHash string          `json:"projectHash"`
	StartTime   string          `json:"startTime"`
	Kind        string          `json:"kind"`
	Summary     string          `json:"summary"`
	Messages    json.RawMessage `json:"messages"`
}

func (program) Sniff(l source.Line, s *source.Sniffed) (mine, done bool) {
	var f first
	if l.Type != "" || l.SessionID == "" || json.Unmarshal(l.Raw, &f) != nil || f.ProjectHash == "" {
		return false, false
	}
	s.Program, s.Form, s.ID, s.Side = Program, form, f.SessionID, f.Kind == "subagent"
	return true, true
}

func (p program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.DB != nil {
		return nil, nil
	}
	whole := strings.HasSuffix(f.Path, ".json")
	if whole {
		if !f.Forced && !old.MatchString(filepath.Base(f.Path)) && !f.Named || hasTwin(f.Path) {
			return nil, nil
		}
		o, err := readWhole(f.Path)
		if err != nil || o.ProjectHash == "" {
			return nil, err
		}
		f.Sniffed = source.Sniffed{Program: Program, Form: form, ID: o.SessionID, Side: o.Kind == "subagent"}
	} else if f.Sniffed.Program != Program && !(f.Forced && strings.HasPrefix(filepath.Base(f.Path), "session-")) {
		return nil, nil
	}
	f.Sniffed.CWD = folder(f.Path)
	t := f.Transcript(Program)
	t.Form = form
	if whole {
		t.Read = func(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
			return records(ctx, t)
		}
	} else {
		t.Stream = func() codec.Stream { return &stream{} }
	}
	t.Key = source.ProjectKey("gemini", f.Sniffed.CWD, t.ID)
	if f.Sniffed.Side {
		t.Archive = session.Subagent
	}
	return []*source.Transcript{t}, nil
}

// hasTwin reports whether an older file was continued as a file of lines.
func hasTwin(path string) bool {
	_, err := os.Stat(path + "l")
	return err == nil
}

// maxRoot is how long the path of a project may be.
const maxRoot = 64 << 10

// folder returns the folder of the project that a file is of: the file
// .project_root next to the folder chats has it. Older versions only have its
// hash, which stands for it as the name of the folder.
func folder(path string) string {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) != "chats" {
			continue
		}
		project := filepath.Dir(dir)
		if b, err := wholefile.Read(filepath.Join(project, ".project_root"), maxRoot); err == nil {
			return source.Text(strings.TrimSpace(string(b)))
		}
		if name := filepath.Base(project); len(name) == 64 {
			return "project-" + name[:8]
		}
		return source.Text(filepath.Base(project))
	}
	return ""
}

// maxWhole is how large an older file may be.
const maxWhole = 256 << 20

func readWhole(path string) (o first, err error) {
	b, err := wholefile.Read(path, maxWhole)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(b, &o); err != nil && source.Broken(err) {
		return o, errors.New("a session of Gemini CLI that is not JSON: it is being written, or was cut off")
	}
	return o, nil
}

// records yields an older file.
func records(ctx context.Context, t *source.Transcript) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		o, err := readWhole(t.Path)
		if err == nil {
			err = ctx.Err()
		}
		var list []json.RawMessage
		if err == nil && o.Messages != nil {
			err = json.Unmarshal(o.Messages, &list)
		}
		if err != nil {
			var p *fs.PathError
			if !errors.As(err, &p) {
				err = fmt.Errorf("%s: %w", t.Path, err)
			}
			yield(session.Record{}, err)
			return
		}
		t.Counted(int(t.Size))
		s := &stream{begun: true}
		out := []session.Record{{Time: source.ISOTime(o.StartTime), Body: session.Header{Version: session.Version, ID: session.ID(o.SessionID), CWD: t.CWD}}}
		if o.Summary != "" {
			out = append(out, session.Record{ID: "summary", Side: true, Time: out[0].Time, Body: session.Title{Title: o.Summary}})
		}
		for i, raw := range list {
			var line bytes.Buffer
			if json.Compact(&line, raw) != nil {
				continue
			}
			if out, err = s.Line(i+1, line.Bytes(), out); err != nil {
				d := &session.Damage{File: t.Path, Line: i + 1, After: session.Seq(len(out)), Size: int64(len(raw)), Reason: "message " + fmt.Sprint(i+1) + ": " + err.Error()}
				if !yield(session.Record{}, d) {
					return
				}
			}
		}
		for i, r := range s.End(out) {
			if r.Seq = session.Seq(i + 1); !yield(r, nil) {
				return
			}
		}
	}
}

// lineID names a record by its line. One line can hold several records.
func lineID(n int, line []byte, k int) string {
	if k == 0 {
		return native.LineID(n, line)
	}
	return fmt.Sprintf("%s/%d", native.LineID(n, line), k)
}
