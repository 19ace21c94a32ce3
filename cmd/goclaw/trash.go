package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goclaw/internal/config"
	"goclaw/session"
)

// expire moves to the trash what has been idle for longer than its ttl, if
// retention.expired is trash, and tells of it. Other programs' sessions and
// those that somebody holds stay.
func (a *app) expire(ctx context.Context, st session.Store) error {
	keep := a.conf.Session.Retention
	if keep.Expired != "trash" {
		return nil
	}
	var idle []session.Info
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			return err
		}
		if ttl := keep.For(in.Key); ttl > 0 && !in.Mirror() && time.Since(in.Updated) > ttl {
			idle = append(idle, in)
		}
	}
	for _, in := range idle {
		release, err := st.Lock(ctx, in.ID, whoAmI())
		if errors.Is(err, session.ErrHeld) {
			continue
		}
		if err != nil {
			return err
		}
		now, err := session.Stat(ctx, st, in.ID)
		if err == nil && now.Last == in.Last {
			err = st.Delete(ctx, in.ID)
		}
		release()
		if err != nil {
			return err
		}
		fmt.Fprintf(a.err, "moved %s (%q) to the trash: it was idle since %s (its ttl is %s); goclaw sessions restore %s\n",
			in.Key, in.Title, in.Updated.Local().Format(time.DateOnly), config.Duration(keep.For(in.Key)), in.ID)
	}
	return nil
}

// sweep removes for good what has been in the trash for longer than
// retention.trash says, and tells of it: nothing goes in silence.
func (a *app) sweep(ctx context.Context, st session.Store) error {
	if err := a.expire(ctx, st); err != nil {
		return err
	}
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
		title := session.Titled(ctx, st, in)
		if err := a.purge(ctx, st, in); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "removed %s (%q) for good: it was in the trash since %s (retention.trash is %s)\n",
			in.Key, title, in.Trashed.Local().Format(time.DateOnly), a.conf.Session.Retention.Trash)
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
