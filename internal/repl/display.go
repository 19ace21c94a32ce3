package repl

import (
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// Display is where a chat is shown: lines of plain text, or the interface of
// package tui. Its methods are called by several goroutines: the turn, a
// question from a tool, work in the background.
//
// A Display may have more to offer; commands find that out by asserting small
// interfaces on it.
type Display interface {
	// Print shows lines that were asked for, Note lines that are not part of an
	// answer. Both are printable, painted by transcript.Style or terminal.Paint,
	// and wrapped already.
	Print(text string)
	Note(text string)

	// Said shows part of an answer, and Thought of the model's thinking, as they
	// come from the model. Finish ends both.
	Said(text string)
	Thought(text string)
	Finish()

	// Call shows the state of a tool call. It is called when the call begins,
	// prints something, ends, and when its result is recorded.
	Call(c Call)

	// Busy shows that work is under way, which Interrupt stops, until done is
	// called; that finishes the answer as well. Wait says what the work waits for.
	Busy(label string) (done func())
	Wait(label string)

	// Pause makes room for a question until resume is called.
	Pause() (resume func())

	// Status is told what a status line shows, whenever that changes.
	Status(s Status)

	// Err returns the first error of the output.
	Err() error
}

// CallState is how far a tool call has come.
type CallState int

const (
	CallRuns     CallState = iota // it runs, or waits for permission
	CallEnded                     // it has run; its result is not recorded yet
	CallRecorded                  // its result is in the log
)

// Call is a tool call, as it is shown.
type Call struct {
	llm.ToolCall        // its ID, Name and arguments
	Title        string // the call in one line, printable
	State        CallState

	Began time.Time
	Took  time.Duration // from CallEnded on
	Tail  string        // what it printed last, while it runs; not printable

	// What follows is there when it is CallRecorded.
	Result llm.ToolResult // not printable; IsError says that it failed
	Record session.Seq    // /show shows it in full
	Seen   bool           // the user has just allowed it after seeing its diff
	Lines  []string       // the result as plain lines, painted and shortened
}
