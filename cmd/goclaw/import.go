package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func (a *app) importCmd() *cobra.Command {
	var from string
	var dry, strict, again, asJSON bool
	cmd := &cobra.Command{
		Use:   "import [PATH...]",
		Short: "Take over the sessions of OpenClaw, pi, claw0, Claude Code and Codex",
		Long: `Looks where other agents keep their sessions, or at PATH (a file, a folder or a
database of any of them), and copies what is new into the store. The sources
are only read: they can be in use meanwhile, and stay as they are. Run it
again whenever you like: it copies only what is new.

What cannot be read has a line of its own, and everything else is taken. Exits 0
when everything was read, 1 when not.`,
		Example: `  goclaw import                 everything that is found on this machine
  goclaw import --dry-run       only say what there is
  goclaw import ~/old/.openclaw a folder from somewhere else
  goclaw import session.jsonl   one file, whatever wrote it`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if from != "" && !slices.Contains(inherit.Programs, from) {
				return usage("--from must be one of %s, not %q", strings.Join(inherit.Programs, ", "), from)
			}
			return a.importAll(cmd.Context(), args, importing{from: from, dry: dry, strict: strict, again: again, asJSON: asJSON})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the program that wrote it: "+strings.Join(inherit.Programs, ", "))
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "only say what there is")
	cmd.Flags().BoolVar(&strict, "strict", false, "take what pi would show of each session, without healing it")
	cmd.Flags().BoolVar(&again, "again", false, "take also what was removed here for good (a file that is named is taken anyway)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what became of each session as an object")
	return cmd
}

type importing struct {
	from                       string
	dry, strict, again, asJSON bool
}

// memoPath is where it is remembered how far sources were taken into the store
// that is configured: each store has a memo of its own.
func (a *app) memoPath() string {
	name := "inherit.json"
	if s := a.conf.Session; s.Path != filepath.Join(a.conf.Home, "sessions.db") {
		sum := sha256.Sum256([]byte(s.Store + ":" + s.Path))
		name = fmt.Sprintf("inherit-%x.json", sum[:6])
	}
	return filepath.Join(a.conf.Home, name)
}

// removed are the inherited sessions that were removed for good.
func (a *app) removed() (*inherit.Removed, error) {
	return inherit.OpenRemoved(filepath.Join(a.conf.Home, "removed.json"))
}

// sources are where other agents keep their sessions: all that are known, or
// those of the one that the configuration names.
func (a *app) sources() []string {
	in := a.conf.Session.Inherit
	var paths []string
	for _, p := range inherit.Places(a.getenv("HOME"), a.getenv) {
		if in.Format == "auto" || in.Format == p.Program || in.Format == "jsonl" && p.Program == inherit.OpenClaw {
			paths = append(paths, p.Path)
		}
	}
	if filepath.IsAbs(in.Source) { // else it is in a home that is not known
		paths = append(paths, in.Source)
	}
	if a.foreign != "" {
		paths = append(paths, a.foreign)
	}
	if s := a.conf.Session; s.Store == "jsonl" { // its own store, shared or not, is nobody else's
		paths = slices.DeleteFunc(paths, func(p string) bool { return within(s.Path, p) })
	}
	return paths
}

// lookFor looks through paths, our own folders aside.
func (a *app) lookFor(ctx context.Context, paths []string, from string, memo *inherit.Memo) (*inherit.Catalogue, error) {
	o := a.looking(from)
	o.Memo = memo
	return inherit.Find(ctx, paths, o)
}

// looking says how sessions are looked for.
func (a *app) looking(from string) inherit.FindOptions {
	skip := []string{a.conf.Home}
	if a.conf.Session.Store == "jsonl" {
		skip = append(skip, a.conf.Session.Path)
	}
	return inherit.FindOptions{From: from, Skip: skip, Home: a.getenv("HOME")}
}

