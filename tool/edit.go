package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"goclaw/llm"
)

type editFile struct{ ws *workspace }

func (editFile) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "edit_file",
		Description: "Replace a text in a file. old_string must be in it exactly once, white space included, unless replace_all is set.",
		Schema: []byte(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1},
    "old_string": {"type": "string", "minLength": 1},
    "new_string": {"type": "string"},
    "replace_all": {"type": "boolean"}
  },
  "required": ["path", "old_string", "new_string"],
  "additionalProperties": false
}`),
	}
}

func (editFile) Mutates(llm.ToolCall) bool { return true }

// replacement is what edit_file is asked to do.
type replacement struct {
	Path string
	Old  string `json:"old_string"`
	New  string `json:"new_string"`
	All  bool   `json:"replace_all"`
}

// Request implements Guarded: a file that is no memory file is asked about.
func (t editFile) Request(call llm.ToolCall) (Request, bool) {
	a, err := args[replacement](call)
	if err != nil || a.Old == a.New {
		return Request{}, false
	}
	return t.ws.change(call.Name, a.Path, func(old string) (string, error) {
		e, err := plan(old, a.Old, a.New, a.All)
		if err != nil {
			return "", err
		}
		return e.apply(), nil
	})
}

func (t editFile) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	a, err := args[replacement](call)
	if err != nil {
		return llm.ToolResult{}, err
	}
	var rel string
	t.ws, rel, err = t.ws.find(a.Path)
	if err != nil {
		return llm.Failed(call, err.Error()), nil
	}
	if a.Old == a.New {
		return llm.Failed(call, "old_string and new_string are the same: there is nothing to change"), nil
	}
	target, _, unlock, err := t.ws.hold(ctx, rel, false)
	if ctx.Err() != nil && err != nil {
		return llm.Failed(call, "interrupted before it began"), ctx.Err()
	}
	if err != nil {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	defer unlock()

	e, err := t.edit(target, a.Old, a.New, a.All)
	if n := (*noMatch)(nil); errors.As(err, &n) {
		return llm.Failed(call, fmt.Sprintf("%s: %v", quoted(filepath.ToSlash(rel)), err)), nil
	}
	if err != nil {
		return llm.Failed(call, t.ws.explain(rel, err)), nil
	}
	times := "once"
	if len(e.at) > 1 {
		times = fmt.Sprintf("%d times", len(e.at))
	}
	return llm.Result(call, fmt.Sprintf("replaced %s in %s\n%s", times, quoted(filepath.ToSlash(rel)), e.diff())), nil
}

// edit changes the file target. If a program that does not know the lock writes
// to the file at the same time, it begins again with what is there now.
func (t editFile) edit(target, old, new string, all bool) (edit, error) {
	for tries := 0; ; tries++ {
		data, info, err := t.ws.readAll(target) // also says what is wrong if there is no such file
		if err != nil {
			return edit{}, err
		}
		e, err := plan(string(data), old, new, all)
		if err != nil {
			return edit{}, &noMatch{err}
		}
		err = t.ws.replace(target, info, []byte(e.apply()))
		if !errors.Is(err, errChanged) || tries == 10 {
			return e, err
		}
	}
}

// noMatch: there is no such text to replace, or too often.
type noMatch struct{ error }

// edit is a replacement of old by new at the given offsets of text.
type edit struct {
	text, old, new string
	at             []int
}

// plan finds the text to replace, or says why it cannot.
func plan(text, old, new string, all bool) (edit, error) {
	if !strings.Contains(text, old) && strings.Contains(text, "\r\n") && !strings.Contains(old, "\r\n") {
		// Models write \n, whatever the file has.
		old = strings.ReplaceAll(old, "\n", "\r\n")
		new = strings.ReplaceAll(strings.ReplaceAll(new, "\r\n", "\n"), "\n", "\r\n")
	}
	e := edit{text: text, old: old, new: new}
	step := 1 // occurrences that overlap are ambiguous too
	if all {
		step = len(old)
	}
	for i := 0; ; {
		j := strings.Index(text[i:], old)
		if j < 0 {
			break
		}
		e.at = append(e.at, i+j)
		i += j + step
	}
	switch {
	case len(e.at) == 0:
		return e, fmt.Errorf("old_string was not found%s", almost(text, old))
	case len(e.at) > 1 && !all:
		return e, fmt.Errorf("old_string was found %d times, at lines %s; add lines around it until it is unique, or set replace_all",
			len(e.at), e.lines())
	}
	return e, nil
}

func (e edit) apply() string {
	var b strings.Builder
	b.Grow(len(e.text) + len(e.at)*(len(e.new)-len(e.old)))
	i := 0
	for _, at := range e.at {
		b.WriteString(e.text[i:at])
		b.WriteString(e.new)
		i = at + len(e.old)
	}
	b.WriteString(e.text[i:])
	return b.String()
}

// lines names the lines of the occurrences, the first twenty of them.
func (e edit) lines() string {
	var out []string
	line, i := 1, 0
	for n, at := range e.at {
		if n == 20 {
			out = append(out, "...")
			break
		}
		line += strings.Count(e.text[i:at], "\n")
		i = at
		out = append(out, strconv.Itoa(line))
	}
	return strings.Join(out, ", ")
}

// almost says where text holds old but for its white space, since that is
// what models get wrong most.
func almost(text, old string) string {
	want := squash(old)
	if len(want) == 0 {
		return ""
	}
	lines := strings.Split(text, "\n")
	squashed := make([]string, len(lines))
	for i, l := range lines {
		squashed[i] = strings.Join(strings.Fields(l), " ")
	}
	for i := range lines {
		if n := matches(squashed[i:], want); n > 0 {
			shown := excerpt(strings.Join(lines[i:i+n], "\n"), 1000)
			return fmt.Sprintf(" exactly; lines %d to %d differ from it in white space only:\n%s", i+1, i+n, shown)
		}
	}
	for i := range lines {
		if squashed[i] == want[0] {
			return fmt.Sprintf(" exactly; its first line is line %d of the file, but the lines after it differ: read the file again", i+1)
		}
	}
	return "; read the file again, it may have changed"
}

// squash returns the lines of text that are not blank, with white space normalised.
func squash(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		if f := strings.Fields(l); len(f) > 0 {
			out = append(out, strings.Join(f, " "))
		}
	}
	return out
}

// matches returns how many of lines, blank ones between them included, hold
// want, or 0.
func matches(lines, want []string) int {
	if lines[0] != want[0] {
		return 0
	}
	k := 0
	for i, l := range lines {
		if l == "" {
			continue
		}
		if l != want[k] {
			return 0
		}
		if k++; k == len(want) {
			return i + 1
		}
	}
	return 0
}

const (
	diffContext = 3
	maxDiff     = 4 << 10
	maxDiffLine = 300
)

// change is a run of whole lines, from up to but not including to, and the
// lines that take their place.
type change struct {
	from, to int
	new      []string
}

// diff shows the edit as hunks of a unified diff.
func (e edit) diff() string {
	lines := splitLines(e.text)
	changes := e.changes(lines)
	var b strings.Builder
	shift := 0 // how far new line numbers are ahead of old ones
	for i := 0; i < len(changes); {
		j := i + 1
		for j < len(changes) && changes[j].from-changes[j-1].to <= 2*diffContext {
			j++
		}
		if b.Len() > maxDiff {
			fmt.Fprintf(&b, "[%d more changes not shown]\n", len(changes)-i)
			break
		}
		shift += hunk(&b, lines, changes[i:j], shift)
		i = j
	}
	return b.String()
}

func hunk(b *strings.Builder, lines []string, changes []change, shift int) int {
	from := max(0, changes[0].from-diffContext)
	to := min(len(lines), changes[len(changes)-1].to+diffContext)
	grow := 0
	for _, c := range changes {
		grow += len(c.new) - (c.to - c.from)
	}
	put := func(mark string, lines []string) {
		for _, l := range lines {
			if b.Len() > 2*maxDiff {
				return
			}
			b.WriteString(mark + excerpt(strings.TrimRight(l, "\r\n"), maxDiffLine) + "\n")
		}
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", from+1, to-from, from+1+shift, to-from+grow)
	at := from
	for _, c := range changes {
		put(" ", lines[at:c.from])
		put("-", lines[c.from:c.to])
		put("+", c.new)
		at = c.to
	}
	put(" ", lines[at:to])
	if b.Len() > 2*maxDiff {
		b.WriteString("[the rest of this change is not shown]\n")
	}
	return grow
}

// changes turns the occurrences into changes of lines, without those lines
// that stay the same.
func (e edit) changes(lines []string) []change {
	starts := make([]int, len(lines)+1)
	for i, l := range lines {
		starts[i+1] = starts[i] + len(l)
	}
	lineOf := func(off int) int { return sort.SearchInts(starts, off+1) - 1 }
	var out []change
	for i := 0; i < len(e.at); {
		from := lineOf(e.at[i])
		to := from
		var b strings.Builder
		b.WriteString(e.text[starts[from]:e.at[i]])
		// Take in occurrences as long as they touch the lines taken so far.
		for {
			end := e.at[i] + len(e.old)
			b.WriteString(e.new)
			to = lineOf(end-1) + 1
			i++
			if i < len(e.at) && e.at[i] < starts[to] {
				b.WriteString(e.text[end:e.at[i]])
				continue
			}
			b.WriteString(e.text[end:starts[to]])
			if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") && to < len(lines) {
				// The line break went: the next line is joined to this one.
				if i < len(e.at) && e.at[i] < starts[to+1] {
					b.WriteString(e.text[starts[to]:e.at[i]])
					continue
				}
				b.WriteString(lines[to])
				to++
			}
			break
		}
		c := change{from, to, splitLines(b.String())}
		for c.from < c.to && len(c.new) > 0 && lines[c.from] == c.new[0] {
			c.from, c.new = c.from+1, c.new[1:]
		}
		for c.from < c.to && len(c.new) > 0 && lines[c.to-1] == c.new[len(c.new)-1] {
			c.to, c.new = c.to-1, c.new[:len(c.new)-1]
		}
		out = append(out, c)
	}
	return out
}

// splitLines cuts text after each line break.
func splitLines(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		out = append(out, l)
	}
	return out
}
