// Package runner runs turns on sessions: it loads a session, runs a
// turn, and appends every record before the turn continues.
//
// One turn runs in a session at a time, across processes: others wait. The
// log's compare-and-append is the second guard.
package runner

import (
	"context"
	"errors"
	"iter"
	"time"

	"goclaw/agent"
	"goclaw/internal/mirrors"
	"goclaw/internal/naming"
	"goclaw/llm"
	"goclaw/session"
)

// Options are what a Runner works with.
type Options struct {
	Store session.Store
	Clock session.Clock // nil: session.System
	// Env returns what the session is asked with. It is called at the beginning
	// of every turn, so that a change of model takes effect.
	Env func(ctx context.Context, s *session.Session) (agent.Env, error)
	Who string // shown to others while a session is locked
	// Wait is how long to wait for a session that another has locked. 0: not at
	// all, the error is a *session.HeldError.
	Wait time.Duration
	// TTL is how long a session may be idle before its key begins a new one.
	// 0: forever. The old one stays where it is. If TTLFor is not nil, it is
	// asked for each key instead.
	TTL    time.Duration
	TTLFor func(session.Key) time.Duration
	// Detach has the background's work done in another process: it is called
	// with a session in which some is due, and has Finish called for it there.
	// If it returns false the work is done here. It may be nil, and is not
	// called for work that needs no model.
	Detach func(id session.ID) bool
	// Working is called when the background begins to work for a session here, not
	// in another process, and when it has ended, from any goroutine. It may be nil.
	Working func(id session.ID, on bool)
	// OnBackground is called with what the background has appended, or why it
	// could not, from any goroutine. It may be nil.
	OnBackground func(id session.ID, rec session.Record, err error)
	// Learnt is called with what a refusal says about a model's window, so that
	// Env can remember it. It may be nil.
	Learnt func(agent.Learnt)
	// Retrying is called when Compact has to repeat a call of the model. It may
	// be nil.
	Retrying func(agent.Retrying)
}

// Waiting says that the turn waits for a session that another has locked.
type Waiting struct {
	agent.Event
	By *session.HeldError
}

// Continued says that the turn does not run in From, the mirror of another
// program's session, but in To, a session of our own that begins with its past.
type Continued struct {
	agent.Event
	From, To session.Info
}

// Switched says that a turn asks another model than the one that the session
// used last.
type Switched struct {
	agent.Event
	From, To session.ModelChange
}

// Runner runs turns. It may be used from many goroutines.
type Runner struct {
	o          Options
	slots      *slots
	background *background
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Clock == nil {
		o.Clock = session.System{}
	}
	ss := &slots{store: o.Store, clock: o.Clock, who: o.Who, of: map[session.ID]*slot{}}
	b := &background{slots: ss, detach: o.Detach, working: o.Working, told: o.OnBackground}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return &Runner{o: o, slots: ss, background: b}
}

// Load returns the current session of key. If there is none, or if it has been
// idle for too long, it begins a new one.
func (r *Runner) Load(ctx context.Context, key session.Key) (*session.Session, error) {
	return r.Begin(ctx, session.Header{Key: key})
}

// Begin is Load for the key of h; a session that it begins has the header h.
func (r *Runner) Begin(ctx context.Context, h session.Header) (*session.Session, error) {
	id, err := r.find(ctx, h)
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, r.o.Store, id)
}

// Peek is Load without writing: where Load would begin a session, Peek returns
// a draft of it.
func (r *Runner) Peek(ctx context.Context, key session.Key) (*session.Session, error) {
	id, _, err := r.current(ctx, key)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return session.Draft(session.Header{Key: key}, r.o.Clock), nil
	}
	return session.Open(ctx, r.o.Store, id)
}

