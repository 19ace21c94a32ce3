package inherit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"goclaw/internal/inherit/source"
	"goclaw/session"
)

// Removed remembers the mirrors that were removed here for good, so that they
// do not come back with the next taking. It is not a projection: nothing else
// tells that a log was here once.
type Removed struct {
	path string
	logs map[session.ID]gone
}

// gone is a log that was removed: whose session it was, and from where. Files
// of other names beside those are other sessions, though they may have its id.
type gone struct {
	Program string   `json:"program"`
	Paths   []string `json:"paths,omitempty"`
}

// UnmarshalJSON reads also the name of a program alone, which files had at
// first.
func (g *gone) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &g.Program) == nil {
		return nil
	}
	type plain gone
	return json.Unmarshal(data, (*plain)(g))
}

// bars reports whether g is the session of t: its file, or one that lies
// elsewhere, such as a copy. If again, another has the id since, and only the
// name of the file counts.
func (g gone) bars(t *Transcript, again bool) bool {
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
	data, err := os.ReadFile(r.path)
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

// Add remembers that the log of in is removed for good. Call it before that is
// done. A log of our own is nothing to remember.
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

// change writes what f does, on top of what others have written since.
func (r *Removed) change(f func()) error {
	if err := r.load(); err != nil {
		return err
	}
	f()
	data, err := json.Marshal(r.logs)
	if err != nil {
		return err
	}
	return replaceFile(r.path, data)
}

// has reports whether the log id of t was removed. again: there is one of that
// id now.
func (r *Removed) has(id session.ID, t *Transcript, again bool) bool {
	if r == nil {
		return false
	}
	g, ok := r.logs[id]
	return ok && g.Program == t.Program && g.bars(t, again)
}

// forget lets logs be taken again.
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
