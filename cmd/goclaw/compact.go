package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/compact"
	"goclaw/internal/asjson"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/runner"
	"goclaw/session"
)

// compactFlags say how a session is compacted.
type compactFlags struct {
	focus             string
	dry, undo, asJSON bool
}

func compactCmd(a *app) *cobra.Command {
	var f compactFlags
	cmd := &cobra.Command{
		Use:   "compact KEY [FOCUS]",
		Short: "Replace the earlier turns of a session with a summary",
		Long: `Replaces the earlier turns of a session with a summary, so that it takes less of the
model's window. Nothing is removed: the summary is a new record, which --undo
reverts. FOCUS says what the summary should stress.`,
		Example: `  goclaw compact trip --dry-run         what would be compacted, kept and lost
  goclaw compact trip "the migration"   with a focus on the migration
  goclaw compact trip --undo            undo the last compaction`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("KEY")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.focus = strings.TrimSpace(strings.Join(args[1:], " "))
			if f.undo && (f.dry || f.focus != "") {
				return usage("--undo cannot be combined with FOCUS or --dry-run: see goclaw compact --help")
			}
			return compactSession(cmd.Context(), a, args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&f.undo, "undo", false, "undo the last compaction")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print an object")
	return cmd
}

func compactSession(ctx context.Context, a *app, ref string, f compactFlags) error {
	_, in, err := a.stores.Find(ctx, ref)
	if err != nil {
		return err
	}
	r, err := newTurns(ctx, a, nil)
	if err != nil {
		return err
	}
	defer r.close()
	ctx, stop := a.interruptible(ctx)
	defer stop()
	if f.undo {
		undone, _, err := r.UndoCompaction(ctx, in.ID)
		if err != nil {
			return compactError(err, in)
		}
		return a.result(f.asJSON, map[string]any{"key": in.Key, "id": in.ID, "undone": undone.ID},
			"undid the compaction of %s: what record %d had replaced is sent again", in.Key, undone.Seq)
	}
	if err := tellModel(ctx, a, in); err != nil {
		return err
	}
	cut, err := r.Plan(ctx, in.ID, f.focus)
	if err != nil {
		return compactError(err, in)
	}
	if f.dry {
		if f.asJSON {
			return a.printJSON(asjson.Plan(cut.DryRun()))
		}
		return a.print(transcript.WouldCompact(cut.DryRun())...)
	}
	if ok, err := a.agreed(cut); !ok || err != nil {
		return err
	}
	rec, cut, err := r.Compact(ctx, in.ID, f.focus)
	if err != nil {
		return compactError(err, in)
	}
	c := rec.Record.Body.(session.Compaction)
	return a.result(f.asJSON, asjson.Compacted(rec.Record.ID, c, cut), "%s", transcript.Compacted(c, cut))
}

// agreed says what a summary costs, before it is made, and asks if that is much
// and there is somebody to ask.
func (a *app) agreed(cut compact.Cut) (bool, error) {
	price := transcript.Price(cut.Uses)
	if price == "" {
		return true, nil
	}
	a.note("the summary takes %s", price)
	if cut.Uses.Cost.Total <= a.conf.Session.Compaction.AskAbove || !terminal.Is(a.in) {
		return true, nil
	}
	if a.confirm("Make it?") {
		return true, nil
	}
	return false, a.print("nothing was compacted")
}

// tellModel decides which model the session in is asked with, and tells the user
// if the session last used another one.
func tellModel(ctx context.Context, a *app, in session.Info) error {
	s, err := session.Open(ctx, a.stores.Store, in.ID)
	if err != nil {
		return err
	}
	a.models.Ask = asker(a.env)
	m, err := a.models.DecideOnce(ctx, s)
	if err != nil {
		return err
	}
	if last, ok := s.LastModel(); ok && last.Name() != m.Name() {
		a.note("%s", transcript.Model(m.Name(), last.Name()))
	}
	return nil
}

func compactError(err error, in session.Info) error {
	switch {
	case errors.Is(err, runner.ErrNothingToCompact):
		return fmt.Errorf("%s is too short to be compacted: there is nothing to gain", in.Key)
	case errors.Is(err, runner.ErrNotCompacted):
		return fmt.Errorf("%s is not compacted: there is nothing to undo", in.Key)
	}
	return err
}
