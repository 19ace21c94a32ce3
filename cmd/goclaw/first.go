package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"goclaw/internal/inherit"
	"goclaw/internal/models"
	"goclaw/internal/progress"
	"goclaw/internal/repl"
	"goclaw/internal/stores"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// first is the first start in a terminal: it says what goclaw is, what was found
// on this machine, and offers to import other agents' sessions. Nothing is
// imported without a yes.
type first struct {
	*app
	st    stores.Store
	start repl.Welcome
}

// firstStart returns what a chat in a terminal does before it opens a session.
func (a *app) firstStart(ctx context.Context, st stores.Store) func(context.Context, repl.Welcome) {
	due := a.stores.ImportDue(ctx, st)
	return func(ctx context.Context, start repl.Welcome) {
		fresh := isFresh(ctx, st) // asked now, because the prompt need not wait for it
		if !due && !fresh {
			return
		}
		f := &first{app: a, st: st, start: start}
		tell := fresh && !start.Plain() // plain lines have the guide
		if tell {
			f.explain()
		}
		f.look(ctx, tell, due)
	}
}

// followAfter follows other programs' sessions once the first start is over: what
// it imports is followed as well. stop ends that.
func (a *app) followAfter(ctx context.Context, st stores.Store, o *repl.Options, tell func(trouble string)) (stop func()) {
	first := o.First
	if first == nil {
		return a.stores.Follow(ctx, st, tell)
	}
	stop = func() {}
	o.First = func(c context.Context, w repl.Welcome) {
		first(c, w)
		stop = a.stores.Follow(ctx, st, tell)
	}
	return func() { stop() }
}

// isFresh reports whether nothing was said here yet.
func isFresh(ctx context.Context, st session.Store) bool {
	for range st.List(ctx, session.Query{Limit: 1}) { // an error is no reason to welcome anybody
		return false
	}
	return true
}

// explain says in three lines what goclaw is.
func (f *first) explain() {
	f.start.Tell(
		"goclaw is an agent: it reads and changes files here, and asks before it acts.",
		"It never loses a conversation: not in a crash, nor when the window is full.",
		"Write what you want done. ? shows the keys, / the commands, @ adds a file.",
	)
}

// look finds what there is, shows it, and offers to import.
func (f *first) look(ctx context.Context, tell, due bool) {
	var cat *inherit.Catalogue
	var o inherit.ImportOptions
	stopped, err := f.start.Work(ctx, "looking for keys, local models and other agents' sessions", func(ctx context.Context, _ func(string), _ int) (err error) {
		if tell {
			f.models.LocalServers(ctx)
		}
		if !due {
			return nil
		}
		if o, err = f.stores.ImportOptions(); err == nil {
			cat, err = inherit.Find(ctx, f.stores.Sources(), f.stores.FindOptions("", o.Memo))
		}
		return err
	})
	if err != nil {
		if !stopped {
			f.start.Say("other agents' sessions are not imported: " + transcript.Problem(err))
		}
		return
	}
	var agents map[string]int // nil: they were not looked for
	if cat != nil {
		agents = map[string]int{}
		defer cat.Close()
		for _, t := range cat.Transcripts {
			agents[t.Program]++
		}
	}
	if tell {
		f.found(agents)
	}
	if cat == nil {
		return
	}
	f.stores.NoImport = true
	f.offer(ctx, cat, o)
}

// found lists what there is on this machine.
func (f *first) found(agents map[string]int) {
	f.greeted = true
	s := &setup{app: f.app}
	var keys, servers []string
	lends, lent := f.openclaw.Agent("main")
	for _, p := range models.Providers() {
		if from := s.keySource(p); from != "" {
			keys = append(keys, p+" ("+transcript.Name(from)+")")
		} else if !lent {
			continue
		} else if at, err := lends.Provider(p, f.getenv); err == nil && at.Key != "" {
			keys = append(keys, p+" (OpenClaw's: you are asked before it is used)")
		}
	}
	for _, srv := range f.models.Found {
		servers = append(servers, fmt.Sprintf("%s with %s", models.ServerNames[srv.Name], firstModels(srv.Models)))
	}
	f.start.Tell("Found:")
	rows := [][2]string{
		{"keys", cmp.Or(strings.Join(keys, ", "), "none: goclaw setup, or set ANTHROPIC_API_KEY or OPENAI_API_KEY")},
		{"local models", cmp.Or(strings.Join(servers, ", "), "no server answers")},
	}
	if agents != nil {
		rows = append(rows, [2]string{"other agents", cmp.Or(agentCounts(agents), "no sessions")})
	}
	f.start.List(rows)
}

// offer asks whether to import cat, and does it. A no is remembered.
func (f *first) offer(ctx context.Context, cat *inherit.Catalogue, o inherit.ImportOptions) {
	n := len(cat.Transcripts)
	resumes := o.Memo.Begun()
	switch {
	case n == 0:
		f.say(func() { f.stores.Report(f.err, cat, inherit.Report{}, true) }, len(cat.Problems) > 0)
		_ = o.Memo.Finish() // else the next start looks again
		return
	case resumes:
		f.start.Say("the last import did not finish: resuming it")
	case !f.start.Yes(ctx, importQuestion(n)):
		if ctx.Err() == nil {
			_ = o.Memo.Finish() // else the next start asks again
			f.start.Say("[nothing was imported; goclaw import does it later]")
		}
		return
	}
	if err := o.Memo.Begin(); err != nil {
		f.start.Say("other agents' sessions are not imported: " + transcript.Problem(err))
		return
	}
	f.stores.Asked(o.Memo, cat)
	f.stores.Looked = true
	o.Waiting = func(held *session.HeldError) {
		f.start.Say(fmt.Sprintf("another goclaw (pid %d) is importing: waiting for it", held.PID))
	}
	var rep inherit.Report
	_, err := f.start.Work(ctx, "importing", func(ctx context.Context, tell func(string), width int) (err error) {
		line := progress.ImportLines(width)
		o.Progress = func(at inherit.Progress) { tell(line(at)) }
		rep, err = inherit.Import(ctx, stores.Whole(f.st), cat, o)
		return err
	})
	if err == nil {
		err = o.Memo.Finish()
	}
	f.say(func() { f.stores.Report(f.err, cat, rep, true) }, len(rep.Outcomes)+len(cat.Problems) > 0)
	switch {
	case errors.Is(err, context.Canceled):
		f.start.Say(fmt.Sprintf("[stopped; what is imported stays, %s left: goclaw import, or the next start, imports the rest]", transcript.Count(rep.Count(inherit.Left), "session")))
	case err != nil:
		f.start.Say(transcript.Problem(stores.ImportError(err, rep)))
	}
}

// importQuestion asks whether to import n sessions.
func importQuestion(n int) string {
	return fmt.Sprintf("Import %s (the originals are only read)?", transcript.Count(n, "session"))
}

// say shows what report writes to standard error.
func (f *first) say(report func(), wanted bool) {
	if !wanted {
		return
	}
	var b bytes.Buffer
	was := f.err
	f.err = terminal.NewWriter(&b)
	report()
	f.err = was
	if text := strings.TrimSpace(b.String()); text != "" {
		f.start.Say(strings.Split(text, "\n")...)
	}
}
