package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"goclaw/internal/mirrors"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func mergeCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge KEY",
		Short: "Add new messages from the imported session that this one continues",
		Long: `When you reply in an imported session, goclaw continues it in a session of its
own. If the other program adds messages too, merge appends them here, with a
note of where and when they were said. Nothing that was said here changes. KEY
names either session.`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error { return merge(cmd.Context(), a, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was appended as an object")
	return cmd
}

func merge(ctx context.Context, a *app, ref string, asJSON bool) error {
	st, in, err := a.stores.Find(ctx, ref)
	if err != nil {
		return err
	}
	if in.Mirror() {
		mirror := in.Key
		in, err = mirrors.ContinuationOf(ctx, st, in)
		if errors.Is(err, session.ErrNotFound) {
			return fmt.Errorf("you have not said anything in %s yet: there is no session to merge into", mirror)
		}
		if err != nil {
			return err
		}
	}
	mirror, _, err := mirrors.NewSince(ctx, st, in)
	if err != nil {
		return err
	}
	if mirror.ID == "" {
		return fmt.Errorf("%s does not continue another program's session", in.Key)
	}
	n, err := mirrors.Merge(ctx, st, in, session.System{})
	if err != nil {
		return err
	}
	return a.result(asJSON, map[string]any{"key": in.Key, "id": in.ID, "from": mirror.Key, "messages": n},
		"%s", transcript.Printable(transcript.Merged(mirror, in, n)))
}
