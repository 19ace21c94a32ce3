package stores

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

	"goclaw/internal/config"
	"goclaw/internal/inherit"
	"goclaw/internal/terminal"
	"goclaw/internal/text"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// memoPath is where goclaw remembers how far sources were imported into the
// configured store. Each store has its own memo.
func (ss *Stores) memoPath() string {
	name := "inherit.json"
	if s := ss.conf().Session; s.Path != filepath.Join(ss.conf().Home, "sessions.db") {
		sum := sha256.Sum256([]byte(s.Store + ":" + s.Path))
		name = fmt.Sprintf("inherit-%x.json", sum[:6])
	}
	return filepath.Join(ss.conf().Home, name)
}

// Removed are the imported sessions that were removed for good.
func (ss *Stores) Removed() (*inherit.Removed, error) {
	return inherit.OpenRemoved(filepath.Join(ss.conf().Home, "removed.json"))
}

// ImportOptions has what earlier imports have left.
func (ss *Stores) ImportOptions() (o inherit.ImportOptions, err error) {
	if o.Memo, err = inherit.OpenMemo(ss.memoPath()); err == nil {
		o.Removed, err = ss.Removed()
	}
	return o, err
}

// FindOptions leaves out goclaw's own folders.
func (ss *Stores) FindOptions(from string, memo *inherit.Memo) inherit.FindOptions {
	skip := []string{ss.conf().Home}
	if ss.conf().Session.Store == "jsonl" {
		skip = append(skip, ss.conf().Session.Path)
	}
	return inherit.FindOptions{From: from, Skip: skip, Home: ss.o.Getenv("HOME"), Memo: memo}
}

// Sources are where other programs keep their sessions: all that are known, or
// those of the one that the configuration names.
func (ss *Stores) Sources() []string {
	in := ss.conf().Session.Inherit
	var paths []string
	for _, p := range inherit.Places(ss.o.Getenv("HOME"), ss.o.Getenv) {
		if in.Format == "auto" || in.Format == p.Program || in.Format == "jsonl" && p.Program == inherit.OpenClaw {
			paths = append(paths, p.Path)
		}
	}
	if filepath.IsAbs(in.Source) { // else HOME is not known
		paths = append(paths, in.Source)
	}
	if ss.o.Placed().Foreign != "" {
		paths = append(paths, ss.o.Placed().Foreign)
	}
	if s := ss.conf().Session; s.Store == "jsonl" { // goclaw's own store is no source, shared or not
		paths = slices.DeleteFunc(paths, func(p string) bool { return config.Within(s.Path, p) })
	}
	return paths
}

// Waiting tells which process is importing into the same store.
func (ss *Stores) Waiting(held *session.HeldError) {
	ss.o.Warn("another goclaw (pid %d) is importing: waiting for it", held.PID)
}

// Take imports cat, and shows what was found and how far it is. grown, if not
// nil, is told how many records and bytes were imported so far.
func (ss *Stores) Take(ctx context.Context, st Store, cat *inherit.Catalogue, o inherit.ImportOptions, show bool, grown func(records int, bytes int64)) (inherit.Report, error) {
	tell := func(inherit.Progress) {}
	if show && len(cat.Transcripts) > 0 {
		PrintFound(ss.o.Err(), cat)
		progress := ss.bar()
		defer progress.End()
		tell = progress.Show
	}
	o.Progress = func(p inherit.Progress) {
		tell(p)
		if grown != nil {
			grown(p.Records, p.Read)
		}
	}
	return inherit.Import(ctx, Whole(st), cat, o)
}

// firstImport imports what other programs have left on this machine, once for
// each store; later goclaw import does it when asked. A failure is reported, and
// goclaw's own sessions can still be used.
func (ss *Stores) firstImport(ctx context.Context, st Store) {
	if !ss.ImportDue(ctx, st) {
		return
	}
	ss.NoImport = true
	finished := inherit.Finished(ss.memoPath())
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program
	o, err := ss.ImportOptions()
	resumes := err == nil && o.Memo.Begun() && !finished
	if err == nil {
		if resumes {
			ss.o.Warn("the last import did not finish: resuming it")
		}
		if ss.Agree == nil || resumes {
			err = o.Memo.Begin()
		}
	}
	if err != nil {
		ss.o.Warn("other agents' sessions are not imported: %s", transcript.Problem(err))
		return
	}
	o.Waiting = ss.Waiting
	var rep inherit.Report
	cat, err := inherit.Find(ctx, ss.Sources(), ss.FindOptions("", o.Memo))
	if err == nil {
		defer cat.Close()
		if n := len(cat.Transcripts); n > 0 && ss.Agree != nil && !resumes && !ss.Agree(ctx, n) {
			_ = o.Memo.Finish() // else the next start asks again
			ss.o.Note("nothing was imported; goclaw import does it later")
			return
		}
		ss.Looked = true
		ss.Asked(o.Memo, cat)
		if rep, err = ss.Take(ctx, st, cat, o, true, nil); err == nil {
			err = o.Memo.Finish()
		}
		if len(rep.Outcomes)+len(cat.Problems) > 0 {
			ss.Report(ss.o.Err(), cat, rep, true)
		}
	}
	if err != nil {
		ss.o.Warn("%s", transcript.Problem(ImportError(err, rep)))
	}
}

