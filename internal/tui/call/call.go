// Package call draws tool calls: a line with the state, what the call is about
// and how long it took, and below it what is worth seeing of its output. The
// viewer of package look shows all of it.
package call

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/look"
	"goclaw/llm"
)

// Call is a tool call, as it is drawn.
type Call struct {
	llm.ToolCall
	Title  string // as transcript.CallLine has it: it is drawn often
	Began  time.Time
	Tail   string         // what it printed last, while it runs; anything
	Result llm.ToolResult // when it has ended; anything
	Took   time.Duration
}

// tailLines is how many lines of what a running tool prints are drawn.
const tailLines = 6

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Spinner returns the spinner at a step.
func Spinner(beat int) string { return string(frames[beat%len(frames)]) }

// Live draws a call that runs, with the last lines that it has printed. beat
// counts the steps of the spinner.
func Live(c Call, now time.Time, beat, width int, st transcript.Style) []string {
	took := ""
	if d := now.Sub(c.Began); d >= time.Second {
		took = transcript.Took(d.Truncate(time.Second))
	}
	out := []string{headline(st.Yellow(Spinner(beat)), c.Title, "", took, width, st)}
	tail := strings.TrimRight(c.Tail, "\r\n")
	if tail == "" {
		return out
	}
	lines := strings.Split(tail, "\n")
	for _, l := range lines[max(0, len(lines)-tailLines):] {
		out = append(out, dimmed(last(l), width, st))
	}
	return out
}

