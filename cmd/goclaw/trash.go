package main

import (
	"context"
	"fmt"
	"time"

	"goclaw/session"
)

// sweep removes for good what has been in the trash for longer than
// retention.trash says, and tells of it: nothing goes in silence.
func (a *app) sweep(ctx context.Context, st session.Store) error {
	keep := time.Duration(a.conf.Session.Retention.Trash)
	if keep <= 0 {
		return nil
	}
	var old []session.Info
	for in, err := range st.List(ctx, session.Query{Trash: true}) {
		if err != nil {
			return err
		}
		if time.Since(in.Trashed) > keep {
			old = append(old, in)
		}
	}
	for _, in := range old {
		if err := a.purge(ctx, st, in); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "removed %s (%q) for good: it was in the trash since %s (retention.trash is %s)\n",
			in.Key, in.Title, in.Trashed.Local().Format(time.DateOnly), a.conf.Session.Retention.Trash)
	}
	return nil
}

// purge removes a session in the trash for good, its words in the search index
// first. If it was another agent's, the next import does not bring it back.
func (a *app) purge(ctx context.Context, st session.Store, in session.Info) error {
	removed, err := a.removed()
	if err == nil {
		err = removed.Add(in)
	}
	if err != nil {
		return err
	}
	if err := a.prune(ctx); err != nil {
		return err
	}
	return st.Purge(ctx, in.ID)
}
