package editor

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
)

// The 16 colours of the terminal, so that the user's theme holds.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	mark   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	chosen = lipgloss.NewStyle().Foreground(lipgloss.Cyan).Bold(true)
)

func columns(s string) int { return displaywidth.String(s) }

// View returns what is drawn on a screen of that size: lines that are at most as
// wide, and the place of the cursor in them. The text takes at most a third of
// the height, and a list below it at most eight lines.
func (e *Editor) View(width, height int) (text string, x, y int) {
	width = max(width, 6)
	prompt, above := promptFor(e.o.Prompt, width)
	margin := ansi.StringWidth(prompt)
	e.width = width - margin
	l := e.layout()
	y, x = l.find(e.buf.pos)
	x += margin
	most := max(height/3-len(above), 1)
	e.top = min(e.top, max(len(l.rows)-most, 0), y)
	e.top = max(e.top, y-most+1)
	var lines []string
	for i := e.top; i < min(e.top+most, len(l.rows)); i++ {
		lines = append(lines, e.prefix(prompt, i, most, len(l.rows))+l.drawn(l.rows[i]))
	}
	y -= e.top
	if e.buf.text == "" && e.o.Placeholder != "" && !e.search.on {
		lines[0] += faint.Render(clip(e.o.Placeholder, e.width))
	}
	switch {
	case e.search.on:
		line, at := e.search.line(width)
		lines = append(lines, line)
		x, y = at, len(lines)-1
	case e.menu.open():
		lines = append(lines, e.menu.view(width, min(maxMenu, max(height-len(lines)-2, 1)))...)
	case e.note != "":
		lines = append(lines, faint.Render(clip(transcript.Printable(e.note), width)))
	case strings.HasPrefix(e.buf.text, "!"):
		hint := "runs here; its output goes with your next message, !! keeps it out"
		if strings.HasPrefix(e.buf.text, "!!") {
			hint = "runs here; the model does not see its output"
		}
		lines = append(lines, faint.Render(clip(hint, width)))
	}
	return strings.Join(append(above, lines...), "\n"), x, y + len(above)
}

// promptFor returns the prompt, and what of it stands above the text if it is
// long.
func promptFor(prompt string, width int) (short string, above []string) {
	if prompt == "" {
		prompt = chosen.Render(">") + " "
	}
	if ansi.StringWidth(prompt) <= max(width/2, 2) && !strings.Contains(prompt, "\n") {
		return prompt, nil
	}
	above = strings.Split(ansi.Wrap(strings.TrimRight(prompt, " \n"), width, ""), "\n")
	return chosen.Render(">") + " ", above
}

// prefix is what stands before row i: the prompt, or that there is more above or
// below.
func (e *Editor) prefix(prompt string, i, most, rows int) string {
	rest := strings.Repeat(" ", ansi.StringWidth(prompt)-1)
	switch {
	case i == e.top && i > 0:
		return faint.Render("↑") + rest
	case i == e.top+most-1 && i < rows-1:
		return faint.Render("↓") + rest
	case i > 0:
		return " " + rest
	}
	return prompt
}

// drawn returns a row with its chips in colour.
func (l *layout) drawn(r row) string {
	var b strings.Builder
	for _, c := range l.cells(r) {
		if c.chip {
			b.WriteString(mark.Render(c.shown))
		} else {
			b.WriteString(c.shown)
		}
	}
	return b.String()
}

// view returns the list, at most that many lines.
func (m *menu) view(width, most int) (out []string) {
	if len(m.options) == 0 {
		return []string{faint.Render(clip("  looking for files …", width))}
	}
	rows := most
	if len(m.options) > most && most > 1 {
		rows = most - 1
	}
	m.top = min(max(m.top, m.selected-rows+1), max(m.selected, 0), max(len(m.options)-rows, 0))
	shown := slices.Clone(m.options[m.top:min(m.top+rows, len(m.options))])
	names := 0
	for i := range shown {
		if width < 60 { // the help says more
			shown[i].Args = ""
		}
		names = max(names, columns(shown[i].name()))
	}
	if m.kind == kindCommand || m.kind == kindArgument && width >= 60 { // else names alone
		names = min(names, max(width*2/5, 12))
	}
	names = min(names, width-4)
	for i, o := range shown {
		out = append(out, optionLine(o, i+m.top == m.selected, names, width))
	}
	if rows < most {
		out = append(out, faint.Render(clip(fmt.Sprintf("  %s more", upDown(m.top, len(m.options)-m.top-len(shown))), width)))
	}
	return out
}

func upDown(above, below int) string {
	switch {
	case above == 0:
		return fmt.Sprintf("↓ %d", below)
	case below == 0:
		return fmt.Sprintf("↑ %d", above)
	}
	return fmt.Sprintf("↑ %d ↓ %d", above, below)
}

func (o Option) name() string {
	return transcript.Name(strings.TrimRight(o.Text+" "+o.Args, " "))
}

func optionLine(o Option, selected bool, names, width int) string {
	name := clip(o.name(), names)
	line := "  " + name
	if selected {
		line = chosen.Render("▸ " + name)
	}
	room := width - names - 4
	if o.Help == "" || room < 8 {
		return line
	}
	pad := strings.Repeat(" ", max(names-columns(name), 0)+2)
	return line + pad + faint.Render(clip(transcript.Name(o.Help), room))
}
