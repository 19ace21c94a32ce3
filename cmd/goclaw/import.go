package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/inherit"
	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func importCmd(a *app) *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use:   "import [PATH...]",
		Short: "Import the sessions of other agents: OpenClaw, Claude Code, Codex and others",
		Long: `Looks where other agents keep their sessions, or at PATH (a file, a folder or a
database of any of them), and copies what is new into the store. The sources
are only read: they may be in use and are never changed. Run it again whenever
you like: it copies only what is new.

Each source that cannot be read is reported, and so is each damaged place in
one; everything else is imported. Exits 0 when everything was read, 1 when not.`,
		Example: `  goclaw import                 everything that is found on this machine
  goclaw import --dry-run       only say what there is
  goclaw import ~/old/.openclaw a folder from somewhere else
  goclaw import session.jsonl   one file, whatever wrote it`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.from != "" && !slices.Contains(inherit.Programs, o.from) {
				return usage("--from must be one of %s, not %q", strings.Join(inherit.Programs, ", "), o.from)
			}
			return importAll(cmd.Context(), a, args, o)
		},
	}
	cmd.Flags().StringVar(&o.from, "from", "", "the program that wrote it: "+strings.Join(inherit.Programs, ", "))
	cmd.Flags().BoolVarP(&o.dry, "dry-run", "n", false, "only say what there is")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "import what pi would show of each session, without repairing it")
	cmd.Flags().BoolVar(&o.again, "again", false, "also import what was removed here for good (a file that is named is imported anyway)")
	cmd.Flags().BoolVar(&o.deleted, "deleted", false, "also import what was deleted in its program, as far as it is still there")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print what became of each session as an object")
	return cmd
}

// importFlags say what is imported, and how.
type importFlags struct {
	from                                string
	dry, strict, again, deleted, asJSON bool
}

func importAll(ctx context.Context, a *app, paths []string, o importFlags) error {
	ss := a.stores
	ss.NoImport = true
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
			return errors.New("importing is switched off (session.inherit.enabled): name a PATH to import anyway")
		}
		if paths = ss.Sources(); len(paths) == 0 {
			return errors.New("HOME is not set, so goclaw does not know where other agents keep their sessions: name a PATH")
		}
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	take, err := ss.ImportOptions()
	if err != nil {
		return err
	}
	take.Strict, take.Again, take.Deleted, take.Waiting = o.strict, o.again, o.deleted, ss.Waiting
	cat, err := inherit.Find(ctx, paths, ss.FindOptions(o.from, take.Memo))
	if err != nil {
		return err
	}
	defer cat.Close()
	cat.Problems = append(missing, cat.Problems...)
	if o.dry {
		return showFound(a, cat, given, o.asJSON)
	}
	st, err := ss.Open()
	if err != nil {
		return err
	}
	if !given {
		if err := take.Memo.Begin(); err != nil {
			return err
		}
	}
	switch {
	case o.strict:
	case given:
		take.Memo.Give(paths, o.from)
	default:
		ss.Asked(take.Memo, cat)
	}
	rep, err := a.search.indexed(ctx, st, cat, take, !o.asJSON)
	if err == nil && !(given && take.Memo.Begun()) {
		err = take.Memo.Finish()
	}
	err = stores.ImportError(err, rep)
	if o.asJSON {
		if e := a.printJSON(importRows(cat, rep)); err == nil {
			err = e
		}
	} else {
		ss.Report(a.out, cat, rep, given)
		a.search.hint(ctx)
	}
	if err == nil && rep.Count(inherit.Failed)+cat.Unread()+rep.Damaged() > 0 {
		return errQuiet
	}
	return err
}

// present separates the paths that exist from those that do not.
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

// showFound is a dry run.
func showFound(a *app, cat *inherit.Catalogue, given, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(importRows(cat, inherit.Report{})); err != nil || cat.Unread() == 0 {
			return err
		}
		return errQuiet
	}
	stores.PrintFound(a.out, cat)
	a.stores.FoundNothing(a.out, cat, given)
	for _, t := range cat.Transcripts {
		fmt.Fprintln(a.out, foundLine(t, a.columns()))
	}
	for _, p := range cat.Problems {
		a.warn("%s", transcript.Printable(p.String()))
	}
	if a.stores.Unread(cat.Unread()); cat.Unread() > 0 {
		return errQuiet
	}
	return nil
}

// foundLine shows a transcript in one line or, if that is wider than the
// terminal (0: none), with its path on a separate line.
func foundLine(t *inherit.Transcript, columns int) string {
	who, path := fmt.Sprintf("%-11s %s", t.Program, transcript.Name(t.Key)), transcript.Name(t.Path)
	if t.Archive != "" {
		path += "  (" + transcript.Name(t.Archive) + ")"
	}
	if line := who + "  " + path; transcript.Wrap(line, columns) == line {
		return line
	}
	return transcript.Wrap(who, columns) + "\n  " + path
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
				r.Error = transcript.Problem(o.Err)
			}
		}
		rows = append(rows, r)
	}
	for _, p := range cat.Problems {
		problems = append(problems, p.String())
	}
	return map[string]any{"sessions": rows, "problems": problems, "unread": cat.Unread() + rep.Count(inherit.Failed), "records": rep.Records(), "milliseconds": rep.Took.Milliseconds()}
}
