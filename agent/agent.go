// Package agent runs one turn of a conversation: Next decides what to do,
// Turn does it.
//
// Next is a pure function of the session, so that a turn can be interrupted
// anywhere and resumed from the log. Turn yields each record before it relies
// on it, and continues only when its consumer has made the record durable: the
// user's message before the model is asked, the answer before a tool runs, each
// result before the next question.
package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Mutator is an optional interface of Tools that knows which calls may change
// something. Such a call runs alone, after the results of the calls before it
// are recorded: what a model asks for in one answer happens in its order, and
// so do the questions to the user. Without it, all calls of an answer run in
// parallel.
type Mutator interface {
	Mutates(call llm.ToolCall) bool
}

// Checker is an optional interface of Tools that knows which calls cannot be run
// at all. Check says why, or "".
type Checker interface {
	Check(call llm.ToolCall) string
}

// Action is what to do next: Ask, Call, Warn, Compact or Rest.
type Action interface{ action() }

// Ask: ask the model, with a request squeezed that much.
type Ask struct{ Squeeze window.Squeeze }

// Call: run the tools.
type Call struct{ Calls []llm.ToolCall }

// Warn: tell the model how full its window is.
type Warn struct{ Threshold window.Threshold }

// Compact: replace the past before Cut with a summary.
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
	Compact *compact.Options   // nil: the past is never compacted
	Prompt  window.Prompt      // what a request has beside the conversation
	Tokens  window.Tokenizer   // nil: nothing is compacted
}

// MaxCompactions is how often the past is compacted between two answers. More
// would not help.
const MaxCompactions = 2

// Next decides what to do, by the live branch, by how full the window is, and
// by how hard the request must be squeezed.
//
// Notices that go to the system are given before the model is asked. Notices
// that are messages wait for the end of the turn, or come between two tools, so
// that they are never mistaken for the user's question. A turn that leaves less
// free than an answer needs ends with the highest notice, since the next turn
// begins with a compaction. The model is not asked while so little is free, not
// for a notice either.
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
	case last.Stop == llm.StopLength && answersNotice(s): // the next might be as long
		return Rest{}
	}
	if t, ok := window.Due(s, b, p.Flush); ok && t.As != window.AsSystem {
		return Warn{t}
	}
	if t, ok := window.Flush(s, p.Flush); ok && b.Full() && p.compacts() {
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
		return Warn{asTail(t)}
	}
	return Ask{Squeeze: q}
}

func (p Policy) compacts() bool { return p.Compact != nil && p.Tokens != nil }

// plan returns where to compact, unless that was done often enough.
func (p Policy) plan(s *session.Session, b window.Budget) (compact.Cut, bool) {
	if !p.compacts() || compactions(s) >= MaxCompactions {
		return compact.Cut{}, false
	}
	return compact.Plan(s, p.Prompt, p.Tokens, b, *p.Compact)
}

