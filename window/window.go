// Package window decides what fits into a model's context window and builds
// the request: which records of a session are sent, in which form, and how
// many tokens that is.
//
// Everything here is a pure function of the session. The log is never
// rewritten: traces of a crash, a compaction, another program or another model
// are repaired in the request alone.
package window

import (
	"goclaw/llm"
	"goclaw/session"
)

// Prompt is what a request holds besides the conversation.
type Prompt struct {
	Provider  string // with Model, it decides whose thinking is sent back
	Model     string
	System    string
	Sources   []Source // what is in System and where it is from, as far as Explain tells it apart
	Tail      string   // see llm.Request
	Tools     []llm.ToolSpec
	MaxTokens int
	Thinking  string
	NoImages  bool // the model takes text only

	// ThinksAnywhere says that thinking may stand anywhere in an answer, before
	// what follows from it, as the Responses API has it; else only at its
	// beginning.
	ThinksAnywhere bool
}

// Source is a part of a system prompt that comes from somewhere, such as a file.
type Source struct{ Name, Text string }

// Squeeze is how much is cut to make a request fit into the window.
type Squeeze int

const (
	Loose   Squeeze = iota // nothing
	Results                // long tool results, except in the newest turns
	Compact                // the past is compacted, and long results are cut in the newest turns as well
	Tight                  // every result is cut to a few lines
)

func (q Squeeze) String() string { return [...]string{"loose", "results", "compact", "tight"}[q] }

// Build returns the request that continues s: the summary of the compaction
// in effect, what it keeps and what came after, in the form that the
// strictest API accepts. It ends with what the log ends with; to be sent, that
// must be a message of the user.
//
//   - Roles take turns and the first is the user's; neighbours are merged.
//   - Each tool call is answered exactly once, right after it: a displaced
//     result moves to its call, a call without one is answered "interrupted",
//     a result without a call and a repeated call are left out.
//   - Failed and empty answers are left out; a stopped one keeps its text.
//   - Thinking goes back only to the model that signed it; another model gets
//     it as text.
//
// What Build returns for a longer log begins with what it returned for the
// shorter one, block by block, unless there is a compaction between them.
func Build(s *session.Session, p Prompt, q Squeeze) llm.Request {
	messages, _ := build(s, p, q)
	return llm.Request{
		Model:     p.Model,
		System:    p.System,
		Messages:  messages,
		Tail:      p.Tail,
		Tools:     p.Tools,
		MaxTokens: p.MaxTokens,
		Thinking:  p.Thinking,
	}
}

// build returns the messages of a request, and where each of their blocks is in
// the log.
func build(s *session.Session, p Prompt, q Squeeze) ([]llm.Message, [][]Place) {
	_, _, compacted := s.Compaction()
	w := pair(emit(s, p), q, !compacted, p.ThinksAnywhere)
	return w.out, w.places
}
