package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/spending"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/window"
)

func usageCmd(a *app) *cobra.Command {
	var by, since string
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show the tokens and dollars used, by day and model",
		Long: `Adds up the tokens and the dollars of all sessions, from their records alone:
answers, summaries and checkpoints. What was copied into a fork is counted once,
and what other programs paid for only with --imported. Dollars are counted as
far as prices are known.`,
		Example: `  goclaw usage                  the last 30 days
  goclaw usage --by model       the same, a line for each model
  goclaw usage --since 2026-01-01 --json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"day", "model", "session", "both"}, by) {
				return usage("--by must be day, model, session or both, not %q", by)
			}
			from, err := recall.Moment(since, time.Now())
			if err != nil {
				return usage("--since %v", err)
			}
			return showUsage(cmd.Context(), a, by, from, all, asJSON)
		},
	}
	cmd.Flags().StringVar(&by, "by", "both", "a line for each day, model, session, or day and model (both)")
	cmd.Flags().StringVar(&since, "since", "30d", "from when on: 2026-08-01, yesterday, 7d")
	cmd.Flags().BoolVar(&all, "imported", false, "also what other programs used")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	return cmd
}

func showUsage(ctx context.Context, a *app, by string, from time.Time, imported, asJSON bool) error {
	st, err := a.stores.Imported(ctx)
	if err != nil {
		return err
	}
	lines, err := spending.Since(ctx, st, a.conf, by, from, imported)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(lines)
	}
	if len(lines) == 0 {
		return a.print("no model was asked since " + from.Format(time.DateOnly))
	}
	table := [][]string{{"DAY", "MODEL", "CALLS", "INPUT", "CACHED", "OUTPUT", "COST"}}
	if by == "session" {
		table[0][1] = "SESSION"
	}
	var sum spending.Line
	row := func(u spending.Line) {
		name := cmp.Or(u.Model, string(u.Session))
		table = append(table, []string{u.Day, transcript.OneLine(transcript.Name(name), 40), fmt.Sprint(u.Calls),
			window.Short(u.Input + u.CacheWrite), window.Short(u.CacheRead), window.Short(u.Output), transcript.Dollars(u.Cost)})
	}
	for _, u := range lines {
		row(u)
		sum.Calls, sum.Cost = sum.Calls+u.Calls, sum.Cost+u.Cost
		sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite = sum.Input+u.Input, sum.Output+u.Output, sum.CacheRead+u.CacheRead, sum.CacheWrite+u.CacheWrite
	}
	sum.Day = "total"
	row(sum)
	return a.print(transcript.Table(table, a.style(), a.columns())...)
}
