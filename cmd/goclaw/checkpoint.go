package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"goclaw/session"
)

// checkpointLimit is how long a process that makes a checkpoint may run. It may
// have to wait for the end of a long turn.
const checkpointLimit = 30 * time.Minute

// checkpointCmd is what chat and ask start as a separate process, so that
// the user does not wait for a checkpoint, and none that was paid for is lost.
func checkpointCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "checkpoint ID",
		Short:  "Make the checkpoint that is due in a session",
		Hidden: true,
		Args:   exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			defer time.AfterFunc(checkpointLimit+time.Minute, func() { os.Exit(1) }).Stop()
			ctx, cancel := context.WithTimeout(cmd.Context(), checkpointLimit)
			defer cancel()
			a.stores.NoImport, a.spawn = true, nil
			r, err := newTurns(ctx, a, nil)
			if err != nil {
				return err
			}
			defer r.close()
			_, err = r.Finish(ctx, session.ID(args[0]))
			return err
		},
	}
}

// detach starts a process that makes the checkpoint that is due in a session.
func detach(a *app, id session.ID) bool {
	if a.spawn == nil {
		return false
	}
	args := []string{"checkpoint", string(id)}
	if a.models.Flag != "" {
		args = append(args, "--model", a.models.Flag)
	}
	a.tellWorking(id, true)
	ended := func() { a.tellWorking(id, false) }
	if a.spawn(ended, args...) != nil {
		ended()
		return false
	}
	return true
}

// tellWorking tells the chat that a checkpoint is being made for a session, or no
// longer.
func (a *app) tellWorking(id session.ID, on bool) {
	if tell := a.working.Load(); tell != nil {
		(*tell)(id, on)
	}
}
