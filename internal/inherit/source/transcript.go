package source

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"goclaw/internal/codec"
	"goclaw/session"
)

// Transcript is one session of another program, as it is on disk.
type Transcript struct {
	Program string
	Path    string      // the file, or the database
	ID      session.ID  // as the program names it
	Key     session.Key // the program's own, where it has one
	Title   string
	// Archive says why the program itself does not list the session: subagent,
	// archived, deleted, reset, bak, orphan, window ...; "" if it does.
	Archive string
	// Away: the program lists it among those that the user has archived.
	Away bool
	Size int64 // bytes to be read, about
	Note string

	Stat Stat
	CWD  string
	// Named: the user gave its path.
	Named bool
	// What the owner's index says, if it can be read: that Key is the session's
	// (Listed), or nothing of it (Unlisted).
	Listed, Unlisted bool

	// How a file of lines is read: by Stream, or if that is nil by Form.
	Form   codec.Form
	Stream func() codec.Stream
	// Pieces are what is read, one after the other, by one Stream. nil: the
	// file at Path.
	Pieces []Piece

	// How one of the sessions in a database is read; nil for a file of lines.
	// Part names it among them, and Whole says that it is kept apart from the
	// live ones.
	Read  func(context.Context, *Transcript) iter.Seq2[session.Record, error]
	Part  string
	Whole bool

	count   func(bytes int) // is called with what was read, or nil
	gate    chan struct{}   // limits how many transcripts with long lines are in memory, or nil
	inside  bool            // t has passed it
	pending int64           // bytes of the line that is being read
}

// Piece is a part of a file.
type Piece struct {
	Path     string
	From, To int64 // bytes; To is 0 where it ends with the file
	// Enter is called with the stream before the first line is read. nil:
	// nothing is to be done.
	Enter func(codec.Stream)
}

// Database reports whether t is in a database, among others.
func (t *Transcript) Database() bool { return t.Read != nil }

// Native reports whether t has the lines that pi and OpenClaw write.
func (t *Transcript) Native() bool { return t.Stream == nil && t.Form == codec.FormNative }

// Ref names t among all transcripts.
func (t *Transcript) Ref() string {
	if t.Part == "" {
		return Text(t.Path)
	}
	return fmt.Sprintf("%s#%s", Text(t.Path), t.Part)
}

// Records yields t as a log: a header first, and then what the program
// wrote, upgraded to native lines where it is in another form. Damage is
// yielded as *session.Damage, and the reading continues.
func (t *Transcript) Records(ctx context.Context) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		first := true
		for r, err := range Dated(t.Raw(ctx, nil)) {
			if err == nil && first {
				first = false
				r = t.Opened(r, t.ID)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Raw is Records with the header that the program wrote. The latest position in
// a file of lines is left in *end, if end is not nil.
func (t *Transcript) Raw(ctx context.Context, end *Position) iter.Seq2[session.Record, error] {
	if t.Read != nil {
		return t.Read(ctx, t)
	}
	return t.Lines(ctx, Position{}, end)
}

// Header is used for a file without a header.
func (t *Transcript) Header() *session.Header {
	return &session.Header{Version: session.Version, ID: t.ID, CWD: t.CWD}
}

// Origin says where t comes from.
func (t *Transcript) Origin() session.Origin {
	return session.Origin{Program: t.Program, Path: Text(t.Path), Key: t.Key, ID: t.ID, Mark: t.Mark()}
}

// Mark is the mark of t's log.
func (t *Transcript) Mark() string {
	switch {
	case t.Archive == session.Subagent, t.Archive == session.Archived, t.Archive == session.Deleted:
		return t.Archive
	case t.Away:
		return session.Archived
	}
	return ""
}

// Watch calls count with what is read of t, and makes t pass gate before it
// reads a long line. Call Leave when t was read.
func (t *Transcript) Watch(count func(bytes int), gate chan struct{}) { t.count, t.gate = count, gate }

// Leave ends Watch.
func (t *Transcript) Leave() {
	if t.inside {
		<-t.gate
		t.inside = false
	}
	t.count, t.gate = nil, nil
}

// Enter passes the gate, if there is one. Waits reports whether it is still to
// be passed.
func (t *Transcript) Enter() {
	if t.Waits() {
		t.gate <- struct{}{}
		t.inside = true
	}
}

func (t *Transcript) Waits() bool { return t.gate != nil && !t.inside }

// Counted reports that n bytes were read.
func (t *Transcript) Counted(bytes int) {
	if t.count != nil {
		t.count(bytes)
	}
}

// Stat is the identity of a file.
type Stat struct {
	Ino   uint64 `json:"i,omitempty"`
	Size  int64  `json:"s"`
	MTime int64  `json:"m"`
	Extra int64  `json:"x,omitempty"` // of a database: its write-ahead log
}

// StatOf returns the identity of a file.
func StatOf(fi fs.FileInfo) Stat {
	return Stat{Ino: inode(fi), Size: fi.Size(), MTime: fi.ModTime().UnixNano()}
}

// Time is when the file was written.
func (s Stat) Time() time.Time { return time.Unix(0, s.MTime).UTC().Truncate(time.Millisecond) }