// ImportDue reports whether what other programs have left is still to be
// imported.
func (ss *Stores) ImportDue(ctx context.Context, st Store) bool {
	if ss.NoImport || !ss.conf().Session.Inherit.Enabled || len(ss.Sources()) == 0 {
		return false
	}
	return !inherit.Finished(ss.memoPath()) || ss.awaits(ctx, st)
}

// awaits reports whether the session that a chat opens has another program's
// key and is not in the store: that program may have begun it since.
func (ss *Stores) awaits(ctx context.Context, st Store) bool {
	key := ss.conf().Session.DefaultKey
	if !strings.HasPrefix(key, "agent:") {
		return false
	}
	_, err := session.Current(ctx, st, session.Key(key))
	return errors.Is(err, session.ErrNotFound)
}

// ImportError says how much is left of an import that was stopped.
func ImportError(err error, rep inherit.Report) error {
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

// PrintFound says what there is, a line for each program.
func PrintFound(w io.Writer, cat *inherit.Catalogue) {
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

// FoundNothing says so, and which folders were searched, if there is nothing.
func (ss *Stores) FoundNothing(w io.Writer, cat *inherit.Catalogue, given bool) {
	switch {
	case len(cat.Transcripts) > 0 || given && len(cat.Problems) > 0: // which were reported
	case given:
		fmt.Fprintln(w, "found nothing to import")
	default:
		fmt.Fprintln(w, "found nothing to import in:")
		for _, p := range outermost(ss.Sources()) {
			fmt.Fprintln(w, "  "+p)
		}
		fmt.Fprintln(w, "if they are elsewhere: goclaw import PATH")
	}
}

// Unread says how many sources could not be read, if there are any.
func (ss *Stores) Unread(n int) {
	if n > 0 {
		ss.o.Warn("%s could not be read: see above", transcript.Count(n, "source"))
	}
}

// Report says what became of everything. Each session with a
// problem gets a line on standard error; the others are counted in the line on out.
func (ss *Stores) Report(out io.Writer, cat *inherit.Catalogue, rep inherit.Report, given bool) {
	for _, p := range cat.Problems {
		ss.o.Warn("%s", transcript.Printable(p.String()))
	}
	for _, o := range rep.Outcomes {
		ss.reportProblems(o)
	}
	defer ss.Unread(cat.Unread() + rep.Count(inherit.Failed))
	if len(rep.Outcomes) == 0 {
		ss.FoundNothing(out, cat, given)
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
	transcript.Say(out, "%s: %s; %s imported in %s", transcript.Count(len(rep.Outcomes), "session"), strings.Join(parts, ", "), transcript.Count(rep.Records(), "record"), rep.Took.Round(time.Millisecond))
	if rep.Count(inherit.New) > 0 && terminal.Is(ss.o.Err()) {
		ss.o.Note("goclaw sessions lists them; goclaw --session KEY continues one of them in a new session")
	}
}

// reportProblems says what is wrong with one imported session.
func (ss *Stores) reportProblems(o inherit.Outcome) {
	for i, d := range o.Damage {
		if i == 5 {
			ss.o.Warn("%s: %d more damaged places; goclaw doctor %s lists them all", o.Path, o.Damaged-i, o.Path)
			break
		}
		ss.o.Warn("damaged: %s", transcript.Printable(d.Error()))
	}
	if len(o.Damage) == 0 && o.Damaged > 0 {
		ss.o.Warn("%s: %s left out when it was imported; goclaw doctor %s lists them all", o.Path, transcript.Count(o.Damaged, "damaged place"), o.Path)
	}
	if u := o.Unfinished; u != nil {
		transcript.Say(ss.o.Err(), "%s:%d: an unfinished line: it is imported when it is complete", transcript.Printable(o.Path), u.Line)
	}
	if o.Err != nil {
		ss.o.Warn("%s: %s", o.Path, transcript.Problem(o.Err))
	}
	if o.Note != "" && o.State == inherit.New {
		transcript.Say(ss.o.Err(), "%s: %s: goclaw sessions show %s", o.Path, o.Note, o.Log)
	}
}

// outermost leaves out folders that are inside others.
func outermost(paths []string) (out []string) {
	for i, p := range paths {
		if !slices.ContainsFunc(paths, func(q string) bool { return q != p && config.Within(q, p) }) && !slices.Contains(paths[:i], p) {
			out = append(out, p)
		}
	}
	return out
}
