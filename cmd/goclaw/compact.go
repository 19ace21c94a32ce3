package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/compact"
	"goclaw/internal/transcript"
	"goclaw/runner"
	"goclaw/session"
)

func (a *app) compactCmd() *cobra.Command {
	var dry, undo, asJSON bool
	cmd := &cobra.Command{
		Use:   "compact KEY [FOCUS]",
		Short: "Fold the past of a conversation into a summary",
		Long: `Folds the past of a conversation into a summary, so that it takes less of the
model's window. Nothing is removed: the summary is a new record, and --undo
takes it back. FOCUS says what the summary should dwell on.`,
		Example: `  goclaw compact main --dry-run         what would be folded, kept and lost
  goclaw compact main "the migration"   dwell on the migration
  goclaw compact main --undo            take the last fold back`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("KEY")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			focus := strings.TrimSpace(strings.Join(args[1:], " "))
			if undo && (dry || focus != "") {
				return usage("--undo stands alone: see goclaw compact --help")
			}
			return a.compact(cmd.Context(), args[0], focus, dry, undo, asJSON)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&undo, "undo", false, "take the last fold back")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object")
	return cmd
}

func (a *app) compact(ctx context.Context, ref, focus string, dry, undo, asJSON bool) error {
	_, in, err := a.find(ctx, ref)
	if err != nil {
		return err
	}
	r, done, err := a.runner(ctx, a.approver(true))
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := a.interruptible(ctx)
	defer stop()
	if undo {
		return a.unfold(ctx, r, in, asJSON)
	}
	if err := a.tellModel(ctx, in); err != nil {
		return err
	}
	if dry {
		cut, err := r.Plan(ctx, in.ID, focus)
		if err != nil {
			return foldError(err, in)
		}
		return a.showReport(cut.DryRun(), asJSON)
	}
	if a.isTerminal(a.err) {
		fmt.Fprintln(a.err, a.style().Dim("folding the past"))
	}
	rec, cut, err := r.Compact(ctx, in.ID, focus)
	if err != nil {
		return foldError(err, in)
	}
	return a.showFold(rec.Record, cut, asJSON)
}

// tellModel says which model the session in is asked with, if it names another
// one last.
func (a *app) tellModel(ctx context.Context, in session.Info) error {
	s, err := session.Open(ctx, a.st, in.ID)
	if err != nil {
		return err
	}
	v, err := a.decideAloud(ctx, s)
	if err != nil {
		return err
	}
	if last, ok := s.LastModel(); ok && last.Name() != v.name() {
		fmt.Fprintln(a.err, a.style().Dim(transcript.Model(v.name(), last.Name())))
	}
	return nil
}

func foldError(err error, in session.Info) error {
	switch {
	case errors.Is(err, runner.ErrNothingToCompact):
		return fmt.Errorf("%s is too short to be folded: there is nothing to gain", in.Key)
	case errors.Is(err, runner.ErrNotCompacted):
		return fmt.Errorf("%s is not folded: there is nothing to undo", in.Key)
	}
	return err
}

func (a *app) unfold(ctx context.Context, r *runner.Runner, in session.Info, asJSON bool) error {
	undone, _, err := r.UndoCompaction(ctx, in.ID)
	if err != nil {
		return foldError(err, in)
	}
	if asJSON {
		return a.printJSON(map[string]any{"key": in.Key, "id": in.ID, "undone": undone.ID})
	}
	_, err = fmt.Fprintf(a.out, "unfolded %s: what record %d had folded is sent again\n", in.Key, undone.Seq)
	return err
}

// compactJSON is what a fold did, or would do. Other programs read it.
type compactJSON struct {
	DryRun         bool     `json:"dryRun"`
	Record         string   `json:"record,omitempty"`
	Compacted      int      `json:"folded"`
	Kept           int      `json:"kept"`
	FirstKept      string   `json:"firstKeptEntryId"`
	TokensBefore   int      `json:"tokensBefore"`
	TokensAfter    int      `json:"tokensAfter"`
	FromCheckpoint string   `json:"fromCheckpoint,omitempty"`
	AsksModel      bool     `json:"asksModel"`
	By             string   `json:"by,omitempty"`
	Extract        bool     `json:"extract,omitempty"`
	InputTokens    int      `json:"inputTokens"`
	OutputTokens   int      `json:"outputTokens"`
	Cost           float64  `json:"cost"`
	Pinned         int      `json:"pinned"`
	OpenRequests   []string `json:"openRequests"`
	Lost           []string `json:"lostIdentifiers"`
	Summary        string   `json:"summary"`
}

func (a *app) showReport(r compact.Report, asJSON bool) error {
	cost := a.voice.cost(r.Cost).Total
	if asJSON {
		return a.printJSON(compactJSON{
			DryRun: true, Compacted: r.Compacted, Kept: r.Kept, FirstKept: r.Keep, TokensBefore: r.Before, TokensAfter: r.After, FromCheckpoint: r.From, AsksModel: r.Asks,
			InputTokens: r.Cost.Input, OutputTokens: r.Cost.Output, Cost: cost, Pinned: r.Pinned, OpenRequests: list(r.Open), Lost: list(r.Lost), Summary: r.Preview,
		})
	}
	for _, line := range transcript.WouldCompact(r, cost) {
		fmt.Fprintln(a.out, line)
	}
	return nil
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (a *app) showFold(rec session.Record, cut compact.Cut, asJSON bool) error {
	c := rec.Body.(session.Compaction)
	if asJSON {
		d := compact.DetailsOf(c)
		return a.printJSON(compactJSON{
			Record: rec.ID, Compacted: cut.Compacted, Kept: cut.Kept, FirstKept: c.FirstKept, TokensBefore: c.TokensBefore, TokensAfter: cut.After, FromCheckpoint: c.FromCheckpoint, AsksModel: cut.Asks,
			By: d.By, Extract: d.Extract, InputTokens: c.Usage.Prompt(), OutputTokens: c.Usage.Output, Cost: c.Usage.Cost.Total, OpenRequests: []string{}, Lost: []string{}, Summary: c.Summary,
		})
	}
	fmt.Fprintln(a.out, transcript.Compacted(c, cut))
	return nil
}
