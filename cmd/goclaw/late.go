package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"goclaw/session"
)

// checkpointLimit is how long a process that makes a checkpoint may live. It may
// have to wait for the end of a long turn.
const checkpointLimit = 30 * time.Minute

// checkpointCmd is what the chat and ask start as a process of its own, so that
// nobody waits for a checkpoint and none that was paid for is thrown away.
func (a *app) checkpointCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "checkpoint ID",
		Short:  "Make the checkpoint that is due in a session",
		Hidden: true,
		Args:   exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			defer time.AfterFunc(checkpointLimit+time.Minute, func() { os.Exit(1) }).Stop()
			ctx, cancel := context.WithTimeout(cmd.Context(), checkpointLimit)
			defer cancel()
			a.noInherit, a.spawn = true, nil
			r, done, err := a.runner(ctx, nil)
			if err != nil {
				return err
			}
			defer done()
			_, err = r.Finish(ctx, session.ID(args[0]))
			return err
		},
	}
}

// detach starts a process that makes what is due in the session id.
func (a *app) detach(id session.ID) bool {
	if a.spawn == nil {
		return false
	}
	args := []string{"checkpoint", string(id)}
	if a.model != "" {
		args = append(args, "--model", a.model)
	}
	return a.spawn(args...) == nil
}