// compactions counts the compactions since the last answer.
func compactions(s *session.Session) int {
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

// asTail returns t as it is given while a question is open: at the end of the
// request, never as a separate message, because the answer to that would be
// taken for the answer to the user. It is said in this turn only.
func asTail(t window.Threshold) window.Threshold {
	if t.As != window.AsSystem {
		t.As, t.Once = window.AsSystem, true
		t.Text += " Then answer the user: NO_REPLY would leave the question open."
	}
	return t
}

// flushing reports whether the user has been answered and the model is only
// asked to save what is worth keeping.
func flushing(s *session.Session) bool {
	last, warned := latest(s)
	return warned && last != nil && last.Role == llm.Assistant
}

// answersNotice reports whether the last answer was one to a notice.
func answersNotice(s *session.Session) bool {
	answers := 0
	for i := len(s.Branch) - 1; i >= 0; i-- {
		switch b := s.Branch[i].Body.(type) {
		case session.Notice:
			return answers == 1
		case session.Message:
			if answers++; answers > 1 || b.Role != llm.Assistant {
				return false
			}
		}
	}
	return false
}

// CompactsFirst reports whether the past of s, which fills b, would be compacted
// before the next question is asked.
func CompactsFirst(s *session.Session, b window.Budget, p Policy) bool {
	next := *s
	next.Branch = append(s.Branch[:len(s.Branch):len(s.Branch)], session.Record{ID: "next", Body: session.Message{Message: llm.UserText("?")}})
	last, _ := latest(&next)
	_, compacts := ask(&next, b, window.Loose, p, last).(Compact)
	return compacts
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
// the session. When the turn continues, both have happened.
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

// Printed says what a tool that runs has printed so far: how many bytes, and the
// last lines of them without secrets. It comes a few times a second at most; the
// result follows with Called.
type Printed struct {
	Call  llm.ToolCall
	Tail  string
	Bytes int64
}

// Called says what a tool answered, before it is recorded.
type Called struct {
	Call   llm.ToolCall
	Result llm.ToolResult
	// Took is how long it ran, without the time that a question to the user
	// took. 0: it did not run.
	Took time.Duration
}

// Squeezed says that the request is too long for the model, which is asked
// again with a shorter one, or for a shorter answer.
type Squeezed struct {
	To     window.Squeeze
	Answer int // tokens that the answer may have now; 0: the prompt was too long
	Err    error
}

// Compacting says that the past is being compacted, which will probably use what
// Cut.Uses says. The compaction is Recorded.
type Compacting struct{ Cut compact.Cut }

// Retrying says that a request failed, and is sent again after a while.
type Retrying struct{ llm.Retry }

// NotCompacted says that the past was not compacted after all, and why.
type NotCompacted struct{ Err *compact.LargerError }

// Learnt says that the model's window or longest answer is smaller than was
// assumed: whoever chose the budget should remember it, unless Once is set. One
// of Window and Answer is set.
type Learnt struct {
	Provider, Model string
	Window          int
	Exact           bool // the provider said so; else it is a little less than what did not fit
	Answer          int  // the longest answer

	Once string // why it counts in this turn only; "": it is worth remembering
	Err  error  // the refusal
}

// Doubted says that a refusal is not believed, and that the same request is sent
// once more.
type Doubted struct {
	Provider, Model string
	Window          int    // as the refusal has it
	Why             string // it is not believed
	Err             error
}

// LeftOut says that the API refuses parts of the conversation, by the number and
// the block of their records, and that the model is asked again without them.
// What is left out is Recorded, and stays left out.
type LeftOut struct {
	Parts []Part
	Err   *llm.RefusedError
}

// Part is a block of a record.
type Part struct {
	Seq   session.Seq
	Block llm.Block
}

// Miscounted says that the provider reported numbers of tokens that cannot be
// true, once in a turn. Estimates are recorded instead.
type Miscounted struct{ Reported llm.Usage }

// Silent says that the model answered a question with NO_REPLY, which is not
// shown.
type Silent struct{}

// Done ends a turn. Stop is why the answer to the user ended (llm.StopLength:
// it was cut), or "" if nothing was asked.
type Done struct {
	Usage llm.Usage
	Stop  llm.Stop
}

func (Recorded) event()     {}
func (Said) event()         {}
func (Calling) event()      {}
func (Printed) event()      {}
func (Called) event()       {}
func (Squeezed) event()     {}
func (Compacting) event()   {}
func (Retrying) event()     {}
func (NotCompacted) event() {}
func (Learnt) event()       {}
func (Doubted) event()      {}
func (LeftOut) event()      {}
func (Miscounted) event()   {}
func (Silent) event()       {}
func (Done) event()         {}

// Env is what a turn needs besides the session.
type Env struct {
	Provider llm.Provider
	Prompt   window.Prompt // Tools are filled in; how full the window is follows Tail
	Tools    Tools         // nil: none
	Budget   window.Budget // of the model; Used is measured
	Tokens   window.Tokenizer
	Clock    session.Clock
	API      string // the provider's API, for the log
	// Price returns what usage of the model costs; nil: unknown.
	Price    func(llm.Usage) llm.Cost
	MaxSteps int // questions to the model in one turn; 0: 200
	MaxCalls int // calls of one answer that are run; 0: 128. The model is told that the others were not
	// Before is asked before each request, with what the turn has used so far
	// and what the request will probably use; next.Output is the longest answer,
	// 0 if that is the provider's choice. A summary comes with its price. Before
	// returns how many tokens the answer may have at most (0: any number), or an
	// error, which ends the turn. nil: nothing is asked.
	Before func(ctx context.Context, used, next llm.Usage) (answer int, err error)

	// Steer returns a message that the user has sent since the turn began, or an
	// empty one; nil: there are none. It is asked before each request and before
	// the turn rests, never between a call and its result: the message is
	// recorded after the results, and the turn goes on with it. A turn that was
	// stopped takes no more. A message is taken with the call; if the turn ends
	// before it is Recorded, it is not in the log.
	Steer func() llm.Message

	// Accepted is the longest prompt, in tokens, that the model is known to have
	// taken. A refusal that names a smaller window is not worth remembering. Took
	// is called when it grows; it may be nil.
	Accepted int
	Took     func(prompt int)
	// Fixed: the window of Budget was set by a person. A refusal shrinks it for
	// the turn only.
	Fixed bool

	NoLine     bool               // the model is not told how full its window is
	Flush      []window.Threshold // notices
	Compact    *compact.Options   // nil: the past is never compacted
	Summarizer compact.Summarizer // nil: it is compacted without a model
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

// ErrSteps: the model kept calling tools without coming to an end.
var ErrSteps = errors.New("agent: the turn has too many steps")

// ErrFutile: the model kept making calls that cannot be run: without a name, of
// tools that do not exist, or with arguments that the tool does not take.
var ErrFutile = errors.New("agent: the model keeps making calls that cannot be run")

// FullError says that the conversation does not fit the model's window, whatever
// was tried. It wraps llm.ErrOverflow.
type FullError struct {
	Budget      window.Budget
	Compactions int  // how often the past was compacted for it
	Alone       bool // the last message is too long by itself
	Err         error
}

func (e *FullError) Error() string {
	tried := "long tool results cut"
	switch e.Compactions {
	case 0:
		tried += ", nothing left to compact"
	case 1:
		tried += ", the past compacted"
	default:
		tried += fmt.Sprintf(", the past compacted %d times", e.Compactions)
	}
	what := "the conversation"
	if e.Alone {
		what = "the last message"
	}
	size := ""
	if e.Budget.Window > 0 {
		size = fmt.Sprintf(" of %s tokens (it needs about %s)", window.Short(e.Budget.Window), window.Short(e.Budget.Used))
	}
	return fmt.Sprintf("agent: %s does not fit the model's window%s, even with %s: send less at once, begin a new session, or use a model with a larger window (%v)", what, size, tried, e.Err)
}

func (e *FullError) Unwrap() error { return e.Err }
