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
	"fmt"

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

// Action is what to do next: Ask, Call or Rest.
type Action interface{ action() }

// Ask the model, with a request squeezed that much.
type Ask struct{ Squeeze window.Squeeze }

// Call the tools.
type Call struct{ Calls []llm.ToolCall }

// Rest: the turn is over.
type Rest struct{}

func (Ask) action()  {}
func (Call) action() {}
func (Rest) action() {}

// Next decides. It looks at the end of the live branch only: what was said
// there, and whether the model's calls have results.
func Next(s *session.Session, q window.Squeeze) Action {
	if open := s.Unanswered(); len(open) > 0 {
		return Call{Calls: open}
	}
	for i := len(s.Branch) - 1; i >= 0; i-- {
		m, ok := s.Branch[i].Body.(session.Message)
		if !ok || m.Excluded {
			continue
		}
		if m.Role == llm.User {
			return Ask{Squeeze: q}
		}
		return Rest{}
	}
	return Rest{}
}

// Event is what a turn shows while it runs.
type Event interface{ event() }

// Recorded asks the consumer to keep Record and to apply it to the session.
// When the turn goes on, both have happened.
type Recorded struct{ Record session.Record }

// Said is a piece of the answer as it comes.
type Said struct{ llm.Delta }

// Calling says that a tool begins to run.
type Calling struct{ Call llm.ToolCall }

// Called says what a tool answered, before it is recorded.
type Called struct {
	Call   llm.ToolCall
	Result llm.ToolResult
}

// Squeezed says that the model refused the request as too long, and that it
// is asked again with less.
type Squeezed struct {
	To  window.Squeeze
	Err error
}

// Done ends a turn that came to rest, with what it used.
type Done struct{ Usage llm.Usage }

func (Recorded) event() {}
func (Said) event()     {}
func (Calling) event()  {}
func (Called) event()   {}
func (Squeezed) event() {}
func (Done) event()     {}

// Env is what a turn needs beside the session.
type Env struct {
	Provider llm.Provider
	Prompt   window.Prompt // Tools and Tail are filled in
	Tools    Tools         // nil: none
	Budget   window.Budget // of the model; Used is measured
	Tokens   window.Tokenizer
	Clock    session.Clock
	API      string // how the provider is spoken to, for the log
	MaxSteps int    // questions to the model in one turn; 0: 200
}

// ErrSteps: the model went on calling tools without coming to an end.
var ErrSteps = fmt.Errorf("agent: the turn has too many steps")
