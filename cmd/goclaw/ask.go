package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/agent"
	"goclaw/internal/mirrors"
	"goclaw/internal/models"
	"goclaw/internal/naming"
	"goclaw/internal/stores"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
)

func askCmd(a *app) *cobra.Command {
	var asJSON, goOn, begin bool
	var ref string
	var attach []string
	cmd := &cobra.Command{
		Use:   "ask TEXT",
		Short: "Run one turn: ask, stream the answer, exit",
		Long: `Sends TEXT to a session, streams the answer and exits. Standard input is
attached. /name with arguments is a prompt template or a skill, as in the chat.
Questions about tools are asked on the terminal; where there is none, only what
--mode and --allow permit is done. A line on standard error then says what was
not, and which flag would allow it; the exit code of a turn with an answer is 0
nevertheless.

With --json every event is a line: delta, recorded, tool, notice,
error, done. The notice with "refused" lists the calls that were not permitted;
nobody is asked. An answer that was cut because it reached the limit on its length
("cut" in done) is kept, and the exit code is 1.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			to := addressee{ref, mayBegin(a.env, begin)}
			if begin && ref == "" {
				return usage("--new starts the session that --session names: goclaw ask --new -s main:cli:trip TEXT")
			}
			if goOn {
				if len(args) > 0 || len(attach) > 0 {
					return usage("--continue resumes the last turn and takes no TEXT")
				}
				return ask(cmd.Context(), a, to, llm.Message{}, asJSON)
			}
			text, err := expanded(cmd.Context(), a, ref, strings.Join(args, " "), asJSON)
			if err != nil {
				return err
			}
			in, err := a.message(text, attach)
			if err != nil {
				return err
			}
			return ask(cmd.Context(), a, to, in, asJSON)
		},
	}
	cmd.Flags().StringVarP(&ref, "session", "s", "", sessionFlag+" (default: the configured key)")
	cmd.Flags().BoolVar(&begin, "new", false, newFlag)
	cmd.Flags().StringVar(&a.models.Think, "think", "", thinkFlag)
	a.given.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print events, one per line")
	cmd.Flags().BoolVarP(&goOn, "continue", "c", false, "resume a turn that failed or was interrupted")
	cmd.Flags().StringArrayVarP(&attach, "attach", "a", nil, "attach a file: a picture or text (can be repeated)")
	return cmd
}

// expanded returns what is sent for text: what /name at its beginning stands for,
// or text itself.
func expanded(ctx context.Context, a *app, ref, text string, quiet bool) (string, error) {
	if !strings.HasPrefix(text, "/") {
		return text, nil
	}
	if _, err := a.config(); err != nil {
		return "", err
	}
	of := session.Info{Key: session.Key(cmp.Or(ref, a.conf.Session.DefaultKey))}
	if !of.Key.Complete() {
		if _, found, err := a.stores.Find(ctx, ref); err == nil { // else ask says what is wrong
			of = found
		}
	}
	a.brief.Become(of, 0)
	sent, from, err := a.brief.ExpandAsked(text)
	if from != "" && err == nil && !quiet {
		name, _, _ := strings.Cut(text, " ")
		a.note("%s sends %s", name, from)
	}
	return sent, err
}

// addressee is what the user typed for the session to ask, and whether that may
// begin one.
type addressee struct {
	ref   string
	begin naming.Beginning
}

// mayBegin says whether a session that is not there may begin. A program that
// names a whole key may rely on it; a person may have mistyped, and asks with
// --new.
func mayBegin(e *env, asked bool) naming.Beginning {
	switch {
	case asked:
		return naming.Asked
	case terminal.Is(e.in) && terminal.Is(e.out):
		return naming.Never
	}
	return naming.WholeKey
}

// ask runs one turn in the session that to names. An empty message
// resumes the last turn.
func ask(ctx context.Context, a *app, to addressee, in llm.Message, asJSON bool) error {
	var nobody unasked
	approve, show := tool.Approver(&nobody), a.jsonEvents()
	if !asJSON {
		show = a.plainEvents()
		if there := a.approver(); there != nil {
			approve = there
		}
		a.models.Ask = asker(a.env)
	}
	r, err := newTurns(ctx, a, approve)
	if err != nil {
		return err
	}
	defer r.close()
	if c := r.tools.Confinement(); c.Missing != "" {
		a.warn("%s", c)
	}
	for _, line := range r.servers.news(ctx) {
		a.warn("%s", line)
	}
	s, note, err := target(ctx, a, r, to)
	if err != nil {
		return err
	}
	m, err := a.models.DecideOnce(ctx, s)
	if err != nil {
		return err
	}
	if err := checkInterrupted(ctx, a, s, len(in.Blocks) == 0); err != nil {
		return err
	}
	if mirror, n, err := mirrors.NewSince(ctx, a.stores.Store, s.Info); err == nil && n > 0 && !asJSON {
		a.note("%s", transcript.GoneOn(mirror, s.Info, n, "goclaw sessions merge "+string(s.Key)))
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	if m.Note != "" && !asJSON {
		a.note("%s", m.Note)
	}
	var unseen error // the reader has left; the turn is finished anyway
	if note != "" {
		unseen = show(addressed{note: note, key: s.Key}, nil)
	}
	if s.ID == "" {
		if s, err = r.Begin(ctx, session.Header{Key: s.Key, CWD: a.conf.Workspace}); err != nil {
			show(nil, err)
			return quietIf(asJSON, err)
		}
	}
	cut := false
	for ev, err := range r.RunID(ctx, s.ID, in) {
		if err != nil {
			if errors.Is(err, context.Canceled) {
				err = errors.New("stopped: the answer so far is kept")
			}
			show(nil, err)
			return quietIf(asJSON, err)
		}
		if d, ok := ev.(agent.Done); ok {
			cut = d.Stop == llm.StopLength
			if not := nobody.event(); not != nil && unseen == nil {
				unseen = show(not, nil)
			}
		}
		if unseen == nil {
			unseen = show(ev, nil)
		}
	}
	if unseen != nil {
		return fmt.Errorf("the answer is kept, but could not be shown: %w", unseen)
	}
	if !asJSON {
		if err := expire(context.WithoutCancel(ctx), a, a.stores.Store); err != nil {
			return err
		}
	}
	if cut {
		return quietIf(asJSON, errors.New(`the answer reached its length limit and was cut off: goclaw ask "continue" asks for the rest`))
	}
	return nil
}

// quietIf returns err, or errQuiet if err was shown already.
func quietIf(shown bool, err error) error {
	if shown {
		return errQuiet
	}
	return err
}

// target resolves the session that is asked: an existing one, or the draft of
// one that begins with this message. The note tells the user which.
func target(ctx context.Context, a *app, r *turns, to addressee) (s *session.Session, note string, err error) {
	ref := to.ref
	if ref == "" || ref == a.conf.Session.DefaultKey { // a key, whatever its form
		key := session.Key(a.conf.Session.DefaultKey)
		if s, err = r.Peek(ctx, key); err == nil && s.Origin.Program != "" && a.stores.Look(ctx) {
			s, err = r.Peek(ctx, key)
		}
		return s, "", err
	}
	find := func() (session.Info, error) {
		return naming.Address(ctx, a.stores.Store, ref, a.lists.Last(), to.begin)
	}
	in, err := find()
	if stores.Foreign(in, err) && a.stores.Look(ctx) {
		in, err = find()
	}
	if err != nil {
		return nil, "", a.noSession(err)
	}
	switch {
	case in.ID == "":
		note = "a new session, " + string(in.Key)
	case string(in.ID) != ref && string(in.Key) != ref:
		in.Title = naming.Title(ctx, a.stores.Store, in)
		note = "continuing " + transcript.Called(in)
	}
	if string(in.Key) == ref && string(in.ID) != ref {
		s, err = r.Peek(ctx, in.Key)
	} else {
		s, err = session.Open(ctx, a.stores.Store, in.ID)
	}
	return s, note, err
}

// checkInterrupted tells the user if the last turn of s did not end. With
// goOn there must be such a turn, and no other process may be running it.
func checkInterrupted(ctx context.Context, a *app, s *session.Session, goOn bool) error {
	t, ok := runner.InterruptedIn(s)
	if ok {
		release, err := a.stores.Store.Lock(ctx, string(s.ID), whoAmI())
		var held *session.HeldError
		switch {
		case errors.As(err, &held) && goOn:
			return fmt.Errorf("another goclaw (pid %d) is running a turn in %s: wait for it to finish", held.PID, s.Key)
		case errors.As(err, &held):
			a.note("another goclaw (pid %d) is running a turn", held.PID)
			return nil
		case err == nil:
			release()
		}
	}
	switch {
	case goOn && !runner.Resumable(s):
		return fmt.Errorf("there is no interrupted turn in %s to resume", s.Key)
	case !goOn && ok:
		a.note("the last turn was interrupted (%q): goclaw ask --continue resumes it", transcript.OneLine(transcript.Printable(t.Prompt), 60))
	}
	return nil
}

// thinkFlag describes --think.
var thinkFlag = "how much the model thinks before it answers: " + models.Levels()
