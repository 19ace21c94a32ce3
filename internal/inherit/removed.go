package inherit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Removed remembers the mirrors that were removed here for good, so that the next
// import does not bring them back. It is not a projection: nothing else shows
// that a log was once here.
type Removed struct {
	path string
	logs map[session.ID]gone
}

// gone is a log that was removed: its program and files. Other files in the same
// folder are other sessions, even if they have its id.
type gone struct {
	Program string   `json:"program"`
	Paths   []string `json:"paths,omitempty"`
}

// UnmarshalJSON also reads the first form, the name of the program alone.
func (g *gone) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &g.Program) == nil {
		return nil
	}
	type plain gone
	return json.Unmarshal(data, (*plain)(g))
}

// covers reports whether t is the session that was removed: its file, or a copy
// of it elsewhere. If again, another log has the id now, and only the name of the
// file counts.
func (g gone) covers(t *Transcript, again bool) bool {
	path := source.Text(t.Path)
	if slices.ContainsFunc(g.Paths, func(p string) bool { return filepath.Base(p) == filepath.Base(path) }) {
		return true
	}
	return !again && !slices.ContainsFunc(g.Paths, func(p string) bool { return filepath.Dir(p) == filepath.Dir(path) && t.Archive == "" })
}

// OpenRemoved reads what is remembered at path, which need not be there.
func OpenRemoved(path string) (*Removed, error) {
	r := &Removed{path: path}
	return r, r.load()
}

func (r *Removed) load() error {
	r.logs = map[session.ID]gone{}
	data, err := wholefile.Read(r.path, maxMemo)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r.logs)
	}
	if err != nil {
		return &fs.PathError{Op: "read", Path: r.path, Err: err}
	}
	return nil
}

// Add remembers that the log of in is removed for good. Call it before removing
// the log. Logs that are not mirrors are not remembered.
func (r *Removed) Add(in session.Info) error {
	if !in.Mirror() {
		return nil
	}
	return r.change(func() {
		g := r.logs[in.ID]
		if g.Program != in.Origin.Program {
			g = gone{Program: in.Origin.Program}
		}
		if !slices.Contains(g.Paths, in.Origin.Path) {
			g.Paths = append(g.Paths, in.Origin.Path)
		}
		r.logs[in.ID] = g
	})
}

// change applies f to what the file says now, and writes it.
func (r *Removed) change(f func()) error {
	if err := r.load(); err != nil {
		return err
	}
	f()
	data, err := json.Marshal(r.logs)
	if err != nil {
		return err
	}
	return wholefile.Write(r.path, data)
}

// has reports whether the log id of t was removed. again: another log has that id
// now.
func (r *Removed) has(id session.ID, t *Transcript, again bool) bool {
	if r == nil {
		return false
	}
	g, ok := r.logs[id]
	return ok && g.Program == t.Program && g.covers(t, again)
}

// forget lets logs be imported again.
func (r *Removed) forget(ids []session.ID) error {
	if len(ids) == 0 {
		return nil
	}
	return r.change(func() {
		for _, id := range ids {
			delete(r.logs, id)
		}
	})
}
