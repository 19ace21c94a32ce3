package runner

import (
	"context"
	"errors"
	"fmt"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// What callers of Compact and UndoCompaction branch on.
var (
	// ErrNothingToCompact: the conversation is too short for a compaction.
	ErrNothingToCompact = errors.New("runner: there is nothing to compact")
	// ErrNotCompacted: no compaction is in effect.
	ErrNotCompacted = errors.New("runner: the session is not compacted")
	// ErrMirror: the session is a mirror, and read-only.
	ErrMirror = errors.New("this session belongs to another program and is read-only: say something first, and it goes on in a session of goclaw's own")
)

// Plan says where the session id would be compacted now, at the user's request.
// Nothing is changed, so that it may be a mirror as well.
func (r *Runner) Plan(ctx context.Context, id session.ID, focus string) (compact.Cut, error) {
	s, env, err := r.load(ctx, id)
	if err != nil {
		return compact.Cut{}, err
	}
	return plan(s, env, focus)
}

// open returns the session id, which is to be changed, and what it is asked with.
func (r *Runner) open(ctx context.Context, id session.ID) (*session.Session, agent.Env, error) {
	s, env, err := r.load(ctx, id)
	if err == nil && s.Mirror() {
		err = ErrMirror
	}
	return s, env, err
}

// load returns the session id and what it is asked with.
func (r *Runner) load(ctx context.Context, id session.ID) (*session.Session, agent.Env, error) {
	s, err := session.Open(ctx, r.o.Store, id)
	if err != nil {
		return nil, agent.Env{}, err
	}
	env, err := r.env(ctx, s)
	return s, env, err
}

func plan(s *session.Session, env agent.Env, focus string) (compact.Cut, error) {
	var o compact.Options
	if env.Compact != nil {
		o = *env.Compact
	}
	o.Force, o.Focus = true, focus
	if focus != "" {
		o.NoCheckpoints = true // checkpoints were made without a focus
	}
	if env.Tokens == nil {
		return compact.Cut{}, fmt.Errorf("%w: the model's tokens cannot be counted", ErrNothingToCompact)
	}
	b := window.Measure(s, env.Prompt, env.Tokens, env.Budget)
	cut, ok := compact.Plan(s, env.Prompt, env.Tokens, b, o)
	if !ok {
		return cut, ErrNothingToCompact
	}
	cut.Uses = cut.Estimate(env.Summarizer)
	return cut, nil
}

// Compact compacts the session id now. focus says what the summary should dwell
// on; it may be empty.
func (r *Runner) Compact(ctx context.Context, id session.ID, focus string) (agent.Recorded, compact.Cut, error) {
	sl, release, err := r.lock(ctx, id)
	if err != nil {
		return agent.Recorded{}, compact.Cut{}, err
	}
	defer release()
	s, env, err := r.open(ctx, id)
	if err != nil {
		return agent.Recorded{}, compact.Cut{}, err
	}
	cut, err := plan(s, env, focus)
	if err != nil {
		return agent.Recorded{}, cut, err
	}
	if _, err := env.MayAsk(ctx, llm.Usage{}, cut.Uses); err != nil {
		return agent.Recorded{}, cut, err
	}
	if r.o.Retrying != nil {
		cut.Retrying = func(again llm.Retry) { r.o.Retrying(agent.Retrying{Retry: again}) }
	}
	body, err := cut.Compact(ctx, env.Summarizer)
	if err != nil {
		return agent.Recorded{}, cut, err
	}
	rec, err := sl.append(ctx, s, s.Next(body, r.o.Clock))
	if err == nil {
		cut.After = body.TokensAfter
	}
	return rec, cut, err
}

// lock takes the lock of the session id, as a turn does.
func (r *Runner) lock(ctx context.Context, id session.ID) (sl *slot, release func(), err error) {
	sl, leave := r.slots.enter(id)
	unlock, err := sl.lock(ctx, r.o.Wait, func(*session.HeldError) bool { return true })
	if err != nil {
		leave()
		return nil, nil, err
	}
	return sl, func() { unlock(); leave() }, nil
}

// UndoCompaction undoes the compaction in effect by a new record: what it
// covers is sent again. It returns the record of the compaction, and what the
// session is now.
func (r *Runner) UndoCompaction(ctx context.Context, id session.ID) (undone session.Record, now session.Info, err error) {
	sl, release, err := r.lock(ctx, id)
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
		return undone, now, fmt.Errorf("%w: the session was reset at record %d", ErrNotCompacted, undone.Seq)
	}
	rec, err := sl.append(ctx, s, s.Next(session.Undo{Target: undone.ID}, r.o.Clock))
	return undone, rec.Info, err
}
