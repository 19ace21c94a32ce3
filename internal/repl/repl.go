// Package repl is the chat: it reads what a person types or a pipe brings,
// runs turns, and shows what happens.
//
// It knows no flags and no configuration; what it works with is handed in,
// so that a test can hold a conversation in a string.
package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
	"goclaw/window"
)

// Input is where lines come from: line.Terminal or line.Plain. Ask is for
// questions: what was typed before is no answer.
type Input interface {
	ReadLine(ctx context.Context, prompt string) (string, error)
	Ask(ctx context.Context, prompt string) (string, error)
}

// Model is the model that is asked, as far as the chat tells of it.
type Model struct {
	Provider, Model string
	Name            string // as the user writes it
	Note            string // what the user should know about the choice
	Budget          window.Budget
	Tokens          window.Tokenizer
	Prompt          window.Prompt           // with the tools
	Cost            func(llm.Usage) float64 // of a call, in dollars; nil: not known
}

// REPL is a chat. Fields without a word on nil must be set; none may change
// once Run is called.
type REPL struct {
	Store  session.Store
	Runner *runner.Runner
	Clock  session.Clock

	In       Input
	Out, Err io.Writer // answers and what was asked for; everything else
	Style    transcript.Style
	// Interactive: a person reads along and can be asked.
	Interactive bool
	// Live: the terminal can move its cursor, so that there can be a spinner.
	Live  bool
	Width func() int // nil: 100

	DefaultKey session.Key
	Session    string // what the user wants to open; "": what was used last
	CWD        string // where new sessions begin

	// Model returns the model that is asked now.
	Model func() Model
	// Choose makes spec the model that is asked. On an error nothing changes.
	Choose func(ctx context.Context, spec string) (Model, error)
	// Decide makes the model that s is asked with the one that is asked now.
	// problem says why it is not the one that was chosen for s.
	Decide func(ctx context.Context, s *session.Session) (m Model, problem string, err error)
	Models func() []string // for completion; nil: none

	// Spent returns what the answers of a session cost, in dollars. nil: that
	// is not known.
	Spent func(ctx context.Context, id session.ID) (float64, error)
	// Allow remembers a command as allowed for always. nil: nothing is.
	Allow func(command string) error
	// Export writes a session to a new file, or to Out if path is empty.
	Export func(ctx context.Context, id session.ID, format, path string) error
	// Search finds what was said before. nil: nothing can be found.
	Search Searcher
	Hint   func(error) string // what to do about an error; nil: nothing
	Abort  func()             // ends the program when it does not want to end; nil: it waits

	screen   *screen
	cur      session.Info // as far as it is known here
	asked    string       // the model, as far as the user was told
	told     session.ID   // where the user was told that the model is another
	found    []recall.Hit // by the last search
	thinking bool         // is shown
	armed    bool         // Ctrl-C was pressed last
	failed   bool         // a turn has failed
	leaving  bool

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the turn or the line under way
	inTurn  bool
	stops   int  // Ctrl-C in this turn
	pressed bool // Ctrl-C while there was nothing to stop
}

// ErrFailed: a turn failed, and nobody was there to see it. What was wrong has
// been shown.
var ErrFailed = errors.New("repl: a turn has failed")

// Run opens a session and chats until the user leaves, the input ends or ctx
// does. Without a person at the other end a failed turn makes it ErrFailed.
func (r *REPL) Run(ctx context.Context) error {
	r.screen = &screen{out: r.Out, notes: r.Err, style: r.Style, live: r.Live, width: r.width}
	if err := r.open(ctx); err != nil {
		return err
	}
	for !r.leaving && ctx.Err() == nil {
		text, err := r.read(ctx, false, prompt)
		switch {
		case errors.Is(err, line.ErrInterrupt):
			r.leaving = !r.Interactive || r.armed && text == ""
			if !r.leaving {
				r.note("Ctrl-C again quits, and so do Ctrl-D and /quit")
			}
			r.armed = true
		case errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil:
			r.leaving = true
		case err != nil:
			return err
		default:
			r.armed = false
			r.handle(ctx, text)
		}
	}
	if r.screen.err != nil {
		return r.screen.err
	}
	if r.failed && !r.Interactive {
		return ErrFailed
	}
	return nil
}

