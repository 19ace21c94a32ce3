package notes

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/internal/memoryfiles"
)

// walk finds memory files. Hidden files are not memory files, and neither is
// what lies outside the folder, even if a link leads there.
type walk struct {
	in    *Folder
	tree  fs.FS // of its root
	see   func(dir string, names ...string)
	found map[string]fs.FileInfo
	links map[string]bool // those of found that a link leads to
	dirs  []fs.FileInfo   // entered so far
	flaws []string
}

// above reports whether the workspace is there. If it is not, it shows the
// folder in which it will appear.
func (w *walk) above() bool {
	for {
		if _, err := os.Stat(w.in.Root); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		dir := w.in.Root
		for {
			up := filepath.Dir(dir)
			if up == dir {
				return false
			}
			if _, err := os.Stat(up); err == nil {
				w.see(up, filepath.Base(dir))
				break
			}
			dir = up
		}
		if _, err := os.Stat(dir); err != nil {
			return false
		}
		// It appeared before the folder was shown.
	}
}

// all walks through MEMORY.md, memory/ and more.
func (w *walk) all() {
	w.path(memoryfiles.Main, false)
	w.path(memoryfiles.Dir, false)
	for _, p := range w.in.More {
		if rel, err := filepath.Rel(w.in.Root, p); err == nil && filepath.IsAbs(p) {
			p = rel
		}
		p = path.Clean(filepath.ToSlash(p))
		if !fs.ValidPath(p) {
			w.flaws = append(w.flaws, w.in.Name+p+" was not read: it lies outside the workspace")
			continue
		}
		w.path(p, true)
	}
}

// path walks through p. named says that it counts whatever its extension is.
func (w *walk) path(p string, named bool) {
	for i := 0; p != "." && i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		w.see(w.abs(path.Dir(p[:i])), path.Base(p[:i]))
		if i < len(p) {
			if _, err := fs.Stat(w.tree, p[:i]); err != nil {
				break
			}
		}
	}
	in, err := os.Lstat(w.abs(p))
	w.entry(p, named, err == nil && in.Mode()&fs.ModeSymlink != 0)
}

func (w *walk) abs(name string) string { return filepath.Join(w.in.Root, filepath.FromSlash(name)) }

// entry takes a file, or what is in a folder.
func (w *walk) entry(name string, named, link bool) {
	wanted := named || memoryfiles.IsText(name)
	in, err := fs.Stat(w.tree, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		out, e := os.Stat(w.abs(name))
		switch {
		case errors.Is(e, fs.ErrNotExist): // a link to nothing
		case e == nil && (wanted || out.IsDir()):
			w.flaws = append(w.flaws, w.in.Name+name+" was not read: it is a link that leads out of the workspace")
		case wanted:
			w.flaw(name, err)
		}
	case in.IsDir():
		w.dir(name, in, link)
	case wanted && in.Mode().IsRegular():
		w.find(name, in, link)
	}
}

func (w *walk) find(name string, in fs.FileInfo, link bool) {
	if w.found[name] = in; link {
		w.links[name] = true
	}
}

// unlink drops files that a link leads to if they are found without it, or by
// an earlier link.
func (w *walk) unlink() {
	type looks struct { // the same for the same file
		size int64
		time time.Time
	}
	if len(w.links) == 0 {
		return
	}
	alike := map[looks][]fs.FileInfo{}
	of := func(in fs.FileInfo) looks { return looks{in.Size(), in.ModTime()} }
	for name, in := range w.found {
		if !w.links[name] {
			alike[of(in)] = append(alike[of(in)], in)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.links)) {
		in := w.found[name]
		if slices.ContainsFunc(alike[of(in)], func(o fs.FileInfo) bool { return os.SameFile(o, in) }) {
			delete(w.found, name)
		}
		alike[of(in)] = append(alike[of(in)], in)
	}
}

// dir takes what is in a folder. A folder that links lead to is entered once.
func (w *walk) dir(name string, in fs.FileInfo, linked bool) {
	if linked && slices.ContainsFunc(w.dirs, func(d fs.FileInfo) bool { return os.SameFile(d, in) }) {
		return
	}
	w.dirs = append(w.dirs, in)
	w.see(w.abs(name))
	entries, err := fs.ReadDir(w.tree, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.flaw(name, err)
	}
	for _, e := range entries {
		n, link := e.Name(), e.Type()&fs.ModeSymlink != 0
		switch {
		case strings.HasPrefix(n, ".") || n == "node_modules":
		case e.Type().IsRegular() && memoryfiles.IsText(n): // there are many of these
			if in, err := e.Info(); err == nil {
				w.find(path.Join(name, n), in, linked)
			}
		case e.IsDir() || link:
			w.entry(path.Join(name, n), false, link || linked)
		}
	}
}

// flaw notes that a file cannot be read.
func (w *walk) flaw(name string, err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	w.flaws = append(w.flaws, fmt.Sprintf("%s cannot be read: %v", w.in.Name+name, err))
}
