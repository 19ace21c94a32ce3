package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"goclaw/llm"
)

// diffLines is how many lines of a diff are shown before
// the rest is only counted.
const diffLines = 40

// Diff shows a unified diff: what goes in red, what comes in green. Of a long
// one the first lines are shown.
func Diff(diff string, st Style) string {
	return strings.Join(head(coloured(diff, st), diffLines, "", st), "\n")
}

// coloured returns the lines of a diff, without the names of the files at its
// beginning.
func coloured(diff string, st Style) (out []string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		if len(out) == 0 && (strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")) {
			continue
		}
		paint := func(s string) string { return s }
		switch {
		case strings.HasPrefix(line, "+"):
			paint = st.Green
		case strings.HasPrefix(line, "-"):
			paint = st.Red
		case strings.HasPrefix(line, "@@"):
			paint = st.Cyan
		}
		out = append(out, paint("  "+Printable(line)))
	}
	return out
}

// head returns the first n lines and how many more there are; more says how to
// see them.
func head(lines []string, n int, more string, st Style) []string {
	if len(lines) <= n+1 { // "1 more line" would take as much room as the line
		return lines
	}
	return append(lines[:n:n], st.Dim("  … "+Count(len(lines)-n, "more line")+more))
}

// resultLines is how many lines of a result are shown; of those that only look
// something up, none.
var resultLines = map[string]int{
	"bash": 10, "edit_file": diffLines,
	"read_file": 0, "list_directory": 0, "grep": 0, "glob": 0, "memory_search": 0, "memory_get": 0, "session_search": 0, "session_read": 0,
}

const (
	otherLines = 6  // of a tool that is not known here
	oneLine    = 80 // bytes of a line that is shown although it was only looked up
)

// exitNote is the last line of a result of bash.
var exitNote = regexp.MustCompile(`\n?\[([^\n]*)\]\s*$`)

// Result shows what a tool call did: the first lines of its output, an edit as
// a diff, a new file with its head, the exit code and the time. more says how
// to see all of it.
func Result(call llm.ToolCall, r llm.ToolResult, took time.Duration, more string, st Style) []string {
	text := strings.TrimRight(r.Text(), "\n")
	status, failed := "", false
	var lines []string
	switch {
	case call.Name == "bash" && exitNote.MatchString(text): // it was run
		m := exitNote.FindStringSubmatchIndex(text)
		text, status = text[:m[0]], text[m[2]:m[3]]
		if text == "(no output)" {
			text = ""
		}
		lines = plainLines(text)
	case r.IsError:
		failed, status = true, call.Name+" failed: "+text
	case call.Name == "edit_file":
		_, diff, _ := strings.Cut(text, "\n")
		lines = coloured(diff, st)
	case call.Name == "write_file":
		var a struct {
			Content string
			Append  bool
		}
		if json.Unmarshal(call.Args, &a) == nil && !a.Append {
			for _, l := range plainLines(a.Content) {
				lines = append(lines, st.Green(l))
			}
		}
		status = Printable(text)
	default:
		lines = plainLines(text)
	}
	n, ok := resultLines[call.Name]
	if !ok {
		n = otherLines
	}
	if n == 0 && !r.IsError {
		if only := strings.TrimSpace(strings.Join(lines, "")); len(lines) == 1 && len(only) <= oneLine {
			status = only // saying that there is one line takes as much room
		} else {
			status = Count(len(lines), "line") + more
		}
		lines = nil
	}
	lines = head(lines, n, more, st)
	if took >= 100*time.Millisecond && !failed {
		status = strings.TrimPrefix(fmt.Sprintf("%s, %.1f s", status, took.Seconds()), ", ")
	}
	switch status = OneLine(Printable(status), 160); {
	case status == "":
	case r.IsError:
		lines = append(lines, st.Red("← "+status))
	default:
		lines = append(lines, st.Dim("← "+status))
	}
	return lines
}

// Changed shows what a call did whose diff the user has just seen.
func Changed(r llm.ToolResult, st Style) string {
	first, _, _ := strings.Cut(r.Text(), "\n")
	return st.Dim("← " + OneLine(Printable(first), 160))
}

func plainLines(text string) (out []string) {
	for line := range strings.Lines(text) {
		out = append(out, "  "+Printable(strings.TrimRight(line, "\r\n")))
	}
	return out
}