const prompt = "> "

// read reads a line in a way that Interrupt can end.
func (r *REPL) read(ctx context.Context, question bool, prompt string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	inTurn, before := r.inTurn, r.cancel
	if !inTurn { // a question within a turn ends with the turn
		r.cancel = cancel
		if r.pressed {
			cancel(line.ErrInterrupt)
		}
	}
	r.pressed = false
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		if !inTurn {
			r.cancel = before
		}
		r.mu.Unlock()
	}()
	if question {
		return r.In.Ask(ctx, prompt)
	}
	return r.In.ReadLine(ctx, prompt)
}

// grace is how long a turn may take to end after the second Ctrl-C.
const grace = 2 * time.Second

// Interrupt is Ctrl-C. It stops the answer; again, it ends the chat as soon
// as what was said is kept. Where a line is read, the reading ends. It may be
// called from any goroutine.
func (r *REPL) Interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil { // between two lines: it is for the one to come
		r.pressed = true
		return
	}
	r.cancel(line.ErrInterrupt)
	if !r.inTurn {
		return
	}
	r.stops++
	if r.Abort == nil || r.stops < 2 {
		return
	}
	if r.stops == 2 {
		time.AfterFunc(grace, r.Abort)
		return
	}
	go r.Abort()
}

var commandLike = regexp.MustCompile(`^/[a-zA-Z?-]*$`)

// handle does what a line says: a command, or words for the model.
func (r *REPL) handle(ctx context.Context, text string) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "":
	case strings.EqualFold(trimmed, "quit") || strings.EqualFold(trimmed, "exit"):
		r.leaving = true
	case strings.HasPrefix(trimmed, "//"):
		r.turn(ctx, llm.UserText(trimmed[1:]))
	case commandLike.MatchString(strings.TrimRight(word, "\n")):
		if err := r.command(ctx, trimmed); err != nil {
			r.problem(err)
		}
	default:
		r.turn(ctx, llm.UserText(text))
	}
}

// note tells something that nobody asked for.
func (r *REPL) note(format string, args ...any) {
	r.tell(r.Style.Dim(transcript.Printable(fmt.Sprintf(format, args...))))
}

// tell is note for what is printable and painted.
func (r *REPL) tell(text string) { r.screen.note(transcript.Wrap(text, r.columns())) }

// print shows what was asked for.
func (r *REPL) print(format string, args ...any) {
	r.screen.print(transcript.Wrap(fmt.Sprintf(format, args...), r.columns()))
}

// problem shows an error in one line, and what can be done about it.
func (r *REPL) problem(err error) {
	r.tell(r.Style.Red("error: " + transcript.OneLine(transcript.Printable(strings.ReplaceAll(err.Error(), "\n", "; ")), 1000)))
	if r.Hint != nil {
		if h := r.Hint(err); h != "" {
			r.note("  %s", h)
		}
	}
}

// columns is how wide the terminal is; 0 if nobody reads along on one.
func (r *REPL) columns() int {
	if r.Width == nil || !r.Interactive {
		return 0
	}
	return r.Width()
}

func (r *REPL) width() int {
	if r.Width == nil {
		return 100
	}
	return r.Width()
}

// Approve asks the user whether a command may run. It is the tool.Approver of
// the chat's tools; where nobody can be asked the answer is no.
func (r *REPL) Approve(ctx context.Context, req tool.Request) (tool.Decision, error) {
	if !r.Interactive {
		return tool.No, nil
	}
	resume := r.screen.pause()
	defer resume()
	leave := Leave{Style: r.Style, Show: r.screen.note, Allow: r.Allow, Ask: func(ctx context.Context, prompt string) (string, error) {
		return r.read(ctx, true, prompt)
	}}
	d, err := leave.Approve(ctx, req)
	if errors.Is(err, line.ErrInterrupt) && ctx.Err() == nil {
		r.Interrupt()
	}
	if err != nil {
		return tool.No, nil
	}
	return d, nil
}
