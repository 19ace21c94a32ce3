package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/config"
	"goclaw/internal/naming"
	"goclaw/internal/repl/history"
	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
)

// expire moves sessions that were idle for longer than their ttl to the trash,
// if retention.expired is trash, and tells the user. Other programs' sessions
// and those that are locked stay.
func expire(ctx context.Context, a *app, st session.Store) error {
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
		release, err := st.Lock(ctx, string(in.ID), whoAmI())
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
		transcript.Say(a.err, "moved %s (%q) to the trash: it was idle since %s (its ttl is %s); goclaw sessions restore %s brings it back",
			in.Key, in.Title, in.Updated.Local().Format(time.DateOnly), config.Duration(keep.For(in.Key)), in.ID)
	}
	return nil
}

// sweep expires sessions, and removes for good those that were in the trash for
// longer than retention.trash. No session disappears without a message.
func sweep(ctx context.Context, a *app, st stores.Store) error {
	if err := expire(ctx, a, st); err != nil {
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
		title := naming.Title(ctx, st, in)
		if err := purge(ctx, a, st, in); err != nil {
			return err
		}
		transcript.Say(a.err, "removed %s (%q) for good: it was in the trash since %s (retention.trash is %s)",
			in.Key, title, in.Trashed.Local().Format(time.DateOnly), a.conf.Session.Retention.Trash)
	}
	return nil
}

// purge removes a session in the trash for good: its words in the search index
// and what was typed in it from the input history first. The next import does
// not bring it back if it was another agent's.
func purge(ctx context.Context, a *app, st stores.Store, in session.Info) error {
	removed, err := a.stores.Removed()
	if err == nil {
		err = removed.Add(in)
	}
	if err != nil {
		return err
	}
	if err := a.search.prune(ctx); err != nil {
		return err
	}
	if err := forgetTyped(ctx, a, st, in.ID); err != nil {
		return err
	}
	return st.Purge(ctx, in.ID)
}

// forgetTyped removes from the input history every line that is, word for word,
// what the user said in the session id. A line that was also typed elsewhere is
// removed with it.
func forgetTyped(ctx context.Context, a *app, st stores.Store, id session.ID) error {
	path := filepath.Join(a.conf.Home, "history")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	typed := map[string]bool{}
	// What was redacted is typed in full in the history.
	for r, err := range session.Undamaged(stores.Whole(st).Read(ctx, id, 0), func(*session.Damage) {}) {
		if err != nil {
			return err
		}
		m, ok := r.Body.(session.Message)
		if !ok || !session.IsTurn(m) {
			continue
		}
		typed[strings.TrimSpace(m.Text())] = true
		for _, b := range m.Blocks {
			if t, ok := b.(llm.Text); ok {
				typed[strings.TrimSpace(t.Text)] = true
			}
		}
	}
	_, err := history.Forget(path, func(s string) bool { return typed[strings.TrimSpace(s)] })
	return err
}
