package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fence keeps tools out of files wherever the workspace lies: a program that
// offers these tools puts its own configuration, databases and permissions
// behind one.
//
// It goes by what a path leads to, not by how it is written: links, letter
// case, `..` and a second (hard) link to the same file do not get around it.
// It restricts the file tools. It cannot restrict a shell: a command that names
// something private is never run on the strength of an earlier "always", but
// a command can reach a file without naming it.
type Fence struct {
	// Private are files and directories (with everything below them) that are
	// refused. They need not exist yet. /proc always is one: it shows the
	// environment of this process.
	Private []string
	// Open are directories below private ones that are not refused. A path
	// that is both is private.
	Open []string
}

// errPrivate is what Fence.Check refuses with.
var errPrivate = errors.New("private to the program that runs these tools; it cannot be reached")

// Check returns an error if path, which need not exist, leads to something
// private.
func (f Fence) Check(path string) error {
	if f.survey().encloses(path) || f.twin(path) {
		return refusal(path)
	}
	return nil
}

func refusal(path string) error {
	return fmt.Errorf("%s is %w", quoted(filepath.ToSlash(path)), errPrivate)
}

// lines are a Fence on the ground, as the files are now.
type lines struct{ private, open []landmark }

func (f Fence) survey() lines {
	return lines{landmarks(append([]string{"/proc"}, f.Private...)), landmarks(f.Open)}
}

// encloses reports whether path leads to a private place.
func (l lines) encloses(path string) bool {
	abs, err := unclean(path)
	if err != nil {
		return true
	}
	refused := false
	for at := range steps(resolve(abs)) {
		switch {
		case match(l.private, at):
			refused = true
		case match(l.open, at):
			refused = false
		}
	}
	return refused
}

// twin reports whether path is a file with several (hard) links, one of which
// is in a private place.
func (f Fence) twin(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || links(info) < 2 {
		return false
	}
	open := landmarks(f.Open)
	found := false
	for _, dir := range f.Private {
		// What cannot be read there cannot be compared.
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir() && match(open, path):
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			if other, err := d.Info(); err == nil && os.SameFile(info, other) {
				found = true
				return fs.SkipAll
			}
			return nil
		})
	}
	return found
}

// landmark is a path that others are compared with: by what it leads to, and
// by its name in its directory, for as long as there is nothing of that name.
type landmark struct {
	name   string
	parent fs.FileInfo // nil: there is none
	info   fs.FileInfo // nil: there is none
}

func landmarks(paths []string) []landmark {
	var out []landmark
	for _, p := range paths {
		p, err := filepath.Abs(p)
		if err != nil {
			continue
		}
		l := landmark{name: filepath.Base(p)}
		l.info, _ = os.Stat(p)
		l.parent, _ = os.Stat(filepath.Dir(p))
		out = append(out, l)
	}
	return out
}

// match reports whether path, which holds no links, is one of marks.
func match(marks []landmark, path string) bool {
	info, _ := os.Stat(path)
	var parent fs.FileInfo
	for _, m := range marks {
		if m.info != nil && info != nil && os.SameFile(m.info, info) {
			return true
		}
		if m.parent == nil || !strings.EqualFold(m.name, filepath.Base(path)) {
			continue
		}
		if parent == nil {
			if parent, _ = os.Stat(filepath.Dir(path)); parent == nil {
				continue
			}
		}
		if os.SameFile(m.parent, parent) {
			return true
		}
	}
	return false
}

// steps yields a path's ancestors from the root down, and the path itself.
func steps(path string) func(yield func(string) bool) {
	var all []string
	for {
		all = append(all, path)
		up := filepath.Dir(path)
		if up == path {
			break
		}
		path = up
	}
	slices.Reverse(all)
	return slices.Values(all)
}

// unclean is filepath.Abs without cleaning: what `..` means depends on the
// links before it.
func unclean(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}

// resolve follows every link of path, as far as there is something to follow.
func resolve(path string) string {
	rest, followed := "", 0
	for p := path; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		up, base := filepath.Split(strings.TrimRight(p, string(filepath.Separator)))
		if base == "" {
			return filepath.Clean(path)
		}
		if to, err := os.Readlink(up + base); err == nil && followed < maxLinks { // to nothing
			if p = to; !filepath.IsAbs(to) {
				p = up + to
			}
			followed++
			continue
		}
		p, rest = up, filepath.Join(base, rest)
	}
}
