package tool

import "context"

// Request asks permission to run a command.
type Request struct {
	Tool    string // who wants to run it
	Command string // exactly what will be run; it may hold line breaks and control characters
	Dir     string // where
	// Private: the command names something that the Fence protects. It is asked about
	// each time: Always counts as Once.
	Private bool
}

// Decision answers a Request.
type Decision int

const (
	No     Decision = iota // not this time
	Once                   // this time
	Always                 // this time, and whenever the very same command comes again
)

func (d Decision) String() string {
	switch d {
	case Once:
		return "once"
	case Always:
		return "always"
	}
	return "no"
}

// Approver decides whether a command may run. It is asked one question at a
// time. An error counts as No.
type Approver interface {
	Approve(ctx context.Context, r Request) (Decision, error)
}

// ApproverFunc is a function that is an Approver.
type ApproverFunc func(ctx context.Context, r Request) (Decision, error)

// Approve calls f.
func (f ApproverFunc) Approve(ctx context.Context, r Request) (Decision, error) { return f(ctx, r) }
