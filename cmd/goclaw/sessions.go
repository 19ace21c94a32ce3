package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/codec"
	"goclaw/internal/handover"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/window"
)

func (a *app) sessionsCmd() *cobra.Command {
	var q session.Query
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "sessions",
		Aliases: []string{"session"},
		Short:   "List the conversations, and work with them",
		Long: `Lists the conversations, the one used last first. The commands below take a
KEY: a session's key, its id, its title, or the beginning of one of them or of
a word in them, if only one session fits. A key of three parts or more stands
for itself, except in the channel cli, for at least 8 characters of a UUID or
another long hex id at the end, and for an agent's main session (agent:ID:main).`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if n := nearestCommand(cmd, args[0]); n != "" {
				return usage("there is no command \"sessions %s\": did you mean \"sessions %s\"?", args[0], n)
			}
			return usage("there is no command \"sessions %s\": see goclaw sessions --help", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), q, asJSON) },
	}
	listFlags(cmd, &q, &asJSON)
	cmd.AddCommand(a.showCmd(), a.newCmd(), a.renameCmd(), a.deleteCmd(), a.restoreCmd(), a.forkCmd(), a.mergeCmd(), a.exportCmd(), a.copyCmd(), a.verifyCmd(), a.tailCmd(), a.listCmd())
	return cmd
}

// listCmd is what sessions does without a command, for those who type it.
func (a *app) listCmd() *cobra.Command {
	var q session.Query
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the conversations, as sessions does without a command",
		Args:    atMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), q, asJSON) },
	}
	listFlags(cmd, &q, &asJSON)
	return cmd
}

func listFlags(cmd *cobra.Command, q *session.Query, asJSON *bool) {
	f := cmd.Flags()
	f.BoolVar(asJSON, "json", false, "print a list of objects")
	f.IntVarP(&q.Limit, "limit", "n", 0, "at most so many (0: all)")
	f.StringVar(&q.Agent, "agent", "", "only this agent's")
	f.StringVar(&q.Channel, "channel", "", "only this channel's")
	f.StringVar(&q.Text, "text", "", "only those with this text in key, id or title")
	f.BoolVar(&q.Trash, "trash", false, "what was deleted")
}

// row is how a session is listed in JSON. Other programs rely on its names.
type row struct {
	Key        session.Key    `json:"key"`
	ID         session.ID     `json:"id"`
	Title      string         `json:"title"`
	Model      string         `json:"model"`
	Source     string         `json:"source"`
	Turns      int            `json:"turns"`
	Records    int            `json:"records"`
	UsedTokens int            `json:"usedTokens"`
	Folds      int            `json:"folds"`
	CreatedAt  string         `json:"createdAt"`
	UpdatedAt  string         `json:"updatedAt"`
	TrashedAt  string         `json:"trashedAt,omitempty"`
	Origin     session.Origin `json:"origin"`
}