func (a *app) importAll(ctx context.Context, paths []string, o importing) error {
	a.noInherit = true
	c, err := a.config()
	if err != nil {
		return err
	}
	var missing []inherit.Problem
	given := len(paths) > 0
	if given {
		paths, missing = present(paths)
	} else {
		if !c.Session.Inherit.Enabled {
			return fmt.Errorf("inheriting is switched off (session.inherit.enabled): give a PATH to import it all the same")
		}
		if paths = a.sources(); len(paths) == 0 {
			return errors.New("HOME is not set, which leaves unknown where other agents keep their sessions: give a PATH")
		}
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	memo, err := inherit.OpenMemo(a.memoPath())
	if err != nil {
		return err
	}
	removed, err := a.removed()
	if err != nil {
		return err
	}
	cat, err := a.lookFor(ctx, paths, o.from, memo)
	if err != nil {
		return err
	}
	defer cat.Close()
	cat.Problems = append(missing, cat.Problems...)
	if o.dry {
		return a.showFound(cat, given, o.asJSON)
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	shown := &bar{} // nothing
	take := inherit.ImportOptions{Strict: o.strict, Memo: memo, Removed: removed, Again: o.again, Waiting: a.waiting}
	if !given {
		if err := memo.Begin(); err != nil {
			return err
		}
	}
	if !o.asJSON {
		a.found(a.err, cat)
		if shown = a.newBar(); len(cat.Transcripts) > 0 {
			take.Progress = shown.show
		}
	}
	rep, err := inherit.Import(ctx, st, cat, take)
	shown.end()
	if err == nil && !(given && memo.Begun()) {
		err = memo.Finish()
	}
	err = stopped(err, rep)
	if o.asJSON {
		if e := a.printJSON(importRows(cat, rep)); err == nil {
			err = e
		}
	} else {
		a.imported(a.out, a.err, cat, rep, given)
	}
	if err == nil && rep.Count(inherit.Failed)+cat.Unread() > 0 {
		return errQuiet
	}
	return err
}

// stopped says how much is left of an import that was stopped.
func stopped(err error, rep inherit.Report) error {
	left := transcript.Count(rep.Count(inherit.Left), "session") + " left: goclaw import goes on where it was"
	var full *inherit.StoreError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped, %s", left)
	case errors.Is(err, session.ErrFull) || errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the store cannot be written, the disk is full: %s when there is room", left)
	case errors.As(err, &full):
		return fmt.Errorf("%w (is the disk full?): %s when it can", full, left)
	}
	return err
}

// waiting says who is importing into the same store.
func (a *app) waiting(held *session.HeldError) {
	fmt.Fprintf(a.err, "goclaw: another goclaw (pid %d) is importing: waiting for it\n", held.PID)
}

// present parts the paths that are there from those that are not.
func present(paths []string) (there []string, missing []inherit.Problem) {
	for _, p := range paths {
		if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, inherit.Problem{Path: p, What: "there is no such file or folder", Unread: true})
			continue
		}
		there = append(there, p)
	}
	return there, missing
}

// found says what there is, a line for each program.
func (a *app) found(w io.Writer, cat *inherit.Catalogue) {
	n, size := map[string]int{}, map[string]int64{}
	for _, t := range cat.Transcripts {
		n[t.Program]++
		size[t.Program] += t.Size
	}
	for _, p := range inherit.Programs {
		if n[p] > 0 {
			fmt.Fprintf(w, "found %s of %s (%s)\n", transcript.Count(n[p], "session"), p, megabytes(size[p]))
		}
	}
}

func megabytes(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d bytes", n)
}

// showFound is a dry run.
func (a *app) showFound(cat *inherit.Catalogue, given, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(importRows(cat, inherit.Report{})); err != nil || cat.Unread() == 0 {
			return err
		}
		return errQuiet
	}
	a.found(a.out, cat)
	a.foundNothing(a.out, cat, given)
	for _, t := range cat.Transcripts {
		fmt.Fprintln(a.out, foundLine(t, a.columns()))
	}
	for _, p := range cat.Problems {
		say(a.err, "goclaw: %s", transcript.Printable(p.String()))
	}
	return a.unread(a.err, cat.Unread())
}

// foundLine tells of a transcript in one line, or, where that is wider than the
// terminal (0: none), with its path on a line of its own.
func foundLine(t *inherit.Transcript, columns int) string {
	who, path := fmt.Sprintf("%-11s %s", t.Program, transcript.Printable(string(t.Key))), transcript.Printable(t.Path)
	if t.Archive != "" {
		path += "  (" + t.Archive + ")"
	}
	if line := who + "  " + path; transcript.Wrap(line, columns) == line {
		return line
	}
	return transcript.Wrap(who, columns) + "\n  " + path
}

