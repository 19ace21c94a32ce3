package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/term"

	"goclaw/internal/config"
	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/provider/local"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

// app is one run of the program: its streams, flags, and what was opened.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string

	model   string // --model
	session string // --session

	conf  *config.Loaded
	st    store
	ix    *recall.Index  // of what was said, once something is looked for
	voice *voice         // the model that is asked now, once chosen
	specs []llm.ToolSpec // of the tools, once there are some

	voices map[string]*voice // by name, as far as they were asked for
	server *local.Server     // on this machine, once looked for

	interrupted atomic.Bool                // Ctrl-C was pressed
	spawn       func(args ...string) error // starts this program once more; nil: it cannot

	still     bool // a look changes nothing, not even what could be made anew
	embedding bool // vectors are made while the user waits
	noInherit bool // other agents' sessions were looked for, or shall not be

	foreign string // the folder that session.path names, if it is another program's
	placed  string // says so
}

// store is what both stores can do beside session.Store.
type store interface {
	session.Store
	Check(ctx context.Context, report func(session.ID, error)) error
	Rebuild(ctx context.Context) (changed int, err error)
}

func (a *app) close() {
	if a.ix != nil {
		a.ix.Close()
	}
	if a.st != nil {
		a.st.Close()
	}
}

// config loads the configuration once and shows its warnings.
func (a *app) config() (*config.Loaded, error) {
	if a.conf != nil {
		return a.conf, nil
	}
	l, err := config.Load(a.getenv, os.Environ())
	if err != nil {
		return nil, err
	}
	for _, w := range l.Warnings {
		fmt.Fprintln(a.err, "goclaw: "+w)
	}
	a.place(l)
	a.conf = l
	return l, nil
}

var layouts = map[string]jsonl.Layout{"openclaw": jsonl.OpenClaw, "claw0": jsonl.Claw0New, "claw0-old": jsonl.Claw0Old}

// store opens the store once.
func (a *app) store() (store, error) {
	if a.st != nil {
		return a.st, nil
	}
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.Session.Path); err != nil && a.placed != "" {
		fmt.Fprintln(a.err, "goclaw: "+a.placed)
	}
	if c.Session.Store == "jsonl" {
		st, err := jsonl.Open(c.Session.Path, jsonl.Options{Layout: layouts[c.Session.Layout], Still: a.still})
		if err != nil {
			return nil, err
		}
		a.st = st
		return st, nil
	}
	if err := notForeign(c.Session.Path); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(c.Session.Path)
	if err != nil {
		return nil, err
	}
	a.st = st
	return st, nil
}

// find resolves what the user typed for a session.
func (a *app) find(ctx context.Context, ref string) (store, session.Info, error) {
	st, err := a.store()
	if err != nil {
		return nil, session.Info{}, err
	}
	a.firstStart(ctx, st)
	in, err := session.Find(ctx, st, ref, false)
	return st, in, err
}

// whole replays the whole log of a session.
func (a *app) whole(ctx context.Context, ref string) (store, *session.Session, error) {
	st, in, err := a.find(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
	return st, s, err
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// style colours what goes to a terminal that wants it.
func (a *app) style() transcript.Style {
	return transcript.Style{Colour: a.isTerminal(a.out) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

func (a *app) isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns is how wide the terminal is that is written to; 0 if it is none.
func (a *app) columns() int {
	if !a.isTerminal(a.out) {
		return 0
	}
	return a.width()
}

func (a *app) width() int { return cmp.Or(columnsOf(a.out), 100) }

// columnsOf is how wide the terminal w is; 0 if it is none, or too narrow to
// be true.
func columnsOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 20 {
			return n
		}
	}
	return 0
}

// say writes a line of prose, which on a terminal is broken between words.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, transcript.Wrap(fmt.Sprintf(format, args...), columnsOf(w)))
}

// confirm asks a yes-or-no question on a terminal; elsewhere the answer is no.
func (a *app) confirm(question string) bool {
	if !a.isTerminal(a.in) {
		return false
	}
	answer, err := line.NewPlain(a.in, a.err).Ask(context.Background(), question+" [y/N] ")
	if err != nil {
		return false
	}
	answer = strings.TrimSpace(answer)
	return answer == "y" || answer == "Y" || answer == "yes"
}
