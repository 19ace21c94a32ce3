// Package repl is the chat: it reads what a person types or a pipe sends, runs
// turns, and shows what happens.
//
// Chat is the loop and the turn, current is the session that the chat is in,
// commands is the table of slash commands, and view is everything that is
// shown. Commands and turns say what there is to show; only view knows how it
// is drawn.
//
// The package knows no flags and no configuration. Everything comes in through
// Options, so that a test can hold a conversation in a string.
package repl

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"

	"goclaw/internal/naming"
	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
	"goclaw/window"
)

// Input is where lines come from: package tui, or line.Plain. Ask is for
// questions: text typed before the question does not answer it.
type Input interface {
	ReadLine(ctx context.Context, prompt string) (string, error)
	Ask(ctx context.Context, prompt string) (string, error)
}

// Model is the model in use, as far as the chat shows it.
type Model struct {
	Provider, Model string
	Name            string // as the user writes it
	Note            string // what the user should know about the choice
	Priced          bool   // what it costs is known
	Budget          window.Budget
	Tokens          window.Tokenizer
	Prompt          window.Prompt // with the tools
}

// Lists remembers the sessions that were listed, by number.
type Lists interface {
	Show(ids []session.ID)
	Last() naming.Listed
}

// ownLists is the last list of a chat.
type ownLists struct{ naming.Listed }

func (l *ownLists) Show(ids []session.ID) { l.IDs = ids }
func (l *ownLists) Last() naming.Listed   { return l.Listed }

// Choices are models that can be used now, as a table with a heading.
type Choices struct {
	Rows  [][]string
	Names []string // by their number in the table, from 1
	More  []string // about those that are not in it
}

// Thinking is how much the model thinks before it answers.
type Thinking struct {
	Level, From string   // empty: the model decides
	Offers      []string // the levels that the model has; none: not known
	Note        string   // why the level has no effect
}

// Pick says that the user picks the session of a chat on its Display: one of this
// folder, if there are any among the latest.
type Pick struct{ Text string } // what they are filtered by at first

// Options is what a chat works with. A field must be set unless its comment
// says what nil means.
type Options struct {
	Store  session.Store
	Runner *runner.Runner
	Clock  session.Clock

	// Display is where the chat is shown. nil: as plain lines in Out and Err.
	Display  Display
	Out, Err io.Writer // answers and what was asked for; everything else
	Style    transcript.Style
	// Interactive: a person is reading and can be asked.
	Interactive bool
	Width       func() int // of the terminal; nil: 100

	DefaultKey session.Key
	Session    string           // what the user wants to open; "": the session used last
	Begin      naming.Beginning // whether Session may begin one
	Pick       *Pick            // the user picks the session; nil: it is Session
	CWD        string           // for new sessions
	Folder     string           // the same, as it is shown

	Lists  Lists                     // nil: lists are remembered in this chat only
	Window func(in session.Info) int // of its model, in tokens, 0 if not known; nil: not known

	// Model returns the model in use.
	Model func() Model
	// Choose switches to the model called spec. After an error nothing changed.
	Choose func(ctx context.Context, spec string) (Model, error)
	// Decide switches to the model that s should use. problem says why that is
	// not the model that was chosen for s.
	Decide func(ctx context.Context, s *session.Session) (m Model, problem string, err error)
	Models func() []string // for completion; nil: none
	// Choices returns the models that can be used now; without all, the older ones
	// of a vendor are left out. nil: they are not known.
	Choices func(ctx context.Context, all bool) Choices
	// Think returns how much the model thinks in s. nil: it cannot be said.
	Think func(s *session.Session) Thinking
	// SetThink checks a level for the model in use, which goes before what was
	// said on the command line. note is what else the user should know.
	SetThink func(level string) (note string, err error)

	// First is called before a session is opened. nil: there is nothing to do.
	First func(ctx context.Context, w Welcome)
	// Guide returns what to tell somebody who has no model yet, instead of the
	// model's note. nil: nothing.
	Guide func(ctx context.Context) []string
	// AskAbove is how many dollars a summary may cost before /compact asks.
	AskAbove float64
	// Shortcuts are what /name stands for besides commands. nil: there are none.
	Shortcuts func() []Shortcut
	// Expand returns what /name with args stands for, and where that is from.
	Expand func(name, args string) (text, from string, ok bool, err error)
	// Skills returns those that there are, and what is wrong with them and with
	// the user's instructions. nil: there are none.
	Skills func() (skills []Skill, problems []string)

	// Spent returns the cost of a session's answers in dollars. nil: not known.
	Spent func(ctx context.Context, id session.ID) (float64, error)
	// Prepare waits for what turns need, and returns what the user should know
	// about it. It is called before each turn. nil: there is nothing to wait for.
	Prepare func(ctx context.Context) []string
	Modes   Modes // what is done without asking; nil: there are no tools
	// Remember allows what rule covers for good. nil: nothing is remembered.
	Remember func(rule tool.Rule) error
	// Shell runs a command of the user's own, writes what it prints to output as
	// that comes, and returns what the model would be told of it. nil: a line that
	// begins with ! is a message.
	Shell func(ctx context.Context, command string, output io.Writer) (llm.ToolResult, error)
	// Export writes a session to a new file, or to Out if path is empty.
	Export func(ctx context.Context, id session.ID, format, path string) error
	// Search finds what was said before. nil: there is no search.
	Search Searcher
	// Busy is called when a turn begins, and what it returns when it is over. nil:
	// nobody wants to know.
	Busy  func() (over func())
	Hint  func(error) string // what to do about an error; nil: no hints
	Abort func()             // ends the program when a turn does not end; nil: wait for the turn
}

