// Package claw0 reads the sessions of claw0, in both of its layouts: a list and
// a folder of transcripts, or a folder for each agent.
package claw0

import (
	"cmp"
	"encoding/json"
	"fmt"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/session"
)

// Program is its name.
const Program = "claw0"

// New returns claw0 as a source.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }

func (program) Places(home string, getenv func(string) string) []string {
	return source.Under(home, getenv, "", "claw0/workspace", ".sessions")
}

// Sniff wants the time that claw0 writes on every line, or the key of its older
// headers: other programs have lines of the same types, with other fields.
func (program) Sniff(l source.Line, s *source.Sniffed) (mine, done bool) {
	form := l.Form()
	if l.TS == nil && (l.Type != "session" || l.Key == "") {
		return false, false
	}
	if form != codec.FormClaw0 && form != codec.FormClaw0Old {
		return false, false
	}
	s.Program, s.Form = Program, form
	l.Header(s)
	return true, true
}

// Open takes an empty file that is in its list, too: a session that was never
// used.
func (program) Open(f *source.File) ([]*source.Transcript, error) {
	unused := f.Sniffed.Empty && f.Index != nil && f.Index.Program == Program
	if f.DB != nil || !f.Forced && f.Sniffed.Program != Program && !unused {
		return nil, nil
	}
	t := f.Transcript(Program)
	if t.Form = codec.FormClaw0; f.Sniffed.Form == codec.FormClaw0Old {
		t.Form = codec.FormClaw0Old
	}
	e, listed := f.Listed(t)
	switch {
	case f.Sniffed.Key != "":
		t.Key = session.Key(f.Sniffed.Key)
	case listed && e.Key != "":
		t.Key, t.Listed = session.Key(e.Key), true
	default:
		t.Key = session.Key(fmt.Sprintf("%s:cli:%s", cmp.Or(source.AgentOf(f.Path), Program), t.ID))
	}
	if listed {
		t.Title = e.Title
	}
	return []*source.Transcript{t}, nil
}

// Entry reads both kinds of list: the older by key, the newer by id.
func (program) Entry(key string, raw json.RawMessage) (source.Entry, bool) {
	var e struct {
		Key       string          `json:"session_key"`
		ID        string          `json:"session_id"`
		File      string          `json:"transcript_file"`
		Label     string          `json:"label"`
		CreatedAt json.RawMessage `json:"created_at"`
	}
	_ = json.Unmarshal(raw, &e) // fields of other types are no fields
	switch {
	case e.ID != "":
		return source.Entry{Key: cmp.Or(e.Key, key), ID: e.ID, File: source.BaseName(e.File)}, true
	case e.CreatedAt != nil:
		return source.Entry{ID: key, Title: e.Label}, true
	}
	return source.Entry{}, false
}
