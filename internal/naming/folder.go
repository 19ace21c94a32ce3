package naming

import (
	"path/filepath"
	"strings"
)

// InFolder returns a function that reports whether a path is folder or below
// it, links followed or not.
func InFolder(folder string) func(path string) bool {
	real := func(path string) string {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			return p
		}
		return path // on another machine, or gone
	}
	folder = filepath.Clean(folder)
	here, known := real(folder), map[string]bool{}
	return func(path string) bool {
		if path == "" {
			return false
		}
		in, ok := known[path]
		if !ok {
			in = within(filepath.Clean(path), folder) || within(real(path), here)
			known[path] = in
		}
		return in
	}
}

// within reports whether path is folder or below it.
func within(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}
