// Package pi reads the sessions of pi: a folder for each project, a file of
// native lines for each session.
package pi

import (
	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
)

// Program is its name.
const Program = "pi"

// New returns pi as a source. It takes every file of native lines that no other
// program wants: ask it last.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }

func (program) Places(home string, getenv func(string) string) []string {
	return source.Under(home, getenv, "PI_CODING_AGENT_DIR", ".pi/agent", "sessions")
}

// Sniff knows native lines, which others write as well: whose they are is left
// open. Factory's Droid has messages like ours below a header of its own.
func (program) Sniff(l source.Line, s *source.Sniffed) (mine, done bool) {
	if l.Form() != codec.FormNative || s.Strange && l.Type != "session" {
		return false, false
	}
	s.Form = codec.FormNative
	l.Header(s)
	return true, true
}

func (program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.DB != nil || !f.Forced && f.Sniffed.Form != codec.FormNative {
		return nil, nil
	}
	t := f.Transcript(Program)
	f.Listed(t)
	t.Key = source.ProjectKey(Program, t.CWD, t.ID)
	return []*source.Transcript{t}, nil
}
