package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/models"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func doctorCmd(a *app) *cobra.Command {
	var fix, asJSON bool
	var repairTo string
	cmd := &cobra.Command{
		Use:   "doctor [PATH]",
		Short: "Check the configuration, the model, the store and every log",
		Long: `Checks the configuration, file permissions, every log and index of the store,
and whether the configured model can be used: there is a key for it, and its
server answers, accepts the key and has the model; the model itself is not
asked. --fix rebuilds indexes from the logs; it never changes a log.
Exits 0 when all is well, 1 when not.

With PATH, a file, a folder or a database of OpenClaw, pi, claw0, Claude Code,
Codex, opencode, Gemini CLI, crush or goclaw is examined instead (read-only).
The report says what is damaged, on which line, and what is lost. --repair-to
writes a repaired copy.
Of goclaw's own databases every page is read, also where SQLite finds nothing
any more, and the copy is a new database with every record that is left.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && fix:
				return usage("--fix is for goclaw's own store: --repair-to NEW writes a repaired copy of %s", args[0])
			case len(args) == 1:
				return doctorPath(cmd.Context(), a, args[0], repairTo, asJSON)
			case repairTo != "":
				return usage("--repair-to needs the PATH to examine: see goclaw doctor --help")
			}
			return doctorStore(cmd.Context(), a, fix, asJSON)
		},
	}
	cmd.Flags().StringVar(&repairTo, "repair-to", "", "write a repaired copy of PATH to this new file or folder")
	cmd.Flags().BoolVar(&fix, "fix", false, "rebuild indexes from the logs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as an object")
	return cmd
}

// finding is one problem that the doctor found.
type finding struct {
	What    string      `json:"what"`
	Session session.ID  `json:"session,omitempty"`
	Key     session.Key `json:"key,omitempty"`
	Problem string      `json:"problem"`
	Hint    string      `json:"hint,omitempty"`
}

// diagnosis is what the doctor found out. Other programs read it.
type diagnosis struct {
	OK       bool          `json:"ok"`
	Model    modelCard     `json:"model"`
	Known    []models.Fact `json:"remembered"`
	Sessions int           `json:"sessions"`
	Records  int           `json:"records"`
	Rebuilt  int           `json:"rebuilt"`
	Server   string        `json:"server,omitempty"`
	Findings []finding     `json:"findings"`
}

func (d *diagnosis) add(fs ...finding) { d.Findings = append(d.Findings, fs...) }

func doctorStore(ctx context.Context, a *app, fix, asJSON bool) error {
	d, err := examineStore(ctx, a, fix)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(d)
	} else {
		printDiagnosis(a.env, d, fix)
	}
	if err == nil && !d.OK {
		return errQuiet
	}
	return err
}

// examineStore examines everything that goclaw uses. If fix, indexes are
// rebuilt.
func examineStore(ctx context.Context, a *app, fix bool) (*diagnosis, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	d := &diagnosis{Findings: []finding{}}
	for _, w := range c.Warnings {
		d.add(finding{What: "config", Problem: strings.TrimPrefix(w, "config: ")})
	}
	d.add(modes(c.Home, c.Session.Path)...)
	if a.placed.Moved != "" {
		d.add(finding{What: "store", Problem: a.placed.Moved, Hint: fmt.Sprintf("then set session.path to %s, and leave out session.shared", c.Session.Path)})
	}
	a.stores.ReadOnly = !fix
	st, err := a.stores.Open()
	if err != nil {
		return nil, err
	}
	if fix {
		if d.Rebuilt, err = st.Rebuild(ctx); err != nil {
			d.add(finding{What: "store", Problem: "the session rows could not all be rebuilt: " + transcript.Problem(err)})
		}
	}
	examineServer(ctx, st, d)
	keys := map[session.ID]session.Key{}
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			d.add(storeFinding(c.Session, "", "", err))
			break
		}
		d.Sessions++
		d.Records += in.Records
		keys[in.ID] = in.Key
	}
	if err := st.Check(ctx, func(id session.ID, problem error) { d.add(storeFinding(c.Session, id, keys[id], problem)) }); err != nil {
		d.add(finding{What: "store", Problem: "it could not be examined to the end: " + transcript.Problem(err)})
	}
	index, err := a.search.examine(ctx, fix)
	if err != nil {
		d.add(finding{What: "search index", Problem: transcript.Problem(err)})
	}
	d.add(index...)
	model, unusable := examineModel(ctx, a)
	d.Model, d.Known = model, models.Limiting(models.Facts(c))
	d.add(unusable...)
	d.OK = len(d.Findings) == 0
	return d, nil
}

// storeFinding is what the store reports of the session id, and what to
// do about it.
func storeFinding(s config.Session, id session.ID, key session.Key, problem error) finding {
	f := finding{What: "store", Session: id, Key: key, Problem: transcript.Problem(problem)}
	var d *session.Damage
	path := s.Path
	switch {
	case errors.Is(problem, session.ErrStale):
		f.Hint = "goclaw doctor --fix rebuilds it from the logs"
	case errors.As(problem, &d) && d.Changed > 0:
		f.Hint = fmt.Sprintf("it can still be read: goclaw sessions show %s --around %d; restore it from a backup, or import it again", id, d.Changed)
	case s.Store == "postgres":
		f.Hint = "the rest can be read; a backup of the database may have it"
	case errors.As(problem, &d) && d.Size == 0: // records that are gone
		f.Hint = fmt.Sprintf("the rest can be read: goclaw sessions export %s; goclaw sessions fork %s continues in a copy without the damaged records; goclaw doctor %s --repair-to NEW also finds what SQLite does not reach", id, id, path)
	case errors.As(problem, &d):
		f.Hint = fmt.Sprintf("goclaw doctor %s --repair-to NEW makes a copy without it", path)
	case id == "":
		f.Hint = fmt.Sprintf("keep this file; goclaw doctor %s --repair-to NEW, or goclaw sessions copy DIR, makes a new store from everything readable", path)
	}
	return f
}

func printDiagnosis(e *env, d *diagnosis, fix bool) {
	st, c := e.style(), e.conf.Session
	fmt.Fprintf(e.out, "model %s: %s\n", transcript.Name(d.Model.Name), transcript.Name(d.Model.Did))
	for _, f := range d.Known {
		fmt.Fprintln(e.out, transcript.Name(fmt.Sprintf("remembered: %s %s; goclaw models forget %s", f.Name, f.Text, f.Name)))
	}
	for _, f := range d.Findings {
		line := f.Problem
		switch {
		case f.Key != "":
			line = fmt.Sprintf("%s (%s): %s", transcript.Printable(string(f.Key)), f.Session, line)
		case f.Session != "":
			line = string(f.Session) + ": " + line
		}
		fmt.Fprintln(e.out, st.Red(f.What)+": "+transcript.Name(line))
		if f.Hint != "" {
			fmt.Fprintln(e.out, "  "+transcript.Name(f.Hint))
		}
	}
	if fix {
		fmt.Fprintf(e.out, "rebuilt %s from the logs\n", transcript.Count(d.Rebuilt, "list row"))
	}
	fmt.Fprintf(e.out, "%s %s: %s, %s\n", c.Store, c.Place(), transcript.Count(d.Sessions, "session"), transcript.Count(d.Records, "record"))
	if d.Server != "" {
		fmt.Fprintln(e.out, transcript.Name(d.Server))
	}
	if d.OK {
		fmt.Fprintln(e.out, st.Green("all is well"))
	} else {
		fmt.Fprintln(e.out, transcript.Count(len(d.Findings), "problem"))
	}
}

// modes finds files that other users can read.
func modes(paths ...string) []finding {
	var out []finding
	for _, p := range paths {
		for _, q := range []string{p, p + "-wal", filepath.Join(p, "config.json")} {
			st, err := os.Stat(q)
			if err != nil {
				continue
			}
			if st.Mode().Perm()&fs.FileMode(0o077) != 0 {
				want := "600"
				if st.IsDir() {
					want = "700"
				}
				out = append(out, finding{What: "permissions", Problem: fmt.Sprintf("%s is %04o: other users can read it", q, st.Mode().Perm()), Hint: fmt.Sprintf("chmod %s %s", want, q)})
			}
		}
	}
	return out
}
