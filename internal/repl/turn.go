package repl

import (
	"context"
	"errors"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
)

// turn sends in to the model, or continues if in is empty, and shows what
// happens until the turn is over.
func (c *Chat) turn(ctx context.Context, in llm.Message) {
	err := c.cur.begin(ctx)
	if err == nil {
		err = c.news(ctx)
	}
	if err != nil {
		c.failed = true
		c.view.problem(err)
		if len(in.Blocks) > 0 {
			c.unsaved(false, err)
		}
		return
	}
	if c.o.Busy != nil {
		defer c.o.Busy()()
	}
	if s, ok := c.in.(steerer); ok {
		defer s.Steering()()
	}
	c.status.begin()
	kept := len(in.Blocks) == 0 // what is continued was recorded before
	stopped, presses, err := c.during(ctx, "preparing", func(ctx context.Context) (failed error) {
		if err := prepare(ctx, c); err != nil {
			return err
		}
		c.view.awaitModel()
		for ev, err := range c.o.Runner.RunSteered(ctx, c.cur.ID, in, steering(c.in, &kept)) {
			if err != nil {
				failed = err
				continue
			}
			if rec, ok := ev.(agent.Recorded); ok {
				kept = kept || session.IsTurn(rec.Record.Body)
			}
			c.show(ev)
		}
		return failed
	})
	if c.o.Interactive {
		defer c.view.screen.Print("")
	}
	switch {
	case err == nil:
		c.leaving = c.leaving || presses > 1
	case stopped && errors.Is(err, context.Canceled):
		if kept {
			c.view.stopped("[stopped; everything so far is saved]")
		} else {
			c.view.stopped("[stopped]")
			c.unsaved(false, err)
		}
		c.armed = true
		c.failed = c.failed || !c.o.Interactive
		c.leaving = c.leaving || !c.o.Interactive || presses > 1
	default:
		c.failed = true
		c.view.problem(err)
		c.unsaved(kept, err)
		if t, ok := c.unfinished(ctx); ok && kept && (t.Waits || len(t.Calls) > 0) && !errors.Is(err, llm.ErrOverflow) {
			c.view.note("  your message is saved: /continue asks again")
		}
	}
}

// prepare waits for what turns need, which Ctrl-C stops as it does the turn.
func prepare(ctx context.Context, c *Chat) error {
	if c.o.Prepare != nil {
		for _, line := range c.o.Prepare(ctx) {
			c.view.note("%s", line)
		}
	}
	return ctx.Err()
}

// steerer is an Input in which messages can be typed for the turn that runs.
type steerer interface {
	Steered() llm.Message    // what was typed since the last call; empty if nothing was
	Steering() (done func()) // a turn runs, and asks for it, until done is called
}

// steering returns what hands a turn the messages that are typed for it; nil if
// there cannot be any. While one is not in the log, kept is false.
func steering(in Input, kept *bool) func() llm.Message {
	from, ok := in.(steerer)
	if !ok {
		return nil
	}
	return func() llm.Message {
		m := from.Steered()
		*kept = *kept && len(m.Blocks) == 0
		return m
	}
}

// unsaved tells what of a turn that failed with err is not in the log: the
// user's message if it was not kept, or what came after it.
func (c *Chat) unsaved(kept bool, err error) {
	switch {
	case !kept && c.o.Interactive:
		c.view.note("  your message is not saved: the arrow up brings it back")
	case !kept:
		c.view.note("  your message is not saved")
	case errors.Is(err, session.ErrMoved), errors.Is(err, session.ErrFull):
		c.view.note("  what was shown last is not saved: copy what you need of it")
	}
}

// during does work that Ctrl-C stops, with a spinner. It reports whether the
// work was stopped, and how often Ctrl-C was pressed.
func (c *Chat) during(ctx context.Context, label string, work func(context.Context) error) (stopped bool, presses int, err error) {
	ctx, end := c.stop.guard(ctx, true)
	done := c.view.busy(label)
	err = work(ctx)
	done()
	stopped = ctx.Err() != nil
	return stopped, end(), err
}

// news reports records that another program has added.
func (c *Chat) news(ctx context.Context) error {
	n, err := c.cur.refresh(ctx)
	if n > 0 {
		c.view.note("another program has added %s to this session: /history shows them", transcript.Count(n, "record"))
	}
	return err
}

// Show shows an event of work that is not a turn.
func (c *Chat) Show(ev agent.Event) { c.view.event(ev) }

// show keeps up with one event of a turn, and shows it.
func (c *Chat) show(ev agent.Event) {
	switch ev := ev.(type) {
	case runner.Switched:
		known := c.told == c.cur.ID
		c.told, c.asked = "", ev.To.Name()
		if known {
			return
		}
	case runner.Continued:
		if c.told == c.cur.ID {
			c.told = ev.To.ID
		}
		c.cur.Info = ev.To
	case agent.Recorded:
		c.cur.Info = ev.Info
	}
	c.status.event(ev)
	c.view.event(ev)
}

// unfinished returns what the session was doing when it was interrupted.
func (c *Chat) unfinished(ctx context.Context) (runner.Interrupted, bool) {
	s, err := c.cur.open(ctx)
	if err != nil {
		return runner.Interrupted{}, false
	}
	return runner.InterruptedIn(s)
}