// Chat is a conversation at a terminal or in a pipe.
type Chat struct {
	o        Options
	in       Input
	view     *view
	cur      *current
	commands *commands
	stop     interrupts
	status   teller

	asked   string     // the model that the user was last told about
	told    session.ID // the session in which the user was told that the model changed
	armed   bool       // the last thing that happened was Ctrl-C
	failed  bool       // a turn failed
	leaving bool
	given   string // a command that was the answer to a question; it is run next

	sh          shell
	completions completions
}

// New returns a chat that waits for Run.
func New(o Options) *Chat {
	if o.Lists == nil {
		o.Lists = &ownLists{}
	}
	c := &Chat{
		o: o, view: newView(o), stop: interrupts{abort: o.Abort},
		cur: &current{store: o.Store, runner: o.Runner, clock: o.Clock, cwd: o.CWD},
	}
	c.commands, c.sh.chat = newCommands(c), c
	c.status.chat, c.status.display, c.status.measure = c, c.view.screen, o.Display != nil
	return c
}

// ErrFailed means that a turn failed and nobody was there to see it. The
// problem itself has been shown.
var ErrFailed = errors.New("repl: a turn has failed")

// Run opens a session and chats until the user leaves, in ends, or ctx does.
// If nobody reads along, a failed turn makes it return ErrFailed.
func (c *Chat) Run(ctx context.Context, in Input) error {
	c.in = in
	defer c.status.close()
	if c.o.First != nil {
		c.o.First(ctx, Welcome{c})
	}
	switch err := c.open(ctx); {
	case errors.Is(err, errNonePicked):
		return nil
	case err != nil:
		return err
	}
	c.status.tell()
	for !c.leaving && ctx.Err() == nil {
		text, err := c.given, error(nil)
		if c.given = ""; text == "" {
			c.offer()
			text, err = c.read(ctx, c.in.ReadLine, prompt)
		}
		switch {
		case errors.Is(err, line.ErrInterrupt):
			c.leaving = !c.o.Interactive || c.armed && text == ""
			if !c.leaving {
				c.view.note("press Ctrl-C again to quit (or Ctrl-D, or /quit)")
			}
			c.armed = true
		case errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil:
			c.leaving = true
		case err != nil:
			return err
		default:
			c.armed = false
			c.handle(ctx, text)
			c.status.tell()
		}
	}
	if err := c.view.screen.Err(); err != nil {
		return err
	}
	if c.failed && !c.o.Interactive {
		return ErrFailed
	}
	return nil
}

const prompt = "> "

// read reads a line in a way that Interrupt can end.
func (c *Chat) read(ctx context.Context, read func(context.Context, string) (string, error), prompt string) (string, error) {
	ctx, end := c.stop.guard(ctx, false)
	defer end()
	return read(ctx, prompt)
}

