package tui

import (
	"strings"

	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/status"
	"goclaw/window"
)

// DrawWindow shows what fills the window of model, as /context does.
func (u *UI) DrawWindow(x window.Breakdown, model string) {
	u.picture(status.Window(x, model, u.Width()-1, u.o.Style))
}

// DrawCompaction shows what a compaction would do, as /compact --dry-run does.
func (u *UI) DrawCompaction(r compact.Report, b window.Budget) {
	u.picture(status.Compaction(r, b, u.Width()-1, u.o.Style))
}

// picture prints lines that are drawn for the width of the terminal.
func (u *UI) picture(lines []string) { u.Print(strings.Join(lines, "\n")) }

// statusLines draws the status line, or what is said in its place.
func (m *model) statusLines() []string {
	if m.hint != "" {
		return m.hinted(m.hint)
	}
	help := "? for help"
	if o := m.top(); o != nil { // the key is the question's
		help = ""
		switch {
		case m.writing():
			return m.hinted("Enter queues it; Esc: answer first")
		case o.asks && o.letters() && !m.editor.Empty():
			return m.hinted("your message is set aside for now")
		}
	}
	return status.Line(m.status, len(m.queue), help, m.width-1, m.style)
}

// hinted is a hint in place of the status line, in at most two lines.
func (m *model) hinted(text string) (out []string) {
	for i, l := range lines(transcript.OneLine(text, 2*m.width-12), m.width-1) {
		if i < 2 {
			out = append(out, m.paint(m.style.Dim(l)))
		}
	}
	return out
}
