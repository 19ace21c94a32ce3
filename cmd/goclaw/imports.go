package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"goclaw/internal/inherit"
	"goclaw/internal/terminal"
	"goclaw/internal/text"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// memoPath is where goclaw remembers how far sources were imported into the
// configured store. Each store has its own memo.
func (ss *stores) memoPath() string {
	name := "inherit.json"
	if s := ss.conf.Session; s.Path != filepath.Join(ss.conf.Home, "sessions.db") {
		sum := sha256.Sum256([]byte(s.Store + ":" + s.Path))
		name = fmt.Sprintf("inherit-%x.json", sum[:6])
	}
	return filepath.Join(ss.conf.Home, name)
}

// removed are the imported sessions that were removed for good.
func (ss *stores) removed() (*inherit.Removed, error) {
	return inherit.OpenRemoved(filepath.Join(ss.conf.Home, "removed.json"))
}

// importOptions has what earlier imports have left.
func (ss *stores) importOptions() (o inherit.ImportOptions, err error) {
	if o.Memo, err = inherit.OpenMemo(ss.memoPath()); err == nil {
		o.Removed, err = ss.removed()
	}
	return o, err
}

// findOptions leaves out goclaw's own folders.
func (ss *stores) findOptions(from string, memo *inherit.Memo) inherit.FindOptions {
	skip := []string{ss.conf.Home}
	if ss.conf.Session.Store == "jsonl" {
		skip = append(skip, ss.conf.Session.Path)
	}
	return inherit.FindOptions{From: from, Skip: skip, Home: ss.getenv("HOME"), Memo: memo}
}

// sources are where other programs keep their sessions: all that are known, or
// those of the one that the configuration names.
func (ss *stores) sources() []string {
	in := ss.conf.Session.Inherit
	var paths []string
	for _, p := range inherit.Places(ss.getenv("HOME"), ss.getenv) {
		if in.Format == "auto" || in.Format == p.Program || in.Format == "jsonl" && p.Program == inherit.OpenClaw {
			paths = append(paths, p.Path)
		}
	}
	if filepath.IsAbs(in.Source) { // else HOME is not known
		paths = append(paths, in.Source)
	}
	if ss.foreign != "" {
		paths = append(paths, ss.foreign)
	}
	if s := ss.conf.Session; s.Store == "jsonl" { // goclaw's own store is no source, shared or not
		paths = slices.DeleteFunc(paths, func(p string) bool { return within(s.Path, p) })
	}
	return paths
}

// waiting tells which process is importing into the same store.
func (ss *stores) waiting(held *session.HeldError) {
	ss.warn("another goclaw (pid %d) is importing: waiting for it", held.PID)
}

// take imports cat, and shows what was found and how far it is. grown, if not
// nil, is told how many records and bytes were imported so far.
func (ss *stores) take(ctx context.Context, st store, cat *inherit.Catalogue, o inherit.ImportOptions, show bool, grown func(records int, bytes int64)) (inherit.Report, error) {
	tell := func(inherit.Progress) {}
	if show && len(cat.Transcripts) > 0 {
		printFound(ss.err, cat)
		progress := newBar(ss.env)
		defer progress.End()
		tell = progress.Show
	}
	o.Progress = func(p inherit.Progress) {
		tell(p)
		if grown != nil {
			grown(p.Records, p.Read)
		}
	}
	return inherit.Import(ctx, whole(st), cat, o)
}

// firstImport imports what other programs have left on this machine, once for
// each store; later goclaw import does it when asked. A failure is reported, and
// goclaw's own sessions can still be used.
func (ss *stores) firstImport(ctx context.Context, st store) {
	if !ss.importDue(ctx, st) {
		return
	}
	ss.noImport = true
	finished := inherit.Finished(ss.memoPath())
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program
	o, err := ss.importOptions()
	resumes := err == nil && o.Memo.Begun() && !finished
	if err == nil {
		if resumes {
			ss.warn("the last import did not finish: resuming it")
		}
		if ss.agree == nil || resumes {
			err = o.Memo.Begin()
		}
	}
	if err != nil {
		ss.warn("other agents' sessions are not imported: %s", transcript.Problem(err))
		return
	}
	o.Waiting = ss.waiting
	var rep inherit.Report
	cat, err := inherit.Find(ctx, ss.sources(), ss.findOptions("", o.Memo))
	if err == nil {
		defer cat.Close()
		if n := len(cat.Transcripts); n > 0 && ss.agree != nil && !resumes && !ss.agree(ctx, n) {
			_ = o.Memo.Finish() // else the next start asks again
			ss.note("nothing was imported; goclaw import does it later")
			return
		}
		ss.looked = true
		ss.asked(o.Memo, cat)
		if rep, err = ss.take(ctx, st, cat, o, true, nil); err == nil {
			err = o.Memo.Finish()
		}
		if len(rep.Outcomes)+len(cat.Problems) > 0 {
			ss.reportImport(ss.err, cat, rep, true)
		}
	}
	if err != nil {
		ss.warn("%s", transcript.Problem(importError(err, rep)))
	}
}

// importDue reports whether what other programs have left is still to be
// imported.
func (ss *stores) importDue(ctx context.Context, st store) bool {
	if ss.noImport || !ss.conf.Session.Inherit.Enabled || len(ss.sources()) == 0 {
		return false
	}
	return !inherit.Finished(ss.memoPath()) || ss.awaits(ctx, st)
}

