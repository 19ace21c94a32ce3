// Package codex reads the sessions of Codex: a rollout file for each, by date,
// and a list of their names.
package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Program is its name.
const Program = "codex"

const form codec.Form = Program

// New returns Codex as a source.
func New() source.Source {
	return &program{names: map[string]map[string]string{}, rollouts: map[string]*rollouts{}, opened: map[string]*source.Transcript{}}
}

type program struct {
	names    map[string]map[string]string // of sessions by id, by the list that has them
	rollouts map[string]*rollouts         // by the folder that they are in
	opened   map[string]*source.Transcript
}

func (*program) Program() string { return Program }
func (*program) Joins()          {}

func (*program) Places(home string, getenv func(string) string) []string {
	return source.Under(home, getenv, "CODEX_HOME", ".codex", "sessions", "archived_sessions")
}

// Sniff keeps the id of a line that could be the first one, from before lines
// had a type: the next line tells.
func (*program) Sniff(l source.Line, s *source.Sniffed) (mine, done bool) {
	if !isLine(l) && !(s.Maybe != "" && isBareItem(l)) {
		if s.Maybe = ""; l.Type == "" && l.Timestamp != nil {
			s.Maybe, _ = l.ID.(string)
		}
		return false, false
	}
	s.Form, s.Program = form, Program
	var meta struct {
		ID     string          `json:"id"`
		CWD    string          `json:"cwd"`
		Source json.RawMessage `json:"source"`
		Thread string          `json:"thread_source"`
		Task   string          `json:"agent_path"`
		Base   *base           `json:"history_base"`
	}
	if json.Unmarshal(l.Payload, &meta) == nil {
		s.ID, s.CWD, s.Past = meta.ID, meta.CWD, meta.Base != nil
		s.Side = meta.Thread == "subagent" || bytes.Contains(meta.Source, []byte(`"subagent"`))
		if s.Side {
			s.Title = path.Base(meta.Task)
		}
	} else if id, ok := l.ID.(string); ok && l.Type == "" {
		s.ID = id
	} else {
		s.ID = s.Maybe
	}
	return true, true
}

// isBareItem reports whether l is from a version whose lines had no type.
func isBareItem(l source.Line) bool {
	switch l.Type {
	case "message":
		return l.Role != ""
	case "reasoning", "function_call", "local_shell_call":
		return true
	}
	return l.RecordType == "state"
}

func isLine(l source.Line) bool {
	switch l.Type {
	case "session_meta", "response_item", "event_msg", "turn_context", "compacted":
		return bytes.HasPrefix(l.Payload, []byte("{"))
	case "": // before lines had a type
		_, id := l.ID.(string)
		return id && l.Timestamp != nil && l.Instruction != nil || l.RecordType == "state"
	}
	return false
}

// Open skips the packed form of a file that is next to it: Codex unpacks
// a session before it continues it. All files of a thread are one transcript.
func (p *program) Open(f *source.File) ([]*source.Transcript, error) {
	s := f.Sniffed
	if f.DB != nil || !f.Forced && s.Program != Program {
		return nil, nil
	}
	if s.Program == Program && source.HasTwin(f.Path) {
		return nil, nil
	}
	t := f.Transcript(Program)
	newest := f.Path
	if files := p.thread(f); files != nil {
		if have, again := p.opened[files[0]]; again {
			have.Named = have.Named || f.Named
			return nil, nil
		}
		t.Path, newest = files[0], files[len(files)-1]
		p.opened[t.Path] = t
		if err := p.join(t, files); err != nil {
			return nil, err
		}
	}
	t.Stream = func() codec.Stream { return newStream() }
	f.Listed(t)
	t.Key, t.Title = source.ProjectKey(Program, s.CWD, t.ID), cmp.Or(p.name(f, string(t.ID)), s.Title)
	switch {
	case t.Archive != "":
	case s.Side:
		t.Archive = session.Subagent
	case strings.Contains(filepath.ToSlash(newest), "/archived_sessions/"):
		t.Archive = session.Archived
	}
	return []*source.Transcript{t}, nil
}

// folders are where Codex keeps sessions in its folder.
var folders = []string{"sessions", "archived_sessions"}

// homeOf returns the folder of Codex that the file at path is in.
func homeOf(path string) (home string, ok bool) {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if slices.Contains(folders, filepath.Base(dir)) {
			return filepath.Dir(dir), true
		}
	}
	return "", false
}

// maxNames is how large the list of names may be.
const maxNames = 16 << 20

// name returns the name of a session from the list next to the sessions folder;
// the last entry wins.
func (p *program) name(f *source.File, id string) string {
	home, ok := homeOf(f.Path)
	if !ok {
		return ""
	}
	list := filepath.Join(home, "session_index.jsonl")
	names, ok := p.names[list]
	if !ok {
		names = map[string]string{}
		p.names[list] = names
		data, err := wholefile.Read(list, maxNames)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problem := source.Unreadable(list, err)
			problem.What, problem.Unread = "the names of the sessions cannot be read: "+problem.What, false
			f.Problem(problem)
		}
		for line := range bytes.Lines(data) {
			var e struct {
				ID   string `json:"id"`
				Name string `json:"thread_name"`
			}
			if json.Unmarshal(line, &e) == nil && strings.TrimSpace(e.Name) != "" {
				names[e.ID] = strings.TrimSpace(e.Name)
			}
		}
	}
	return names[id]
}
