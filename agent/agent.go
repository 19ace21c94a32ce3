// Package agent performs one turn of a conversation: Next decides what to do,
// Turn does it.
//
// Next is a pure function of the session, so that a turn can be broken off
// anywhere and taken up again from the log. Turn yields each record before it
// relies on it and goes on only when its consumer says that the record is
// durable: the user's message is kept before the model is asked, the answer
// before a tool runs, each result before the next question.
package agent

import (
	"context"
	"errors"
	"fmt"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Tools are what the model can call. Run is called from several goroutines. A
// failed tool is a result; an error ends the turn.
type Tools interface {
	Specs() []llm.ToolSpec
	Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error)
}

// Mutator is an optional power of Tools: to know which calls may change
// something. Such a call runs alone, when the results of those before it are
// recorded: what a model asks for at once happens, and is asked of the user,
// in its order. Tools without it run all calls of an answer side by side.
type Mutator interface {
	Mutates(call llm.ToolCall) bool
}

// Action is what to do next: Ask, Call, Warn, Compact or Rest.
type Action interface{ action() }

// Ask the model, with a request squeezed that much.
type Ask struct{ Squeeze window.Squeeze }

// Call the tools.
type Call struct{ Calls []llm.ToolCall }

// Warn the model about its window.
type Warn struct{ Threshold window.Threshold }

// Compact the past at Cut.
type Compact struct{ Cut compact.Cut }

// Rest: the turn is over.
type Rest struct{}

func (Ask) action()     {}
func (Call) action()    {}
func (Warn) action()    {}
func (Compact) action() {}
func (Rest) action()    {}

// Policy is how a turn stays inside the window. The zero value does nothing
// about it.
type Policy struct {
	Flush   []window.Threshold // notices, by how full the window is
	Compact *compact.Options   // how the past is folded; nil: it is not
	Prompt  window.Prompt      // what a request holds beside the conversation
	Tokens  window.Tokenizer   // nil: nothing is folded
}

// MaxCompactions is how often the past is folded between two answers. More would
// not help.
const MaxCompactions = 2

// Next decides. It is a function of the live branch, of how full the window
// is, and of how hard the request must be squeezed.
//
// Notices for the system are given before the model is asked. Those that are
// messages wait for the end of the turn, or come between two tools, so that
// they are never taken for what the user asked; a turn that leaves less free
// than an answer needs ends with the highest, since the next one begins with a
// fold. No question is asked while so little is free, also not for a notice.
func Next(s *session.Session, b window.Budget, q window.Squeeze, p Policy) Action {
	if open := s.Unanswered(); len(open) > 0 {
		return Call{Calls: open}
	}
	last, warned := latest(s)
	switch {
	case last == nil && !warned:
		return Rest{}
	case warned || last.Role == llm.User || last.Stop == llm.StopError: // what failed is asked again
		return ask(s, b, q, p, last)
	case last.Stop == llm.StopAborted:
		return Rest{}
	}
	if t, ok := window.Due(s, b, p.Flush); ok && t.As != window.AsSystem {
		return Warn{t}
	}
	if t, ok := window.Flush(s, p.Flush); ok && b.Full() && p.folds() {
		return Warn{t}
	}
	return Rest{}
}

// ask decides what comes before the model is asked.
func ask(s *session.Session, b window.Budget, q window.Squeeze, p Policy, last *session.Message) Action {
	if q == window.Compact {
		if c, ok := p.plan(s, b); ok {
			return Compact{c}
		}
		return Ask{Squeeze: q}
	}
	if q == window.Loose && b.Full() && (!flushing(s) || b.Scarce()) {
		if c, ok := p.plan(s, b); ok {
			return Compact{c}
		}
	}
	if t, ok := window.Due(s, b, p.Flush); ok && (t.As == window.AsSystem || last != nil && !session.IsTurn(*last)) {
		return Warn{beside(t)}
	}
	return Ask{Squeeze: q}
}

func (p Policy) folds() bool { return p.Compact != nil && p.Tokens != nil }

// plan returns where to fold, unless that was done often enough.
func (p Policy) plan(s *session.Session, b window.Budget) (compact.Cut, bool) {
	if !p.folds() || folded(s) >= MaxCompactions {
		return compact.Cut{}, false
	}
	return compact.Plan(s, p.Prompt, p.Tokens, b, *p.Compact)
}

// folded counts the folds since the last answer.
func folded(s *session.Session) int {
	n := 0
	for i := len(s.Branch) - 1; i >= 0; i-- {
		switch b := s.Branch[i].Body.(type) {
		case session.Compaction:
			n++
		case session.Message:
			if b.Role == llm.Assistant {
				return n
			}
		}
	}
	return n
}

// beside returns t as it is given while a question is open: at the end of the
// request, never as a message of its own, whose answer would be taken for the
// answer to the user. What would have been a message is said in this turn only.
func beside(t window.Threshold) window.Threshold {
	if t.As != window.AsSystem {
		t.As, t.Once = window.AsSystem, true
		t.Text += " Then answer the user: NO_REPLY would leave the question open."
	}
	return t
}

// flushing reports whether the model is asked for nothing but to save what
// must last: the user has been answered.
func flushing(s *session.Session) bool {
	last, warned := latest(s)
	return warned && last != nil && last.Role == llm.Assistant
}

