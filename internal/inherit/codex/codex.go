// Package codex reads the sessions of Codex: a rollout file for each, by date,
// and a list of their names.
package codex

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
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
func New() source.Source { return &program{names: map[string]map[string]string{}} }

type program struct {
	names map[string]map[string]string // of sessions by id, by the list that has them
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
	}
	if json.Unmarshal(l.Payload, &meta) == nil {
		s.ID, s.CWD = meta.ID, meta.CWD
		s.Side = meta.Thread == "subagent" || bytes.Contains(meta.Source, []byte(`"subagent"`))
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
		return len(l.Payload) > 0
	case "": // before lines had a type
		_, id := l.ID.(string)
		return id && l.Timestamp != nil && l.Instruction != nil || l.RecordType == "state"
	}
	return false
}

// Open skips the packed form of a file that is next to it: Codex unpacks
// a session before it continues it.
func (p *program) Open(f *source.File) ([]*source.Transcript, error) {
	s := f.Sniffed
	if f.DB != nil || !f.Forced && s.Program != Program {
		return nil, nil
	}
	if s.Program == Program && source.HasTwin(f.Path) {
		return nil, nil
	}
	t := f.Transcript(Program)
	t.Stream = func() codec.Stream { return newStream() }
	f.Listed(t)
	t.Key, t.Title = source.ProjectKey(Program, s.CWD, t.ID), p.name(f, string(t.ID))
	switch {
	case t.Archive != "":
	case s.Side:
		t.Archive = session.Subagent
	case strings.Contains(filepath.ToSlash(f.Path), "/archived_sessions/"):
		t.Archive = session.Archived
	}
	return []*source.Transcript{t}, nil
}

// maxNames is how large the list of names may be.
const maxNames = 16 << 20

// name returns the name of a session from the list next to the sessions folder;
// the last entry wins.
func (p *program) name(f *source.File, id string) string {
	home := filepath.Dir(f.Path)
	for b := filepath.Base(home); b != "sessions" && b != "archived_sessions"; b = filepath.Base(home) {
		if home == filepath.Dir(home) {
			return ""
		}
		home = filepath.Dir(home)
	}
	list := filepath.Join(filepath.Dir(home), "session_index.jsonl")
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
