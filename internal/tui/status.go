package tui

import (
	"goclaw/internal/transcript"
	"goclaw/internal/tui/status"
)

// statusLines draws the status line, or what is said in its place.
func (m *model) statusLines() []string {
	if m.hint != "" {
		return []string{m.paint(m.style.Dim(transcript.OneLine(m.hint, m.width-1)))}
	}
	return status.Line(m.status, len(m.queue), "? for help", m.width-1, m.style)
}
