package tool

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/internal/text"
	"goclaw/llm"
)

type listDirectory struct {
	ws  *workspace
	max int
}

const (
	maxEntries = 1000    // shown in a listing
	maxNames   = 100_000 // read from one directory
	maxDepth   = 20
)

// unentered are shown, but not entered from above: they are large and seldom
// asked for.
var unentered = map[string]bool{".git": true, "node_modules": true}

func (listDirectory) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "list_directory",
		Description: "List a directory with the sizes of files; with depth, all below it.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "depth": {"type": "integer", "minimum": 1, "maximum": 20}
  },
  "additionalProperties": false
}`),
	}
}

func (listDirectory) Mutates(llm.ToolCall) bool { return false }

// item is a line of a listing.
type item struct {
	name    string
	dir     bool
	private bool   // not entered
	about   string // size, target of a link, kind
	kids    []*item
	notes   []string // about what is not in kids
}

func (t listDirectory) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct {
		Path  string
		Depth count
	}](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	var rel string
	t.ws, rel, err = t.ws.look(cmp.Or(a.Path, "."))
	if err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	top, err := t.tree(ctx, rel, int(cmp.Or(a.Depth, 1)))
	if ctx.Err() != nil {
		return llm.Failed(call, "interrupted"), ctx.Err()
	}
	if err != nil {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	return llm.Result(call, render(top, t.max)), nil
}

// tree reads level by level, so that a deep directory does not use up the
// entries before its neighbours are seen.
func (t listDirectory) tree(ctx context.Context, rel string, depth int) (*item, error) {
	top := &item{name: filepath.ToSlash(rel), dir: true}
	type visit struct {
		rel string
		it  *item
	}
	level, left := []visit{{rel, top}}, maxEntries
	for d := 0; d < depth && len(level) > 0; d++ {
		var below []visit
		for _, v := range level {
			if v.it != top && left == 0 {
				v.it.notes = append(v.it.notes, "not entered: the listing is full")
				continue
			}
			if err := t.fill(ctx, v.rel, v.it, &left); err != nil {
				if v.it == top || ctx.Err() != nil {
					return nil, err
				}
				v.it.notes = append(v.it.notes, t.ws.explain(v.rel, err))
			}
			for _, kid := range v.it.kids {
				switch {
				case !kid.dir, kid.private:
				case unentered[kid.name] && d+1 < depth:
					kid.notes = append(kid.notes, "not entered: list it by its path")
				default:
					below = append(below, visit{filepath.Join(v.rel, kid.name), kid})
				}
			}
		}
		level = below
	}
	return top, nil
}

// fill reads one directory into it, as far as entries are left.
func (t listDirectory) fill(ctx context.Context, rel string, it *item, left *int) error {
	if err := t.ws.permit(rel); err != nil {
		return err
	}
	info, err := t.ws.root.Stat(rel)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory; read_file reads a file", quoted(filepath.ToSlash(rel)))
	}
	f, err := t.ws.root.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var entries []fs.DirEntry
	for len(entries) < maxNames {
		if err := ctx.Err(); err != nil {
			return err
		}
		some, err := f.ReadDir(1024)
		entries = append(entries, some...)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(entries) >= maxNames {
		it.notes = append(it.notes, fmt.Sprintf("more than %d entries, not all were read", maxNames))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	n, fence := min(len(entries), *left), t.ws.fence.survey()
	*left -= n
	for _, e := range entries[:n] {
		kid := &item{name: e.Name(), dir: e.IsDir()}
		if kid.private = fence.encloses(t.ws.at(filepath.Join(rel, e.Name()))); kid.private {
			kid.about = "refused: private"
		} else {
			kid.about = t.about(rel, e)
		}
		it.kids = append(it.kids, kid)
	}
	if more := len(entries) - n; more > 0 {
		it.notes = append(it.notes, fmt.Sprintf("%d more entries not shown; list a directory below by its path", more))
	}
	return nil
}

// about asks the root, not the entry: an entry would look its file up by name,
// from outside.
func (t listDirectory) about(dir string, e fs.DirEntry) string {
	path := filepath.Join(dir, e.Name())
	switch {
	case e.IsDir():
		return ""
	case e.Type().IsRegular():
		info, err := t.ws.root.Lstat(path)
		if err != nil {
			return "gone"
		}
		return text.Bytes(info.Size())
	case e.Type()&fs.ModeSymlink != 0:
		to, err := t.ws.root.Readlink(path)
		if err != nil {
			return "symbolic link"
		}
		return "-> " + quoted(to)
	}
	return kind(e.Type())
}

// render writes the tree below top, a line for each entry, max bytes at most.
func render(top *item, max int) string {
	var b strings.Builder
	lines, cut := 0, 0
	var walk func(it *item, indent string)
	add := func(line string) {
		if cut > 0 || b.Len()+len(line)+1 > max {
			cut++
			return
		}
		b.WriteString(line + "\n")
		lines++
	}
	walk = func(it *item, indent string) {
		for _, kid := range it.kids {
			line := indent + quoted(kid.name)
			if kid.dir {
				line += "/"
			}
			if kid.about != "" {
				line += "  " + kid.about
			}
			add(line)
			walk(kid, indent+"  ")
		}
		for _, n := range it.notes {
			add(indent + "[" + n + "]")
		}
	}
	walk(top, "")
	if lines == 0 && cut == 0 {
		return "(the directory is empty)"
	}
	if cut > 0 {
		fmt.Fprintf(&b, "[%d more lines not shown; list a directory below by its path]\n", cut)
	}
	return b.String()
}
