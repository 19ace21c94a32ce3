package tool

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// readable are folders besides the workspace that can be read, and not written.
type readable struct {
	mu   sync.Mutex
	dirs []string
	open map[string]*workspace // those that were read from so far
}

// SetReadable lets the tools that only read reach these folders by absolute paths,
// with everything below them, from the next call on: also what the Fence encloses.
// Those of before are not reached any more.
func (s *Set) SetReadable(dirs []string) {
	r := s.ws.beside
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirs = slices.Clone(dirs)
}

// look is find for tools that only read.
func (w *workspace) look(path string) (*workspace, string, error) {
	if p := filepath.Clean(filepath.FromSlash(path)); filepath.IsAbs(p) {
		if in, rel := w.beside.find(p, w.fence); in != nil {
			return in, rel, nil
		}
	}
	return w.find(path)
}

// find returns the folder that path is in, and its name there. It is nil if there
// is none.
func (r *readable) find(path string, fence Fence) (*workspace, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dir := range r.dirs {
		rel, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if w := r.open[dir]; w == nil || !w.current() {
			if w != nil { // another folder has taken its place
				w.root.Close()
				delete(r.open, dir)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				continue
			}
			fence.Open = append(slices.Clone(fence.Open), dir)
			r.open[dir] = &workspace{root: root, dir: dir, bases: []string{dir}, fence: fence, prefix: filepath.ToSlash(dir) + "/", beside: r}
			r.open[dir].memory = r.open[dir]
		}
		return r.open[dir], rel
	}
	return nil, ""
}

// current reports whether w is still the folder at its path.
func (w *workspace) current() bool {
	here, err := w.root.Stat(".")
	there, err2 := os.Stat(w.dir)
	return err == nil && err2 == nil && os.SameFile(here, there)
}

func (r *readable) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range maps.Values(r.open) {
		w.root.Close()
	}
	r.dirs, r.open = nil, map[string]*workspace{}
}
