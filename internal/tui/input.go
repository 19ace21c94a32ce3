package tui

import (
	"context"
	"io"

	"goclaw/internal/repl"
	"goclaw/internal/repl/history"
	"goclaw/internal/tui/editor"
	"goclaw/llm"
)

// typed is what a person entered, or why there is nothing.
type typed struct {
	text   string
	blocks []llm.Block // attached to it
	err    error
}

// keyboard is the UI's repl.Input.
type keyboard struct{ *loop }

// ReadLine implements repl.Input: it returns the next message that the user
// sends, or that was queued. The error is io.EOF for Ctrl-D or a terminal that
// is gone, line.ErrInterrupt for Ctrl-C, or the cause of ctx's end.
func (k keyboard) ReadLine(ctx context.Context, _ string) (string, error) {
	reply := make(chan typed, 1)
	k.attached = nil
	if ctx.Err() != nil { // it would take a message that waits
		return "", context.Cause(ctx)
	}
	k.do(func(m *model) { m.listen(reply) })
	return k.await(ctx, reply, func(m *model) {
		if m.reader == reply {
			m.reader = nil
		}
		select {
		case t := <-reply: // sent when ctx ended
			m.editor.Restore(editor.Message{Text: t.text})
		default:
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
		k.attached = t.blocks
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
	k.do(func(m *model) { m.editor.Restore(editor.Message{Text: text}) })
}

// Attached returns the images and files of the message that ReadLine returned
// last.
func (k keyboard) Attached() []llm.Block { return k.attached }

// Ran keeps a command of the user and what it printed for the next message.
func (k keyboard) Ran(command, output string) {
	k.do(func(m *model) { m.editor.Ran(command, output) })
}

// Workspace is where the files are that the input can name.
type Workspace interface {
	Files(ctx context.Context, visit func(path string, folder bool) error) error
	ReadFile(path string, max int) ([]byte, error)
}

// newEditor returns the input of a chat.
func newEditor(o Options, c Chat, h *history.History, w Workspace) *editor.Editor {
	eo := editor.Options{History: h, Getenv: environ(o.Environ), Placeholder: "Ask anything, or ? for help; / commands, @ files, ! shell"}
	if w != nil {
		eo.Files, eo.Read = w.Files, w.ReadFile
	}
	if c != nil {
		eo.Commands = func() []editor.Option { return options(c.Completions()) }
		eo.Arguments = func(command string) ([]editor.Option, func() []editor.Option) {
			now, later := c.Arguments(command)
			if later == nil {
				return options(now), nil
			}
			return options(now), func() []editor.Option { return options(later()) }
		}
	}
	return editor.New(eo)
}

func options(cs []repl.Completion) []editor.Option {
	out := make([]editor.Option, len(cs))
	for i, c := range cs {
		out[i] = editor.Option(c)
	}
	return out
}