// foundNothing says so, and where it was looked, if there is nothing.
func (a *app) foundNothing(w io.Writer, cat *inherit.Catalogue, given bool) {
	switch {
	case len(cat.Transcripts) > 0 || given && len(cat.Problems) > 0: // which were said
	case given:
		fmt.Fprintln(w, "found nothing to import")
	default:
		fmt.Fprintln(w, "found nothing to import in:")
		for _, p := range outermost(a.sources()) {
			fmt.Fprintln(w, "  "+p)
		}
		fmt.Fprintln(w, "if they are elsewhere: goclaw import PATH")
	}
}

// outermost leaves out the folders that are inside of others.
func outermost(paths []string) (out []string) {
	for i, p := range paths {
		if !slices.ContainsFunc(paths, func(q string) bool { return q != p && within(q, p) }) && !slices.Contains(paths[:i], p) {
			out = append(out, p)
		}
	}
	return out
}

// unread says how many sources could not be read, and fails if there are any.
func (a *app) unread(w io.Writer, n int) error {
	if n == 0 {
		return nil
	}
	fmt.Fprintf(w, "goclaw: %s could not be read: see above\n", transcript.Count(n, "source"))
	return errQuiet
}

// imported says what became of everything. What is wrong with a session has
// a line of its own; a session that is well has none.
func (a *app) imported(out, errOut io.Writer, cat *inherit.Catalogue, rep inherit.Report, given bool) {
	for _, p := range cat.Problems {
		say(errOut, "goclaw: %s", transcript.Printable(p.String()))
	}
	for _, o := range rep.Outcomes {
		for i, d := range o.Damage {
			if i == 5 {
				say(errOut, "goclaw: %s: and %d more damaged places: goclaw doctor %s lists them", o.Path, o.Damaged-i, o.Path)
				break
			}
			say(errOut, "goclaw: damaged: %s", transcript.Printable(d.Error()))
		}
		if u := o.Unfinished; u != nil {
			say(errOut, "%s:%d: an unfinished line: it is taken when it is complete", transcript.Printable(o.Path), u.Line)
		}
		if o.Err != nil {
			say(errOut, "goclaw: %s: %s", o.Path, oneLine(o.Err))
		}
		if o.Note != "" && o.State == inherit.New {
			say(errOut, "%s: %s: goclaw sessions show %s", o.Path, o.Note, o.Log)
		}
	}
	defer a.unread(errOut, cat.Unread()+rep.Count(inherit.Failed))
	if len(rep.Outcomes) == 0 {
		a.foundNothing(out, cat, given)
		return
	}
	var parts []string
	for _, s := range []struct {
		state inherit.State
		words string
	}{{inherit.New, "new"}, {inherit.Grown, "continued"}, {inherit.Rewritten, "rewritten by its program"}, {inherit.Unchanged, "unchanged"},
		{inherit.Copy, "here already from elsewhere"}, {inherit.Trashed, "in the trash"}, {inherit.Purged, "removed here for good (--again takes them)"}, {inherit.Failed, "failed"}, {inherit.Left, "left"}} {
		if n := rep.Count(s.state); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.words))
		}
	}
	if n := rep.Moved(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d moved to another key", n))
	}
	if rep.Count(inherit.New) > 0 && a.isTerminal(errOut) {
		defer fmt.Fprintln(errOut, a.style().Dim("goclaw sessions lists them; goclaw --session KEY goes on with one, in a session of its own"))
	}
	say(out, "%s: %s; %s taken in %s", transcript.Count(len(rep.Outcomes), "session"), strings.Join(parts, ", "), transcript.Count(rep.Records(), "record"), rep.Took.Round(time.Millisecond))
}

// importRow is a session in the output of import --json.
type importRow struct {
	Program string     `json:"program"`
	Path    string     `json:"path"`
	Key     string     `json:"key"`
	ID      session.ID `json:"id"`
	Title   string     `json:"title,omitempty"`
	Archive string     `json:"archive,omitempty"`
	State   string     `json:"state,omitempty"`
	Records int        `json:"records"`
	Was     string     `json:"was,omitempty"`    // the key that it had until now
	Damage  []string   `json:"damage,omitempty"` // the first of them
	Damaged int        `json:"damaged,omitempty"`
	Error   string     `json:"error,omitempty"`
}