func rowOf(in session.Info) row {
	return row{
		Key: in.Key, ID: in.ID, Title: in.Title, Model: in.ModelName(), Source: transcript.Source(in), Turns: in.Turns, Records: in.Records,
		UsedTokens: in.Used, Folds: in.Compactions, CreatedAt: stamp(in.Created), UpdatedAt: stamp(in.Updated), TrashedAt: stamp(in.Trashed), Origin: in.Origin,
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func (a *app) list(ctx context.Context, q session.Query, asJSON bool) error {
	if q.Limit < 0 {
		return usage("--limit must not be negative")
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	a.firstStart(ctx, st)
	rows := []row{}
	var infos []session.Info
	for in, err := range session.List(ctx, st, q) {
		if err != nil {
			return err
		}
		rows, infos = append(rows, rowOf(in)), append(infos, in)
	}
	if asJSON {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		if q != (session.Query{Limit: q.Limit}) {
			fmt.Fprintln(a.out, "no session fits")
		} else {
			fmt.Fprintln(a.out, "no sessions yet: goclaw opens the first")
		}
		return nil
	}
	a.table(rows, transcript.Names(infos, 48))
	return nil
}

func (a *app) table(rows []row, names []string) {
	cells := [][]string{{"KEY", "TITLE", "MODEL", "TURNS", "CONTEXT", "LAST USED", "FROM"}}
	for i, r := range rows {
		used := ""
		if r.UsedTokens > 0 {
			used = window.Short(r.UsedTokens)
		}
		updated, _ := time.Parse(time.RFC3339, r.UpdatedAt)
		cells = append(cells, []string{names[i], transcript.OneLine(transcript.Printable(r.Title), 40),
			transcript.OneLine(r.Model, 32), fmt.Sprint(r.Turns), used, transcript.Ago(time.Since(updated)), r.Source})
	}
	for _, line := range transcript.Table(cells, a.style(), a.columns()) {
		fmt.Fprintln(a.out, line)
	}
}

func (a *app) showCmd() *cobra.Command {
	var asJSON, full, all, checkpoints, notices bool
	var last int
	var around string
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Read a conversation",
		Args:  exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, s, err := a.whole(cmd.Context(), args[0])
			if id, seq, ok := recall.Cited(args[0]); ok && around == "" && errors.Is(err, session.ErrNotFound) {
				around = seq // as search cites it
				_, s, err = a.whole(cmd.Context(), id)
			}
			if err != nil {
				return err
			}
			recs, at := s.Branch, session.Seq(0)
			if checkpoints {
				return a.showCheckpoints(s, asJSON)
			}
			if notices {
				return a.showNotices(s, asJSON)
			}
			if around != "" {
				if recs, at, err = a.around(cmd.Context(), s, around, last); err != nil {
					return noRecord(err, s.ID)
				}
			} else if last > 0 && last < len(recs) {
				recs = recs[len(recs)-last:]
			}
			if asJSON {
				return a.showJSON(s, recs)
			}
			st := a.style()
			fmt.Fprintln(a.out, transcript.Wrap(st.Bold(string(s.Key))+"  "+transcript.Printable(cmp.Or(s.Title, s.Topic())), a.columns()))
			about := fmt.Sprintf("%s, %s, %s, %s", s.ID, transcript.Count(s.Turns, "turn"), transcript.Count(s.Records, "record"), transcript.Source(s.Info))
			fmt.Fprintln(a.out, st.Dim(transcript.Wrap(about, a.columns())))
			fmt.Fprintln(a.out)
			if all {
				for _, r := range recs {
					mark := " "
					if r.Seq == at {
						mark = ">"
					}
					fmt.Fprintf(a.out, "%s%4d  %s\n", mark, r.Seq, transcript.Line(r, st, a.width()-7))
				}
			} else {
				for i, r := range recs {
					if r.Seq == at {
						fmt.Fprintln(a.out, st.Yellow(fmt.Sprintf("> record %d", at)))
					}
					transcript.Plain(a.out, recs[i:i+1], st, full, a.columns())
				}
			}
			return a.damage(s.Damage)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session and its records as one object")
	cmd.Flags().BoolVar(&full, "full", false, "tool output and thinking in full")
	cmd.Flags().BoolVar(&all, "records", false, "every record of the live branch, a line each")
	cmd.Flags().BoolVar(&checkpoints, "checkpoints", false, "the summaries that were made ahead of time")
	cmd.Flags().BoolVar(&notices, "notices", false, "the warnings that the model was given about its window, and whether it wrote to memory/ then")
	cmd.Flags().IntVarP(&last, "last", "n", 0, "only the last so many records")
	cmd.Flags().StringVar(&around, "around", "", "only around this record, which is marked: its number, its id, or a prefix")
	return cmd
}

// showCheckpoints lists the checkpoints of a session.
func (a *app) showCheckpoints(s *session.Session, asJSON bool) error {
	if !asJSON {
		for _, line := range transcript.Checkpoints(s, a.style()) {
			fmt.Fprintln(a.out, line)
		}
		return a.damage(s.Damage)
	}
	type checkpoint struct {
		ID        string   `json:"id"`
		Seq       int64    `json:"seq"`
		Time      string   `json:"timestamp"`
		Summary   string   `json:"summary"`
		Topics    []string `json:"topics"`
		Decisions []string `json:"keyDecisions"`
		Questions []string `json:"openQuestions"`
		Covers    string   `json:"covers"`
		Tokens    int      `json:"tokensAtCheckpoint"`
		Messages  int      `json:"messageCountAtCheckpoint"`
		Model     string   `json:"model"`
	}
	out := []checkpoint{}
	for _, r := range s.Branch {
		if cp, ok := r.Body.(session.Checkpoint); ok {
			out = append(out, checkpoint{r.ID, int64(r.Seq), stamp(r.Time), cp.Summary, list(cp.Topics), list(cp.Decisions), list(cp.Questions), cp.Covers, cp.Tokens, cp.Messages, cp.Model})
		}
	}
	return a.printJSON(out)
}

func (a *app) showJSON(s *session.Session, recs []session.Record) error {
	lines := []rawJSON{}
	for _, r := range recs {
		line, err := recordJSON(r)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	if err := a.printJSON(struct {
		row
		Warned bool      `json:"flushWarned"`
		Saved  bool      `json:"flushActioned"`
		Branch []rawJSON `json:"branch"`
	}{rowOf(s.Info), window.Warned(s), window.Saved(s), lines}); err != nil {
		return err
	}
	return a.damage(s.Damage)
}

// damage reports what could not be read, on standard error. What was shown is
// not all there was, and programs are told so by the exit code.
func (a *app) damage(ds []*session.Damage) error {
	for _, d := range ds {
		fmt.Fprintln(a.err, "goclaw: damaged: "+d.Error())
	}
	if len(ds) > 0 {
		return errQuiet
	}
	return nil
}

func (a *app) newCmd() *cobra.Command {
	var title string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new [KEY]",
		Short: "Begin a new conversation",
		Long:  "Begins a new conversation under KEY, or under the default key. An older one of the same key stays, reachable by its id.",
		Args:  atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := a.store()
			if err != nil {
				return err
			}
			key := session.Key(a.conf.Session.DefaultKey)
			if len(args) > 0 {
				key = session.Key(args[0])
			}
			if key == "" {
				return usage("KEY must not be empty")
			}
			cwd, _ := os.Getwd()
			old, oldErr := session.Current(cmd.Context(), st, key)
			s, err := session.Begin(cmd.Context(), st, session.Header{Key: key, CWD: cwd}, session.System{})
			if err != nil {
				return err
			}
			if oldErr == nil {
				fmt.Fprintf(a.err, "the session of %s until now is still there, as %s\n", key, old.ID)
			}
			if title != "" {
				if err := a.title(cmd.Context(), st, s, title); err != nil {
					return err
				}
			}
			return a.say(asJSON, s.Info, "began %s (%s)", s.Key, s.ID)
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "its title")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

// say prints what was done, for people or for programs.
func (a *app) say(asJSON bool, in session.Info, format string, args ...any) error {
	if asJSON {
		return a.printJSON(rowOf(in))
	}
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// title gives s a title.
func (a *app) title(ctx context.Context, st store, s *session.Session, title string) error {
	_, err := session.Keep(ctx, st, s, s.Next(session.Title{Title: title}, session.System{}), session.System{})
	return err
}

func (a *app) renameCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rename KEY TITLE",
		Short: "Give a conversation a title",
		Args:  exactly("KEY", "TITLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, in, err := a.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s, err := session.Open(cmd.Context(), st, in.ID)
			if err != nil {
				return err
			}
			title := strings.TrimSpace(args[1])
			if title == "" {
				return usage("TITLE must not be empty")
			}
			if err := a.title(cmd.Context(), st, s, title); err != nil {
				return err
			}
			return a.say(asJSON, s.Info, "%s is now called %q", s.Key, title)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

func (a *app) deleteCmd() *cobra.Command {
	var purge, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "delete KEY",
		Short: "Move a conversation to the trash",
		Long:  "Moves a conversation to the trash, from where restore brings it back. --purge removes it for good, and asks first.",
		Args:  exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := a.store()
			if err != nil {
				return err
			}
			in, trashed, err := condemned(cmd.Context(), st, args[0], purge)
			if err != nil {
				return err
			}
			if begins := strings.HasPrefix(string(in.Key), args[0]) || strings.HasPrefix(string(in.ID), args[0]); purge && yes && !begins {
				return fmt.Errorf("%q is the title of %s or a part of it: --purge --yes needs the key or the id, %s", args[0], in.Key, in.ID)
			}
			if purge && !yes && !a.confirm(fmt.Sprintf("Remove %s (%q, %d records) for good?", in.Key, session.Titled(cmd.Context(), st, in), in.Records)) {
				return fmt.Errorf("%s was not removed: --purge needs a yes on a terminal, or --yes", in.Key)
			}
			if !trashed {
				if err := st.Delete(cmd.Context(), in.ID); err != nil {
					return err
				}
			}
			if purge {
				if err := a.purge(cmd.Context(), st, in); err != nil {
					return err
				}
				if p := in.Origin.Path; p != "" {
					fmt.Fprintf(a.err, "it came from %s, which stays: an import takes it again only with --again\n", p)
				}
				return a.say(asJSON, in, "removed %s (%s) for good", in.Key, in.ID)
			}
			if err := a.prune(cmd.Context()); err != nil {
				return err
			}
			return a.say(asJSON, in, "moved %s (%s) to the trash: goclaw sessions restore %s", in.Key, in.ID, in.ID)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove it for good")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

// condemned returns the session that delete is about. A whole key is that key
// only, wherever it is, never the beginning of another's: what is removed for
// good must be what was named.
func condemned(ctx context.Context, st session.Store, ref string, purge bool) (in session.Info, trashed bool, err error) {
	for _, trash := range []bool{false, true} {
		if trash && !purge {
			break
		}
		in, err = session.Find(ctx, st, ref, trash)
		exact := err == nil && (string(in.ID) == ref || string(in.Key) == ref)
		if exact || err == nil && !session.Key(ref).Complete() {
			return in, trash, nil
		}
		if err != nil && !errors.Is(err, session.ErrNotFound) && !session.Key(ref).Complete() {
			return in, trash, err
		}
	}
	none := &session.NoneError{Ref: ref}
	if in.ID != "" { // one that begins alike
		none.Near = []session.Info{in}
	}
	return in, false, none
}

func (a *app) restoreCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore KEY",
		Short: "Bring a conversation back from the trash",
		Args:  exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := a.store()
			if err != nil {
				return err
			}
			in, err := session.Find(cmd.Context(), st, args[0], true)
			if err != nil {
				return err
			}
			if err := st.Restore(cmd.Context(), in.ID); err != nil {
				return err
			}
			return a.say(asJSON, in, "restored %s (%s)", in.Key, in.ID)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the session as an object")
	return cmd
}

func (a *app) forkCmd() *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fork KEY [NEW-KEY]",
		Short: "Continue a conversation in a copy",
		Long: `Copies the live branch of a conversation into a new one; with --at up to that
record. A record that a search found on another branch is reached on that one.`,
		Example: `  goclaw sessions fork main                     all of it
  goclaw sessions fork main --at 12             up to record 12 of goclaw sessions show main --records
  goclaw sessions fork main main:cli:b --at 12  under a key of your choice`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("KEY")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			st, s, err := a.whole(cmd.Context(), args[0])
			if id, seq, ok := recall.Cited(args[0]); ok && at == "" && errors.Is(err, session.ErrNotFound) {
				at = seq // as search cites it
				st, s, err = a.whole(cmd.Context(), id)
			}
			if err != nil {
				return err
			}
			var key session.Key
			if len(args) == 2 {
				key = session.Key(args[1])
			}
			old, oldErr := session.Current(cmd.Context(), st, key)
			f, err := session.Fork(cmd.Context(), st, s, key, at, session.System{})
			if err != nil {
				return noRecord(err, s.ID)
			}
			if key != "" && oldErr == nil {
				fmt.Fprintf(a.err, "the session of %s until now is still there, as %s\n", key, old.ID)
			}
			return a.say(asJSON, f.Info, "forked %s as %s (%s)", s.Key, f.Key, f.ID)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the last record to take: its number, as show --records and search print it, its id, or a prefix")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the new session as an object")
	return cmd
}

func (a *app) mergeCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge KEY",
		Short: "Take in what another program has said since in the session that this one continues",
		Long: `An inherited session that you go on with continues in one of goclaw's own. If its
program goes on with it as well, merge appends what was said there to goclaw's
session, with a note that says where and when. Nothing that was said here
changes. KEY is either of the two.`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			st, in, err := a.find(ctx, args[0])
			if err != nil {
				return err
			}
			if in.Mirror() {
				own, err := session.ContinuationOf(ctx, st, in)
				if errors.Is(err, session.ErrNotFound) {
					return fmt.Errorf("nothing was said here in %s yet: there is nothing to merge it into", in.Key)
				}
				if err != nil {
					return err
				}
				in = own
			}
			mirror, _, err := session.NewSince(ctx, st, in)
			if err != nil {
				return err
			}
			if mirror.ID == "" {
				return fmt.Errorf("%s does not continue another program's session", in.Key)
			}
			n, err := session.Merge(ctx, st, in, session.System{})
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"key": in.Key, "id": in.ID, "from": mirror.Key, "messages": n})
			}
			fmt.Fprintln(a.out, transcript.Printable(transcript.Merged(mirror, in, n)))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was taken in as an object")
	return cmd
}

