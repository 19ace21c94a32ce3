package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/memoryfiles"
	"goclaw/internal/repl/history"
	"goclaw/internal/secrets"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/session"
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

// leak is a secret that was found. Programs read it.
type leak struct {
	Key     session.Key `json:"key,omitempty"`
	ID      session.ID  `json:"id,omitempty"`
	Seq     session.Seq `json:"record,omitempty"`
	Trashed bool        `json:"trashed,omitempty"`
	File    string      `json:"file,omitempty"` // a memory file
	Line    int         `json:"line,omitempty"`
	Rule    string      `json:"rule"`
	Preview string      `json:"preview"`
}

func (l leak) String() string {
	at := fmt.Sprintf("%s:%d", l.File, l.Line)
	if l.File == "" {
		at = fmt.Sprintf("%s %s#%d", l.Key, l.ID, l.Seq)
	}
	if l.Trashed {
		at += " (in the trash)"
	}
	return fmt.Sprintf("%s  %s  %s", transcript.Printable(at), l.Rule, l.Preview)
}

// finder finds secrets in a text. The text of a JSON value has its texts
// escaped.
type finder func(text string) []secrets.Match

// literally finds a text as it is written, and as JSON writes it.
func literally(text string) finder {
	forms := []string{text}
	if quoted, err := json.Marshal(text); err == nil {
		var plain strings.Builder
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(text) // a string has no error
		for _, form := range []string{string(quoted[1 : len(quoted)-1]), strings.Trim(strings.TrimSpace(plain.String()), `"`)} {
			if form != "" && form != forms[0] {
				forms = append(forms, form)
			}
		}
	}
	return func(in string) (found []secrets.Match) {
		for at := 0; at < len(in); {
			next, end := -1, 0
			for _, form := range forms {
				if i := strings.Index(in[at:], form); i >= 0 && (next < 0 || at+i < next) {
					next, end = at+i, at+i+len(form)
				}
			}
			if next < 0 {
				break
			}
			found = append(found, secrets.Match{Rule: "text", Start: next, End: end})
			at = end
		}
		return found
	}
}

// leaksIn returns the secrets in the log of in, and the redaction that takes
// them out.
func leaksIn(ctx context.Context, st session.Store, in session.Info, find finder) (leaks []leak, b session.Redaction, err error) {
	report := func(r session.Record, m secrets.Match, text string) {
		leaks = append(leaks, leak{Key: in.Key, ID: in.ID, Seq: r.Seq, Trashed: !in.Trashed.IsZero(), Rule: m.Rule, Preview: secrets.Mask(text[m.Start:m.End])})
	}
	target := func(t session.Target) {
		if len(t.Spans) > 0 && t.ID != "" {
			b.Targets = append(b.Targets, t)
		}
	}
	var parts []session.Record // of one answer
	flush := func() {
		for _, t := range leaksInParts(parts, find, report) {
			target(t)
		}
		parts = nil
	}
	for r, err := range session.Undamaged(st.Read(ctx, in.ID, 0), func(*session.Damage) {}) {
		if err != nil {
			return leaks, b, err
		}
		if p, ok := r.Body.(session.Partial); ok {
			if p.Offset == 0 {
				flush()
			}
			parts = append(parts, r)
			continue
		}
		t := session.Target{ID: r.ID}
		r.Texts(func(field, text string) string {
			for _, m := range find(text) {
				report(r, m, text)
				t.Spans = append(t.Spans, session.Span{Field: field, Start: m.Start, End: m.End, Rule: m.Rule})
			}
			return text
		})
		target(t)
	}
	flush()
	return leaks, b, nil
}

// leaksInParts finds the secrets in an answer that was recorded in parts. One
// may begin in one part and end in the next.
func leaksInParts(parts []session.Record, find finder, report func(session.Record, secrets.Match, string)) []session.Target {
	targets := make([]session.Target, len(parts))
	for _, field := range []string{"thinking", "text"} {
		whole, starts := "", make([]int, len(parts))
		for i, r := range parts {
			starts[i] = len(whole)
			r.Texts(func(f, text string) string {
				if f == field {
					whole += text
				}
				return text
			})
		}
		for _, m := range find(whole) {
			reported := false
			for i, r := range parts {
				end := len(whole)
				if i+1 < len(parts) {
					end = starts[i+1]
				}
				from, to := max(m.Start, starts[i]), min(m.End, end)
				if from >= to {
					continue
				}
				if !reported {
					report(r, m, whole)
					reported = true
				}
				targets[i].ID = r.ID
				targets[i].Spans = append(targets[i].Spans, session.Span{Field: field, Start: from - starts[i], End: to - starts[i], Rule: m.Rule})
			}
		}
	}
	return targets
}

// maxMemoryFile is the largest memory file that is scanned.
const maxMemoryFile = 64 << 20

