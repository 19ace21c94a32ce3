package tui

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/repl/line"
	"goclaw/internal/terminal"
	"goclaw/internal/tui/editor"
	"goclaw/internal/tui/pick"
)

// Overlay has the whole alternate screen, or stands inline in place of the
// input, until it is done. If it has a method Cursor() *tea.Cursor, that is where
// the cursor is drawn, relative to the overlay; if it has Init() tea.Cmd, that is
// run when it is opened.
type Overlay interface {
	Update(msg tea.Msg) (done bool, cmd tea.Cmd) // keys, sizes, its own messages
	View(width, height int) string               // at most height lines, none wider than width
	FullScreen() bool                            // the alternate screen, else inline
}

// opened is an overlay that is open.
type opened struct {
	v Overlay
	// asks: the overlay is a question that the user did not call for. Keys that
	// were pressed before it was on the screen are the input's.
	asks  bool
	ready bool   // what comes from the terminal now was typed after it was on the screen
	done  func() // nil: nobody waits
}

func (o *opened) cursor() *tea.Cursor {
	if c, ok := o.v.(interface{ Cursor() *tea.Cursor }); ok {
		return c.Cursor()
	}
	return nil
}

// answerer is a question that single keys answer. Answers reports whether a key,
// or a paste, means something to it.
type answerer interface{ Answers(msg tea.Msg) bool }

// letters reports whether o is answered by single keys.
func (o *opened) letters() bool { _, ok := o.v.(answerer); return ok }

// foreign reports whether a key, or a paste, is none of those that answer a
// question: it begins a message.
func (o *opened) foreign(msg tea.Msg) bool {
	a, ok := o.v.(answerer)
	return o.asks && ok && !a.Answers(msg)
}

// Open shows v until it is done, or ctx ends.
func (u *UI) Open(ctx context.Context, v Overlay) error { return u.show(ctx, v, false) }

// OpenQuestion is Open for a question that the program asks: keys that were
// pressed before it was drawn do not answer it.
func (u *UI) OpenQuestion(ctx context.Context, v Overlay) error { return u.show(ctx, v, true) }

func (u *UI) show(ctx context.Context, v Overlay, asks bool) error {
	done := make(chan struct{})
	u.do(func(m *model) { m.open(v, asks, func() { close(done) }) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		u.do(func(m *model) { m.dismiss(v) })
		return context.Cause(ctx)
	case <-u.over:
		return io.EOF
	}
}

// desk is what is open, the last on top.
type desk struct {
	*paper
	clock    func() time.Time // when keys come
	overs    []*opened
	typed    time.Time // when a key was typed into the input last
	aside    bool      // what is in the input waits until a question is answered
	answered time.Time // when a letter answered a question, if no key came since
}

func (d *desk) open(v Overlay, asks bool, done func()) {
	d.overs = append(d.overs, &opened{v: v, asks: asks, done: done})
	if asks {
		if v.FullScreen() { // only what is inline is drawn with a request
			d.loop.run(tea.RequestCursorPosition)
		} else {
			d.probe = true
		}
		time.AfterFunc(silence, func() { d.loop.do(func(m *model) { m.settled() }) })
	}
	_, cmd := v.Update(tea.WindowSizeMsg{Width: d.width, Height: d.height})
	d.loop.run(cmd)
	if b, ok := v.(interface{ Init() tea.Cmd }); ok {
		d.loop.run(b.Init())
	}
}

// top returns the overlay on top, nil if there is none.
func (d *desk) top() *opened {
	if len(d.overs) == 0 {
		return nil
	}
	return d.overs[len(d.overs)-1]
}

// dismiss closes v.
func (d *desk) dismiss(v Overlay) {
	for i, o := range d.overs {
		if o.v == v {
			d.overs = append(d.overs[:i], d.overs[i+1:]...)
			if o.done != nil {
				o.done()
			}
			return
		}
	}
}

// pass gives every overlay a message, and closes those that are done.
func (d *desk) pass(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, o := range append([]*opened(nil), d.overs...) {
		done, cmd := o.v.Update(msg)
		cmds = append(cmds, cmd)
		if done {
			d.dismiss(o.v)
		}
	}
	return tea.Batch(cmds...)
}

// silence is how long a terminal that does not say where its cursor is can keep
// a question from being answered.
const silence = 500 * time.Millisecond

// settled says that the terminal has shown the questions that are open: it has
// answered a request that came with them. Its answer comes after all that was
// typed before.
func (d *desk) settled() {
	for _, o := range d.overs {
		o.ready = true
	}
}

// midWord is how long after a key that was typed into the input another one is
// taken for more of the same.
const midWord = 500 * time.Millisecond

// early reports whether a key that comes now was not meant for the question o:
// the user had not seen it, or is in the middle of typing something else.
// Whoever begins with a picker types nothing else.
func (d *desk) early(o *opened) bool {
	_, picks := o.v.(*pick.Sessions)
	return o.asks && (!o.ready || !picks && d.clock().Sub(d.typed) < midWord)
}

// question is an Overlay that asks for a line.
type question struct {
	input  *editor.Editor
	cursor *tea.Cursor // as drawn last
	reply  chan typed
}

func newQuestion(prompt string, reply chan typed) *question {
	return &question{input: editor.New(editor.Options{Prompt: terminal.Text(prompt), Plain: true}), reply: reply}
}

func (q *question) FullScreen() bool { return false }

func (q *question) View(width, height int) string {
	text, x, y := q.input.View(width, 3*height)
	q.cursor = tea.NewCursor(x, y)
	return text
}

func (q *question) Cursor() *tea.Cursor { return q.cursor }

func (q *question) Update(msg tea.Msg) (bool, tea.Cmd) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "enter":
			q.reply <- typed{text: q.input.Take().Text}
			return true, nil
		case "ctrl+c", "esc":
			q.reply <- typed{err: line.ErrInterrupt}
			return true, nil
		case "ctrl+d":
			if q.input.Empty() {
				q.reply <- typed{err: io.EOF}
				return true, nil
			}
		}
	}
	_, cmd := q.input.Update(msg)
	return false, cmd
}
