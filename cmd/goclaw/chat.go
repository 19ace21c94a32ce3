package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"goclaw/agent"
	"goclaw/internal/models"
	"goclaw/internal/naming"
	"goclaw/internal/repl"
	"goclaw/internal/repl/history"
	"goclaw/internal/repl/line"
	"goclaw/internal/spending"
	"goclaw/internal/stores"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/tui"
	"goclaw/llm"
	"goclaw/provider/offline"
	"goclaw/session"
	"goclaw/tool"
)

// chat runs until the user quits: with package tui's interface on a terminal,
// plain lines on a dumb one or with --plain, and without a prompt in a pipe. The
// user picks the session if pick is not nil.
func chat(ctx context.Context, a *app, ref string, begin naming.Beginning, pick *repl.Pick) error {
	interactive := terminal.Is(a.in) && terminal.Is(a.out)
	o := repl.Options{
		Clock: session.System{}, Out: a.out, Err: a.err, Style: a.style(), Session: ref, Begin: begin, Pick: pick,
		Interactive: interactive, Remember: a.remember, Hint: chatHint,
	}
	var c *repl.Chat
	var approve tool.Approver
	var ui *tui.UI
	o.Style.Render = a.draws()
	if o.Style.Render {
		ui = tui.New(tui.Options{In: a.in.(*os.File), Out: a.out.Under().(*os.File), Environ: os.Environ(), Style: o.Style})
		o.Display = ui
	}
	if interactive {
		o.Err, o.Width = a.out, a.width
		approve = tool.ApproverFunc(func(ctx context.Context, req tool.Request) (tool.Decision, error) { return c.Approve(ctx, req) })
		a.models.Ask = func(ctx context.Context, question string) (bool, error) { return c.Confirm(ctx, question) }
	} else {
		o.Style.Colour = false
		approve = a.approver()
		a.models.Ask = asker(a.env)
	}
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	if interactive { // who is there is asked before anything is imported
		o.First = a.firstStart(ctx, st)
		a.stores.NoImport = true
	}
	run, err := newTurns(ctx, a, approve)
	if err != nil {
		return err
	}
	defer run.close()
	if ui != nil {
		ui.Workspace(run.tools)
	}
	o.Shell = func(ctx context.Context, command string, output io.Writer) (llm.ToolResult, error) {
		return tool.Shell(ctx, a.conf.Workspace, os.Environ(), command, output)
	}
	if c := run.tools.Confinement(); c.Missing != "" && !interactive { // a person sees it on the first line
		a.warn("%s", c)
	}
	o.CWD, o.Folder = a.conf.Workspace, transcript.ShortPath(a.conf.Workspace, a.getenv("HOME"))
	if ref != "" && ref != a.conf.Session.DefaultKey {
		if in, err := naming.Find(ctx, st, ref, false, a.lists.Last()); stores.Foreign(in, err) {
			a.stores.LookSoon(ctx)
		}
	} else if !interactive { // nobody waits for a prompt
		a.stores.LookSoon(ctx)
	}
	var troubles notes
	defer a.followAfter(ctx, st, &o, troubles.add)()
	defer a.search.inChat(&o, ui)()
	o.Lists, o.Window = a.lists, func(in session.Info) int { return models.WindowOf(a.conf, in.ModelName()) }
	o.Runner, o.Store, o.DefaultKey, o.Modes = run.Runner, st, session.Key(a.conf.Session.DefaultKey), run.tools
	o.Spent = func(ctx context.Context, id session.ID) (float64, error) { return spending.Of(ctx, st, a.conf, id) }
	o.Export = func(ctx context.Context, id session.ID, format, path string) error {
		err := a.output(path, func(w io.Writer) error { return a.export(ctx, st, id, format, false, w) })
		if err == errQuiet { // said already
			err = nil
		}
		return err
	}
	o.Prepare = func(ctx context.Context) []string { return append(troubles.take(), run.servers.news(ctx)...) }
	setModels(a, &o, run.tools)
	o.Shortcuts, o.Expand, o.Skills = a.brief.Shortcuts, a.brief.Expand, a.brief.Known
	if ui != nil {
		defer warmUp(a, &o)()
	}
	o.Abort = func() { a.tty.restore(); os.Exit(130) }
	o.Guide = a.guide
	o.AskAbove = a.conf.Session.Compaction.AskAbove
	c = repl.New(o)
	a.retrying = func(r agent.Retrying) { c.Show(r) }
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, os.Interrupt)
	defer close(sig)
	defer signal.Stop(sig)
	go func() {
		for range sig {
			c.Interrupt()
		}
	}()
	err = a.noSession(converse(ctx, a, c, ui, interactive))
	if e := sweep(context.WithoutCancel(ctx), a, st); e != nil && err == nil {
		err = e
	}
	if errors.Is(err, repl.ErrFailed) {
		return errQuiet
	}
	return err
}

// draws reports whether a chat has package tui's interface.
func (a *app) draws() bool {
	return terminal.Is(a.in) && terminal.Is(a.out) && !a.plain && a.getenv("TERM") != "dumb"
}

