package runner

import (
	"context"
	"errors"
	"fmt"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/session"
	"goclaw/window"
)

// What callers of Compact and UndoCompaction branch on.
var (
	// ErrNothingToCompact: the conversation is too short to be folded.
	ErrNothingToCompact = errors.New("runner: there is nothing to fold")
	// ErrNotCompacted: no compaction is in effect.
	ErrNotCompacted = errors.New("runner: nothing is folded")
	// ErrMirror: the session is another program's, and stays as it is.
	ErrMirror = errors.New("this session is another program's and stays as it is: say something first, and it goes on in a session of goclaw's own")
)

// Plan says where the session id would be folded now, at the user's wish.
// Nothing is changed.
func (r *Runner) Plan(ctx context.Context, id session.ID, focus string) (compact.Cut, error) {
	s, env, err := r.envOf(ctx, id)
	if err != nil {
		return compact.Cut{}, err
	}
	return plan(s, env, focus)
}

func (r *Runner) envOf(ctx context.Context, id session.ID) (*session.Session, agent.Env, error) {
	s, err := session.Open(ctx, r.o.Store, id)
	if err != nil {
		return nil, agent.Env{}, err
	}
	if s.Mirror() {
		return nil, agent.Env{}, ErrMirror
	}
	env, err := r.o.Env(ctx, s)
	if env.Tools != nil {
		env.Prompt.Tools = env.Tools.Specs()
	}
	return s, env, err
}

func plan(s *session.Session, env agent.Env, focus string) (compact.Cut, error) {
	var o compact.Options
	if env.Compact != nil {
		o = *env.Compact
	}
	o.Force, o.Focus = true, focus
	if focus != "" {
		o.NoCheckpoints = true // a checkpoint does not dwell on anything
	}
	if env.Tokens == nil {
		return compact.Cut{}, fmt.Errorf("%w: the model's tokens cannot be counted", ErrNothingToCompact)
	}
	b := window.Measure(s, env.Prompt, env.Tokens, env.Budget)
	cut, ok := compact.Plan(s, env.Prompt, env.Tokens, b, o)
	if !ok {
		return cut, ErrNothingToCompact
	}
	return cut, nil
}

// Compact folds the session id now. focus says what the summary should dwell
// on; it may be empty.
func (r *Runner) Compact(ctx context.Context, id session.ID, focus string) (agent.Recorded, compact.Cut, error) {
	release, err := r.hold(ctx, id, func(agent.Event, error) bool { return true })
	if err != nil {
		return agent.Recorded{}, compact.Cut{}, err
	}
	defer release()
	s, env, err := r.envOf(ctx, id)
	if err != nil {
		return agent.Recorded{}, compact.Cut{}, err
	}
	cut, err := plan(s, env, focus)
	if err != nil {
		return agent.Recorded{}, cut, err
	}
	body, err := cut.Compact(ctx, env.Summarizer)
	if err != nil {
		return agent.Recorded{}, cut, err
	}
	rec, err := hand{r: r, s: s}.keep(ctx, s.Next(body, r.o.Clock))
	if err == nil {
		cut.After = body.TokensAfter
	}
	return rec, cut, err
}

// UndoCompaction undoes the compaction in effect by a new record: what it
// covers is sent again. It returns the record of the compaction, and what the
// session is now.
func (r *Runner) UndoCompaction(ctx context.Context, id session.ID) (undone session.Record, now session.Info, err error) {
	release, err := r.hold(ctx, id, func(agent.Event, error) bool { return true })
	if err != nil {
		return undone, now, err
	}
	defer release()
	s, err := session.Replay(id, r.o.Store.Read(ctx, id, 0))
	if err != nil {
		return undone, now, err
	}
	if s.Mirror() {
		return undone, now, ErrMirror
	}
	at, _, ok := s.Compaction()
	if !ok {
		return undone, now, ErrNotCompacted
	}
	undone = s.Branch[at]
	if _, ok := undone.Body.(session.Compaction); !ok {
		return undone, now, fmt.Errorf("%w: the session was begun anew at record %d", ErrNotCompacted, undone.Seq)
	}
	rec, err := hand{r: r, s: s}.keep(ctx, s.Next(session.Undo{Target: undone.ID}, r.o.Clock))
	r.forget(id)
	return undone, rec.Info, err
}
