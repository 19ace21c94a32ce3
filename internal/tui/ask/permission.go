// Package ask has the questions that the chat asks on a terminal: whether a tool
// may do something, and yes or no. They stand in place of the input.
package ask

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/repl"
	"goclaw/internal/repl/line"
	"goclaw/internal/shell"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/call"
	"goclaw/tool"
)

// Permission asks whether a tool may do something. It is an Overlay of package
// tui; Answer has the answer when it is done.
type Permission struct {
	req     tool.Request
	style   transcript.Style
	choices []choice
	at      int // the choice that Enter takes

	rows  []string // what is asked, for width
	width int
	top   int // the first row of it that is shown
	shown int // how many are

	reason *textinput.Model // nil: it is not being typed
	cursor *tea.Cursor

	decision tool.Decision
	err      error
}

// choice is an answer.
type choice struct {
	key, label string
	decision   tool.Decision
}

// NewPermission returns the question for req. The answer that Enter takes is no.
func NewPermission(req tool.Request, st transcript.Style) *Permission {
	p := &Permission{req: req, style: st}
	p.choices = []choice{{"y", "yes, once", tool.Once}}
	if !req.Private {
		p.choices = append(p.choices, choice{"s", "yes, in this session", tool.Session}, choice{"a", "yes, always here", tool.Always})
	}
	p.choices = append(p.choices, choice{"n", "no", tool.No}, choice{"b", "no, because …", tool.No})
	p.at = len(p.choices) - 2
	return p
}

// Answer returns what was chosen. The error is a tool.Because, or
// line.ErrInterrupt if everything is to stop.
func (p *Permission) Answer() (tool.Decision, error) { return p.decision, p.err }

// FullScreen implements tui.Overlay.
func (p *Permission) FullScreen() bool { return false }

// Update implements tui.Overlay.
func (p *Permission) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	k, pressed := msg.(tea.KeyPressMsg)
	switch {
	case pressed && k.String() == "ctrl+c":
		p.decision, p.err = tool.No, line.ErrInterrupt
		return true, nil
	case p.reason != nil:
		return p.explain(msg)
	case !pressed:
		return false, nil
	}
	switch k.String() {
	case "esc", "ctrl+d":
		p.decision = tool.No
		return true, nil
	case "enter":
		return p.choose(p.choices[p.at])
	case "up", "shift+tab", "k":
		p.at = (p.at + len(p.choices) - 1) % len(p.choices)
	case "down", "tab", "j":
		p.at = (p.at + 1) % len(p.choices)
	case "pgdown", "space", " ":
		p.scroll(max(p.shown-1, 1))
	case "pgup":
		p.scroll(-max(p.shown-1, 1))
	case "shift+down", "ctrl+down":
		p.scroll(1)
	case "shift+up", "ctrl+up":
		p.scroll(-1)
	case "home":
		p.scroll(-len(p.rows))
	case "end":
		p.scroll(len(p.rows))
	default:
		for i, c := range p.choices {
			if strings.ToLower(k.Text) == c.key {
				p.at = i
				return p.choose(c)
			}
		}
	}
	return false, nil
}

// Answers reports whether a key, or a paste, means something here.
func (p *Permission) Answers(msg tea.Msg) bool {
	k, pressed := msg.(tea.KeyPressMsg)
	means := func(c choice) bool { return strings.ToLower(k.Text) == c.key }
	return p.reason != nil || pressed && (k.Text == "" || strings.Contains("jk ", k.Text) || slices.ContainsFunc(p.choices, means))
}

func (p *Permission) choose(c choice) (done bool, cmd tea.Cmd) {
	if c.key == "b" {
		in := textinput.New()
		in.Prompt = "because "
		in.SetVirtualCursor(false)
		p.reason = &in
		return false, in.Focus()
	}
	p.decision = c.decision
	return true, nil
}

// explain takes the reason for a no.
func (p *Permission) explain(msg tea.Msg) (done bool, cmd tea.Cmd) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "esc":
			p.reason = nil
			return false, nil
		case "enter":
			p.decision = tool.No
			if why := strings.TrimSpace(p.reason.Value()); why != "" {
				p.err = tool.Because(why)
			}
			return true, nil
		}
	}
	in, cmd := p.reason.Update(msg)
	p.reason = &in
	return false, cmd
}

func (p *Permission) scroll(by int) { p.top = min(max(p.top+by, 0), max(len(p.rows)-p.shown, 0)) }

