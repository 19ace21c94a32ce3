package repl

import (
	"context"
	"errors"
	"strings"

	"goclaw/internal/transcript"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// context shows how full the window is, and of what.
func (r *REPL) context(ctx context.Context, _ string) error {
	s, err := r.opened(ctx)
	if err != nil {
		return err
	}
	m := r.Model()
	x := window.Explain(s, m.Prompt, m.Tokens, m.Budget)
	if r.Spent != nil {
		if x.Cost, err = r.Spent(ctx, s.ID); err != nil {
			return err
		}
	}
	bar := 40
	if c := r.columns(); c > 0 {
		bar = min(bar, c-2)
	}
	for i, line := range transcript.Window(x, bar) {
		if i > 0 {
			line = r.Style.Dim(line)
		}
		r.print("%s", line)
	}
	if at, _, ok := s.Compaction(); ok {
		r.note("  record %d folds what was said before the last turns: /undo takes it back", s.Branch[at].Seq)
	}
	return nil
}

// compact folds the past, or says what that would do.
func (r *REPL) compact(ctx context.Context, arg string) error {
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
	if r.cur.ID == "" {
		return foldError(runner.ErrNothingToCompact)
	}
	if dry {
		cut, err := r.Runner.Plan(ctx, r.cur.ID, focus)
		if err != nil {
			return foldError(err)
		}
		rep, cost := cut.DryRun(), 0.0
		if m := r.Model(); m.Cost != nil && rep.Asks {
			cost = m.Cost(rep.Cost)
		}
		for _, line := range transcript.WouldCompact(rep, cost) {
			r.print("%s", line)
		}
		return nil
	}
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.cancel, r.inTurn, r.stops = cancel, true, 0
	r.mu.Unlock()
	r.screen.waiting("folding the past")
	stop := r.screen.spin()
	rec, cut, err := r.Runner.Compact(tctx, r.cur.ID, focus)
	stop()
	r.screen.finish()
	r.mu.Lock()
	r.cancel, r.inTurn = nil, false
	r.mu.Unlock()
	if err != nil {
		if tctx.Err() != nil && ctx.Err() == nil {
			r.note("[stopped; nothing was folded]")
			return nil
		}
		return foldError(err)
	}
	r.cur = rec.Info
	r.note("%s; /undo takes it back", transcript.Compacted(rec.Record.Body.(session.Compaction), cut))
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
func (r *REPL) undo(ctx context.Context, _ string) error {
	if r.cur.ID == "" {
		return foldError(runner.ErrNotCompacted)
	}
	undone, now, err := r.Runner.UndoCompaction(ctx, r.cur.ID)
	if err != nil {
		return foldError(err)
	}
	r.cur = now
	r.note("what record %d had folded is sent again", undone.Seq)
	return nil
}

// checkpoints lists the summaries that were made ahead of time.
func (r *REPL) checkpoints(ctx context.Context, _ string) error {
	s, err := r.whole(ctx)
	if err != nil {
		return err
	}
	for _, line := range transcript.Checkpoints(s, r.Style) {
		r.print("%s", line)
	}
	return nil
}