// find is Begin without reading the session.
func (r *Runner) find(ctx context.Context, h session.Header) (session.ID, error) {
	id, seen, err := r.current(ctx, h.Key)
	if err != nil || id != "" {
		return id, err
	}
	s, err := session.Renew(ctx, r.o.Store, h, seen, r.o.Clock)
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// current returns the session of key to continue. id is "" if a new one is to
// replace the one that was seen.
func (r *Runner) current(ctx context.Context, key session.Key) (id, seen session.ID, err error) {
	in, err := session.Current(ctx, r.o.Store, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return "", "", nil
	case err != nil:
		return "", "", err
	}
	seen = in.ID
	if in.Mirror() {
		own, err := mirrors.ContinuationOf(ctx, r.o.Store, in)
		switch {
		case errors.Is(err, session.ErrNotFound): // it begins when something is said
			return in.ID, seen, nil
		case err != nil:
			return "", seen, err
		}
		in = own
	}
	if r.expired(in) {
		return "", seen, nil
	}
	return in.ID, seen, nil
}

func (r *Runner) expired(in session.Info) bool {
	ttl := r.o.TTL
	if r.o.TTLFor != nil {
		ttl = r.o.TTLFor(in.Key)
	}
	return ttl > 0 && in.Turns > 0 && r.o.Clock.Now().Sub(in.Updated) > ttl
}

// env returns what s is asked with.
func (r *Runner) env(ctx context.Context, s *session.Session) (agent.Env, error) {
	env, err := r.o.Env(ctx, s)
	if env.Clock == nil {
		env.Clock = r.o.Clock
	}
	return env.Complete(), err
}

// errOver: the consumer of a turn ended it.
var errOver = errors.New("runner: over")

// Run runs a turn of key's session: in is what the user said, or an empty
// message to continue what was interrupted. Every Recorded event is durable
// when it is seen. Breaking out of the loop ends the turn.
func (r *Runner) Run(ctx context.Context, key session.Key, in llm.Message) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		id, err := r.find(ctx, session.Header{Key: key})
		if err != nil {
			yield(nil, err)
			return
		}
		r.RunID(ctx, id, in)(yield)
	}
}

// RunID is Run for the session id, whatever its key.
func (r *Runner) RunID(ctx context.Context, id session.ID, in llm.Message) iter.Seq2[agent.Event, error] {
	return r.RunSteered(ctx, id, in, nil)
}

// RunSteered is RunID for a turn to which the user can add messages while it
// runs: steer returns the next one, or an empty one if there is none. It is
// agent.Env's Steer, which it replaces unless it is nil; it is called in the
// goroutine that reads the events. A message that the turn has taken is in the
// log when its Recorded event comes. One that steer still has when the turn is
// over can begin the next.
func (r *Runner) RunSteered(ctx context.Context, id session.ID, in llm.Message, steer func() llm.Message) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		if err := r.run(ctx, id, in, steer, yield); err != nil && err != errOver {
			yield(nil, err)
		}
	}
}

func (r *Runner) run(ctx context.Context, id session.ID, in llm.Message, steer func() llm.Message, yield func(agent.Event, error) bool) error {
	id, err := r.own(ctx, id, yield)
	if err != nil {
		return err
	}
	sl, leave := r.slots.enter(id)
	defer leave()
	release, err := sl.lock(ctx, r.o.Wait, func(by *session.HeldError) bool { return yield(Waiting{By: by}, nil) })
	if err != nil {
		return err
	}
	defer release()
	s, err := sl.open(ctx) // what was read before the session was locked may be old
	if err != nil {
		return err
	}
	defer sl.remember(s)
	env, err := r.env(ctx, s)
	if err != nil {
		return err
	}
	if steer != nil {
		env.Steer = steer
	}
	to := session.ModelChange{Provider: env.Prompt.Provider, Model: env.Prompt.Model}
	if from, ok := s.LastModel(); ok && to.Model != "" && from != to && !yield(Switched{From: from, To: to}, nil) {
		return errOver
	}
	for ev, err := range agent.Turn(ctx, s, in, env) {
		if err != nil {
			return err
		}
		switch e := ev.(type) {
		case agent.Recorded:
			if ev, err = sl.append(ctx, s, e.Record); err != nil {
				return err
			}
			if _, part := e.Record.Body.(session.Partial); part {
				continue // nobody sees the parts of an answer but the log
			}
		case agent.Learnt:
			if r.o.Learnt != nil {
				r.o.Learnt(e)
			}
		case agent.Done:
			if err := r.end(ctx, sl, s, yield); err != nil {
				return err
			}
			r.background.after(s, env)
		}
		if !yield(ev, nil) {
			return errOver
		}
	}
	return nil
}

