package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"goclaw/internal/text"
	"goclaw/llm"
)

// sortNames puts entries into the order of their names.
func sortNames(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

const (
	maxMatches    = 200     // that grep shows
	maxPaths      = 500     // that glob shows
	maxSearched   = 8 << 20 // bytes of a file that grep looks into
	maxMatchLine  = 400     // bytes of a line that grep shows
	maxSearchLine = 1 << 20 // bytes of a line that it looks into
)

type grep struct {
	ws  *workspace
	max int
}

func (grep) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "grep",
		Description: "Search files for a regular expression; what git ignores is left out.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "RE2; (?i) ignores case"},
    "path": {"type": "string", "description": "file or directory"},
    "glob": {"type": "string", "description": "only such files: *.go, src/**/*.ts"},
    "context": {"type": "integer", "minimum": 0, "maximum": 20}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`),
	}
}

func (grep) Mutates(llm.ToolCall) bool { return false }

func (t grep) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct {
		Pattern, Path, Glob string
		Context             count
	}](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return llm.Failed(call, fmt.Sprintf("pattern is not a regular expression: %v. To search for it literally, escape its special characters with \\", err)), nil
	}
	if a.Glob != "" && !doublestar.ValidatePattern(a.Glob) {
		return llm.Failed(call, fmt.Sprintf("glob %s is not a valid pattern", quoted(a.Glob))), nil
	}
	var rel string
	if t.ws, rel, err = t.ws.look(cmp.Or(a.Path, ".")); err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	out := &foundLines{re: re, around: int(a.Context), max: t.max}
	err = t.search(ctx, rel, a.Glob, out)
	switch {
	case ctx.Err() != nil:
		return llm.Failed(call, "interrupted"), ctx.Err()
	case errors.Is(err, errEnough):
	case errors.Is(err, errMany):
		out.notes = append(out.notes, fmt.Sprintf("[stopped after %d entries; name a path]", maxWalked))
	case err != nil:
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	return llm.Result(call, out.String()), nil
}

// search looks into the file rel, or into the files below it.
func (t grep) search(ctx context.Context, rel, glob string, out *foundLines) error {
	info, err := t.ws.root.Stat(rel)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return t.file(filepath.ToSlash(rel), out)
	}
	return t.ws.walk(ctx, rel, func(path string) error {
		if glob != "" && !fitsGlob(glob, path, filepath.ToSlash(rel)) {
			return nil
		}
		if err := t.file(path, out); err != nil && (errors.Is(err, errEnough) || ctx.Err() != nil) {
			return err
		}
		return nil // one that cannot be read hides no other
	})
}

// fitsGlob reports whether the file at name fits pattern: by its path from the
// workspace or from dir or, if the pattern has no slash, by its name.
func fitsGlob(pattern, name, dir string) bool {
	names := []string{name, strings.TrimPrefix(name, dir+"/")}
	if !strings.Contains(pattern, "/") {
		names = append(names, path.Base(name))
	}
	return slices.ContainsFunc(names, func(n string) bool {
		fits, err := doublestar.Match(pattern, n)
		return err == nil && fits
	})
}

// errEnough: more is not shown.
var errEnough = errors.New("enough")

// foundLines are the lines that were found.
type foundLines struct {
	re     *regexp.Regexp
	around int
	max    int

	b     strings.Builder
	n     int // matches
	files int // with matches
	notes []string
}

// file looks into one file.
func (t grep) file(name string, out *foundLines) error {
	f, info, err := t.ws.open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	name = t.ws.prefix + name
	if info.Size() > maxSearched {
		out.notes = append(out.notes, fmt.Sprintf("[%s was not searched: %s]", quoted(name), text.Bytes(info.Size())))
		return nil
	}
	r := bufio.NewReaderSize(f, 64<<10)
	if start, _ := r.Peek(sniffLen); isBinary(start) {
		return nil
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxSearchLine)
	var before [][]byte // lines that may be shown before a match
	after, line, shown, any := 0, 0, 0, false
	for s.Scan() {
		line++
		text := s.Bytes()
		switch {
		case out.re.Match(text):
			if !any {
				any = true
				out.files++
			}
			if out.around > 0 && shown > 0 && line-len(before) > shown+1 {
				out.b.WriteString("--\n")
			}
			for i, l := range before {
				out.add(name, line-len(before)+i, "-", l)
			}
			before = before[:0]
			out.add(name, line, ":", text)
			shown, after = line, out.around
			if out.n++; out.n >= maxMatches || out.b.Len() >= out.max {
				return errEnough
			}
		case after > 0:
			after--
			out.add(name, line, "-", text)
			shown = line
		case out.around > 0:
			if before = append(before, bytes.Clone(text)); len(before) > out.around {
				before = before[1:]
			}
		}
	}
	return nil
}

func (m *foundLines) add(name string, line int, mark string, text []byte) {
	fmt.Fprintf(&m.b, "%s:%d%s %s\n", name, line, mark, excerpt(strings.TrimRight(string(text), "\r"), maxMatchLine))
}

func (m *foundLines) String() string {
	switch {
	case m.n == 0:
		m.b.WriteString("no line matches\n")
	case m.n >= maxMatches || m.b.Len() >= m.max:
		fmt.Fprintf(&m.b, "[the first %d matches, in %d files; narrow the pattern, or name a path or a glob]\n", m.n, m.files)
	}
	const most = 5
	for _, n := range m.notes[:min(len(m.notes), most)] {
		m.b.WriteString(n + "\n")
	}
	return m.b.String()
}

type glob struct{ ws *workspace }

func (glob) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "glob",
		Description: "List the files that fit a pattern, the last changed first; what git ignores is left out.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "**/*.go, cmd/*/main.go"},
    "path": {"type": "string"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`),
	}
}

func (glob) Mutates(llm.ToolCall) bool { return false }

func (t glob) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct{ Pattern, Path string }](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	a.Pattern = strings.TrimPrefix(a.Pattern, "./")
	if !doublestar.ValidatePattern(a.Pattern) {
		return llm.Failed(call, fmt.Sprintf("%s is not a valid pattern", quoted(a.Pattern))), nil
	}
	var rel string
	if t.ws, rel, err = t.ws.look(cmp.Or(a.Path, ".")); err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	type found struct {
		name string
		at   int64
	}
	var all []found
	err = t.ws.walk(ctx, rel, func(name string) error {
		if fitsGlob(a.Pattern, name, filepath.ToSlash(rel)) {
			if info, err := t.ws.root.Lstat(filepath.FromSlash(name)); err == nil {
				all = append(all, found{name, info.ModTime().UnixNano()})
			}
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return llm.Failed(call, "interrupted"), ctx.Err()
	case err != nil && !errors.Is(err, errMany):
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	case len(all) == 0 && err == nil:
		return llm.Result(call, "no file matches"), nil
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].at > all[j].at })
	var b strings.Builder
	for _, f := range all[:min(len(all), maxPaths)] {
		b.WriteString(quoted(t.ws.prefix+f.name) + "\n")
	}
	if more := len(all) - maxPaths; more > 0 {
		fmt.Fprintf(&b, "[%d more; narrow the pattern or name a path]\n", more)
	}
	if err != nil {
		fmt.Fprintf(&b, "[stopped after %d entries; name a path]\n", maxWalked)
	}
	return llm.Result(call, b.String()), nil
}
