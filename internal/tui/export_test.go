package tui

import "time"

// SetClock has the UI take the time when keys come from clock, before Run.
func (u *UI) SetClock(clock func() time.Time) { u.model.clock = clock }

// InputText returns what is in the input, whether it is seen or not.
func (u *UI) InputText() string {
	text := make(chan string, 1)
	u.do(func(m *model) { text <- m.editor.Value() })
	select {
	case t := <-text:
		return t
	case <-u.over:
		return ""
	}
}