// awaits reports whether the session that a chat opens has another program's
// key and is not in the store: that program may have begun it since.
func (ss *stores) awaits(ctx context.Context, st store) bool {
	key := ss.conf.Session.DefaultKey
	if !strings.HasPrefix(key, "agent:") {
		return false
	}
	_, err := session.Current(ctx, st, session.Key(key))
	return errors.Is(err, session.ErrNotFound)
}

// importError says how much is left of an import that was stopped.
func importError(err error, rep inherit.Report) error {
	left := transcript.Count(rep.Count(inherit.Left), "session") + " left"
	var full *inherit.StoreError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped, %s: run goclaw import to continue", left)
	case errors.Is(err, session.ErrFull) || errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full, %s: free some space and run goclaw import again", left)
	case errors.As(err, &full):
		return fmt.Errorf("%w (is the disk full?), %s: run goclaw import again when the store can be written", full, left)
	}
	return err
}

// printFound says what there is, a line for each program.
func printFound(w io.Writer, cat *inherit.Catalogue) {
	n, size := map[string]int{}, map[string]int64{}
	for _, t := range cat.Transcripts {
		n[t.Program]++
		size[t.Program] += t.Size
	}
	for _, p := range inherit.Programs {
		if n[p] > 0 {
			about := text.Bytes(size[p])
			if doubt := inherit.Unverified(p); doubt != "" {
				about += "; " + doubt
			}
			fmt.Fprintf(w, "found %s of %s (%s)\n", transcript.Count(n[p], "session"), p, about)
		}
	}
}

// foundNothing says so, and which folders were searched, if there is nothing.
func (ss *stores) foundNothing(w io.Writer, cat *inherit.Catalogue, given bool) {
	switch {
	case len(cat.Transcripts) > 0 || given && len(cat.Problems) > 0: // which were reported
	case given:
		fmt.Fprintln(w, "found nothing to import")
	default:
		fmt.Fprintln(w, "found nothing to import in:")
		for _, p := range outermost(ss.sources()) {
			fmt.Fprintln(w, "  "+p)
		}
		fmt.Fprintln(w, "if they are elsewhere: goclaw import PATH")
	}
}

// unread says how many sources could not be read, and fails if there are any.
func (ss *stores) unread(n int) error {
	if n == 0 {
		return nil
	}
	ss.warn("%s could not be read: see above", transcript.Count(n, "source"))
	return errQuiet
}

// reportImport says what became of everything. Each session with a
// problem gets a line on standard error; the others are counted in the line on out.
func (ss *stores) reportImport(out io.Writer, cat *inherit.Catalogue, rep inherit.Report, given bool) {
	for _, p := range cat.Problems {
		ss.warn("%s", transcript.Printable(p.String()))
	}
	for _, o := range rep.Outcomes {
		ss.reportProblems(o)
	}
	defer ss.unread(cat.Unread() + rep.Count(inherit.Failed))
	if len(rep.Outcomes) == 0 {
		ss.foundNothing(out, cat, given)
		return
	}
	var parts []string
	for _, s := range []struct {
		state inherit.State
		words string
	}{{inherit.New, "new"}, {inherit.Grown, "continued"}, {inherit.Rewritten, "rewritten by its program"}, {inherit.Unchanged, "unchanged"},
		{inherit.Copy, "already here from elsewhere"}, {inherit.Trashed, "in the trash"}, {inherit.Purged, "removed here for good (--again imports them)"}, {inherit.Deleted, "deleted in their program (--deleted imports them)"}, {inherit.Failed, "failed"}, {inherit.Left, "left"}} {
		if n := rep.Count(s.state); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.words))
		}
	}
	if n := rep.Moved(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d moved to another key", n))
	}
	say(out, "%s: %s; %s imported in %s", transcript.Count(len(rep.Outcomes), "session"), strings.Join(parts, ", "), transcript.Count(rep.Records(), "record"), rep.Took.Round(time.Millisecond))
	if rep.Count(inherit.New) > 0 && terminal.Is(ss.err) {
		ss.note("goclaw sessions lists them; goclaw --session KEY continues one of them in a new session")
	}
}

// reportProblems says what is wrong with one imported session.
func (ss *stores) reportProblems(o inherit.Outcome) {
	for i, d := range o.Damage {
		if i == 5 {
			ss.warn("%s: %d more damaged places; goclaw doctor %s lists them all", o.Path, o.Damaged-i, o.Path)
			break
		}
		ss.warn("damaged: %s", transcript.Printable(d.Error()))
	}
	if len(o.Damage) == 0 && o.Damaged > 0 {
		ss.warn("%s: %s left out when it was imported; goclaw doctor %s lists them all", o.Path, transcript.Count(o.Damaged, "damaged place"), o.Path)
	}
	if u := o.Unfinished; u != nil {
		say(ss.err, "%s:%d: an unfinished line: it is imported when it is complete", transcript.Printable(o.Path), u.Line)
	}
	if o.Err != nil {
		ss.warn("%s: %s", o.Path, transcript.Problem(o.Err))
	}
	if o.Note != "" && o.State == inherit.New {
		say(ss.err, "%s: %s: goclaw sessions show %s", o.Path, o.Note, o.Log)
	}
}
