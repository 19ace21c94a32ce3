package tui

import (
	"context"
	"io"

	"goclaw/internal/repl/history"
	"goclaw/internal/repl/line"
)

// typed is what a person entered, or why there is nothing.
type typed struct {
	text string
	err  error
}

// ReadLine implements repl.Input: it returns the next message that the user
// sends, or that was queued. The error is io.EOF for Ctrl-D or a terminal that
// is gone, line.ErrInterrupt for Ctrl-C, or the cause of ctx's end.
func (u *UI) ReadLine(ctx context.Context, _ string) (string, error) {
	reply := make(chan typed, 1)
	u.do(func(m *model) {
		m.reader = reply
		m.deliver()
	})
	return u.await(ctx, reply, func(m *model) {
		if m.reader == reply {
			m.reader = nil
		}
	})
}

// Ask implements repl.Input. What was typed before the question was drawn is
// the input's, and does not answer it.
func (u *UI) Ask(ctx context.Context, prompt string) (string, error) {
	reply := make(chan typed, 1)
	q := newQuestion(prompt, reply)
	u.do(func(m *model) { m.open(q, true, nil) })
	return u.await(ctx, reply, func(m *model) { m.dismiss(q) })
}

// await waits for an answer; after ctx's end, forget takes the question back.
func (u *UI) await(ctx context.Context, reply chan typed, forget func(m *model)) (string, error) {
	select {
	case t := <-reply:
		return t.text, t.err
	case <-ctx.Done():
		u.do(forget)
		return "", context.Cause(ctx)
	case <-u.over:
		return "", io.EOF
	}
}

// Draft puts text into the input, to be changed and sent.
func (u *UI) Draft(text string) {
	u.do(func(m *model) {
		if now := m.editor.Value(); now != "" {
			text += "\n" + now
		}
		m.editor.SetValue(text)
	})
}

// send sends what is in the input: to the chat if it waits for a line, else into
// the queue.
func (m *model) send() {
	text := m.editor.Value()
	m.editor.Reset()
	if h := m.u.history; h != nil {
		h.Add(text) // a history that cannot be written is no reason to stop
	}
	m.queue = append(m.queue, text)
	m.deliver()
}

// deliver hands the first message of the queue to the chat, if it waits for one.
func (m *model) deliver() {
	if m.reader == nil || len(m.queue) == 0 {
		return
	}
	text := m.queue[0]
	m.queue = m.queue[1:]
	m.echo(text)
	m.answer(typed{text: text})
}

// command has the chat run a command that a key stands for, if it waits for a
// line. It is not echoed.
func (m *model) command(text string) bool {
	if m.reader == nil {
		return false
	}
	m.answer(typed{text: text})
	return true
}

// answer ends the chat's reading.
func (m *model) answer(t typed) {
	m.reader <- t
	m.reader = nil
}

// interrupt is Ctrl-C, and Escape while something runs.
func (m *model) interrupt() {
	switch {
	case m.reader != nil:
		m.answer(typed{err: line.ErrInterrupt})
	default:
		m.takeBack()
		m.u.chat.Interrupt()
	}
}

// takeBack puts all queued messages back into the input: who stops an answer may
// want to say something else.
func (m *model) takeBack() {
	for len(m.queue) > 0 {
		m.unqueue()
	}
}

// unqueue puts the last queued message back into the input.
func (m *model) unqueue() {
	last := m.queue[len(m.queue)-1]
	m.queue = m.queue[:len(m.queue)-1]
	if now := m.editor.Value(); now != "" {
		last += "\n" + now
	}
	m.editor.SetValue(last)
}

// Remember has the UI keep what is sent in h, before Run.
func (u *UI) Remember(h *history.History) { u.history = h }
