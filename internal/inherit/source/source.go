// Package source describes a program whose sessions can be imported: a Source
// says where it keeps them, whether a file looks like its own, and opens it.
// Each program has its own package; finding, importing and following are
// written once over Source, in package inherit.
//
// The package also holds what several programs need: reading a file of lines, a
// database or an index without touching it, and putting lines together into
// records.
package source

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"goclaw/internal/codec"
	"goclaw/session"
)

// Source is a program whose sessions can be read. It may remember what it has
// read next to its files; a new one is made for each search.
type Source interface {
	// Program is its name, as origins and --from have it.
	Program() string

	// Places returns where it keeps its sessions, whether they are there or
	// not. home is the user's, "" if it has none.
	Places(home string, getenv func(string) string) []string

	// Sniff looks at one of the first lines of a file. mine: the program, or
	// one that writes the same, has written it; s says what is known so far.
	// done: no further line is needed. A source that cannot tell by the lines
	// alone whose they are leaves s.Program empty.
	Sniff(l Line, s *Sniffed) (mine, done bool)

	// Open returns the transcripts of a file or a database, or none if it is
	// not the program's.
	Open(f *File) ([]*Transcript, error)
}

// Namer is a Source that keeps sessions in files whose names do not end in
// .jsonl.
type Namer interface {
	Source
	// Named reports whether a file of this name can be the program's.
	Named(name string) bool
}

// Lister is a Source that lists its sessions in a sessions.json.
type Lister interface {
	Source
	// Entry reads one entry, if it is one of the program's.
	Entry(key string, raw json.RawMessage) (Entry, bool)
}

// Home is a Source whose folder holds much else besides its sessions.
type Home interface {
	Source
	// Inside returns the names in dir that are to be looked at, and folders
	// elsewhere that are, too, if dir is the program's folder. It can be, and
	// have a part that cannot be read.
	Inside(dir, home string) (names, elsewhere []string, ok bool, problem error)
}

// Joiner is a Source whose records are made of several lines, or of rows that may
// change, and carry them in a field with the name of the program.
type Joiner interface {
	Source
	Joins()
}

// Unverified is a Source that was written without the program at hand.
type Unverified interface {
	Source
	// Unverified says what it rests on.
	Unverified() string
}

// File is a file that may hold sessions: of lines, or a database.
type File struct {
	Path    string
	Stat    Stat
	Named   bool       // the user gave its path
	Forced  bool       // the user says whose it is
	ID      session.ID // by its name
	Archive string     // why it is one, by its name
	Sniffed Sniffed
	Index   *Index    // that tells of it, or nil
	DB      *Database // nil: a file of lines
	Broken  error     // why DB is nil although it is a database: SQLite cannot read it
	// Problem is called for what cannot be read next to the file.
	Problem func(Problem)
}

// Transcript returns what all programs know of a transcript in f.
func (f *File) Transcript(program string) *Transcript {
	t := &Transcript{Program: program, Path: f.Path, ID: f.ID, Archive: f.Archive, Size: f.Stat.Size, Stat: f.Stat, Named: f.Named, Form: codec.FormNative, CWD: f.Sniffed.CWD}
	if id := session.ID(f.Sniffed.ID); GoodID(id) {
		t.ID = id
	}
	return t
}

// Listed returns what the index says of t. Unless t is an archive, the index
// knows its id best.
func (f *File) Listed(t *Transcript) (e Entry, ok bool) {
	if f.Index == nil {
		return Entry{}, false
	}
	if e, ok = f.Index.Find(filepath.Base(f.Path), t.ID); ok && t.Archive == "" && GoodID(session.ID(e.ID)) {
		t.ID = session.ID(e.ID)
	}
	return e, ok
}

// Sniffed is what the first lines of a file tell.
type Sniffed struct {
	Program string     `json:"p,omitempty"` // "": the lines alone do not tell
	Form    codec.Form `json:"f,omitempty"` // "": it is not known whose they are
	ID      string     `json:"i,omitempty"`
	Key     string     `json:"k,omitempty"`
	CWD     string     `json:"d,omitempty"`
	Version int        `json:"v,omitempty"`
	Title   string     `json:"t,omitempty"`
	Side    bool       `json:"side,omitempty"` // a subagent's own file
	Past    bool       `json:"h,omitempty"`    // it continues another file
	Empty   bool       `json:"e,omitempty"`
	Zeros   bool       `json:"z,omitempty"` // it holds nothing else
	Begun   bool       `json:"n,omitempty"` // its first line is not complete
	Bare    bool       `json:"b,omitempty"` // it holds no conversation, only what is said of others

	Looks string `json:"l,omitempty"` // what it looks like, if no source knows it

	Maybe   string `json:"-"` // what a source keeps from one line to the next
	Strange bool   `json:"-"` // a line before, outside of any tree, was no source's
}

