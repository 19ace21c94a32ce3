package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/asjson"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func deleteCmd(a *app) *cobra.Command {
	var purge, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "delete KEY",
		Short: "Move a session to the trash",
		Long:  "Moves a session to the trash; restore brings it back. --purge removes it for good, also from the search index and from the input history, and asks first.",
		Args:  exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return deleteSession(cmd.Context(), a, args[0], purge, yes, asJSON)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove it for good")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

func deleteSession(ctx context.Context, a *app, ref string, purgeIt, yes, asJSON bool) error {
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	in, trashed, err := findToDelete(ctx, st, ref, purgeIt, a.lists.Last())
	if err != nil {
		return err
	}
	if purgeIt {
		if err := confirmPurge(ctx, a, in, ref, yes); err != nil {
			return err
		}
	}
	if !trashed {
		if err := st.Delete(ctx, in.ID); err != nil {
			return err
		}
	}
	if !purgeIt {
		if err := a.search.prune(ctx); err != nil {
			return err
		}
		return a.result(asJSON, asjson.SessionOf(in), "moved %s (%s) to the trash: goclaw sessions restore %s brings it back", in.Key, in.ID, in.ID)
	}
	if err := purge(ctx, a, st, in); err != nil {
		return err
	}
	if p := in.Origin.Path; p != "" {
		transcript.Say(a.err, "it came from %s, which stays: an import takes it again only with --again", p)
	}
	return a.result(asJSON, asjson.SessionOf(in), "removed %s (%s) for good", in.Key, in.ID)
}

// confirmPurge makes sure that the user means the session in by ref.
func confirmPurge(ctx context.Context, a *app, in session.Info, ref string, yes bool) error {
	switch {
	case yes && !strings.HasPrefix(string(in.Key), ref) && !strings.HasPrefix(string(in.ID), ref):
		return fmt.Errorf("%q is the title of %s or a part of it: --purge --yes needs the key or the id, %s", ref, in.Key, in.ID)
	case !yes && !a.confirm(fmt.Sprintf("Remove %s (%q, %d records) for good?", in.Key, naming.Title(ctx, a.stores.Store, in), in.Records)):
		return fmt.Errorf("%s was not removed: --purge needs a yes on a terminal, or --yes", in.Key)
	}
	return nil
}

// findToDelete returns the session that delete is about. A whole key is that key
// only, in the trash or not, never the beginning of another's: what is removed
// for good must be what was named.
func findToDelete(ctx context.Context, st session.Store, ref string, purge bool, last naming.Listed) (in session.Info, trashed bool, err error) {
	for _, trash := range []bool{false, true} {
		if trash && !purge {
			break
		}
		in, err = naming.Find(ctx, st, ref, trash, last)
		exact := err == nil && (string(in.ID) == ref || string(in.Key) == ref)
		if exact || err == nil && !session.Key(ref).Complete() {
			return in, trash, nil
		}
		if err != nil && !errors.Is(err, session.ErrNotFound) && !session.Key(ref).Complete() {
			return in, trash, err
		}
	}
	var none *naming.NoneError
	if errors.As(err, &none) && none.Why != "" { // a number
		return in, false, none
	}
	none = &naming.NoneError{Ref: ref}
	if in.ID != "" { // one that begins alike
		none.Near = []session.Info{in}
	}
	return in, false, none
}

func restoreCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore KEY",
		Short: "Bring a session back from the trash",
		Args:  exactly("KEY"),
		RunE:  func(cmd *cobra.Command, args []string) error { return restore(cmd.Context(), a, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

func restore(ctx context.Context, a *app, ref string, asJSON bool) error {
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	in, err := naming.Find(ctx, st, ref, true, a.lists.Last())
	if errors.Is(err, session.ErrNotFound) {
		return &hinted{err, "it is not in the trash: goclaw sessions --trash lists what is"}
	}
	if err != nil {
		return err
	}
	if err := st.Restore(ctx, in.ID); err != nil {
		return err
	}
	return a.result(asJSON, asjson.SessionOf(in), "restored %s (%s)", in.Key, in.ID)
}