// Interrupt is Ctrl-C. It stops the answer; a second one ends the chat as soon
// as what was said is saved. If a line is being read, the reading ends. It may be
// called from any goroutine.
func (c *Chat) Interrupt() { c.stop.press() }

var commandLike = regexp.MustCompile(`^/([a-zA-Z?-][a-zA-Z0-9?_-]*)?$`)

// handle does what a line says: a command, or a message for the model.
func (c *Chat) handle(ctx context.Context, text string) {
	if command, quiet, ok := shellCommand(text); ok && c.o.Interactive && c.o.Shell != nil {
		c.sh.run(ctx, command, quiet)
		return
	}
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "":
	case strings.EqualFold(trimmed, "quit") || strings.EqualFold(trimmed, "exit"):
		c.leaving = true
	case strings.HasPrefix(trimmed, "//"):
		c.turn(ctx, c.sh.message(trimmed[1:]))
	case commandLike.MatchString(strings.TrimRight(word, "\n")), c.commands.short.has(word):
		err := c.commands.run(ctx, trimmed)
		var many *naming.AmbiguousError
		switch {
		case errors.As(err, &many):
			c.view.problem(&briefError{many})
			c.commands.listed(many.Candidates)
		case err != nil:
			c.view.problem(err)
		}
	default:
		c.turn(ctx, c.sh.message(text))
	}
}

// yes asks until the answer is yes (which is also what Enter means) or no. The
// end of the input and Ctrl-C mean no. So does a command, which is run next;
// /continue means yes.
func (c *Chat) yes(ctx context.Context, question string) bool {
	if q, ok := c.in.(questioner); ok {
		ctx, end := c.stop.guard(ctx, false)
		defer end()
		yes, err := q.Yes(ctx, question, true)
		return yes && err == nil
	}
	for {
		answer, err := c.read(ctx, c.in.Ask, question+" [Y/n] ")
		if err != nil {
			return false
		}
		switch answer = strings.TrimSpace(answer); strings.ToLower(answer) {
		case "", "y", "yes", "/continue":
			return true
		case "n", "no":
			return false
		}
		if word, _, _ := strings.Cut(answer, " "); commandLike.MatchString(word) {
			c.given = answer
			return false
		}
		c.view.note("Please answer y or n.")
	}
}

// Confirm asks a yes-or-no question, to which Enter means no. The error says that
// there was no answer.
func (c *Chat) Confirm(ctx context.Context, question string) (bool, error) {
	defer c.view.screen.Pause()()
	if q, ok := c.in.(questioner); ok {
		ctx, end := c.stop.guard(ctx, false)
		defer end()
		return q.Yes(ctx, question, false)
	}
	answer, err := c.read(ctx, c.in.Ask, question+" [y/N] ")
	return line.Yes(answer), err
}

// ask asks with what the Input draws, if it can.
func (c *Chat) ask(ctx context.Context, a Approver, req tool.Request) (tool.Decision, error) {
	q, ok := c.in.(questioner)
	if !ok {
		return a.Approve(ctx, req)
	}
	ctx, end := c.stop.guard(ctx, false)
	defer end()
	d, err := q.Permit(ctx, req)
	if d == tool.Always && err == nil && !req.Private {
		a.remember(req.Rule)
	}
	return d, err
}

// Approve asks the user whether a command may run. It is the tool.Approver of
// the chat's tools; if nobody can be asked the answer is no.
func (c *Chat) Approve(ctx context.Context, req tool.Request) (tool.Decision, error) {
	if !c.o.Interactive {
		return tool.No, nil
	}
	defer c.view.screen.Pause()()
	ask := Approver{Style: c.o.Style, Show: c.view.screen.Note, Remember: c.o.Remember, Ask: func(ctx context.Context, prompt string) (string, error) {
		return c.read(ctx, c.in.Ask, prompt)
	}}
	d, err := c.ask(ctx, ask, req)
	c.view.allowed.Store(d != tool.No && err == nil && req.Diff != "")
	if errors.Is(err, line.ErrInterrupt) && ctx.Err() == nil {
		c.Interrupt()
	}
	if because := tool.Because(""); err != nil && !errors.As(err, &because) {
		return tool.No, nil
	}
	return d, err
}
