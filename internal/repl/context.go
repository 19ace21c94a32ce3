package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// context shows how full the window is, and of what.
func (r *REPL) context(ctx context.Context, _ string) error {
	s, err := session.Open(ctx, r.Store, r.cur.ID)
	if err != nil {
		return err
	}
	m := r.Model()
	for i, line := range transcript.Window(window.Explain(s, m.Prompt, m.Tokens, m.Budget, m.Cost), 40) {
		if i > 0 {
			line = r.Style.Dim(line)
		}
		r.print("%s", line)
	}
	if at, _, ok := s.Fold(); ok {
		r.note("  record %d folds what was said before the last turns: /undo takes it back", s.Branch[at].Seq)
	}
	return nil
}

// maxLost is how many identifiers a dry run names.
const maxLost = 20

// compact folds the past, or says what that would do.
func (r *REPL) compact(ctx context.Context, arg string) error {
	focus, dry := strings.CutPrefix(arg, "--dry-run")
	if dry && focus != "" && focus[0] != ' ' {
		return fmt.Errorf("/compact does not know %q", arg)
	}
	focus = strings.TrimSpace(focus)
	if dry {
		cut, err := r.Runner.Plan(ctx, r.cur.ID, focus)
		if err != nil {
			return foldError(err)
		}
		r.report(cut.DryRun())
		return nil
	}
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.cancel, r.inTurn, r.stops = cancel, true, 0
	r.mu.Unlock()
	r.screen.waiting("folding the past")
	stop := r.screen.spin()
	rec, cut, err := r.Runner.Fold(tctx, r.cur.ID, focus)
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
	r.cur.Last, r.cur.Updated = rec.Seq, rec.Time
	c := rec.Body.(session.Compaction)
	by := ""
	switch d := compact.DetailsOf(c); {
	case d.Extract:
		by = " (an extract: no model was there to summarise)"
	case !cut.Asks:
		by = " (the summary of a checkpoint)"
	}
	r.note("folded %s, kept %s: %s tokens before, about %s now%s; /undo takes it back",
		count(cut.Folded, "message"), count(cut.Kept, "message"), window.Short(c.TokensBefore), window.Short(cut.After), by)
	return nil
}

func (r *REPL) report(rep compact.Report) {
	r.print("would fold %s and keep %s", count(rep.Folded, "message"), count(rep.Kept, "message"))
	r.print("tokens: %s now, about %s then", window.Short(rep.Before), window.Short(rep.After))
	if !rep.Asks {
		r.print("no model is asked: a checkpoint has the summary")
	} else {
		cost := ""
		if m := r.Model(); m.Cost != nil {
			if usd := m.Cost(rep.Cost); usd > 0 {
				cost = fmt.Sprintf(", $%.4f", usd)
			}
		}
		r.print("to summarise: about %s tokens in, %s out%s", window.Short(rep.Cost.Input), window.Short(rep.Cost.Output), cost)
	}
	if rep.Pinned > 0 {
		r.print("%s would be kept word for word", count(rep.Pinned, "pinned message"))
	}
	for _, q := range rep.Open {
		r.print("open request kept: %s", transcript.OneLine(transcript.Printable(q), 100))
	}
	if len(rep.Lost) == 0 {
		r.print("no identifier would be lost")
		return
	}
	more := ""
	if n := len(rep.Lost) - maxLost; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	r.print("identifiers that a summary may lose (they stay searchable): %s%s", transcript.Printable(strings.Join(rep.Lost[:min(len(rep.Lost), maxLost)], ", ")), more)
}

func foldError(err error) error {
	switch {
	case errors.Is(err, runner.ErrNothingToFold):
		return errors.New("this session is too short to be folded")
	case errors.Is(err, runner.ErrNotFolded):
		return errors.New("nothing is folded: there is nothing to undo")
	}
	return err
}

// undo takes the last fold back.
func (r *REPL) undo(ctx context.Context, _ string) error {
	undone, err := r.Runner.Unfold(ctx, r.cur.ID)
	if err != nil {
		return foldError(err)
	}
	if in, err := session.Stat(ctx, r.Store, r.cur.ID); err == nil {
		r.cur = in
	}
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