// Line is one of the first lines of a file, with the fields that the lines of
// all programs are told apart by.
type Line struct {
	Raw         []byte          `json:"-"`
	Type        string          `json:"type"`
	ID          any             `json:"id"`
	Key         string          `json:"key"`
	CWD         string          `json:"cwd"`
	Version     any             `json:"version"`
	Timestamp   any             `json:"timestamp"`
	TS          any             `json:"ts"`
	Origin      json.RawMessage `json:"origin"`
	Payload     json.RawMessage `json:"payload"`
	UUID        string          `json:"uuid"`
	ParentID    json.RawMessage `json:"parentId"`
	ParentUUID  *string         `json:"parentUuid"`
	SessionID   string          `json:"sessionId"`
	LeafUUID    string          `json:"leafUuid"`
	Sidechain   bool            `json:"isSidechain"`
	MessageID   string          `json:"messageId"`
	RecordType  string          `json:"record_type"`
	Instruction json.RawMessage `json:"instructions"`
	Role        string          `json:"role"`
	Message     json.RawMessage `json:"message"`
	System      json.RawMessage `json:"systemPayload"`
}

// parseLine reads the fields of a line. ok is false if it has none.
func parseLine(raw []byte) (l Line, ok bool) {
	err := json.Unmarshal(bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("\xef\xbb\xbf")), &l)
	l.Raw = raw
	return l, err == nil || l.Type != ""
}

// Header takes what the line says of the session, if it is a header.
func (l Line) Header(s *Sniffed) {
	if l.Type != "session" {
		return
	}
	if id, ok := l.ID.(string); ok {
		s.ID = id
	}
	s.Key, s.CWD = l.Key, l.CWD
	if v, ok := l.Version.(float64); ok {
		s.Version = int(v)
	}
}

// Form returns the form of the line, of those that package codec knows, or "".
func (l Line) Form() codec.Form {
	f, err := codec.Detect(bytes.NewReader(l.Raw))
	if err != nil {
		return ""
	}
	return f
}

// Under returns the folders rest of the folder that the variable env names, or
// of own in the user's home. There are none if the home is not known: the
// current folder is not taken for it.
func Under(home string, getenv func(string) string, env, own string, rest ...string) (out []string) {
	dir := ""
	if env != "" {
		dir = getenv(env)
	}
	if dir == "" {
		dir = "~/" + own
	}
	if home == "" && strings.HasPrefix(dir, "~") {
		return nil
	}
	for _, r := range rest {
		out = append(out, filepath.Join(Expand(dir, home), filepath.FromSlash(r)))
	}
	return out
}

// Expand puts the user's home in the place of "~".
func Expand(path, home string) string {
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// AgentOf returns the agent whose folder path is in: agents/<agent>/..., as
// OpenClaw and claw0 have them.
func AgentOf(path string) string {
	seg := strings.Split(filepath.ToSlash(path), "/")
	for i := len(seg) - 3; i > 0; i-- {
		if seg[i-1] == "agents" && (seg[i+1] == "sessions" || seg[i+1] == "agent") {
			return seg[i]
		}
	}
	return ""
}

// ProjectKey is the key of a session whose program has none and keeps them by
// folder.
func ProjectKey(program, cwd string, id session.ID) session.Key {
	dir := filepath.Base(filepath.ToSlash(cwd))
	if cwd == "" || dir == "/" || dir == "." {
		dir = "home"
	}
	return session.Key(program + ":" + strings.ReplaceAll(dir, ":", "-") + ":" + string(id))
}

// HasTwin reports whether path is the packed form of a file that is next to it.
func HasTwin(path string) bool {
	plain, ok := strings.CutSuffix(path, ".zst")
	if !ok {
		return false
	}
	_, err := os.Stat(plain)
	return err == nil
}

// SessionFolders are where OpenClaw and claw0 have sessions in their folders.
var SessionFolders = []string{"agents", "sessions", "transcripts"}
