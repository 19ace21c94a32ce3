// Package inherit finds other agents' sessions, reads them without touching
// them and imports them into a store.
//
// Find says what there is, a Transcript each; Import copies what a store lacks
// of it; Follow does both as the programs write. What a program's files look
// like is known by its package below this one, a source.Source; here everything
// is written once for all of them. A source is opened for reading only: nothing
// is created, changed, locked or touched next to it, also where it is a database
// with a live write-ahead log. Every line is kept byte for byte; what cannot be
// read is a session.Damage, and everything around it is imported.
package inherit

import (
	"goclaw/internal/inherit/claude"
	"goclaw/internal/inherit/claw0"
	"goclaw/internal/inherit/codex"
	"goclaw/internal/inherit/crush"
	"goclaw/internal/inherit/firstgoclaw"
	"goclaw/internal/inherit/gemini"
	"goclaw/internal/inherit/goclaw"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/inherit/opencode"
	"goclaw/internal/inherit/pi"
	"goclaw/internal/inherit/source"
)

// Sources make the programs that are known, in the order in which they are
// asked whose a file is. To add one, write its package and name it here.
var Sources = []func() source.Source{claude.New, codex.New, gemini.New, claw0.New, goclaw.New, firstgoclaw.New, openclaw.New, pi.New, opencode.New, crush.New}

// The programs that others speak of.
const (
	OpenClaw    = openclaw.Program
	Pi          = pi.Program
	Claw0       = claw0.Program
	ClaudeCode  = claude.Program
	Codex       = codex.Program
	Goclaw      = goclaw.Program
	OpenCode    = opencode.Program
	GeminiCLI   = gemini.Program
	Crush       = crush.Program
	FirstGoclaw = firstgoclaw.Program
)

// Programs are the values of FindOptions.From, in the order in which they are
// shown.
var Programs = []string{OpenClaw, Pi, Claw0, ClaudeCode, Codex, OpenCode, GeminiCLI, Crush, Goclaw, FirstGoclaw}

type (
	// Transcript is one session of another program, as it is on disk.
	Transcript = source.Transcript
	// Problem is something that could not be read, or does not fit.
	Problem = source.Problem
)

// Unverified says of a program why what is read of it is not certain, "" if it
// was compared with what the program itself makes of it.
func Unverified(program string) string {
	for _, src := range newSources(nil) {
		if u, ok := src.(source.Unverified); ok && src.Program() == program {
			return u.Unverified()
		}
	}
	return ""
}

// newSources returns the sources that make makes, or those that are known.
func newSources(make []func() source.Source) (out []source.Source) {
	if make == nil {
		make = Sources
	}
	for _, f := range make {
		out = append(out, f())
	}
	return out
}

// Catalogue is what Find found. Close it.
type Catalogue struct {
	Transcripts []*Transcript
	Problems    []Problem
	databases   []*source.Database
}

// Close ends the reading.
func (c *Catalogue) Close() {
	for _, d := range c.databases {
		d.Close()
	}
}

// Size is the number of bytes in all transcripts, about.
func (c *Catalogue) Size() (n int64) {
	for _, t := range c.Transcripts {
		n += t.Size
	}
	return n
}

// Unread is the number of places that could not be read.
func (c *Catalogue) Unread() (n int) {
	for _, p := range c.Problems {
		if p.Unread {
			n++
		}
	}
	return n
}
