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

	"goclaw/internal/transcript"
	"goclaw/session"
)

func (a *app) doctorCmd() *cobra.Command {
	var fix, asJSON bool
	var repairTo string
	cmd := &cobra.Command{
		Use:   "doctor [PATH]",
		Short: "Check the configuration, the model, the store and every log",
		Long: `Checks the configuration, who may read the files, every log and index of the
store, and whether the configured model can be used: there is a key for it, and
its server answers, accepts the key and has the model; the model itself is not
asked. --fix rebuilds indexes from the logs; it never changes a log.
Exits 0 when all is well, 1 when not.

With PATH, a file, a folder or a database of OpenClaw, pi, claw0, Claude Code,
Codex or goclaw is examined instead, and not changed: what is damaged, on which
line, and what that costs. --repair-to writes a healed copy of it.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && fix:
				return usage("--fix is for goclaw's own store: --repair-to NEW writes a healed copy of %s", args[0])
			case len(args) == 1:
				return a.examinePath(cmd.Context(), args[0], repairTo, asJSON)
			case repairTo != "":
				return usage("--repair-to needs the PATH to examine: see goclaw doctor --help")
			}
			return a.doctor(cmd.Context(), fix, asJSON)
		},
	}
	cmd.Flags().StringVar(&repairTo, "repair-to", "", "write a healed copy of PATH to this new file or folder")
	cmd.Flags().BoolVar(&fix, "fix", false, "rebuild indexes from the logs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as an object")
	return cmd
}

// finding is one thing that the doctor saw.
type finding struct {
	What    string      `json:"what"`
	Session session.ID  `json:"session,omitempty"`
	Key     session.Key `json:"key,omitempty"`
	Problem string      `json:"problem"`
	Hint    string      `json:"hint,omitempty"`
}

func (a *app) doctor(ctx context.Context, fix, asJSON bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	findings := []finding{}
	for _, w := range c.Warnings {
		findings = append(findings, finding{What: "config", Problem: strings.TrimPrefix(w, "config: ")})
	}
	findings = append(findings, modes(c.Home, c.Session.Path)...)
	a.still = !fix
	st, err := a.store()
	if err != nil {
		return err
	}
	rebuilt := 0
	if fix {
		if rebuilt, err = st.Rebuild(ctx); err != nil {
			findings = append(findings, finding{What: "store", Problem: "the session rows could not all be rebuilt: " + oneLine(err)})
		}
	}
	logs, records := 0, 0
	keys := map[session.ID]session.Key{}
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			findings = append(findings, storeFinding("", "", err))
			break
		}
		logs++
		records += in.Records
		keys[in.ID] = in.Key
	}
	if err := st.Check(ctx, func(id session.ID, problem error) {
		findings = append(findings, storeFinding(id, keys[id], problem))
	}); err != nil {
		findings = append(findings, finding{What: "store", Problem: "it could not be examined to the end: " + oneLine(err)})
	}
	index, err := a.examineIndex(ctx, fix)
	if err != nil {
		findings = append(findings, finding{What: "search index", Problem: oneLine(err)})
	}
	findings = append(findings, index...)
	model, unusable := a.examineModel(ctx)
	findings = append(findings, unusable...)
	if asJSON {
		if err := a.printJSON(map[string]any{"ok": len(findings) == 0, "model": model, "sessions": logs, "records": records, "rebuilt": rebuilt, "findings": findings}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "model %s: %s\n", transcript.Printable(model.Name), model.Did)
		a.diagnosis(c.Session.Store, c.Session.Path, logs, records, rebuilt, fix, findings)
	}
	if len(findings) > 0 {
		return errQuiet
	}
	return nil
}

// storeFinding is what a store says of the session id, and what to do about it.
func storeFinding(id session.ID, key session.Key, problem error) finding {
	f := finding{What: "store", Session: id, Key: key, Problem: oneLine(problem)}
	var d *session.Damage
	switch {
	case errors.Is(problem, session.ErrStale):
		f.Hint = "goclaw doctor --fix rebuilds it from the logs"
	case errors.As(problem, &d) && d.Size == 0: // records that are gone
		f.Hint = fmt.Sprintf("the rest can be read: goclaw sessions export %s; goclaw sessions fork %s goes on in a copy without them", id, id)
	case id == "":
		f.Hint = "keep this file; goclaw sessions copy DIR takes all that can be read into a new store"
	}
	return f
}

func (a *app) diagnosis(kind, path string, logs, records, rebuilt int, fix bool, findings []finding) {
	st := a.style()
	for _, f := range findings {
		line := f.Problem
		switch {
		case f.Key != "":
			line = fmt.Sprintf("%s (%s): %s", transcript.Printable(string(f.Key)), f.Session, line)
		case f.Session != "":
			line = string(f.Session) + ": " + line
		}
		fmt.Fprintln(a.out, st.Red(f.What)+": "+line)
		if f.Hint != "" {
			fmt.Fprintln(a.out, "  "+f.Hint)
		}
	}
	if fix {
		fmt.Fprintf(a.out, "rebuilt %s from the logs\n", transcript.Count(rebuilt, "list row"))
	}
	fmt.Fprintf(a.out, "%s %s: %s, %s\n", kind, path, transcript.Count(logs, "session"), transcript.Count(records, "record"))
	if len(findings) == 0 {
		fmt.Fprintln(a.out, st.Green("all is well"))
	} else {
		fmt.Fprintln(a.out, transcript.Count(len(findings), "problem"))
	}
}

// modes finds files that others than the owner can read.
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
				out = append(out, finding{What: "permissions", Problem: fmt.Sprintf("%s is %04o: others can read it", q, st.Mode().Perm()), Hint: fmt.Sprintf("chmod %s %s", want, q)})
			}
		}
	}
	return out
}
