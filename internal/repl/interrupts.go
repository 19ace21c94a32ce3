package repl

import (
	"context"
	"sync"
	"time"

	"goclaw/internal/repl/line"
)

// grace is how long a turn may take to end after the second Ctrl-C.
const grace = 2 * time.Second

// interrupts makes Ctrl-C end whatever is under way: the reading of a line, or
// work, which is a turn or a compaction.
type interrupts struct {
	abort func() // ends the program; nil: work is always waited for

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the work or the line under way
	working bool
	presses int  // during this work
	pressed bool // while there was nothing to stop
}

// guard returns a context that Ctrl-C ends. end gives up the guard and returns
// how often Ctrl-C was pressed during the work.
func (i *interrupts) guard(ctx context.Context, work bool) (_ context.Context, end func() int) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	if work {
		i.working, i.presses = true, 0
		if i.pressed { // since the line was read that asks for this work
			i.pressed, i.presses = false, 1
			cancel(line.ErrInterrupt)
		}
	} else {
		pressed := i.pressed
		i.pressed = false
		if i.working { // a question within a turn ends with the turn
			return ctx, func() int { cancel(nil); return 0 }
		}
		if pressed {
			cancel(line.ErrInterrupt)
		}
	}
	i.cancel = cancel
	return ctx, func() int {
		cancel(nil)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.cancel, i.working = nil, false
		return i.presses
	}
}

// press is Ctrl-C.
func (i *interrupts) press() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cancel == nil { // between two lines: it is meant for the next one
		i.pressed = true
		return
	}
	i.cancel(line.ErrInterrupt)
	if !i.working {
		return
	}
	i.presses++
	switch {
	case i.abort == nil || i.presses < 2:
	case i.presses == 2:
		time.AfterFunc(grace, i.abort)
	default:
		go i.abort()
	}
}