func (a *app) exportCmd() *cobra.Command {
	var format, output string
	var secrets bool
	cmd := &cobra.Command{
		Use:   "export KEY",
		Short: "Write a conversation to a file or to standard output",
		Long: `Writes a conversation as native lines (which OpenClaw and pi read as well), as
claw0 lines, or as a note for a person or another agent: Markdown, HTML or
JSON, one file, tool output folded away. Passwords and keys are taken out of
a note unless --secrets is given; lines are always whole.`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, in, err := a.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.output(output, func(w io.Writer) error { return a.exportAs(cmd.Context(), st, in.ID, format, secrets, w) })
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "native", "native, claw0, claw0-old, markdown, html or json")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "leave passwords and keys in a note")
	cmd.Flags().StringVarP(&output, "output", "o", "", "a new file instead of standard output")
	return cmd
}

// output hands write standard output, or a new file that is complete or not
// there at all.
func (a *app) output(path string, write func(io.Writer) error) error {
	if path == "" {
		return write(a.out)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: give the name of a new file, or remove it first", path)
	}
	if err != nil {
		return err
	}
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil && err != errQuiet { // else it has all that can be read
		os.Remove(path)
	}
	return err
}

func (a *app) export(ctx context.Context, st session.Store, id session.ID, format string, w io.Writer) error {
	return a.exportAs(ctx, st, id, format, false, w)
}

