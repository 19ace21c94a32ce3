// Package goclaw reads what goclaw itself has exported, or keeps in a folder
// elsewhere: native lines whose header has a key.
package goclaw

import (
	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/session"
)

// Program is its name.
const Program = "goclaw"

// New returns goclaw as a source.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }

func (program) Places(string, func(string) string) []string { return nil }

func (program) Sniff(l source.Line, s *source.Sniffed) (mine, done bool) {
	if l.Type != "session" || len(l.Origin) == 0 && l.Key == "" || l.Form() != codec.FormNative {
		return false, false
	}
	s.Program, s.Form = Program, codec.FormNative
	l.Header(s)
	return true, true
}

func (program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.DB != nil || !f.Forced && f.Sniffed.Program != Program {
		return nil, nil
	}
	t := f.Transcript(Program)
	f.Listed(t)
	if t.Key = session.Key(f.Sniffed.Key); t.Key == "" {
		t.Key = source.ProjectKey(Program, t.CWD, t.ID)
	}
	return []*source.Transcript{t}, nil
}
