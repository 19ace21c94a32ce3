package repl

import (
	"context"
	"errors"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// turn says in to the model, or goes on if in is empty, and shows what
// happens until the turn is over.
func (r *REPL) turn(ctx context.Context, in llm.Message) {
	err := r.begin(ctx)
	if err == nil {
		err = r.news(ctx)
	}
	if err != nil {
		r.failed = true
		r.problem(err)
		return
	}
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.cancel, r.inTurn, r.stops = cancel, true, 0
	r.mu.Unlock()
	r.screen.waiting("waiting for " + r.Model().Name)
	stop := r.screen.spin()

	var failed error
	kept := len(in.Blocks) == 0 // what is gone on with was kept before
	for ev, err := range r.Runner.RunID(tctx, r.cur.ID, in) {
		if err != nil {
			failed = err
			continue
		}
		if rec, ok := ev.(agent.Recorded); ok {
			kept = kept || session.IsTurn(rec.Record.Body)
		}
		r.show(ev)
	}

	stop()
	r.screen.finish()
	if r.Interactive {
		defer r.screen.print("")
	}
	r.mu.Lock()
	stops := r.stops
	r.cancel, r.inTurn = nil, false
	r.mu.Unlock()
	if failed == nil {
		r.leaving = r.leaving || stops > 1
		return
	}
	if tctx.Err() != nil && errors.Is(failed, context.Canceled) {
		r.stopped(stops)
		return
	}
	r.failed = true
	r.problem(failed)
	if t, ok := r.unfinished(ctx); ok && kept && (t.Waits || len(t.Calls) > 0) && !errors.Is(failed, llm.ErrOverflow) {
		r.note("  what you said is kept: /continue asks again")
	}
}

// stopped says that an answer was stopped, and leaves if that was meant.
func (r *REPL) stopped(stops int) {
	r.tell(r.Style.Red("[stopped; what was said so far is kept]"))
	r.armed = true
	if !r.Interactive {
		r.failed, r.leaving = true, true
	}
	if stops > 1 {
		r.leaving = true
	}
}

// news tells of records that another program added since.
func (r *REPL) news(ctx context.Context) error {
	if r.cur.ID == "" {
		return nil
	}
	in, err := session.Stat(ctx, r.Store, r.cur.ID)
	if err != nil {
		return err
	}
	if !in.Trashed.IsZero() {
		return errors.New("this session was deleted elsewhere: /new begins another, goclaw sessions restore " + string(in.ID) + " brings it back")
	}
	if n := r.foreign(ctx, in); n > 0 {
		r.note("another program added %s to this session meanwhile: /history shows them", transcript.Count(n, "record"))
	}
	r.cur = in
	return nil
}

// foreign counts what was added that our own background does not add.
func (r *REPL) foreign(ctx context.Context, in session.Info) int {
	if in.Last <= r.cur.Last {
		return 0
	}
	n := 0
	for rec, err := range r.Store.Read(ctx, in.ID, r.cur.Last) {
		if err != nil {
			continue
		}
		switch rec.Body.(type) {
		case session.Checkpoint, session.Compaction, session.Custom:
		default:
			n++
		}
	}
	return n
}

// show shows one event of a turn.
func (r *REPL) show(ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Said:
		switch {
		case ev.Text != "":
			r.screen.said(ev.Text)
			r.screen.waiting("waiting for " + r.Model().Name)
		case ev.Thinking != "" && r.thinking:
			r.screen.thought(ev.Thinking)
		case ev.Thinking != "":
			r.screen.waiting("thinking")
		}
	case agent.Calling:
		r.tell(r.Style.Yellow("→ " + transcript.CallLine(ev.Call)))
		r.screen.waiting(transcript.OneLine(transcript.Printable(ev.Call.Name), 40))
	case agent.Called:
		if ev.Result.IsError {
			r.tell(r.Style.Red("← " + transcript.OneLine(transcript.Printable(ev.Call.Name+" failed: "+ev.Result.Text()), 160)))
		}
		r.screen.waiting("waiting for " + r.Model().Name)
	case agent.Squeezed:
		if ev.Answer > 0 {
			r.note("the answer asked for is too long for the model: asking again for at most %s tokens", window.Short(ev.Answer))
			break
		}
		r.note("too long for the model: asking again with less")
	case agent.Compacting:
		r.note("the window is full: folding the past")
		r.screen.waiting("folding the past")
	case agent.NotCompacted:
		r.note("%s", ev.Err)
	case agent.Learnt:
		if ev.Window > 0 {
			r.note("%s/%s takes %s tokens", ev.Provider, ev.Model, window.Short(ev.Window))
		}
		if ev.Answer > 0 {
			r.note("%s/%s answers with at most %s tokens", ev.Provider, ev.Model, window.Short(ev.Answer))
		}
	case agent.Silent:
		r.note("[%s]", transcript.Silent)
	case runner.Switched:
		if r.told != r.cur.ID {
			r.note("%s", transcript.Model(ev.To.Name(), ev.From.Name()))
		}
		r.told, r.asked = "", ev.To.Name()
	case runner.Continued:
		r.continued(ev)
	case runner.Waiting:
		r.note("waiting: this session is held by %s (pid %d) since %s", ev.By.Who, ev.By.PID, ev.By.Since.Local().Format("15:04:05"))
		r.screen.waiting("waiting for the session")
	case agent.Recorded:
		r.recorded(ev)
	}
}

// continued goes on in the session that continues a mirror.
func (r *REPL) continued(ev runner.Continued) {
	if r.told == r.cur.ID {
		r.told = ev.To.ID
	}
	r.cur = ev.To
	r.note("%s is %s's and stays as it is: this goes on in %s", ev.From.Key, ev.From.Origin.Program, ev.To.Key)
}

// recorded keeps up with the session, and says what an answer did not.
func (r *REPL) recorded(ev agent.Recorded) {
	r.cur = ev.Info
	switch b := ev.Record.Body.(type) {
	case session.Compaction:
		r.note("the past before the last turns is now a summary; nothing was removed, and /undo takes it back")
	case session.Message:
		if b.Role != llm.Assistant {
			return
		}
		r.screen.finish()
		switch {
		case b.Stop == llm.StopLength && len(b.Calls()) > 0:
			r.note("[the answer was cut: it reached the limit on its length; the model is told and goes on]")
		case b.Stop == llm.StopLength:
			r.note("[the answer was cut: it reached the limit on its length; say \"go on\" for more]")
		case b.Stop == llm.StopEnd && b.Text() == "" && len(b.Calls()) == 0:
			r.note("[the model gave an empty answer]")
		}
	}
}

// unfinished returns what the session was doing when it broke off.
func (r *REPL) unfinished(ctx context.Context) (runner.Interrupted, bool) {
	s, err := r.opened(ctx)
	if err != nil {
		return runner.Interrupted{}, false
	}
	return runner.InterruptedIn(s)
}
