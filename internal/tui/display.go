package tui

import (
	"strings"

	"goclaw/internal/repl"
	"goclaw/internal/terminal"
)

// display is the UI's repl.Display.
type display struct{ *loop }

// Print implements repl.Display.
func (d display) Print(text string) {
	d.do(func(m *model) { m.finish(); m.print(terminal.Text(text)) })
}

// Note implements repl.Display.
func (d display) Note(text string) { d.Print(text) }

// Said implements repl.Display.
func (d display) Said(text string) { d.do(func(m *model) { m.said(text) }) }

// Thought implements repl.Display.
func (d display) Thought(text string) { d.do(func(m *model) { m.thought(text) }) }

// Finish implements repl.Display.
func (d display) Finish() { d.do(func(m *model) { m.finish() }) }

// Call implements repl.Display.
func (d display) Call(c repl.Call) { d.do(func(m *model) { m.call(c) }) }

// Busy implements repl.Display.
func (d display) Busy(label string) (done func()) {
	d.do(func(m *model) { m.busy(label); m.tooLate(); m.taken = false })
	return func() {
		d.do(func(m *model) {
			if m.idle() {
				m.missed()
			}
		})
	}
}

// Wait implements repl.Display.
func (d display) Wait(label string) { d.do(func(m *model) { m.wait(label) }) }

// Pause implements repl.Display. The question is drawn in place of the input,
// and what goes on around it stays visible.
func (d display) Pause() (resume func()) {
	d.Finish()
	return func() {}
}

// Status implements repl.Display.
func (d display) Status(s repl.Status) { d.do(func(m *model) { m.status = s }) }

// Err implements repl.Display: a terminal that goes away ends the program.
func (d display) Err() error { return nil }

// Write prints text that something else than the chat writes to the terminal:
// its lines when they are complete.
func (d display) Write(text string) {
	d.do(func(m *model) {
		m.other += text
		if i := strings.LastIndexByte(m.other, '\n'); i >= 0 {
			m.finish()
			m.print(terminal.Text(m.other[:i]))
			m.other = m.other[i+1:]
		}
	})
}
