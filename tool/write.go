package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"goclaw/internal/text"
	"goclaw/llm"
)

type writeFile struct{ ws *workspace }

// maxEdited is the size of the largest file that is changed in memory.
const maxEdited = 32 << 20

func (writeFile) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "write_file",
		Description: "Write a file, replacing its content, or with append adding a new line at its end. Missing directories are made.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1},
    "content": {"type": "string"},
    "append": {"type": "boolean"}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`),
	}
}

func (writeFile) Mutates(llm.ToolCall) bool { return true }

// Request implements Guarded: a file that is no memory file is asked about.
func (t writeFile) Request(call llm.ToolCall) (Request, bool) {
	a, err := args[struct {
		Path, Content string
		Append        bool
	}](call)
	if err != nil {
		return Request{}, false
	}
	return t.ws.change(call.Name, a.Path, func(old string) (string, error) {
		if a.Append {
			return old + separate([]byte(old), a.Content), nil
		}
		return a.Content, nil
	})
}

// change is the Request for a change of the file path. What cannot be done
// needs no permission: the tool says why.
func (w *workspace) change(tool, path string, to func(old string) (string, error)) (Request, bool) {
	w, rel, err := w.find(path)
	if err != nil {
		return Request{}, false
	}
	target, info, err := w.writable(rel)
	if err != nil || w.isMemory(target) {
		return Request{}, false
	}
	var old []byte
	if info != nil {
		if old, _, err = w.readAll(target); err != nil {
			old = nil // it is too large to be shown; it can still be replaced
		}
	}
	text, err := to(string(old))
	if err != nil {
		return Request{}, false
	}
	name := filepath.ToSlash(rel)
	return Request{Tool: tool, Path: name, Dir: w.dir, Diff: unified(name, old, []byte(text)), Rule: Rule{Tool: edits}, Private: isGits(w.at(target))}, true
}

// isGits reports whether a file is in a folder .git, whatever links lead there.
func isGits(path string) bool {
	return slices.ContainsFunc(strings.Split(resolve(path), string(filepath.Separator)), func(name string) bool { return strings.EqualFold(name, ".git") })
}

// unified returns the change from old to new as a unified diff, or says how
// large it is.
func unified(name string, old, new []byte) string {
	const most = 1 << 20
	if len(old)+len(new) > most || isBinary(old[:min(len(old), sniffLen)]) || isBinary(new[:min(len(new), sniffLen)]) {
		return fmt.Sprintf("%s before, %s after; not shown\n", text.Bytes(int64(len(old))), text.Bytes(int64(len(new))))
	}
	return string(diff.Diff(name, old, name, new))
}

func (t writeFile) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[struct {
		Path, Content string
		Append        bool
	}](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	var rel string
	t.ws, rel, err = t.ws.find(a.Path)
	if err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	target, info, unlock, err := t.ws.hold(ctx, rel, true)
	if ctx.Err() != nil && err != nil {
		return llm.Failed(call, "interrupted before it began"), ctx.Err()
	}
	if err != nil {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	defer unlock()

	before, after := int64(-1), int64(len(a.Content))
	switch {
	case a.Append:
		before, after, err = t.ws.extend(target, info, a.Content)
	case info != nil:
		before = info.Size()
		fallthrough
	default:
		err = t.ws.replace(target, info, []byte(a.Content))
	}
	if err != nil {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	name := quoted(filepath.ToSlash(rel))
	switch {
	case before < 0:
		return llm.Result(call, fmt.Sprintf("made %s with %d bytes", name, after)), nil
	case a.Append:
		return llm.Result(call, fmt.Sprintf("added %d bytes to %s, which now has %d", len(a.Content), name, after)), nil
	}
	return llm.Result(call, fmt.Sprintf("wrote %d bytes to %s, which had %d", after, name, before)), nil
}

// writable returns the file that rel leads to if it may be written: a new one,
// or a regular one that is not read-only. A rename would get past the latter,
// so it is asked for here.
func (w *workspace) writable(rel string) (string, fs.FileInfo, error) {
	if err := w.permit(rel); err != nil { // before anything is said about the files there
		return "", nil, err
	}
	target, info, err := w.target(rel)
	if err == nil {
		err = w.permit(target)
	}
	if err != nil || info == nil {
		return target, info, err
	}
	if err := regular(rel, info); err != nil {
		return "", nil, err
	}
	if info.Mode().Perm()&0o222 == 0 {
		return "", nil, fmt.Errorf("%s is read-only (mode %04o)", quoted(filepath.ToSlash(rel)), info.Mode().Perm())
	}
	return target, info, nil
}

var errTooLarge = errors.New("the file is too large to change")

// readAll returns the content of the file rel, and its info when it was read.
func (w *workspace) readAll(rel string) ([]byte, fs.FileInfo, error) {
	f, info, err := w.open(rel)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEdited+1))
	if err == nil && len(data) > maxEdited {
		err = fmt.Errorf("%w: more than %s", errTooLarge, text.Bytes(maxEdited))
	}
	return data, info, err
}
