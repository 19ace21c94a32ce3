package repl

import (
	"context"
	"errors"
	"strings"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/llm"
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
	if c.o.Spent != nil && c.cur.ID != "" {
		if x.Cost, err = c.o.Spent(ctx, s.ID); err != nil {
			return err
		}
	}
	c.view.window(x, m.Name)
	if c.o.Skills != nil {
		_, problems := c.o.Skills()
		c.short.wrong(problems)
	}
	if at, _, ok := s.Compaction(); ok {
		c.view.note("  record %d is a summary of the earlier turns: /undo brings them back", s.Branch[at].Seq)
	}
	return nil
}

// compactions are the commands about them.
type compactions struct {
	o    *Options
	chat *Chat
	cur  *current
	view *view
}

// compact compacts the session, or says what that would do.
func (c *compactions) compact(ctx context.Context, arg string) error {
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
		return compactError(runner.ErrNothingToCompact)
	}
	plan, err := c.o.Runner.Plan(ctx, c.cur.ID, focus)
	if err != nil {
		return compactError(err)
	}
	if !c.wanted(ctx, plan, dry) {
		return nil
	}
	var rec agent.Recorded
	var cut compact.Cut
	stopped, _, err := c.chat.during(ctx, "compacting", func(ctx context.Context) (err error) {
		rec, cut, err = c.o.Runner.Compact(ctx, c.cur.ID, focus)
		return err
	})
	if err != nil {
		if stopped && ctx.Err() == nil {
			c.view.note("[stopped; nothing was compacted]")
			return nil
		}
		return compactError(err)
	}
	c.cur.Info = rec.Info
	c.chat.status.compacted(rec.Record.Body.(session.Compaction).TokensBefore)
	c.view.note("%s; /undo brings them back", transcript.Compacted(rec.Record.Body.(session.Compaction), cut))
	return nil
}

// wanted shows what plan would do, and reports whether that is to be done. A
// picture is followed by the question; a dry run in plain lines is only shown.
func (c *compactions) wanted(ctx context.Context, plan compact.Cut, dry bool) bool {
	dear := plan.Uses.Cost.Total > c.o.AskAbove && c.o.Interactive
	pictured, gains := false, true
	if dry || dear {
		report := plan.DryRun()
		if gains = report.After < report.Before; plan.Uses.Total() == 0 {
			report.Cost = llm.Usage{} // it asks no model
		}
		pictured = c.view.compaction(report, c.o.Model().Budget, dry)
	}
	question := "Make it?"
	switch {
	case dry && (!pictured || !gains):
		return false
	case dry:
		question = "Compact now?"
	default:
		if price := transcript.Price(plan.Uses); price != "" && !pictured {
			c.view.note("the summary takes %s", price)
		}
	}
	if !dry && !dear {
		return true
	}
	if yes, err := c.chat.Confirm(ctx, question); err != nil || !yes {
		c.view.note("[nothing was compacted]")
		return false
	}
	return true
}

func compactError(err error) error {
	switch {
	case errors.Is(err, runner.ErrNothingToCompact):
		return errors.New("this session is too short to compact")
	case errors.Is(err, runner.ErrNotCompacted):
		return errors.New("nothing is compacted: there is nothing to undo")
	}
	return err
}

// undo undoes the last compaction.
func (c *compactions) undo(ctx context.Context, _ string) error {
	if c.cur.ID == "" {
		return compactError(runner.ErrNotCompacted)
	}
	undone, now, err := c.o.Runner.UndoCompaction(ctx, c.cur.ID)
	if err != nil {
		return compactError(err)
	}
	c.cur.Info = now
	c.chat.status.restored()
	c.view.note("the compaction in record %d is undone: the earlier turns are sent again", undone.Seq)
	return nil
}

// checkpoints lists the summaries made in advance.
func (c *compactions) checkpoints(ctx context.Context, _ string) error {
	s, err := c.cur.whole(ctx)
	if err != nil {
		return err
	}
	if ch, texts := c.view.chooser(), checkpointTexts(s); ch != nil && len(texts) > 0 {
		return ch.ShowTexts(ctx, texts, len(texts)-1)
	}
	c.view.checkpoints(s)
	return nil
}
