package inherit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"goclaw/session"
)

// Removed remembers the mirrors that were removed here for good, so that they
// do not come back with the next taking. It is not a projection: nothing else
// tells that a log was here once.
type Removed struct {
	path string
	logs map[session.ID]string // and whose session it was
}

// OpenRemoved reads what is remembered at path, which need not be there.
func OpenRemoved(path string) (*Removed, error) {
	r := &Removed{path: path}
	return r, r.load()
}

func (r *Removed) load() error {
	r.logs = map[session.ID]string{}
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
	return r.change(func() { r.logs[in.ID] = in.Origin.Program })
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

// has reports whether the log id of a program's session was removed.
func (r *Removed) has(id session.ID, program string) bool {
	if r == nil {
		return false
	}
	whose, ok := r.logs[id]
	return ok && whose == program
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
