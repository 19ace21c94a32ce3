package repl

import (
	"context"
	"errors"
	"strings"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// context shows how full the window is, and of what.
func (c *commands) context(ctx context.Context, _ string) error {
	s, err := c.cur.open(ctx)
	if err != nil {
		return err
	}
	m := c.o.Model()
	x := window.Explain(s, m.Prompt, m.Tokens, m.Budget)
	if c.o.Spent != nil {
		if x.Cost, err = c.o.Spent(ctx, s.ID); err != nil {
			return err
		}
	}
	c.view.window(x)
	if at, _, ok := s.Compaction(); ok {
		c.view.note("  record %d folds what was said before the last turns: /undo takes it back", s.Branch[at].Seq)
	}
	return nil
}

// compact folds the past, or says what that would do.
func (c *commands) compact(ctx context.Context, arg string) error {
	dry, text := false, false
	var words []string
	for _, w := range strings.Fields(arg) {
		switch {
		case !text && w == "--":
			text = true
		case !text && w == "--dry-run":
			dry = true
		default:
			words = append(words, w)
		}
	}
	focus := strings.Join(words, " ")
	if c.cur.ID == "" {
		return foldError(runner.ErrNothingToCompact)
	}
	if dry {
		cut, err := c.o.Runner.Plan(ctx, c.cur.ID, focus)
		if err != nil {
			return foldError(err)
		}
		rep, cost := cut.DryRun(), 0.0
		if m := c.o.Model(); m.Cost != nil && rep.Asks {
			cost = m.Cost(rep.Cost)
		}
		for _, line := range transcript.WouldCompact(rep, cost) {
			c.view.print("%s", line)
		}
		return nil
	}
	var rec agent.Recorded
	var cut compact.Cut
	stopped, _, err := c.chat.during(ctx, "folding the past", func(ctx context.Context) (err error) {
		rec, cut, err = c.o.Runner.Compact(ctx, c.cur.ID, focus)
		return err
	})
	if err != nil {
		if stopped && ctx.Err() == nil {
			c.view.note("[stopped; nothing was folded]")
			return nil
		}
		return foldError(err)
	}
	c.cur.Info = rec.Info
	c.view.note("%s; /undo takes it back", transcript.Compacted(rec.Record.Body.(session.Compaction), cut))
	return nil
}

func foldError(err error) error {
	switch {
	case errors.Is(err, runner.ErrNothingToCompact):
		return errors.New("this session is too short to be folded")
	case errors.Is(err, runner.ErrNotCompacted):
		return errors.New("nothing is folded: there is nothing to undo")
	}
	return err
}

// undo takes the last fold back.
func (c *commands) undo(ctx context.Context, _ string) error {
	if c.cur.ID == "" {
		return foldError(runner.ErrNotCompacted)
	}
	undone, now, err := c.o.Runner.UndoCompaction(ctx, c.cur.ID)
	if err != nil {
		return foldError(err)
	}
	c.cur.Info = now
	c.view.note("what record %d had folded is sent again", undone.Seq)
	return nil
}

// checkpoints lists the summaries that were made ahead of time.
func (c *commands) checkpoints(ctx context.Context, _ string) error {
	s, err := c.cur.whole(ctx)
	if err != nil {
		return err
	}
	c.view.checkpoints(s)
	return nil
}
