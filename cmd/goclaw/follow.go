package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// asked remembers the places in which cat has sessions, now that the user has
// asked for everything that there is.
func (ss *stores) asked(memo *inherit.Memo, cat *inherit.Catalogue) {
	for _, p := range inherit.Places(ss.getenv("HOME"), ss.getenv) {
		if _, err := os.Stat(p.Path); err == nil && slices.ContainsFunc(cat.Transcripts, func(t *inherit.Transcript) bool { return t.Program == p.Program }) {
			memo.Give([]string{p.Path}, "")
		}
	}
}

// followed returns what is followed, and how: the sources of what was imported
// once. There are none if nothing was, or if it is not wanted.
func (ss *stores) followed() (roots []inherit.Root, o inherit.FollowOptions) {
	if i := ss.conf.Session.Inherit; !i.Enabled || !i.Follow {
		return nil, o
	}
	if _, err := os.Stat(ss.memoPath()); err != nil {
		return nil, o
	}
	imp, err := ss.importOptions()
	if err != nil {
		ss.warn("other agents' sessions are not followed: %s", transcript.Problem(err))
		return nil, o
	}
	sources := ss.sources()
	roots = slices.DeleteFunc(imp.Memo.Roots(sources), func(r inherit.Root) bool { // of a program that is not wanted any more
		return !slices.Contains(sources, r.Path) && slices.ContainsFunc(inherit.Places(ss.getenv("HOME"), ss.getenv), func(p inherit.Place) bool { return p.Path == r.Path })
	})
	return roots, inherit.FollowOptions{Find: ss.findOptions("", nil), Import: imp}
}

// firstLook is how long a chat is open before sources are looked at: the prompt
// comes first.
const firstLook = 100 * time.Millisecond

// follow imports what other programs write while a chat or a server is open,
// until stop is called. It tells of sources that are gone or cannot be read.
func (ss *stores) follow(ctx context.Context, st store, tell func(trouble string)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(firstLook):
		}
		roots, o := ss.followed()
		if len(roots) == 0 {
			return
		}
		for _, t := range o.Import.Memo.Troubles(roots) {
			tell(transcript.Printable(t))
		}
		// What fails now is imported by the next look, or by goclaw import,
		// which says why.
		_ = inherit.Follow(ctx, whole(st), roots, o)
	}()
	return func() {
		cancel()
		<-done
	}
}

// look imports what other programs have written since the last import, once in a
// run, and reports whether it did. It costs a few milliseconds if there is
// nothing new. Another process that is importing may do it instead.
func (ss *stores) look(ctx context.Context) bool {
	if ss.looked || ss.readOnly || ss.st == nil {
		return false
	}
	ss.looked = true
	roots, o := ss.followed()
	if len(roots) == 0 {
		return false
	}
	for _, t := range o.Import.Memo.Troubles(roots) {
		ss.warn("%s", transcript.Printable(t))
	}
	o.Import.Patience = time.Second
	begin, progress := time.Now(), newBar(ss.env)
	defer progress.End()
	o.Import.Progress = func(p inherit.Progress) {
		if time.Since(begin) > time.Second {
			progress.Show(p)
		}
	}
	rep, err := inherit.Look(ctx, whole(ss.st), roots, o)
	switch {
	case err == nil, errors.Is(err, session.ErrHeld), ctx.Err() != nil:
	default:
		ss.warn("what other agents have written since is not imported: %s", transcript.Problem(importError(err, rep)))
	}
	return true
}

// patient is how long a chat or a server waits for what other programs have
// written, before it goes on without it.
const patient = 250 * time.Millisecond

// lookSoon is look for those who cannot wait long: what follows does the rest.
func (ss *stores) lookSoon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	ss.look(ctx)
}

// foreign reports whether what other programs have written may change what was
// found: it comes from one of them, or nothing was found.
func foreign(in session.Info, err error) bool {
	if err != nil {
		return errors.Is(err, session.ErrNotFound)
	}
	return in.ID == "" || in.Origin.Program != ""
}

// notes are lines that wait until the user can be told.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

// take returns the lines, once.
func (n *notes) take() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines, n.lines = n.lines, nil
	return lines
}