// leaksInMemory returns the secrets in the memory files of the workspace, and
// how many files there are.
func leaksInMemory(workspace string, find finder) (leaks []leak, files int, err error) {
	scan := func(path string) error {
		data, err := wholefile.Read(path, maxMemoryFile)
		if err != nil {
			return err
		}
		files++
		text := string(data)
		for _, m := range find(text) {
			leaks = append(leaks, leak{File: path, Line: 1 + strings.Count(text[:m.Start], "\n"), Rule: m.Rule, Preview: secrets.Mask(text[m.Start:m.End])})
		}
		return nil
	}
	if err := scan(filepath.Join(workspace, memoryfiles.Main)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, files, err
	}
	err = filepath.WalkDir(filepath.Join(workspace, memoryfiles.Dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.Type().IsRegular() || !memoryfiles.IsText(path):
			return err
		}
		return scan(path)
	})
	return leaks, files, err
}

// scan is what goclaw secrets looks at.
type scan struct {
	leaks    []leak
	sessions []session.Info
	found    map[session.ID]session.Redaction
	files    int
}

// look scans the sessions that refs name, or everything.
func look(ctx context.Context, a *app, refs []string, find finder) (s scan, err error) {
	st, err := a.stores.open()
	if err != nil {
		return s, err
	}
	if s.sessions, err = a.lists.findAll(ctx, st, refs, true); err != nil {
		return s, err
	}
	s.found = map[session.ID]session.Redaction{}
	for _, in := range s.sessions {
		leaks, b, err := leaksIn(ctx, st, in, find)
		if err != nil {
			return s, fmt.Errorf("session %s: %w", in.ID, err)
		}
		s.leaks = append(s.leaks, leaks...)
		if len(b.Targets) > 0 {
			s.found[in.ID] = b
		}
	}
	if len(refs) == 0 {
		var more []leak
		if more, s.files, err = leaksInMemory(a.conf.Memory, find); err != nil {
			return s, err
		}
		s.leaks = append(s.leaks, more...)
	}
	return s, nil
}

// where says what was scanned.
func (s scan) where() string {
	text := transcript.Count(len(s.sessions), "session")
	if s.files > 0 {
		text += " and " + transcript.Count(s.files, "memory file")
	}
	return text
}

func scanSecrets(ctx context.Context, a *app, refs []string, asJSON bool) error {
	s, err := look(ctx, a, refs, secrets.Find)
	if err != nil {
		return err
	}
	if asJSON {
		if s.leaks == nil {
			s.leaks = []leak{}
		}
		err = a.printJSON(map[string]any{"found": s.leaks, "sessions": len(s.sessions), "memoryFiles": s.files})
	} else {
		err = listLeaks(a.env, s)
	}
	if err == nil && len(s.leaks) > 0 {
		err = errQuiet
	}
	return err
}

func listLeaks(e *env, s scan) error {
	for _, l := range s.leaks {
		if err := e.print(l.String()); err != nil {
			return err
		}
	}
	if len(s.leaks) == 0 {
		return e.print("no secrets in " + s.where())
	}
	return e.print(transcript.Count(len(s.leaks), "secret") + " in " + s.where() + ": goclaw secrets redact takes them out of sessions")
}

func redactSecrets(ctx context.Context, a *app, refs []string, file string, yes, asJSON bool) error {
	find := finder(secrets.Find)
	if file != "" {
		text, err := literal(a.in, file)
		if err != nil {
			return err
		}
		find = literally(text)
	}
	s, err := look(ctx, a, refs, find)
	if err != nil {
		return err
	}
	n, kept := 0, 0
	for _, l := range s.leaks {
		if l.File == "" && !l.Trashed && len(s.found[l.ID].Targets) > 0 {
			n++
			continue
		}
		kept++
		a.warn("left as it is: %s", l)
	}
	if n == 0 {
		return a.result(asJSON, map[string]int{"redacted": 0, "left": kept}, "nothing to take out of %s", s.where())
	}
	if !yes {
		if err := confirmRedact(a.env, s, n); err != nil {
			return err
		}
	}
	for _, in := range s.sessions {
		if b := s.found[in.ID]; len(b.Targets) > 0 && in.Trashed.IsZero() {
			if err := redactSession(ctx, a, in, b, find); err != nil {
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
func confirmRedact(e *env, s scan, n int) error {
	for _, l := range s.leaks {
		if l.File == "" && !l.Trashed {
			fmt.Fprintln(e.err, l)
		}
	}
	if !e.confirm(fmt.Sprintf("Take %s out?", transcript.Count(n, "secret"))) {
		return fmt.Errorf("nothing was taken out: redact needs a yes on a terminal, or --yes")
	}
	return nil
}

// redactSession appends b to the log of in, and a title without secrets if it
// has one with them.
func redactSession(ctx context.Context, a *app, in session.Info, b session.Redaction, find finder) error {
	st := a.stores.st
	s, err := session.Open(ctx, st, in.ID)
	if err != nil {
		return err
	}
	if _, err := session.Keep(ctx, st, s, s.Next(b, session.System{}), session.System{}); err != nil {
		return err
	}
	title := secrets.Replace(s.Title, find(s.Title))
	if title == s.Title {
		return nil
	}
	_, err = session.Keep(ctx, st, s, s.Next(session.Title{Title: title}, session.System{}), session.System{})
	return err
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
