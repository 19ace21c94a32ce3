package tui

import (
	"strings"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// input is where people type.
type input struct {
	prompt string
	area   textarea.Model
	cursor *tea.Cursor // as drawn last
}

func newInput() *input {
	i := &input{prompt: "> ", area: textarea.New()}
	i.area.ShowLineNumbers, i.area.CharLimit, i.area.MaxHeight = false, 0, 0
	i.area.Prompt = ""
	i.area.SetVirtualCursor(false)
	plain := textarea.StyleState{}
	i.area.SetStyles(textarea.Styles{Focused: plain, Blurred: plain})
	i.area.KeyMap.InsertNewline.SetKeys("alt+enter", "ctrl+j", "shift+enter")
	i.area.Focus()
	return i
}

func (i *input) Value() string { return i.area.Value() }

func (i *input) Reset() { i.area.Reset() }

func (i *input) SetValue(text string) {
	i.area.SetValue(text)
	i.area.MoveToEnd()
}

func (i *input) Update(msg tea.Msg) (cmd tea.Cmd) {
	i.area, cmd = i.area.Update(msg)
	return cmd
}

// View draws the input in at most height lines.
func (i *input) View(width, height int) (string, *tea.Cursor) {
	n := lipgloss.Width(i.prompt)
	i.area.SetWidth(max(width-n-1, 1))
	rows := strings.Count(lipgloss.Wrap(i.area.Value()+" ", max(width-n-1, 1), ""), "\n") + 1
	i.area.SetHeight(min(rows, max(height, 1)))
	var out []string
	for k, row := range strings.Split(i.area.View(), "\n") {
		indent := i.prompt
		if k > 0 {
			indent = strings.Repeat(" ", n)
		}
		out = append(out, indent+strings.TrimRight(row, " "))
	}
	i.cursor = i.area.Cursor()
	if i.cursor != nil {
		i.cursor.X += n
	}
	return strings.Join(out, "\n"), i.cursor
}
