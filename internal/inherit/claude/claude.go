// Package claude reads the sessions of Claude Code: a folder for each project,
// a file of lines for each session and each subagent.
package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Program is its name.
const Program = "claude-code"

const form codec.Form = Program

// New returns Claude Code as a source.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }
func (program) Joins()          {}

// Places has two: some versions keep to XDG_CONFIG_HOME.
func (program) Places(home string, getenv func(string) string) []string {
	return append(source.Under(home, getenv, "CLAUDE_CONFIG_DIR", ".claude", "projects"),
		source.Under(home, getenv, "XDG_CONFIG_HOME", ".config", "claude/projects")...)
}

func (program) Sniff(l source.Line, s *source.Sniffed) (mine, done bool) {
	if s.Form != form {
		if !isLine(l) {
			return false, false
		}
		s.Form, s.Program, s.Bare = form, Program, true
	}
	if l.SessionID != "" && s.ID == "" {
		s.ID = l.SessionID
	}
	if l.UUID != "" { // a subagent may come before the conversation
		s.Side = l.Sidechain && (s.Bare || s.Side)
		if isWarmup(l) {
			s.Maybe = warmup
		} else if !l.Sidechain || l.Type == "user" && l.ParentUUID == nil {
			s.Maybe = ""
		}
		s.Bare = s.Side && s.Maybe == warmup
	}
	s.CWD = cmp.Or(s.CWD, l.CWD)
	return true, s.ID != "" && s.CWD != "" && !s.Bare && !s.Side
}

const warmup = "Warmup"

// isWarmup reports whether a line is the prompt of a subagent that the program
// starts so that its next one starts faster. Nobody has asked it anything.
func isWarmup(l source.Line) bool {
	if !l.Sidechain || l.Type != "user" || l.ParentUUID != nil {
		return false
	}
	var text struct{ Content string }
	var blocks struct{ Content []struct{ Text string } }
	return json.Unmarshal(l.Message, &text) == nil && text.Content == warmup ||
		json.Unmarshal(l.Message, &blocks) == nil && len(blocks.Content) == 1 && blocks.Content[0].Text == warmup
}

func isLine(l source.Line) bool {
	switch l.Type {
	case "user", "assistant", "system", "progress", "attachment":
		return l.UUID != "" && (l.SessionID != "" || l.ParentUUID != nil)
	case "summary":
		return l.LeafUUID != ""
	case "file-history-snapshot":
		return l.MessageID != ""
	case "queue-operation", "custom-title", "ai-title", "permission-mode", "last-prompt", "agent-name", "tag", "mode":
		return l.SessionID != ""
	case forkRef:
		return bytes.Contains(l.Raw, []byte(`"parentSessionId"`))
	}
	return false
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Open names a session by its file: one that continues another begins with
// its lines, and with its id in them.
func (program) Open(f *source.File) ([]*source.Transcript, error) {
	s := f.Sniffed
	if f.DB != nil || !f.Forced && s.Program != Program {
		return nil, nil
	}
	t := f.Transcript(Program)
	t.Stream = func() codec.Stream { return newStream(s.Side, sessions(f.Path).open) }
	if s.Side || uuidForm.MatchString(string(f.ID)) {
		t.ID = f.ID
	}
	f.Listed(t)
	t.Key = source.ProjectKey("claude", s.CWD, t.ID)
	if s.Side {
		// Its lines carry the id of the session that it worked for.
		t.Key = source.ProjectKey("claude", s.CWD, session.ID(s.ID)) + ":" + session.Key(f.ID)
		t.Archive, t.Title = session.Subagent, described(f)
	}
	return []*source.Transcript{t}, nil
}

// maxMeta is how large the file is that describes a subagent.
const maxMeta = 1 << 20

// described returns the task of a subagent in a few words, which its session gave
// it with the prompt.
func described(f *source.File) string {
	data, err := wholefile.Read(strings.TrimSuffix(f.Path, source.Ext)+".meta.json", maxMeta)
	if err != nil {
		return ""
	}
	var meta struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(data, &meta) // what cannot be read says nothing
	return strings.TrimSpace(meta.Description)
}

// sessions is the path of a subagent's file: <project>/<session>/subagents/<agent>.
type sessions string

// open opens the file of a session of the same project.
func (s sessions) open(id string) (io.ReadCloser, error) {
	project := filepath.Dir(filepath.Dir(filepath.Dir(string(s))))
	return (&source.Transcript{Path: filepath.Join(project, filepath.Base(id)+source.Ext)}).Open()
}
