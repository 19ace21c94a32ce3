// Package openclaw reads the sessions of OpenClaw: folders of transcripts with
// an index, their archives, and databases.
package openclaw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/internal/json5"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Program is its name.
const Program = "openclaw"

// New returns OpenClaw as a source.
func New() source.Source { return program{} }

type program struct{}

func (program) Program() string { return Program }

func (program) Places(home string, getenv func(string) string) []string {
	return source.Under(home, getenv, "OPENCLAW_STATE_DIR", ".openclaw", "")
}

func (program) Named(name string) bool { return strings.HasSuffix(name, ".sqlite") }

// Sniff leaves native lines to pi, which shares the format: where a file is
// shows whose it is.
func (program) Sniff(source.Line, *source.Sniffed) (mine, done bool) { return false, false }

// piName is how pi names its files: by their time and id.
var piName = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_`)

// isOurs reports whether a file of native lines is OpenClaw's. OpenClaw 2026.9.6
// writes version 4. Where a file is says more: pi's versions grow as well.
func isOurs(f *source.File) bool {
	return f.Index != nil || source.AgentOf(f.Path) != "" || f.Archive != "" || f.Sniffed.Version == 4 && !piName.MatchString(filepath.Base(f.Path))
}

func (program) Open(f *source.File) ([]*source.Transcript, error) {
	if f.Broken != nil {
		return broken(f)
	}
	if f.DB != nil {
		if !f.DB.Tables["transcript_events"] {
			return nil, nil
		}
		if !f.DB.Has("transcript_events", "session_id", "seq") {
			return nil, errors.New("it looks like a database of OpenClaw, but its tables are not those of any version that goclaw knows")
		}
		d, err := newDatabase(f.DB)
		if err != nil {
			return nil, err
		}
		var found []*source.Transcript
		err = d.View(func() error {
			d.damaged = nil
			found, err = d.list()
			return err
		})
		for _, table := range d.damaged {
			f.Problem(source.Problem{Path: f.Path, What: fmt.Sprintf("a page of the table %s is damaged: what it says of the sessions may be missing, such as their keys", table)})
		}
		return found, err
	}
	if !f.Forced && (f.Sniffed.Form != codec.FormNative || !isOurs(f)) {
		return nil, nil
	}
	t := f.Transcript(Program)
	e, listed := f.Listed(t)
	switch {
	case listed && t.Archive == "":
		t.Key, t.Title, t.Away, t.Listed = session.Key(e.Key), e.Title, e.Away, true
	default:
		if t.Archive == "" {
			t.Archive, t.Unlisted = "orphan", f.Index != nil && !f.Index.Unreadable
		}
		t.Key = recovered(cmp.Or(source.Text(source.AgentOf(f.Path)), "main"), t.ID)
	}
	if listed && t.Archive == "bak" {
		t.Note = fmt.Sprintf("the whole text of %s before it was cut to its last lines", e.Key)
	}
	return []*source.Transcript{t}, nil
}

// recovered is the key that OpenClaw 2026.9.6 gives to what it finds without
// one.
func recovered(agent string, id session.ID) session.Key {
	return session.Key(fmt.Sprintf("agent:%s:recovered:%s", agent, id))
}

func (program) Entry(key string, raw json.RawMessage) (source.Entry, bool) {
	e := readEntry(key, raw)
	return e, e.ID != ""
}

// readEntry reads an entry of the index. Its display name is often only the key
// again.
func readEntry(key string, raw []byte) source.Entry {
	var e struct {
		SessionID   string `json:"sessionId"`
		SessionFile string `json:"sessionFile"`
		Label       string `json:"label"`
		DisplayName string `json:"displayName"`
		Subject     string `json:"subject"`
		ArchivedAt  any    `json:"archivedAt"`
	}
	_ = json.Unmarshal(raw, &e) // fields of other types are no fields
	title := e.Label
	for _, t := range []string{e.DisplayName, e.Subject} {
		if title == "" && !strings.HasSuffix(key, ":"+t) {
			title = t
		}
	}
	return source.Entry{Key: key, ID: strings.TrimSpace(e.SessionID), File: source.BaseName(strings.TrimSpace(e.SessionFile)), Title: strings.TrimSpace(title), Away: e.ArchivedAt != nil}
}

// Inside knows the state folder, and that of claw0, which looks the same: their
// agents have sessions. Other programs have folders of that name, too, and
// transcripts next to them.
func (program) Inside(dir, home string) (names, elsewhere []string, ok bool, problem error) {
	// An agent's own folder of sessions is not one, even if it holds a store.
	if !hasAgents(dir) || source.AgentOf(filepath.Join(dir, "x")) != "" {
		return nil, nil, false, nil
	}
	elsewhere, problem = moved(dir, home)
	return source.SessionFolders, elsewhere, true, problem
}

func hasAgents(dir string) bool {
	for _, pattern := range []string{"sessions", "sessions.json", "agent"} {
		if found, _ := filepath.Glob(filepath.Join(GlobQuote(dir), "agents", "*", pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// GlobQuote makes a path mean itself in a pattern.
func GlobQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Config is the file in the state folder that says how OpenClaw is set up.
const Config = "openclaw.json"

// maxConfig is how large it may be.
const maxConfig = 16 << 20

// moved returns where the configuration says that the index is.
func moved(state, home string) (folders []string, err error) {
	config := filepath.Join(state, Config)
	data, err := wholefile.Read(config, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c struct {
		Session struct {
			Store string `json:"store"`
		} `json:"session"`
	}
	if json5.Unmarshal(data, &c) != nil || c.Session.Store == "" {
		return nil, nil
	}
	pattern := strings.ReplaceAll(source.Expand(c.Session.Store, home), "{agentId}", "*")
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(state, pattern)
	}
	found, _ := filepath.Glob(pattern)
	for _, index := range found {
		folders = append(folders, filepath.Dir(index))
	}
	return folders, nil
}

// StateOf returns the state folder that dir is a part of: agents/<agent>, or
// something below.
func StateOf(dir string) (state string, ok bool) {
	seg := strings.Split(filepath.ToSlash(filepath.Clean(dir)), "/")
	for i := len(seg) - 2; i > 0; i-- {
		if seg[i] == "agents" && (i+2 == len(seg) || seg[i+2] == "sessions" || seg[i+2] == "agent") {
			return filepath.FromSlash(strings.Join(seg[:i], "/")), true
		}
	}
	return "", false
}
