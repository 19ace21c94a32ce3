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
		Short: "Append what another program has said since in the session that this one continues",
		Long: `An imported session that you go on with continues in a session of goclaw's own.
If its program goes on with it as well, merge appends what was said there to
goclaw's session, with a note that says where and when. Nothing that was said
here changes. KEY is either of the two.`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error { return merge(cmd.Context(), a, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was appended as an object")
	return cmd
}

func merge(ctx context.Context, a *app, ref string, asJSON bool) error {
	st, in, err := a.stores.find(ctx, ref)
	if err != nil {
		return err
	}
	if in.Mirror() {
		mirror := in.Key
		in, err = mirrors.ContinuationOf(ctx, st, in)
		if errors.Is(err, session.ErrNotFound) {
			return fmt.Errorf("nothing was said here in %s yet: there is nothing to merge it into", mirror)
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
