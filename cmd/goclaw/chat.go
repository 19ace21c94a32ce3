package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"goclaw/internal/repl"
	"goclaw/internal/repl/line"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
)

// chat talks until the user leaves: with an editor on a terminal, by plain
// lines on one that can do nothing, and without a question in a pipe.
func (a *app) chat(ctx context.Context) error {
	interactive := a.isTerminal(a.in) && a.isTerminal(a.out)
	o := repl.Options{
		Clock: session.System{}, Out: a.out, Err: a.err, Style: a.style(), Session: a.session,
		Interactive: interactive, Live: interactive && a.getenv("TERM") != "dumb",
		Allow: a.allow, Hint: chatHint, Models: a.models,
	}
	o.CWD, _ = os.Getwd()
	var chat *repl.Chat
	var ask tool.Approver
	if interactive {
		o.Err, o.Width = a.out, a.width
		ask = tool.ApproverFunc(func(ctx context.Context, req tool.Request) (tool.Decision, error) { return chat.Approve(ctx, req) })
	} else {
		o.Style.Colour = false
		ask = a.approver(false)
	}
	run, done, err := a.runner(ctx, ask)
	if err != nil {
		return err
	}
	defer done()
	defer a.follow(ctx, a.st)()
	if a.ix != nil {
		// The user comes first: what is missing in the index can wait.
		defer time.AfterFunc(3*time.Second, a.ix.Background).Stop()
		o.Search = a.ix
	}
	o.Runner, o.Store, o.DefaultKey = run, a.st, session.Key(a.conf.Session.DefaultKey)
	o.Model = func() repl.Model { return a.spoken() }
	o.Decide = func(ctx context.Context, s *session.Session) (repl.Model, string, error) {
		_, problem, err := a.decide(ctx, s)
		if err != nil {
			return repl.Model{}, problem, err
		}
		return a.spoken(), problem, nil
	}
	o.Choose = func(_ context.Context, spec string) (repl.Model, error) {
		v, err := a.named(spec)
		if err != nil {
			return repl.Model{}, err
		}
		a.voice, a.model = v, "" // what is chosen now goes before what was said at the start
		return a.spoken(), nil
	}
	o.Spent = a.spent
	o.Export = func(ctx context.Context, id session.ID, format, path string) error {
		err := a.output(path, func(w io.Writer) error { return a.export(ctx, a.st, id, format, w) })
		if err == errQuiet { // said already
			err = nil
		}
		return err
	}
	restore := func() {} // the terminal
	o.Abort = func() { restore(); os.Exit(130) }
	chat = repl.New(o)

	var in repl.Input
	switch {
	case o.Live:
		t, err := line.Open(a.in.(*os.File), a.out.(*os.File), chat.Interrupt)
		if err != nil {
			return err
		}
		defer t.Close()
		restore = func() { t.Close() }
		if t.History, err = line.OpenHistory(filepath.Join(a.conf.Home, "history")); err != nil {
			fmt.Fprintf(a.err, "goclaw: what was typed before is not remembered: %v\n", err)
		}
		t.Complete, t.Paint, in = chat.Complete, o.Style.Green, t
		// The first turn should not wait for the vocabulary: it is built
		// while the user types.
		if v, err := a.choose(ctx); err == nil {
			defer time.AfterFunc(300*time.Millisecond, func() { v.tokens.Count("") }).Stop()
		}
	case interactive:
		in = line.NewPlain(a.in, a.out)
	default:
		in = line.NewPlain(textOnly{a.in}, nil)
	}
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, os.Interrupt)
	defer close(sig)
	defer signal.Stop(sig)
	go func() {
		for range sig {
			chat.Interrupt()
		}
	}()
	err = a.noSession(chat.Run(ctx, in))
	if e := a.sweep(context.WithoutCancel(ctx), a.st); e != nil && err == nil {
		err = e
	}
	if errors.Is(err, repl.ErrFailed) {
		return errQuiet
	}
	return err
}

// textOnly fails where what it reads is no text: lines of a picture are not
// messages.
type textOnly struct{ io.Reader }

func (t textOnly) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	const enough = 64 // to judge by: a short piece may be half a character
	_, ok := llm.DecodeText(p[:n])
	if bytes.IndexByte(p[:n], 0) >= 0 || n >= enough && !ok {
		return 0, errors.New("standard input is not text, and a chat reads messages from it, a line each: goclaw ask attaches a picture")
	}
	return n, err
}

// spoken is the voice as the chat knows it.
func (a *app) spoken() repl.Model {
	v := a.voice
	p := v.prompt(a.conf)
	p.Tools = a.specs
	return repl.Model{Provider: v.provider, Model: v.model, Name: v.name(), Note: v.note, Budget: v.budget, Tokens: v.tokens, Prompt: p, Cost: func(u llm.Usage) float64 { return v.cost(u).Total }}
}

// chatHint is hint in the words of the chat.
func chatHint(err error) string {
	var amb *session.AmbiguousError
	switch {
	case errors.As(err, &amb):
		return "type more of the key, or the id"
	case errors.Is(err, session.ErrHeld):
		return "wait for it, or go on in a copy: /fork"
	case errors.Is(err, session.ErrNotFound):
		return "/sessions lists what there is"
	case errors.Is(err, llm.ErrModel):
		return "choose another with /model provider/model"
	case errors.Is(err, llm.ErrNetwork):
		return "your words are kept: /continue asks again, and /model offline needs no network"
	case errors.Is(err, llm.ErrOverflow):
		return "/new begins anew, and /model chooses one with a larger window"
	}
	return modelHint(err)
}
