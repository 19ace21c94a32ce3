package main

import (
	"context"

	"github.com/spf13/cobra"

	"goclaw/internal/asjson"
	"goclaw/internal/naming"
	"goclaw/session"
)

func forkCmd(a *app) *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fork KEY [NEW-KEY]",
		Short: "Continue a session in a copy",
		Long: `Copies the live branch of a session into a new one; with --at up to that
record. If a search found the record on another branch, that branch is copied.`,
		Example: `  goclaw sessions fork trip                     all of it
  goclaw sessions fork trip --at 12             up to record 12 of goclaw sessions show trip --records
  goclaw sessions fork trip main:cli:b --at 12  under a key of your choice`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("KEY")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var key session.Key
			if len(args) == 2 {
				key = session.Key(args[1])
			}
			return fork(cmd.Context(), a, args[0], key, at, asJSON)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the last record to take: its number, as show --records and search print it, its id, or the beginning of its id")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the new session as an object")
	return cmd
}

func fork(ctx context.Context, a *app, ref string, key session.Key, at string, asJSON bool) error {
	st, s, err := a.stores.Replay(ctx, ref, &at)
	if err != nil {
		return err
	}
	stillThere := replaced(ctx, a, key)
	var last session.Seq
	if at != "" {
		if last, err = naming.Locate(st.Read(ctx, s.ID, 0), s.Info, at); err != nil {
			return noRecord(err, s.ID)
		}
	}
	f, err := session.Fork(ctx, st, s, key, last, session.System{})
	if err != nil {
		return err
	}
	stillThere()
	return a.result(asJSON, asjson.SessionOf(f.Info), "forked %s as %s (%s)", s.Key, f.Key, f.ID)
}