func (a *app) exportAs(ctx context.Context, st session.Store, id session.ID, format string, secrets bool, w io.Writer) error {
	var enc codec.Codec
	switch format {
	case "native", "openclaw", "pi", "jsonl":
		enc = codec.Native
	case "claw0":
		enc = codec.Claw0
	case "claw0-old":
		enc = codec.Claw0Old
	case "markdown", "md", "html", "json":
		if format == "md" {
			format = "markdown"
		}
		s, err := session.Replay(id, st.Read(ctx, id, 0))
		if err != nil {
			return err
		}
		if err := handover.Write(w, s, format, secrets); err != nil {
			return err
		}
		return a.damage(s.Damage)
	default:
		return usage("--format must be native, claw0, claw0-old, markdown, html or json, not %q", format)
	}
	var whole error
	for r, err := range st.Read(ctx, id, 0) {
		var d *session.Damage
		if errors.As(err, &d) {
			whole = a.damage([]*session.Damage{d})
			continue
		}
		if err != nil {
			return err
		}
		line, err := enc.Encode(r)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return whole
}

func (a *app) verifyCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [KEY...]",
		Short: "Read every record of conversations and say what is damaged",
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := a.store()
			if err != nil {
				return err
			}
			var infos []session.Info
			for _, ref := range args {
				in, err := session.Find(cmd.Context(), st, ref, false)
				if err != nil {
					return err
				}
				infos = append(infos, in)
			}
			if len(args) == 0 {
				for in, err := range st.List(cmd.Context(), session.Query{}) {
					if err != nil {
						return err
					}
					infos = append(infos, in)
				}
			}
			type verdict struct {
				Key      session.Key `json:"key"`
				ID       session.ID  `json:"id"`
				Records  int         `json:"records"`
				Problems []string    `json:"problems"`
			}
			bad, verdicts := 0, []verdict{}
			for _, in := range infos {
				v := verdict{in.Key, in.ID, in.Records, verify(cmd.Context(), st, in)}
				if len(v.Problems) > 0 {
					bad++
				}
				verdicts = append(verdicts, v)
				for _, p := range v.Problems {
					if !asJSON {
						fmt.Fprintf(a.out, "%s (%s): %s\n", v.Key, v.ID, p)
					}
				}
			}
			if asJSON {
				err = a.printJSON(verdicts)
			} else {
				_, err = fmt.Fprintf(a.out, "%s verified, %d damaged\n", transcript.Count(len(infos), "session"), bad)
			}
			if err == nil && bad > 0 {
				err = errQuiet
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	return cmd
}

// verify reads one log from its first record and says what is wrong with it.
func verify(ctx context.Context, st session.Store, in session.Info) []string {
	problems := []string{}
	s, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
	if err != nil {
		return append(problems, err.Error())
	}
	for _, d := range s.Damage {
		problems = append(problems, d.Error())
	}
	s.Trashed = in.Trashed
	if s.Info != in {
		problems = append(problems, "the index differs from the log: goclaw doctor --fix rebuilds it")
	}
	return problems
}

func (a *app) tailCmd() *cobra.Command {
	var follow, asJSON bool
	var last int
	cmd := &cobra.Command{
		Use:   "tail KEY",
		Short: "Show the latest records, and those to come",
		Args:  exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, in, err := a.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			after := max(in.Last-session.Seq(last), 0)
			recs := st.Read(cmd.Context(), in.ID, after)
			if follow {
				recs = session.Follow(cmd.Context(), st, in.ID, after)
			}
			for r, err := range recs {
				var d *session.Damage
				if errors.As(err, &d) {
					a.damage([]*session.Damage{d})
					continue
				}
				if err != nil {
					return err
				}
				line := []byte(fmt.Sprintf("%5d  %s", r.Seq, transcript.Line(r, a.style(), a.width()-7)))
				if asJSON {
					if line, err = recordJSON(r); err != nil {
						return err
					}
				}
				if _, err := fmt.Fprintf(a.out, "%s\n", line); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a record a line")
	cmd.Flags().IntVarP(&last, "lines", "n", 10, "begin with the last so many")
	return cmd
}
