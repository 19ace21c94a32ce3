package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"goclaw/internal/naming"
	"goclaw/internal/repl/line"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// opening says which session a chat opens.
type opening struct {
	ref               string
	latest, pick, new bool
	text              string // filters those to pick from
}

func (o *opening) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.ref, "session", "s", "", sessionFlag)
	f.BoolVar(&o.new, "new", false, newFlag)
	f.BoolVarP(&o.latest, "continue", "c", false, "continue the latest session of this folder")
	f.BoolVarP(&o.pick, "resume", "r", false, "choose a session, of this folder if it was used lately; words after it filter them")
}

var errNoSessions = errors.New("there are no sessions yet: goclaw starts the first")

// session returns what chat takes: "" is the session used last, or the one that
// the chat lets the user pick.
func (o *opening) session(ctx context.Context, a *app) (string, error) {
	if n := len(o.ref); n > 0 && (o.latest || o.pick) || o.latest && o.pick {
		return "", usage("give one of --session, --continue and --resume")
	}
	if o.new && o.ref == "" {
		return "", usage("--new starts the session that --session names: goclaw --new -s main:cli:trip")
	}
	if !o.latest && !o.pick {
		return o.ref, nil
	}
	if o.pick && !(terminal.Is(a.in) && terminal.Is(a.out)) {
		return "", usage("--resume asks which session, which needs a terminal: goclaw sessions lists them, and --session opens one")
	}
	if terminal.Is(a.in) && terminal.Is(a.out) {
		a.stores.Agree = func(ctx context.Context, n int) bool {
			answer, err := line.NewPlain(a.in, a.out).Ask(ctx, importQuestion(n)+" [Y/n] ")
			return err == nil && (strings.TrimSpace(answer) == "" || line.Yes(answer))
		}
	}
	st, err := a.stores.Imported(ctx)
	if err != nil {
		return "", err
	}
	a.stores.LookSoon(ctx)
	if o.pick && a.draws() { // the chat shows them
		for _, err := range st.List(ctx, session.Query{Limit: 1}) {
			return "", err
		}
		return "", errNoSessions
	}
	most := 20
	if o.latest {
		most = 1
	}
	q := naming.Choice{Folder: a.conf.Workspace, Expect: 100}
	q.Text = o.text
	infos, err := begun(ctx, st, q, most)
	if q.Folder = ""; err == nil && len(infos) == 0 && o.pick {
		infos, err = begun(ctx, st, q, most)
	}
	switch {
	case err != nil:
		return "", err
	case len(infos) == 0 && o.pick && q.Text != "":
		return "", fmt.Errorf("no session matches %q: goclaw sessions lists them", q.Text)
	case len(infos) == 0 && o.pick:
		return "", errNoSessions
	case len(infos) == 0:
		return "", fmt.Errorf("no session worked in %s yet: goclaw without --continue opens the one used last, and /new starts one here", a.conf.Workspace)
	case o.latest:
		return string(infos[0].ID), nil
	}
	return choose(ctx, a, infos)
}

// begun returns the sessions of q in which something was said, the latest first,
// at most that many.
func begun(ctx context.Context, st session.Store, q naming.Choice, most int) (out []session.Info, err error) {
	for in, err := range naming.List(ctx, st, q) {
		if err != nil {
			return nil, err
		}
		if in.Turns > 0 {
			out = append(out, in)
		}
		if len(out) == most {
			break
		}
	}
	return out, nil
}

// choose asks which of infos to open.
func choose(ctx context.Context, a *app, infos []session.Info) (string, error) {
	if err := a.lists.printSessions(infos); err != nil {
		return "", err
	}
	in := line.NewPlain(a.in, a.out)
	for {
		answer, err := in.Ask(ctx, fmt.Sprintf("Which one? [1-%d, or a part of its name] ", len(infos)))
		if err != nil {
			return "", errQuiet
		}
		answer = strings.TrimSpace(answer)
		if answer == "" {
			return "", errQuiet
		}
		found, err := naming.Find(ctx, a.stores.Store, answer, false, a.lists.Last())
		if err == nil {
			return string(found.ID), nil
		}
		if !a.lists.candidates(err) {
			transcript.Say(a.err, "%s", transcript.Problem(err))
		}
	}
}
