package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/transcript"
)

// help opens the list of all keys and commands, on an empty input.
func help(m *model) (bool, tea.Cmd) {
	if !m.editor.Empty() {
		return false, nil
	}
	h := &helpView{paint: func(s string) string { return m.paint(m.style.Bold(s)) }}
	for _, b := range bindings() {
		h.rows = append(h.rows, [2]string{b.shown, b.help})
	}
	h.rows = append(h.rows, [2]string{})
	h.rows = append(h.rows, m.chat.Commands()...)
	m.open(h, false, nil)
	return true, nil
}

// helpView is the Overlay of the keys and commands.
type helpView struct {
	rows  [][2]string
	paint func(string) string
	from  int // the first line that is shown
	lines int // all of them, as laid out last
	page  int
}

func (h *helpView) FullScreen() bool { return true }

func (h *helpView) Update(msg tea.Msg) (bool, tea.Cmd) {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return false, nil
	}
	switch k.String() {
	case "down", "j":
		h.from++
	case "up", "k":
		h.from--
	case "pgdown", "space", " ":
		h.from += h.page
	case "pgup", "b":
		h.from -= h.page
	default:
		return true, nil
	}
	return false, nil
}

func (h *helpView) View(width, height int) string {
	column := 0
	for _, r := range h.rows {
		column = max(column, min(ansi.StringWidth(r[0]), width/3))
	}
	var out []string
	for _, r := range h.rows {
		if width < 60 { // no room for two columns
			out = append(out, h.paint(transcript.OneLine(r[0], width-1)))
			for _, l := range lines(r[1], max(width-3, 10)) {
				out = append(out, "  "+l)
			}
			continue
		}
		left := lines(r[0], column)
		right := lines(r[1], max(width-column-3, 10))
		for i := range max(len(left), len(right)) {
			l, x := "", ""
			if i < len(left) {
				l = left[i]
			}
			if i < len(right) {
				x = right[i]
			}
			out = append(out, h.paint(l)+strings.Repeat(" ", max(column-lipgloss.Width(l), 0)+2)+x)
		}
	}
	h.page, h.lines = max(height-2, 1), len(out)
	h.from = min(max(h.from, 0), max(h.lines-h.page, 0))
	end := min(h.from+h.page, len(out))
	hint := "↑ ↓ scroll, any other key closes"
	if end < len(out) && width >= 60 {
		hint = "↑ ↓ PgDn scroll: the commands are below; any other key closes"
	}
	return strings.Join(append(out[h.from:end:end], "", hint), "\n")
}
