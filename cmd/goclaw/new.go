package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/asjson"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func newCmd(a *app) *cobra.Command {
	var title string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new [KEY]",
		Short: "Start a new session",
		Long:  "Starts a new session under KEY, or under the default key. An older session with the same key is kept and can be opened by its id.",
		Args:  atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newSession(cmd.Context(), a, args, title, asJSON)
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "its title")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

func newSession(ctx context.Context, a *app, args []string, title string, asJSON bool) error {
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	key := session.Key(a.conf.Session.DefaultKey)
	if len(args) > 0 {
		key = session.Key(args[0])
	}
	if len(args) > 0 && !key.Complete() && key != session.Key(a.conf.Session.DefaultKey) {
		return &usageError{&naming.KeyError{Text: args[0]}}
	}
	cwd, _ := os.Getwd()
	stillThere := replaced(ctx, a, key)
	s, err := session.Begin(ctx, st, session.Header{Key: key, CWD: cwd}, session.System{})
	if err != nil {
		return err
	}
	stillThere()
	if title != "" {
		if err := retitle(ctx, st, s, title); err != nil {
			return err
		}
	}
	return a.result(asJSON, asjson.SessionOf(s.Info), "started %s (%s)", s.Key, s.ID)
}

// replaced returns a function that tells where the session is that key names
// now; it is called when key names another one.
func replaced(ctx context.Context, a *app, key session.Key) func() {
	old, err := session.Current(ctx, a.stores.Store, key)
	return func() {
		if err == nil && key != "" {
			transcript.Say(a.err, "the previous session of %s is still there, as %s", key, old.ID)
		}
	}
}

func retitle(ctx context.Context, st session.Store, s *session.Session, title string) error {
	_, err := session.Keep(ctx, st, s, s.Next(session.Title{Title: title}, session.System{}), session.System{})
	return err
}

func renameCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rename KEY TITLE",
		Short: "Give a session a title",
		Args:  exactly("KEY", "TITLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rename(cmd.Context(), a, args[0], strings.TrimSpace(args[1]), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

func rename(ctx context.Context, a *app, ref, title string, asJSON bool) error {
	st, in, err := a.stores.Find(ctx, ref)
	if err != nil {
		return err
	}
	if title == "" {
		return usage("TITLE must not be empty")
	}
	s, err := session.Open(ctx, st, in.ID)
	if err != nil {
		return err
	}
	if err := retitle(ctx, st, s, title); err != nil {
		return err
	}
	return a.result(asJSON, asjson.SessionOf(s.Info), "%s is now called %q", s.Key, title)
}
