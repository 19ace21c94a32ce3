package stores

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// Asked remembers the places in which cat has sessions, now that the user has
// asked for everything that there is.
func (ss *Stores) Asked(memo *inherit.Memo, cat *inherit.Catalogue) {
	for _, p := range inherit.Places(ss.o.Getenv("HOME"), ss.o.Getenv) {
		if _, err := os.Stat(p.Path); err == nil && slices.ContainsFunc(cat.Transcripts, func(t *inherit.Transcript) bool { return t.Program == p.Program }) {
			memo.Give([]string{p.Path}, "")
		}
	}
}

// followed returns what is followed, and how: the sources of what was imported
// once. There are none if nothing was, or if it is not wanted.
func (ss *Stores) followed() (roots []inherit.Root, o inherit.FollowOptions) {
	if i := ss.conf().Session.Inherit; !i.Enabled || !i.Follow {
		return nil, o
	}
	if _, err := os.Stat(ss.memoPath()); err != nil {
		return nil, o
	}
	imp, err := ss.ImportOptions()
	if err != nil {
		ss.o.Warn("other agents' sessions are not followed: %s", transcript.Problem(err))
		return nil, o
	}
	sources := ss.Sources()
	roots = slices.DeleteFunc(imp.Memo.Roots(sources), func(r inherit.Root) bool { // of a program that is not wanted any more
		return !slices.Contains(sources, r.Path) && slices.ContainsFunc(inherit.Places(ss.o.Getenv("HOME"), ss.o.Getenv), func(p inherit.Place) bool { return p.Path == r.Path })
	})
	return roots, inherit.FollowOptions{Find: ss.FindOptions("", nil), Import: imp}
}

// firstLook is how long a chat is open before sources are looked at: the prompt
// comes first.
const firstLook = 100 * time.Millisecond

// Follow imports what other programs write while a chat or a server is open,
// until stop is called. It tells of sources that are gone or cannot be read.
func (ss *Stores) Follow(ctx context.Context, st Store, tell func(trouble string)) (stop func()) {
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
		_ = inherit.Follow(ctx, Whole(st), roots, o)
	}()
	return func() {
		cancel()
		<-done
	}
}

// Look imports what other programs have written since the last import, once in a
// run, and reports whether it did. It costs a few milliseconds if there is
// nothing new. Another process that is importing may do it instead.
func (ss *Stores) Look(ctx context.Context) bool {
	if ss.Looked || ss.ReadOnly || ss.Store == nil {
		return false
	}
	ss.Looked = true
	roots, o := ss.followed()
	if len(roots) == 0 {
		return false
	}
	for _, t := range o.Import.Memo.Troubles(roots) {
		ss.o.Warn("%s", transcript.Printable(t))
	}
	o.Import.Patience = time.Second
	begin, progress := time.Now(), ss.bar()
	defer progress.End()
	o.Import.Progress = func(p inherit.Progress) {
		if time.Since(begin) > time.Second {
			progress.Show(p)
		}
	}
	rep, err := inherit.Look(ctx, Whole(ss.Store), roots, o)
	switch {
	case err == nil, errors.Is(err, session.ErrHeld), ctx.Err() != nil:
	default:
		ss.o.Warn("what other agents have written since is not imported: %s", transcript.Problem(ImportError(err, rep)))
	}
	return true
}

// patient is how long a chat or a server waits for what other programs have
// written, before it goes on without it.
const patient = 250 * time.Millisecond

// LookSoon is Look for those who cannot wait long: what follows does the rest.
func (ss *Stores) LookSoon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	ss.Look(ctx)
}

// Foreign reports whether what other programs have written may change what was
// found: it comes from one of them, or nothing was found.
func Foreign(in session.Info, err error) bool {
	if err != nil {
		return errors.Is(err, session.ErrNotFound)
	}
	return in.ID == "" || in.Origin.Program != ""
}
