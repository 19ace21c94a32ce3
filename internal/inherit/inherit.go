// Package inherit finds other agents' sessions, reads them without a scratch
// and takes them into a store: OpenClaw's folders and databases, pi, both
// layouts of claw0, Claude Code and Codex.
//
// Find says what there is, a Transcript each; Take copies what a store lacks
// of it. A source is opened for reading only: nothing is created, changed,
// locked or touched beside it, also where it is a database with a live
// write-ahead log. Every line is kept byte for byte; what cannot be read is a
// session.Damage, and everything around it is taken.
package inherit

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"goclaw/codec"
	"goclaw/session"
)

// The programs whose sessions can be read.
const (
	OpenClaw   = "openclaw"
	Pi         = "pi"
	Claw0      = "claw0"
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Goclaw     = "goclaw"

	// EarlierGoclaw is the first program of that name, with a database of its
	// own.
	EarlierGoclaw = "goclaw-sqlite"
)

// Programs are the values of Options.From.
var Programs = []string{OpenClaw, Pi, Claw0, ClaudeCode, Codex, Goclaw, EarlierGoclaw}

// Transcript is one session of another program, as it lies on disk.
type Transcript struct {
	Program string
	Path    string      // the file, or the database
	ID      session.ID  // as the program names it
	Key     session.Key // the program's own, where it has one
	Title   string
	// Archive says why the program itself does not list the session: deleted,
	// reset, bak, orphan, window ...; "" if it does.
	Archive string
	Size    int64 // bytes to be read, about
	Note    string

	stat   stat
	form   codec.Form
	old    *database // where it lies in one, or nil
	window string    // its rows there
	blob   int       // an archive there: of which table
	cwd    string
	begun  time.Time // if its owner says so apart from its records
	side   bool      // a subagent's
	named  bool      // the user gave its path
	// What the owner's index says, if it can be read: that Key is t's, or
	// nothing of t.
	listed, unlisted bool

	count func(bytes int) // is told of what is read, or nil

	gate   chan struct{} // for who has long lines, or nil
	inside bool          // t has passed it
	line   int64         // bytes of the line that is being read
}

// The tables that a database keeps whole transcripts in.
const (
	inEvents = iota
	inArchives
	inCold
)

// Database reports whether t lies in a database, beside others.
func (t *Transcript) Database() bool { return t.old != nil }

// ref names t among all transcripts.
func (t *Transcript) ref() string {
	if t.window == "" {
		return text(t.Path)
	}
	return fmt.Sprintf("%s#%d#%s", text(t.Path), t.blob, t.window)
}

// Catalogue is what Find found. Close it.
type Catalogue struct {
	Transcripts []*Transcript
	Problems    []Problem
	databases   []*database
}

// Close ends the reading.
func (c *Catalogue) Close() {
	for _, d := range c.databases {
		d.close()
	}
}

// Size is the number of bytes in all transcripts, about.
func (c *Catalogue) Size() (n int64) {
	for _, t := range c.Transcripts {
		n += t.Size
	}
	return n
}

// Records yields t as a log: a header first, and then what the program
// wrote, upgraded to native lines where it is in another form. Damage is
// yielded as *session.Damage, and the reading goes on.
func (t *Transcript) Records(ctx context.Context) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		first := true
		for r, err := range t.read(ctx) {
			if err == nil && first {
				first = false
				r = t.opened(r, t.ID)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (t *Transcript) read(ctx context.Context) iter.Seq2[session.Record, error] {
	if t.old != nil {
		return t.old.records(ctx, t, -1)
	}
	return t.lines(ctx, position{}, nil)
}

// header is what stands before a file without a header.
func (t *Transcript) header() *session.Header {
	return &session.Header{Version: session.Version, ID: t.ID, CWD: t.cwd}
}

// origin says where t comes from.
func (t *Transcript) origin() session.Origin {
	return session.Origin{Program: t.Program, Path: text(t.Path), Key: t.Key, ID: t.ID}
}

// stat is the identity of a file.
type stat struct {
	Ino   uint64 `json:"i,omitempty"`
	Size  int64  `json:"s"`
	MTime int64  `json:"m"`
	Extra int64  `json:"x,omitempty"` // of a database: its write-ahead log
}

func statOf(fi fs.FileInfo) stat {
	return stat{Ino: inode(fi), Size: fi.Size(), MTime: fi.ModTime().UnixNano()}
}

func (s stat) time() time.Time { return time.Unix(0, s.MTime).UTC().Truncate(time.Millisecond) }
