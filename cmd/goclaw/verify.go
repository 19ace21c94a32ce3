package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func verifyCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [KEY...]",
		Short: "Read every record of sessions and report damage",
		Long: `Reads every record of sessions, all of them or those of KEY..., compares it
with its checksum, and reports what is damaged, missing or has changed since it
was written. Changes nothing. Records of older versions have no checksum.
Exits 0 when all is well, 1 when not.`,
		RunE: func(cmd *cobra.Command, args []string) error { return verifyAll(cmd.Context(), a, args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	return cmd
}

// verdict is a session in the output of verify --json.
type verdict struct {
	Key      session.Key `json:"key"`
	ID       session.ID  `json:"id"`
	Records  int         `json:"records"`
	Problems []string    `json:"problems"`
}

func verifyAll(ctx context.Context, a *app, refs []string, asJSON bool) error {
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	infos, err := a.lists.findAll(ctx, st, refs, false)
	if err != nil {
		return err
	}
	bad, verdicts := 0, []verdict{}
	for _, in := range infos {
		v := verdict{in.Key, in.ID, in.Records, verify(ctx, stores.Whole(st), in)}
		if len(v.Problems) > 0 {
			bad++
		}
		verdicts = append(verdicts, v)
		for _, p := range v.Problems {
			if !asJSON {
				fmt.Fprintf(a.out, "%s (%s): %s\n", transcript.Name(v.Key), transcript.Name(v.ID), transcript.Name(p))
			}
		}
	}
	err = a.result(asJSON, verdicts, "%s verified, %d damaged", transcript.Count(len(infos), "session"), bad)
	if err == nil && bad > 0 {
		err = errQuiet
	}
	return err
}

// verify reads one log from its first record and says what is wrong with it.
func verify(ctx context.Context, st stores.Store, in session.Info) []string {
	problems := []string{}
	s, err := session.Replay(in.ID, st.ReadChecked(ctx, in.ID))
	if err != nil {
		return append(problems, err.Error())
	}
	for _, d := range s.Damage {
		problems = append(problems, d.Error())
	}
	s.Trashed = in.Trashed
	if s.Info != in {
		problems = append(problems, "the index differs from the log: goclaw doctor --fix rebuilds it")
	}
	return problems
}