// own returns the session that a turn of id runs in: id, or, if that is a
// mirror, the session that continues it.
func (r *Runner) own(ctx context.Context, id session.ID, yield func(agent.Event, error) bool) (session.ID, error) {
	sl, leave := r.slots.enter(id)
	defer leave()
	if sl.remembered() { // no turn ran in a mirror
		return id, nil
	}
	from, err := session.Stat(ctx, r.o.Store, id)
	if err != nil || !from.Mirror() {
		return id, err
	}
	to, err := mirrors.Continue(ctx, r.o.Store, from, r.o.Clock)
	if err == nil && !yield(Continued{From: from, To: to}, nil) {
		err = errOver
	}
	return to.ID, err
}

// end appends what belongs to the end of a turn: the title of a session that
// has none, once it is about something (a person may have given the one that it
// has), and what the background made meanwhile.
func (r *Runner) end(ctx context.Context, sl *slot, s *session.Session, yield func(agent.Event, error) bool) error {
	if t := naming.Topic(s); s.Title == "" && t != "" {
		rec, err := sl.append(ctx, s, s.Next(session.Title{Title: t}, r.o.Clock))
		if err != nil {
			return err
		}
		if !yield(rec, nil) {
			return errOver
		}
	}
	if made := sl.take(); made != nil {
		made.append(ctx, sl, s)
		if made.err == nil && !yield(made.rec, nil) {
			return errOver
		}
	}
	return nil
}

// Record appends b to the session id outside of a turn: a title, a label, a
// change of model. It returns the record and what the session is with it.
func (r *Runner) Record(ctx context.Context, id session.ID, b session.Body) (agent.Recorded, error) {
	sl, leave := r.slots.enter(id)
	defer leave()
	s, err := sl.open(ctx)
	if err != nil {
		return agent.Recorded{}, err
	}
	if !s.Mirror() { // see own
		defer sl.remember(s)
	}
	return sl.append(ctx, s, s.Next(b, r.o.Clock))
}

// Restart goes back to before the first message of the session id: the next one
// begins another branch.
func (r *Runner) Restart(ctx context.Context, id session.ID) (agent.Recorded, error) {
	sl, leave := r.slots.enter(id)
	defer leave()
	s, err := sl.open(ctx)
	if err != nil {
		return agent.Recorded{}, err
	}
	defer sl.remember(s)
	return sl.append(ctx, s, s.Restart(r.o.Clock))
}

// Finish does what is due in the session id between two turns, if anything is:
// a checkpoint, or a better summary. It returns what was recorded, which has no
// number if there was nothing to do or if another process is doing it. A
// failure is recorded as well: it delays the next attempt.
func (r *Runner) Finish(ctx context.Context, id session.ID) (session.Record, error) {
	// No session has the id that is locked: ids have no NUL.
	release, err := r.o.Store.Lock(ctx, "background\x00"+string(id), r.o.Who)
	if errors.Is(err, session.ErrHeld) {
		return session.Record{}, nil
	}
	if err != nil {
		return session.Record{}, err
	}
	defer release()
	s, env, err := r.open(ctx, id)
	if err != nil {
		return session.Record{}, err
	}
	return r.background.finish(ctx, s, env)
}

// Close waits for the work in the background, as long as ctx allows, and gives
// it up then: nothing else is lost. The store stays open; later turns leave
// nothing to the background.
func (r *Runner) Close(ctx context.Context) error { return r.background.close(ctx) }
