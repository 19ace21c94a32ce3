package instructions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Place is a folder in which skills or prompt templates may be.
type Place struct {
	Dir string
	// Root is the folder that a link may not lead out of: somebody else may have
	// written what a repository holds. "": links lead anywhere.
	Root string
	// Not reports whether the skill with a name is turned off. nil: none is.
	Not func(name string) bool
}

// Project returns the folders called names in folder and in those above it, up to
// the root of the repository, the nearest first.
func Project(folder string, names ...string) []Place {
	var out []Place
	dirs := above(folder)
	for i := len(dirs) - 1; i >= 0; i-- {
		for _, name := range names {
			out = append(out, Place{Dir: filepath.Join(dirs[i], filepath.FromSlash(name)), Root: dirs[0]})
		}
	}
	return out
}

// Places returns folders that the user alone writes to.
func Places(dirs ...string) []Place {
	var out []Place
	for _, dir := range dirs {
		if dir != "" {
			out = append(out, Place{Dir: dir})
		}
	}
	return out
}

// allows refuses a path that leads out of the root of p.
func (p Place) allows(path string) error {
	if p.Root == "" {
		return nil
	}
	root, err := filepath.EvalSymlinks(p.Root)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return errors.New("it is a link that leads out of the repository, and is not followed")
	}
	return nil
}

// maxDepth and maxEntries limit the search below a place.
const (
	maxDepth   = 4
	maxEntries = 2000
)

// walk calls visit for what is in dir, in the order of the names, and enters the
// folders for which visit returns true. Links to folders count as folders. What is
// hidden is left out.
func walk(dir string, visit func(path string, isDir bool) (enter bool)) error {
	left := maxEntries
	var into func(dir string, depth int) error
	into = func(dir string, depth int) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if left--; left < 0 {
				return fmt.Errorf("more than %d files: not all were looked at", maxEntries)
			}
			path, isDir := filepath.Join(dir, e.Name()), e.IsDir()
			if e.Name()[0] == '.' || e.Name() == "node_modules" {
				continue
			}
			if e.Type()&fs.ModeSymlink != 0 {
				info, err := os.Stat(path)
				isDir = err == nil && info.IsDir()
			}
			if visit(path, isDir) && isDir && depth < maxDepth {
				_ = into(path, depth+1) // a folder that cannot be read hides nothing but itself
			}
		}
		return nil
	}
	err := into(dir, 1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
