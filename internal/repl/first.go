package repl

import (
	"context"

	"goclaw/internal/transcript"
)

// Welcome is what can be done before a chat opens its session, by Options.First.
type Welcome struct{ chat *Chat }

// Plain reports whether the chat is shown as plain lines.
func (w Welcome) Plain() bool { return w.chat.o.Display == nil }

// Say shows lines that nobody asked for.
func (w Welcome) Say(lines ...string) {
	for _, l := range lines {
		w.chat.view.note("%s", l)
	}
}

// Tell shows lines that matter more.
func (w Welcome) Tell(lines ...string) {
	for _, l := range lines {
		w.chat.view.print("%s", transcript.Printable(l))
	}
}

// List shows names, each with what there is to say about it.
func (w Welcome) List(rows [][2]string) { w.chat.view.terms(rows) }

// Yes asks a question to which Enter means yes.
func (w Welcome) Yes(ctx context.Context, question string) bool {
	return w.chat.yes(ctx, question)
}

// Work does something that takes a while, and that Ctrl-C stops. tell says how
// far it is, in at most so many columns.
func (w Welcome) Work(ctx context.Context, label string, work func(ctx context.Context, tell func(line string), width int) error) (stopped bool, err error) {
	screen := w.chat.view.screen
	stopped, _, err = w.chat.during(ctx, label, func(ctx context.Context) error {
		return work(ctx, func(line string) { screen.Wait(line) }, w.chat.view.width()-6)
	})
	return stopped, err
}
