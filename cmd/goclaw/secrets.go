package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/leaks"
	"goclaw/internal/repl/history"
	"goclaw/internal/secrets"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
)

func secretsCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Find keys and passwords in sessions, and take them out",
		Long: `Finds keys, tokens and passwords in sessions and memory files, and takes
them out of what anyone reads of a session.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q: goclaw secrets has scan and redact", "secrets "+args[0])
			}
			return cmd.Help()
		},
	}
	var asJSON bool
	scan := &cobra.Command{
		Use:   "scan [KEY]",
		Short: "List what looks like a key, a token or a password",
		Long: `Reads every session (or one), those in the trash too, and the memory files
of the workspace, and lists what looks like a secret: where it is, the rule
that found it, and its last four characters. Images are skipped.

The exit code is 1 if something was found, as with a linter. What was redacted
is not found again.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return scanSecrets(cmd.Context(), a, args, asJSON) },
	}
	scan.Flags().BoolVar(&asJSON, "json", false, "print an object with a list of what was found")
	cmd.AddCommand(scan, redactCmd(a))
	return cmd
}

func redactCmd(a *app) *cobra.Command {
	var yes, asJSON bool
	var file string
	cmd := &cobra.Command{
		Use:   "redact [KEY]",
		Short: "Take secrets out of what is shown, sent, searched and exported",
		Long: `Appends a record that says where in a session the secrets are. From then
on nobody gets them: not the model, not show, tail and search, not exports,
forks and summaries. Other programs that read the log's file do.

The log itself is never rewritten: it keeps the bytes. To remove them for good,
continue in a copy, which is made without them, and remove the session:
  goclaw sessions fork KEY
  goclaw sessions delete KEY --purge

Memory files are yours: edit them. A secret that was sent to a model or lies in
a log should be replaced in any case.`,
		Example: `  goclaw secrets redact                        everything that scan finds
  goclaw secrets redact trip --text-file -     a text that no rule knows, typed or piped in`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return redactSecrets(cmd.Context(), a, args, file, yes, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "text-file", "", "take out this file's content, wherever it occurs, and nothing else; - is standard input")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was taken out as an object")
	return cmd
}

// lookFor scans the sessions that refs name, or everything.
func lookFor(ctx context.Context, a *app, refs []string, find leaks.Finder) (s leaks.Scan, err error) {
	st, err := a.stores.Open()
	if err != nil {
		return s, err
	}
	infos, err := a.lists.findAll(ctx, st, refs, true)
	if err != nil {
		return s, err
	}
	memory := a.conf.Memory
	if len(refs) > 0 {
		memory = ""
	}
	return leaks.Look(ctx, st, infos, memory, find)
}

func scanSecrets(ctx context.Context, a *app, refs []string, asJSON bool) error {
	s, err := lookFor(ctx, a, refs, secrets.Find)
	if err != nil {
		return err
	}
	if asJSON {
		if s.Leaks == nil {
			s.Leaks = []leaks.Leak{}
		}
		err = a.printJSON(map[string]any{"found": s.Leaks, "sessions": len(s.Sessions), "memoryFiles": s.Files})
	} else {
		err = listLeaks(a.env, s)
	}
	if err == nil && len(s.Leaks) > 0 {
		err = errQuiet
	}
	return err
}

func listLeaks(e *env, s leaks.Scan) error {
	for _, l := range s.Leaks {
		if err := e.print(l.String()); err != nil {
			return err
		}
	}
	if len(s.Leaks) == 0 {
		return e.print("no secrets in " + s.Where())
	}
	return e.print(transcript.Count(len(s.Leaks), "secret") + " in " + s.Where() + ": goclaw secrets redact takes them out of sessions")
}

func redactSecrets(ctx context.Context, a *app, refs []string, file string, yes, asJSON bool) error {
	find := leaks.Finder(secrets.Find)
	if file != "" {
		text, err := literal(a.in, file)
		if err != nil {
			return err
		}
		find = leaks.Literally(text)
	}
	s, err := lookFor(ctx, a, refs, find)
	if err != nil {
		return err
	}
	n, kept := 0, 0
	for _, l := range s.Leaks {
		if l.File == "" && !l.Trashed && len(s.Found[l.ID].Targets) > 0 {
			n++
			continue
		}
		kept++
		a.warn("left as it is: %s", l)
	}
	if n == 0 {
		return a.result(asJSON, map[string]int{"redacted": 0, "left": kept}, "nothing to take out of %s", s.Where())
	}
	if !yes {
		if err := confirmRedact(a.env, s, n); err != nil {
			return err
		}
	}
	for _, in := range s.Sessions {
		if b := s.Found[in.ID]; len(b.Targets) > 0 && in.Trashed.IsZero() {
			if err := leaks.Redact(ctx, a.stores.Store, in, b, find); err != nil {
				return err
			}
		}
	}
	// What was typed is in the input history as well.
	if _, err := history.Forget(filepath.Join(a.conf.Home, "history"), func(s string) bool { return len(find(s)) > 0 }); err != nil {
		return err
	}
	if err := a.search.renew(ctx); err != nil {
		return err
	}
	return a.result(asJSON, map[string]int{"redacted": n, "left": kept},
		"took out %s; the logs keep the bytes: goclaw secrets redact --help says how to remove them for good", transcript.Count(n, "secret"))
}

// confirmRedact shows what was found and asks.
func confirmRedact(e *env, s leaks.Scan, n int) error {
	for _, l := range s.Leaks {
		if l.File == "" && !l.Trashed {
			fmt.Fprintln(e.err, l)
		}
	}
	if !e.confirm(fmt.Sprintf("Take %s out?", transcript.Count(n, "secret"))) {
		return fmt.Errorf("nothing was taken out: redact needs a yes on a terminal, or --yes")
	}
	return nil
}

// shortestText is how long a text must be to be taken out wherever it occurs.
const shortestText = 4

// literal reads the text to take out, without the end of its last line.
func literal(in io.Reader, file string) (string, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(in, wholefile.Small))
	} else {
		data, err = wholefile.Read(file, wholefile.Small)
	}
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(data), "\r\n")
	if len(text) < shortestText {
		return "", usage("the text to take out has %d characters: it needs at least %d", len(text), shortestText)
	}
	return text, nil
}
