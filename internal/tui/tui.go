// Package tui is the chat on a real terminal: an input and a status line below
// what was said, which scrolls away in the terminal's own scrollback.
//
// It is built on Bubble Tea. What was said is printed once and never drawn
// again; only what is alive is drawn: the answer that is streaming, the calls
// that run, the input and the status line.
//
// UI is the chat's repl.Input and repl.Display. Its methods are called by the
// chat's goroutines; each of them hands the program a function that changes the
// model (loop.do), in order, so that the model belongs to the program alone. The
// parts that are drawn are packages of their own, below this one.
package tui

import (
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"goclaw/internal/repl"
	"goclaw/internal/repl/history"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
)

// Options is what a UI works with.
type Options struct {
	In, Out *os.File // the terminal
	Environ []string
	Style   transcript.Style
}

// Chat is what the interface needs of a chat: a repl.Remote. Its methods may be
// called while a turn runs.
type Chat interface {
	Interrupt()
	Completions() []repl.Completion
	Arguments(command string) (now []repl.Completion, later func() []repl.Completion)
	Commands() [][2]string
	NextMode() (meaning string)
	ToggleThinking() (shown bool)
}

// UI is a chat on a terminal.
type UI struct {
	*loop
	display
	keyboard
	o Options
}

var (
	_ repl.Input   = (*UI)(nil)
	_ repl.Display = (*UI)(nil)
)

// New returns a UI that waits for Run. What is shown before waits as well.
func New(o Options) *UI {
	l := &loop{signal: make(chan struct{}, 1), over: make(chan struct{}), out: newOutput(o.Out, reflows(environ(o.Environ)), colours(o))}
	w, h, err := term.GetSize(int(o.Out.Fd()))
	if err != nil || w < 1 || h < 1 {
		w, h = 80, 24
	}
	l.width.Store(int64(w))
	l.model = newModel(l, o, w, h)
	return &UI{loop: l, display: display{l}, keyboard: keyboard{l}, o: o}
}

// colours returns the colours that the terminal has.
func colours(o Options) colorprofile.Profile {
	if !o.Style.Colour {
		return colorprofile.ASCII
	}
	return max(colorprofile.Detect(o.Out, o.Environ), colorprofile.ANSI)
}

// Attach connects the UI with the chat that it shows, before Run.
func (u *UI) Attach(c Chat) { u.model.chat = c }

// Remember has the UI keep what is sent in h, before Run.
func (u *UI) Remember(h *history.History) { u.model.history = h }

// Workspace lets the input name files, before Run.
func (u *UI) Workspace(w Workspace) { u.model.files = w }

// Width is the terminal's, in columns.
func (u *UI) Width() int { return int(u.width.Load()) }

// rate is how often in a second Bubble Tea looks for something to draw: pickers
// and viewers, of which a key is drawn after a thirtieth of a second at the latest.
// It looks when nothing changes as well.
const rate = 30

// Run shows the interface until work, which runs the chat, returns, and returns
// its error.
func (u *UI) Run(ctx context.Context, work func(context.Context) error) error {
	options := []tea.ProgramOption{
		tea.WithInput(u.input()), tea.WithOutput(u.out), tea.WithEnvironment(u.o.Environ),
		tea.WithFilter(u.filter), tea.WithFPS(rate), tea.WithoutSignalHandler(), tea.WithColorProfile(u.out.colours),
	}
	u.model.editor = newEditor(u.o, u.model.chat, u.model.history, u.model.files)
	defer func() { u.model.editor.Close() }()
	u.prog = tea.NewProgram(u.model, options...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go u.pump()
	var failed error
	go func() {
		defer close(ended)
		defer u.rescue()
		failed = work(ctx)
		u.do(func(m *model) { m.leaving = true; m.unsent() })
	}()
	_, err := u.prog.Run()
	close(u.over)
	cancel() // if the terminal went away, the chat does as well
	<-ended
	if failed == nil {
		failed = err
	}
	u.flushRest()
	return failed
}

// input returns the terminal to read from. If it goes away the program ends:
// Bubble Tea would wait forever for a key.
func (u *UI) input() io.Reader {
	if runtime.GOOS == "windows" { // a console is not read as a file
		return u.o.In
	}
	return watched{u.o.In, func() { go u.prog.Quit() }}
}

// watched is a terminal, of which gone says that it has gone away.
type watched struct {
	*os.File
	gone func()
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.File.Read(p)
	if err != nil {
		w.gone()
	}
	return n, err
}

// Terminal returns the terminal, for programs that need it themselves.
func (w watched) Terminal() *os.File { return w.File }

// rescue gives the terminal back if the work panics.
func (u *UI) rescue() {
	if r := recover(); r != nil {
		u.Restore()
		panic(r)
	}
}

// Restore makes the terminal what it was, when the program must end at once.
func (u *UI) Restore() {
	if u.prog != nil {
		u.prog.Kill()
	}
}

// flushRest writes what was shown when the program had ended already.
func (u *UI) flushRest() {
	for _, f := range u.take() {
		f(u.model)
	}
	u.model.finish()
	if rest := u.model.other; rest != "" {
		u.model.print(terminal.Text(rest))
	}
	for _, text := range append(u.out.rest(), u.model.pending...) {
		io.WriteString(u.o.Out, strings.Join(lines(text, u.Width()), "\n")+"\n")
	}
	u.model.pending = nil
}

// loop is the way from the chat's goroutines to the program.
type loop struct {
	out   *output
	prog  *tea.Program
	model *model

	mu      sync.Mutex
	actions []func(m *model)
	signal  chan struct{} // has an item if there are actions
	over    chan struct{} // closed when the program has ended
	width   atomic.Int64
	steer   steering

	attached []llm.Block // to what ReadLine returned last; the chat's
}

// do has the program change the model, after everything that was handed to it
// before.
func (l *loop) do(f func(m *model)) {
	l.mu.Lock()
	l.actions = append(l.actions, f)
	l.mu.Unlock()
	l.wake()
}

func (l *loop) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// run has the program carry out cmd outside of Update.
func (l *loop) run(cmd tea.Cmd) {
	if cmd != nil {
		go func() {
			if msg := cmd(); msg != nil {
				l.prog.Send(msg)
			}
		}()
	}
}

// take returns what is to be done.
func (l *loop) take() []func(m *model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fs := l.actions
	l.actions = nil
	return fs
}

// awake tells the program that there are actions.
type awake struct{}

// pause is the shortest time between two times that the chat's actions change
// the model. What a model says in the meantime is drawn at once; keys do not wait.
const pause = 25 * time.Millisecond

// pump wakes the program, so that whoever calls do never waits for the terminal.
func (l *loop) pump() {
	for {
		select {
		case <-l.signal:
			l.prog.Send(awake{})
			select {
			case <-time.After(pause):
			case <-l.over:
			}
		case <-l.over:
			return
		}
	}
}
