package tool

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxWalked is how many entries a search looks at before it gives up.
const maxWalked = 200_000

// errMany: a walk met more entries than it looks at.
var errMany = errors.New("too many files")

// walk calls visit for each regular file below rel, in the order of their names,
// with its path in slashes. It leaves out what git ignores, .git itself, links,
// and what is private. The error of visit ends it.
func (w *workspace) walk(ctx context.Context, rel string, visit func(path string) error) error {
	if err := w.permit(rel); err != nil {
		return err
	}
	v := &walker{ctx: ctx, w: w, fence: w.fence.survey(), left: maxWalked, visit: visit}
	return v.below(rel)
}

// below walks the folder rel.
func (v *walker) below(rel string) error {
	// What the folders above say counts below.
	var rules []ignore
	clean := filepath.ToSlash(filepath.Clean(rel))
	for i, c := range clean {
		if c == '/' {
			rules = append(rules, v.ignores(clean[:i])...)
		}
	}
	if clean != "." {
		rules = append(v.ignores("."), rules...)
	}
	return v.dir(clean, rules)
}

type walker struct {
	ctx   context.Context
	w     *workspace
	fence lines
	left  int
	visit func(path string) error
	enter func(folder string) error // nil: nobody asks
}

func (v *walker) dir(dir string, rules []ignore) error {
	f, err := v.w.root.OpenFile(filepath.FromSlash(dir), os.O_RDONLY|nonblock, 0)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return err
	}
	rules = append(rules[:len(rules):len(rules)], v.ignores(dir)...)
	sortNames(entries)
	for _, e := range entries {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if v.left--; v.left < 0 {
			return errMany
		}
		name := path.Join(dir, e.Name())
		switch {
		case e.Name() == ".git", ignored(rules, name, e.IsDir()):
		case e.IsDir():
			if v.fence.encloses(v.w.at(filepath.FromSlash(name))) {
				continue
			}
			if v.enter != nil {
				if err := v.enter(name); err != nil {
					return err
				}
			}
			// A folder that cannot be read hides nothing but itself.
			if err := v.dir(name, rules); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case e.Type().IsRegular():
			if err := v.visit(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// ignore is a line of a .gitignore.
type ignore struct {
	pattern string // for the path from the workspace
	not     bool   // what fits is not ignored
	folder  bool   // only folders fit
}

// ignores reads the .gitignore of a folder, if it has one.
func (v *walker) ignores(dir string) (out []ignore) {
	name := path.Join(dir, ".gitignore")
	f, _, err := v.w.open(filepath.FromSlash(name))
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if one, ok := parseIgnore(dir, s.Text()); ok {
			out = append(out, one)
		}
	}
	return out
}

// parseIgnore reads a line of the .gitignore of dir.
func parseIgnore(dir, line string) (ignore, bool) {
	line = strings.TrimRight(line, "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return ignore{}, false
	}
	var out ignore
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		out.not, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		out.folder, line = true, rest
	}
	if line == "" {
		return ignore{}, false
	}
	// A slash in it ties it to the folder; without one it fits at any depth.
	if rest, ok := strings.CutPrefix(line, "/"); ok {
		line = rest
	} else if !strings.Contains(line, "/") {
		line = "**/" + line
	}
	if dir != "." {
		line = escapeGlob(dir) + "/" + line
	}
	out.pattern = line
	return out, doublestar.ValidatePattern(line)
}

// escapeGlob returns a path as a pattern that only fits it.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(path)
}

// ignored reports whether name is ignored: the last line that fits decides.
func ignored(rules []ignore, name string, dir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if r.folder && !dir {
			continue
		}
		if fits, err := doublestar.Match(r.pattern, name); err == nil && fits {
			return !r.not
		}
	}
	return false
}