// View implements tui.Overlay. What is asked has at most half of the screen; the
// rest of it is scrolled to.
func (p *Permission) View(width, height int) string {
	if width != p.width {
		p.rows, p.width = p.asked(width), width
	}
	head := wrapped(repl.Wants(p.req, p.style), width)
	foot := p.answers(width, height)
	if len(head)+len(foot)+2 > height { // what is asked comes first, and how to answer
		head = []string{ansi.Truncate(terminal.Text(repl.Wants(p.req, p.style)), width, "…")}
		if p.reason != nil {
			foot = foot[len(foot)-1:]
		} else {
			foot = []string{p.keys(width)}
		}
	}
	p.shown = max(min(height-len(head)-len(foot), max(height/2, 4)), 1)
	if len(p.rows) > p.shown {
		p.shown = max(p.shown-1, 1) // the line that says so
	}
	p.scroll(0)
	out := append(head, p.rows[p.top:min(p.top+p.shown, len(p.rows))]...)
	if len(p.rows) > p.shown {
		out = append(out, p.dim(fmt.Sprintf("  lines %d-%d of %d: PgDn, PgUp", p.top+1, min(p.top+p.shown, len(p.rows)), len(p.rows)), width))
	}
	if p.cursor != nil {
		p.cursor.Y = len(out) + len(foot) - 1
	}
	out = append(out, foot...)
	return strings.Join(out[:min(len(out), height)], "\n")
}

// Cursor is where the reason is typed; nil: there is no cursor.
func (p *Permission) Cursor() *tea.Cursor { return p.cursor }

// asked returns what is asked, exactly.
func (p *Permission) asked(width int) (out []string) {
	switch {
	case p.req.Path != "":
		for _, l := range call.Lines(p.req.Diff) {
			out = append(out, l.Rows(width, p.style)...)
		}
		return out
	case p.req.URL != "":
		return indented(repl.Exactly(p.req.URL), width)
	}
	command := repl.Exactly(p.req.Command)
	if command != strings.TrimRight(p.req.Command, "\n") { // something in it is invisible
		return indented(command, width)
	}
	for _, part := range shell.Parts(command) {
		out = append(out, indented(part, width)...)
	}
	return out
}

// answers draws the choices: a line each, or if there is little room all in one.
func (p *Permission) answers(width, height int) (out []string) {
	p.cursor = nil
	note := "s and a allow exactly this."
	if like := repl.Likes(p.req); like != "" {
		note = "s and a allow " + like + "."
	}
	if p.req.Private {
		note = repl.WhyEveryTime(p.req)
	}
	for _, l := range wrapped(note, width-2) {
		out = append(out, p.dim("  "+l, width))
	}
	if p.reason != nil {
		p.reason.SetWidth(max(width-len(p.reason.Prompt)-3, 1))
		p.cursor = p.reason.Cursor()
		if p.cursor != nil {
			p.cursor.X += 2
		}
		return append(out, strings.TrimRight(ansi.Truncate("  "+p.reason.View(), width, ""), " "))
	}
	if height < 12 {
		var all []string
		for i, c := range p.choices {
			all = append(all, p.painted(i, c.key+" "+c.label))
		}
		return append(out, wrapped("  "+strings.Join(all, "   "), width)...)
	}
	for i, c := range p.choices {
		mark := "  "
		if i == p.at {
			mark = p.painted(i, "❯ ")
		}
		out = append(out, ansi.Truncate(terminal.Text(mark+p.painted(i, c.key+"  "+c.label)), width, ""))
	}
	return out
}

// keys draws the choices as short as can be.
func (p *Permission) keys(width int) string {
	var all []string
	last := ""
	for i, c := range p.choices {
		text := c.key
		if word, _, _ := strings.Cut(c.label, ","); word != last {
			text, last = text+" "+word, word
		}
		all = append(all, p.painted(i, text))
	}
	return ansi.Truncate(terminal.Text(strings.Join(all, "  ")), width, "")
}

func (p *Permission) painted(i int, text string) string {
	if i == p.at {
		return p.style.Bold(text)
	}
	return text
}

func (p *Permission) dim(text string, width int) string {
	return ansi.Truncate(terminal.Text(p.style.Dim(text)), width, "…")
}

// wrapped returns the lines of a text that is painted.
func wrapped(text string, width int) []string {
	return strings.Split(ansi.Wrap(terminal.Text(text), max(width, 1), " "), "\n")
}

// indented returns a text as it is, in as many rows as it needs. They break after
// a space if there is one, and no character is lost.
func indented(text string, width int) (out []string) {
	room := max(width-4, 1)
	for line := range strings.SplitSeq(terminal.Text(strings.ReplaceAll(text, "\t", "    ")), "\n") {
		indent := "  "
		for {
			row := ansi.Truncate(line, room, "")
			if row == "" { // a wide character in a narrow window
				row = line
			}
			if i := strings.LastIndexByte(row, ' '); len(row) < len(line) && i > len(row)/2 {
				row = row[:i+1]
			}
			out = append(out, indent+row)
			if line = line[len(row):]; line == "" {
				break
			}
			indent = "    "
		}
	}
	return out
}