// converse runs the chat: in ui if there is one.
func converse(ctx context.Context, a *app, c *repl.Chat, ui *tui.UI, interactive bool) error {
	switch {
	case ui != nil:
		outBack, errBack := a.out.Lend(ui.Write), a.err.Lend(ui.Write)
		undo := func() { ui.Restore(); outBack(); errBack() }
		a.tty.undo.Store(&undo)
		defer errBack()
		defer outBack()
		defer a.tty.undo.Store(nil)
		ui.Attach(repl.Remote{Chat: c})
		tell := repl.Remote{Chat: c}.Working
		a.working.Store(&tell)
		defer a.working.Store(nil)
		h, err := history.Open(filepath.Join(a.conf.Home, "history"))
		if err != nil {
			a.warn("input history is unavailable: %v", err)
		}
		ui.Remember(h)
		return ui.Run(ctx, func(ctx context.Context) error { return c.Run(ctx, ui) })
	case interactive:
		return c.Run(ctx, line.NewPlain(a.in, a.out))
	}
	return c.Run(ctx, line.NewPlain(textOnly{a.in}, nil))
}

// inChat gives the chat the search. The user comes first: what is missing in the
// index can wait until stop is called.
func (x *searcher) inChat(o *repl.Options, ui *tui.UI) (stop func()) {
	if x.ix == nil {
		return func() {}
	}
	o.Search, o.Busy = x.ix, x.ix.Hold
	if ui != nil {
		x.indexing.Draw = ui.Wait
	}
	later := time.AfterFunc(3*time.Second, x.ix.Background)
	return func() { later.Stop() }
}

// warmUp builds the vocabulary of the first model that is decided on while the
// user types, so that the first turn need not wait for it.
func warmUp(a *app, o *repl.Options) (stop func()) {
	var timer *time.Timer
	decide := o.Decide
	o.Decide = func(ctx context.Context, s *session.Session) (repl.Model, string, error) {
		m, problem, err := decide(ctx, s)
		if err == nil && timer == nil {
			tokens := a.models.Now.Tokens
			timer = time.AfterFunc(300*time.Millisecond, func() { tokens.Count("") })
		}
		return m, problem, err
	}
	return func() {
		if timer != nil {
			timer.Stop()
		}
	}
}

// setModels lets the chat know the model in use, and choose another.
func setModels(a *app, o *repl.Options, tools *tool.Set) {
	o.Models = a.models.Names
	o.Model = func() repl.Model { return chatModel(a, tools) }
	o.Decide = func(ctx context.Context, s *session.Session) (repl.Model, string, error) {
		m, problem, err := a.models.Decide(ctx, s)
		if err != nil {
			return repl.Model{}, problem, err
		}
		a.brief.Read(s, m.Budget.Window)
		return chatModel(a, tools), problem, nil
	}
	o.Choose = func(ctx context.Context, spec string) (repl.Model, error) {
		m, err := a.models.NamedOrLent(ctx, spec)
		if err != nil {
			return repl.Model{}, err
		}
		a.models.AllowNamed(m)
		a.models.Now, a.models.Flag = m, "" // this choice goes before --model
		return chatModel(a, tools), nil
	}
	o.Choices = func(ctx context.Context, all bool) repl.Choices { return table(a.models.Choices(ctx), all) }
	o.Think = func(s *session.Session) repl.Thinking {
		t := repl.Thinking{Offers: a.models.Now.Levels}
		t.Level, t.From = a.models.Level(s)
		if !a.models.Now.Thinks {
			t.Note = a.models.Now.Name() + " does not think before it answers"
		}
		return t
	}
	o.SetThink = func(level string) (note string, err error) {
		if level != "" {
			note, err = a.models.Now.Takes(level)
		}
		if err == nil {
			a.models.Think = ""
		}
		return note, err
	}
}

// chatModel is the model in use, as the chat knows it.
func chatModel(a *app, tools *tool.Set) repl.Model {
	m := a.models.Now
	p := a.brief.Prompt(m.Prompt(a.conf))
	p.Tools = tools.Specs()
	return repl.Model{Provider: m.ProviderName, Model: m.ModelName, Name: m.Name(), Note: m.Note, Budget: m.Budget, Tokens: m.Tokens, Prompt: p, Priced: m.Price.Prices != nil || m.ProviderName == offline.Name}
}

// textOnly fails if what it reads is not text: lines of a picture are not
// messages.
type textOnly struct{ io.Reader }

func (t textOnly) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	const enough = 64 // to judge by: a short piece may be half a character
	_, ok := llm.DecodeText(p[:n])
	if bytes.IndexByte(p[:n], 0) >= 0 || n >= enough && !ok {
		return 0, errors.New("standard input is not text, and a chat reads messages from it, one per line: goclaw ask attaches a picture")
	}
	return n, err
}

// chatHint is hint in the words of the chat.
func chatHint(err error) string {
	switch {
	case errors.Is(err, session.ErrHeld):
		return "wait for it, or continue in a copy: /fork"
	case errors.Is(err, agent.ErrSteps):
		return "limits.stepsPerTurn in the configuration allows more; /continue resumes the turn"
	case errors.Is(err, session.ErrNotFound):
		return "/sessions lists what there is"
	case errors.Is(err, llm.ErrModel):
		return "choose another with /model provider/model"
	case errors.Is(err, llm.ErrNetwork):
		return "/model offline needs no network"
	case errors.Is(err, llm.ErrOverflow):
		return "/new starts a new session, and /model chooses a model with a larger window"
	}
	return hint(err)
}