func importRows(cat *inherit.Catalogue, rep inherit.Report) map[string]any {
	rows, problems := []importRow{}, []string{}
	for i, t := range cat.Transcripts {
		r := importRow{Program: t.Program, Path: t.Path, Key: string(t.Key), ID: t.ID, Title: t.Title, Archive: t.Archive}
		if i < len(rep.Outcomes) {
			o := rep.Outcomes[i]
			r.ID, r.State, r.Records, r.Was, r.Damaged = o.Log, string(o.State), o.Records, string(o.Was), o.Damaged
			for _, d := range o.Damage {
				r.Damage = append(r.Damage, d.Error())
			}
			if o.Err != nil {
				r.Error = oneLine(o.Err)
			}
		}
		rows = append(rows, r)
	}
	for _, p := range cat.Problems {
		problems = append(problems, p.String())
	}
	return map[string]any{"sessions": rows, "problems": problems, "unread": cat.Unread() + rep.Count(inherit.Failed), "records": rep.Records(), "milliseconds": rep.Took.Milliseconds()}
}

// awaits reports whether the session that a chat opens has another program's key
// and is not in the store: that program may have begun it since.
func (a *app) awaits(ctx context.Context, st store) bool {
	key := a.conf.Session.DefaultKey
	if !strings.HasPrefix(key, "agent:") {
		return false
	}
	_, err := session.Current(ctx, st, session.Key(key))
	return errors.Is(err, session.ErrNotFound)
}

// firstStart takes over what other agents have left on this machine, once for
// each store: afterwards goclaw import does it when asked. What goes wrong is said, and
// keeps nobody from his own sessions.
func (a *app) firstStart(ctx context.Context, st store) {
	if a.noInherit || !a.conf.Session.Inherit.Enabled {
		return
	}
	a.noInherit = true
	finished := inherit.Finished(a.memoPath())
	if len(a.sources()) == 0 || finished && !a.awaits(ctx, st) {
		return
	}
	memo, err := inherit.OpenMemo(a.memoPath())
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if err == nil {
		if memo.Begun() && !finished {
			fmt.Fprintln(a.err, "goclaw: taking over other agents' sessions was not finished: it goes on")
		}
		err = memo.Begin()
	}
	var removed *inherit.Removed
	if err == nil {
		removed, err = a.removed()
	}
	if err != nil {
		fmt.Fprintln(a.err, "goclaw: other agents' sessions are not taken over: "+oneLine(err))
		return
	}
	var rep inherit.Report
	cat, err := a.lookFor(ctx, a.sources(), "", memo)
	if err == nil {
		defer cat.Close()
		shown := a.newBar()
		take := inherit.ImportOptions{Memo: memo, Removed: removed, Waiting: a.waiting}
		if len(cat.Transcripts) > 0 {
			a.found(a.err, cat)
			take.Progress = shown.show
		}
		rep, err = inherit.Import(ctx, st, cat, take)
		shown.end()
		if err == nil {
			err = memo.Finish()
		}
		if len(rep.Outcomes)+len(cat.Problems) > 0 {
			a.imported(a.err, a.err, cat, rep, true)
		}
	}
	if err != nil {
		fmt.Fprintln(a.err, "goclaw: "+oneLine(stopped(err, rep)))
	}
}

// follow takes what other agents write while a chat or a server is open, if that is
// wanted, until what it returns is called.
func (a *app) follow(ctx context.Context, st store) (stop func()) {
	if i := a.conf.Session.Inherit; !i.Enabled || !i.Follow {
		return func() {}
	}
	memo, err := inherit.OpenMemo(a.memoPath())
	var removed *inherit.Removed
	if err == nil {
		removed, err = a.removed()
	}
	if err != nil {
		fmt.Fprintln(a.err, "goclaw: "+oneLine(err))
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// What could not be taken now is taken by the next look, or by goclaw
		// import, which says why.
		_ = inherit.Follow(ctx, st, a.sources(), inherit.FollowOptions{Find: a.looking(""), Import: inherit.ImportOptions{Memo: memo, Removed: removed}})
	}()
	return func() {
		cancel()
		<-done
	}
}
