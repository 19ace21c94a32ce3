package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"goclaw/internal/asjson"
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
	st, in, err := a.stores.Find(ctx, ref)
	if err != nil {
		return err
	}
	show := func(r session.Record) error {
		line := fmt.Appendf(nil, "%5d  %s", r.Seq, transcript.Line(r, a.style(), a.width()-7))
		if asJSON {
			var err error
			if line, err = asjson.Record(r); err != nil {
				return err
			}
		}
		return a.print(string(line))
	}
	var parts session.Joiner
	var recent []session.Record
	undamaged := func(recs iter.Seq2[session.Record, error]) iter.Seq2[session.Record, error] {
		return session.Undamaged(recs, func(d *session.Damage) { a.damage(d) })
	}
	from := max(in.Last-session.Seq(last+maxParts), 0)
	for r, err := range undamaged(st.Read(ctx, in.ID, from)) {
		if err != nil {
			return err
		}
		in.Last = r.Seq
		recent = append(recent, parts.Next(r)...)
	}
	if !follow {
		recent = append(recent, parts.End()...)
	}
	for _, r := range recent[max(len(recent)-last, 0):] {
		if err := show(r); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	if in.Mirror() {
		defer a.stores.Follow(ctx, st, func(string) {})()
	}
	for r, err := range undamaged(session.Follow(ctx, st, in.ID, in.Last)) {
		if err != nil {
			return err
		}
		for _, r := range parts.Next(r) {
			if err := show(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxParts is how many records the parts of one answer may be: tail looks so far
// back to show them as one.
const maxParts = 1100