// CompactsFirst reports whether the past of s, which fills b, would be folded
// before the next question is asked.
func CompactsFirst(s *session.Session, b window.Budget, p Policy) bool {
	next := *s
	next.Branch = append(s.Branch[:len(s.Branch):len(s.Branch)], session.Record{ID: "next", Body: session.Message{Message: llm.UserText("?")}})
	last, _ := latest(&next)
	_, folds := ask(&next, b, window.Loose, p, last).(Compact)
	return folds
}

// latest returns the last message of the branch, and whether a notice that is
// a message came after it.
func latest(s *session.Session) (last *session.Message, warned bool) {
	for i := len(s.Branch) - 1; i >= 0; i-- {
		switch b := s.Branch[i].Body.(type) {
		case session.Notice:
			warned = warned || b.As != window.AsSystem
		case session.Message:
			if !b.Excluded {
				return &b, warned
			}
		}
	}
	return nil, warned
}

// Event is what a turn shows while it runs.
type Event interface{ event() }

// Recorded asks the consumer to append Record to the log and to apply it to
// the session. When the turn goes on, both have happened.
type Recorded struct {
	Record session.Record
	// Info is the session's after Record. The consumer that appends the record
	// fills it in: from a Runner every Recorded event has it.
	Info session.Info
}

// Said is a piece of the answer as it comes.
type Said struct{ llm.Delta }

// Calling says that a tool begins to run.
type Calling struct{ Call llm.ToolCall }

// Called says what a tool answered, before it is recorded.
type Called struct {
	Call   llm.ToolCall
	Result llm.ToolResult
}

// Squeezed says that the request is too long for the model, and that it is
// asked again with less, or for a shorter answer.
type Squeezed struct {
	To     window.Squeeze
	Answer int // tokens that the answer may have now; 0: the prompt was too long
	Err    error
}

// Compacting says that the past is being folded. What comes of it is Recorded.
type Compacting struct{ Cut compact.Cut }

// NotCompacted says that the past was not folded after all, and why.
type NotCompacted struct{ Err *compact.LargerError }

// Learnt says that the model takes or gives fewer tokens than was thought:
// whoever chose the budget should remember it. One of Window and Answer is set.
type Learnt struct {
	Provider, Model string
	Window          int
	Exact           bool // the provider said so; else it is what did not fit
	Answer          int  // the longest answer
}

// Silent says that the model answered a question with NO_REPLY, which is not
// shown.
type Silent struct{}

// Done ends a turn that came to rest, with what it used and why the answer to
// the user ended: llm.StopLength is an answer that was cut. Stop is "" if
// nothing was asked.
type Done struct {
	Usage llm.Usage
	Stop  llm.Stop
}

func (Recorded) event()     {}
func (Said) event()         {}
func (Calling) event()      {}
func (Called) event()       {}
func (Squeezed) event()     {}
func (Compacting) event()   {}
func (NotCompacted) event() {}
func (Learnt) event()       {}
func (Silent) event()       {}
func (Done) event()         {}

// Env is what a turn needs beside the session.
type Env struct {
	Provider llm.Provider
	Prompt   window.Prompt // Tools and Tail are filled in
	Tools    Tools         // nil: none
	Budget   window.Budget // of the model; Used is measured
	Tokens   window.Tokenizer
	Clock    session.Clock
	API      string // how the provider is spoken to, for the log
	// Price says what usage of the model costs; nil: that is not known.
	Price    func(llm.Usage) llm.Cost
	MaxSteps int // questions to the model in one turn; 0: 200

	NoLine     bool               // the model is not told how full its window is
	Flush      []window.Threshold // notices
	Compact    *compact.Options   // nil: the past is never folded
	Summarizer compact.Summarizer // nil: it is folded without a model
}

// Complete returns e with what follows from the rest of it: the tools in its
// Prompt, and a Clock.
func (e Env) Complete() Env {
	if e.Tools != nil && e.Prompt.Tools == nil {
		e.Prompt.Tools = e.Tools.Specs()
	}
	if e.Clock == nil {
		e.Clock = session.System{}
	}
	return e
}

func (e Env) policy() Policy {
	return Policy{Flush: e.Flush, Compact: e.Compact, Prompt: e.Prompt, Tokens: e.Tokens}
}

// ErrSteps: the model went on calling tools without coming to an end.
var ErrSteps = errors.New("agent: the turn has too many steps")

// FullError says that the conversation does not fit the model's window,
// whatever was done about it. It wraps llm.ErrOverflow.
type FullError struct {
	Budget window.Budget
	Folds  int  // how often the past was folded for it
	Alone  bool // what was said last is too long by itself
	Err    error
}

func (e *FullError) Error() string {
	tried := "long tool results cut"
	switch e.Folds {
	case 0:
		tried += ", nothing left to fold"
	case 1:
		tried += ", the past folded"
	default:
		tried += fmt.Sprintf(", the past folded %d times", e.Folds)
	}
	what := "the conversation"
	if e.Alone {
		what = "what was said last"
	}
	size := ""
	if e.Budget.Window > 0 {
		size = fmt.Sprintf(" of %s tokens (it needs about %s)", window.Short(e.Budget.Window), window.Short(e.Budget.Used))
	}
	return fmt.Sprintf("agent: %s does not fit the model's window%s, even with %s: send less at once, begin a new session, or use a model with a larger window (%v)", what, size, tried, e.Err)
}

func (e *FullError) Unwrap() error { return e.Err }
