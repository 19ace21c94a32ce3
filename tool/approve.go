package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"goclaw/llm"
)

// Mode says what is done without asking.
type Mode int

const (
	ModeEdits Mode = iota // change files of the workspace without asking; ask before commands
	ModeAsk               // ask before files are changed as well
	ModePlan              // change nothing: commands and edits are refused
	ModeAll               // ask about nothing but what is private
)

// modes are the names of the modes, in their order.
var modes = []string{"edits", "ask", "plan", "all"}

func (m Mode) String() string { return modes[m] }

// ParseMode returns the mode with a name.
func ParseMode(name string) (Mode, error) {
	if i := slices.Index(modes, name); i >= 0 {
		return Mode(i), nil
	}
	return 0, fmt.Errorf("there is no mode %q: choose ask, edits, plan or all", name)
}

// Request asks permission for what a call of a tool would do.
type Request struct {
	Tool    string // who wants to do it
	Command string // exactly what will be run; it may hold line breaks and control characters
	Dir     string // where
	Path    string // the file that will be changed, if it is not a command
	Diff    string // how
	URL     string // the address that will be fetched, if it is neither
	Host    string // of it, as a Rule names it
	// Rule is what a Session or an Always would allow from now on: this call
	// and those like it.
	Rule Rule
	// Private: the command names something that the Fence protects, or the file is
	// git's own, with which git can be made to run commands. It is asked about each
	// time: every yes counts as Once.
	Private bool
}

// Decision answers a Request.
type Decision int

const (
	No      Decision = iota // not this time
	Once                    // this time
	Session                 // this time, and what Rule covers until the Set is closed
	Always                  // the same; whoever was asked remembers Rule for the next Set
)

func (d Decision) String() string { return [...]string{"no", "once", "session", "always"}[d] }

// Because is the error of an Approver that says no with a reason, which the
// model is told.
type Because string

func (b Because) Error() string { return string(b) }

// ErrNoOne is the error of an Approver that has no one to ask.
var ErrNoOne = errors.New("there is no one to ask here")

// Approver decides whether a call may run. It is asked one question at a time.
// An error counts as No.
type Approver interface {
	Approve(ctx context.Context, r Request) (Decision, error)
}

// ApproverFunc is a function that is an Approver.
type ApproverFunc func(ctx context.Context, r Request) (Decision, error)

// Approve calls f.
func (f ApproverFunc) Approve(ctx context.Context, r Request) (Decision, error) { return f(ctx, r) }

// Guarded is a Tool with calls that need permission. Request returns what the
// user is asked; needed is false if the call may run unasked.
type Guarded interface {
	Tool
	Request(call llm.ToolCall) (r Request, needed bool)
}

// guard decides which calls may run.
type guard struct {
	ask    Approver
	asking chan struct{} // held while ask is asked

	mu    sync.Mutex
	mode  Mode
	rules []Rule
}

func newGuard(o Options) *guard {
	g := &guard{ask: o.Ask, asking: make(chan struct{}, 1), mode: o.Mode, rules: slices.Clone(o.Rules)}
	for _, command := range o.Allowed {
		g.rules = append(g.rules, Exactly(command))
	}
	return g
}

// now returns what is done without asking.
func (g *guard) now() (Mode, []Rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode, g.rules
}

// permit returns "" if a call of t may run, or else what to tell the model.
func (g *guard) permit(ctx context.Context, t Tool, call llm.ToolCall) (refused string, err error) {
	guarded, ok := t.(Guarded)
	if !ok {
		return "", nil
	}
	r, needed := guarded.Request(call)
	if !needed {
		return "", nil
	}
	if mode, _ := g.now(); mode == ModePlan && mutates(t, call) {
		return "not done: the user has chosen to plan, and nothing is changed or run in this mode. Read, and say what you would do.", nil
	}
	if g.covers(r) {
		return "", nil
	}
	if g.ask == nil {
		return noOne(r, call), nil
	}
	// One question at a time; the answer may settle the next one too.
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if g.covers(r) {
		return "", nil
	}
	d, err := g.ask.Approve(ctx, r)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if errors.Is(err, ErrNoOne) {
		return noOne(r, call), nil
	}
	if because, ok := err.(Because); ok {
		return fmt.Sprintf("not done: the user did not allow this, and says: %s", strings.TrimSpace(string(because))), nil
	}
	if err != nil {
		return fmt.Sprintf("not done: the user could not be asked: %v", err), nil
	}
	switch d {
	default:
		return "not done: the user did not allow this. Do not try the same in another way; say why you wanted it, or ask.", nil
	case Once:
	case Session, Always:
		if r.Private {
			break
		}
		g.mu.Lock()
		g.rules = append(g.rules, r.Rule)
		g.mu.Unlock()
	}
	return "", nil
}

// noOne tells the model that r needs an answer which no one can give.
func noOne(r Request, call llm.ToolCall) string {
	if r.Private && r.Path == "" {
		return "not run: the command names files that are private to the program. Such a command needs the user's permission each time, and there is no one to ask here."
	}
	return fmt.Sprintf("not done: %s needs the user's permission, and there is no one to ask here. The user can allow it beforehand.", call.Name)
}

// covers reports whether r is allowed without a question.
func (g *guard) covers(r Request) bool {
	mode, rules := g.now()
	switch {
	case r.Private && (r.Path == "" || mode != ModeAll): // in the mode all, a command may write to git's files too
		return false
	case mode == ModeAll, mode == ModeEdits && r.Path != "":
		return true
	}
	return slices.ContainsFunc(rules, func(rule Rule) bool { return rule.Covers(r) })
}

func mutates(t Tool, call llm.ToolCall) bool {
	m, ok := t.(Mutator)
	return !ok || m.Mutates(call)
}
