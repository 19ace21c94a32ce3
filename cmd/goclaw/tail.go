package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"goclaw/internal/transcript"
	"goclaw/session"
)

func tailCmd(a *app) *cobra.Command {
	var follow, asJSON bool
	var last int
	cmd := &cobra.Command{
		Use:   "tail KEY",
		Short: "Show the latest records, and those to come",
		Args:  exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return tail(cmd.Context(), a, args[0], last, follow, asJSON)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print records as JSON, one per line")
	cmd.Flags().IntVarP(&last, "lines", "n", 10, "start with the last N")
	return cmd
}

func tail(ctx context.Context, a *app, ref string, last int, follow, asJSON bool) error {
	if last < 0 {
		return usage("--lines must not be negative")
	}
	st, in, err := a.stores.find(ctx, ref)
	if err != nil {
		return err
	}
	after := max(in.Last-session.Seq(last), 0)
	recs := st.Read(ctx, in.ID, after)
	if follow {
		recs = session.Follow(ctx, st, in.ID, after)
	}
	for r, err := range undamaged(recs, func(d *session.Damage) { a.damage(d) }) {
		if err != nil {
			return err
		}
		line := fmt.Appendf(nil, "%5d  %s", r.Seq, transcript.Line(r, a.style(), a.width()-7))
		if asJSON {
			if line, err = recordJSON(r); err != nil {
				return err
			}
		}
		if err := a.print(string(line)); err != nil {
			return err
		}
	}
	return nil
}
