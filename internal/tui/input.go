package tui

import (
	"context"
	"io"
)

// typed is what a person entered, or why there is nothing.
type typed struct {
	text string
	err  error
}

// keyboard is the UI's repl.Input.
type keyboard struct{ *loop }

// ReadLine implements repl.Input: it returns the next message that the user
// sends, or that was queued. The error is io.EOF for Ctrl-D or a terminal that
// is gone, line.ErrInterrupt for Ctrl-C, or the cause of ctx's end.
func (k keyboard) ReadLine(ctx context.Context, _ string) (string, error) {
	reply := make(chan typed, 1)
	k.do(func(m *model) {
		m.reader = reply
		m.deliver()
	})
	return k.await(ctx, reply, func(m *model) {
		if m.reader == reply {
			m.reader = nil
		}
	})
}

// Ask implements repl.Input. What was typed before the question was drawn is
// the input's, and does not answer it.
func (k keyboard) Ask(ctx context.Context, prompt string) (string, error) {
	reply := make(chan typed, 1)
	q := newQuestion(prompt, reply)
	k.do(func(m *model) { m.open(q, true, nil) })
	return k.await(ctx, reply, func(m *model) { m.dismiss(q) })
}

// await waits for an answer; after ctx's end, forget takes the question back.
func (k keyboard) await(ctx context.Context, reply chan typed, forget func(m *model)) (string, error) {
	select {
	case t := <-reply:
		return t.text, t.err
	case <-ctx.Done():
		k.do(forget)
		return "", context.Cause(ctx)
	case <-k.over:
		return "", io.EOF
	}
}

// Draft puts text into the input, to be changed and sent.
func (k keyboard) Draft(text string) {
	k.do(func(m *model) {
		if now := m.editor.Value(); now != "" {
			text += "\n" + now
		}
		m.editor.SetValue(text)
	})
}
