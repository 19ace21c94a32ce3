package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"goclaw/llm"
)

// callWidth is how many columns a call takes in a line, at most.
const callWidth = 160

// CallLine shows a tool call in one line: `edit_file greet.go`, `bash go test
// ./...`, and of a tool that is not known here name(argument: value, ...).
func CallLine(c llm.ToolCall) string {
	name := OneLine(Name(c.Name), 64)
	if what, ok := about(c); ok {
		return OneLine(name+" "+what, callWidth)
	}
	return fmt.Sprintf("%s(%s)", name, OneLine(arguments(c.Args), 120))
}

// about says what a call of one of goclaw's tools is about, in one line: a file, a
// command, an address. ok is false for other tools, and for arguments that the
// tool does not take.
func about(c llm.ToolCall) (what string, ok bool) {
	say, known := abouts[c.Name]
	if !known {
		return "", false
	}
	var a callArgs
	if json.Unmarshal(c.Args, &a) != nil {
		return "", false
	}
	what = strings.TrimSpace(Name(strings.ReplaceAll(strings.TrimSpace(say(a)), "\n", " ⏎ ")))
	return what, what != ""
}

// callArgs are the arguments of goclaw's tools that say what a call is about.
type callArgs struct {
	Path, Command, Pattern, Glob, URL, Query, File, Session, Around string

	Offset, Limit, From, Lines float64
	Append                     bool
}

var abouts = map[string]func(a callArgs) string{
	"read_file":      func(a callArgs) string { return a.Path + span(a.Offset, a.Limit) },
	"write_file":     func(a callArgs) string { return a.Path + when(a.Append && a.Path != "", " (append)") },
	"edit_file":      func(a callArgs) string { return a.Path },
	"list_directory": func(a callArgs) string { return when(a.Path == "", ".") + a.Path },
	"bash":           func(a callArgs) string { return a.Command },
	"fetch":          func(a callArgs) string { return a.URL },
	"grep":           func(a callArgs) string { return quoted(a.Pattern) + in(a.Path) + when(a.Glob != "", " of "+a.Glob) },
	"glob":           func(a callArgs) string { return quoted(a.Pattern) + in(a.Path) },
	"memory_search":  func(a callArgs) string { return quoted(a.Query) },
	"memory_get":     func(a callArgs) string { return a.File + span(a.From, a.Lines) },
	"session_search": func(a callArgs) string { return quoted(a.Query) + in(a.Session) },
	"session_read":   func(a callArgs) string { return a.Session + when(a.Around != "", "#"+a.Around) },
}

// span writes n lines from the one with that number.
func span(from, n float64) string {
	switch {
	case from <= 0 && n <= 0:
		return ""
	case n <= 0:
		return fmt.Sprintf(" %.0f-", from)
	}
	from = max(from, 1)
	return fmt.Sprintf(" %.0f-%.0f", from, from+n-1)
}

func quoted(s string) string { return when(s != "", `"`+s+`"`) }

func in(path string) string { return when(path != "" && path != ".", " in "+path) }

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// arguments writes the arguments of a call in their order: name: value, ... What
// is no object is shown as it is.
func arguments(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return Printable(strings.TrimSpace(string(raw)))
	}
	var out []string
	for size := 0; d.More() && size < callWidth; {
		k, err := d.Token()
		var v json.RawMessage
		if err != nil || d.Decode(&v) != nil {
			return Printable(strings.TrimSpace(string(raw)))
		}
		out = append(out, fmt.Sprintf("%v: %s", k, OneLine(Printable(string(v)), 120)))
		size += len(out[len(out)-1])
	}
	return Printable(strings.Join(out, ", "))
}