// last returns what is left of a line that was written over, as progress bars do.
func last(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// Ended draws a call that has ended: its line, and the beginning of its output.
func Ended(c Call, width int, st transcript.Style) []string {
	mark, out := st.Green("✓"), read(c, width, st)
	switch {
	case refused(c.Result):
		mark = st.Yellow("–")
	case c.Result.IsError:
		mark = st.Red("✗")
	}
	took := ""
	if c.Took >= 100*time.Millisecond && !refused(c.Result) { // what did not run took no time
		took = transcript.Took(c.Took)
	}
	return append([]string{headline(mark, c.Title, out.summary, took, width, st)}, out.rows()...)
}

// refused reports whether the call was not run, because the user or a rule did
// not allow it.
func refused(r llm.ToolResult) bool {
	text := firstText(r)
	return r.IsError && (strings.HasPrefix(text, "not done: ") || strings.HasPrefix(text, "not run: "))
}

func firstText(r llm.ToolResult) string {
	for _, b := range r.Blocks {
		if t, ok := b.(llm.Text); ok {
			return t.Text
		}
	}
	return ""
}

// headline is the line of a call. What it is about gives way to the rest.
func headline(mark, title, summary, took string, width int, st transcript.Style) string {
	end := strings.Trim(summary+", "+took, ", ")
	if end != "" {
		end = "  " + transcript.OneLine(transcript.Name(end), max(width/2, 8))
	}
	room := width - 2 - ansi.StringWidth(end)
	line := mark + " " + st.Bold(transcript.OneLine(title, max(room, 1))) + st.Dim(end)
	return ansi.Truncate(terminal.Text(line), width, "…")
}

func dimmed(text string, width int, st transcript.Style) string {
	text = strings.ReplaceAll(transcript.Printable(text), "\t", "    ")
	return ansi.Truncate(terminal.Text(st.Dim("  "+cut(text, width-2))), width, "")
}

// cut shortens a line to width, of however many bytes.
func cut(text string, width int) string {
	if most := 8 * max(width, 1); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return ansi.Truncate(text, max(width, 1), "…")
}

// output is what a call has returned, as it is shown.
type output struct {
	summary    string   // in the line of the call
	head, tail []string // the lines that are shown, drawn
	more       int      // lines between them
	width      int
	st         transcript.Style
}

// rows draws the output.
func (o output) rows() []string {
	out := o.head
	if o.more > 0 {
		out = append(out, dimmed(fmt.Sprintf("… %s (Ctrl-O opens)", transcript.Count(o.more, "more line")), o.width, o.st))
	}
	return append(out, o.tail...)
}

const (
	shown     = 6  // lines of an output
	shownDiff = 24 // lines of a diff
	shownTail = 4  // lines at the end of an output that tells of a failure
)

// lookups are tools that only look something up: the user need not see what.
var lookups = map[string]bool{
	"read_file": true, "list_directory": true, "grep": true, "glob": true,
	"memory_search": true, "memory_get": true, "session_search": true, "session_read": true, "fetch": true,
}

// exitNote is the last line of a result of bash.
var exitNote = regexp.MustCompile(`\n?\[([^\n]*)\]\s*$`)

// read makes of a result what is shown.
func read(c Call, width int, st transcript.Style) output {
	o := output{width: width, st: st}
	text := strings.TrimRight(c.Result.Text(), "\n")
	tail := text[max(0, len(text)-1000):]
	switch {
	case c.Name == "bash" && exitNote.MatchString(tail):
		m := exitNote.FindStringSubmatchIndex(tail)
		o.summary = tail[m[2]:m[3]]
		if o.summary == "exit code 0" {
			o.summary = ""
		}
		if text = text[:len(text)-len(tail)+m[0]]; text == "(no output)" {
			text = ""
		}
		o.plain(text, c.Result.IsError)
	case refused(c.Result):
		o.refused(text)
	case c.Result.IsError:
		o.plain(text, true)
	case c.Name == "edit_file":
		_, diff, _ := strings.Cut(text, "\n")
		o.diff(diff)
	case c.Name == "write_file":
		o.written(c.Args, strings.HasPrefix(text, "made "))
	case lookups[c.Name]:
		o.found(text)
	default:
		o.plain(text, false)
	}
	return o
}

// plain shows the beginning of text, and its end as well if it failed.
func (o *output) plain(text string, failed bool) {
	if text == "" {
		return
	}
	n := strings.Count(text, "\n") + 1
	head, tail := shown, 0
	if failed {
		head, tail = shown/2, shownTail
	}
	if n <= head+tail+1 { // "1 more line" would take as much room
		head, tail = n, 0
	}
	for range head {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		o.head = append(o.head, dimmed(last(line), o.width, o.st))
	}
	o.more = n - head - tail
	for range tail {
		i := strings.LastIndexByte(text, '\n')
		o.tail = append([]string{dimmed(last(text[i+1:]), o.width, o.st)}, o.tail...)
		text = text[:max(i, 0)]
	}
}

// refused says why a call was not run. What the model is told besides is not for
// the user.
func (o *output) refused(text string) {
	if rest, ok := strings.CutPrefix(text, "not done: the user did not allow this"); ok {
		o.summary = "not allowed"
		_, text, _ = strings.Cut(rest, "says: ")
	}
	o.plain(text, false)
}

// found says how much was looked up; a short line is shown.
func (o *output) found(text string) {
	if n := strings.Count(text, "\n") + 1; n > 1 {
		o.summary = transcript.Count(n, "line")
		return
	}
	if text != "" {
		o.head = append(o.head, dimmed(text, o.width, o.st))
	}
}

// written shows the beginning of a file that was written.
func (o *output) written(args json.RawMessage, fresh bool) {
	var a struct {
		Content string
		Append  bool
	}
	if json.Unmarshal(args, &a) != nil || a.Content == "" {
		return
	}
	content := strings.TrimSuffix(a.Content, "\n")
	n := strings.Count(content, "\n") + 1
	o.summary = transcript.Count(n, "line")
	switch {
	case fresh:
		o.summary = "new, " + o.summary
	case a.Append:
		o.summary += " added"
	}
	most := shown
	if n <= most+1 {
		most = n
	}
	for range most {
		var line string
		line, content, _ = strings.Cut(content, "\n")
		o.head = append(o.head, Line{mark: '+', text: line}.row(o.width, o.st))
	}
	o.more = n - most
}

// diff shows the beginning of a diff, and counts its lines.
func (o *output) diff(diff string) {
	lines := Lines(diff)
	added, removed := 0, 0
	for _, l := range lines {
		switch l.mark {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	o.summary = fmt.Sprintf("+%d −%d", added, removed)
	most := shownDiff
	if len(lines) <= most+1 {
		most = len(lines)
	}
	for _, l := range lines[:most] {
		o.head = append(o.head, l.row(o.width, o.st))
	}
	o.more = len(lines) - most
}

// Doc is all of a call for the viewer: what was asked for, and what came.
func Doc(c llm.ToolCall, r llm.ToolResult) look.Doc {
	d := look.Doc{Title: transcript.CallLine(c), Text: r.Text()}
	var args struct{ Command, Content string }
	_ = json.Unmarshal(c.Args, &args)
	switch {
	case c.Name == "edit_file" && !r.IsError:
		d.Diff = true
	case c.Name == "bash" && strings.Contains(strings.TrimSpace(args.Command), "\n"): // the title has it in one line
		d.Text = "$ " + args.Command + "\n\n" + d.Text
	case c.Name == "write_file" && args.Content != "":
		d.Text += "\n\n" + args.Content
	}
	return d
}
