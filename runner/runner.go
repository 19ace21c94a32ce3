// Package runner is the one hand of each session: it loads a session, runs a
// turn, appends every record before the turn goes on, and tells who listens.
//
// A session has one hand at a time, across processes. Two that try wait for
// each other; the log's compare-and-append stands behind that.
package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/internal/mirrors"
	"goclaw/llm"
	"goclaw/session"
)

// Options are what a Runner works with.
type Options struct {
	Store session.Store
	Clock session.Clock
	// Env returns what the session is asked with. It is called at the begin
	// of every turn, so that a change of model takes effect.
	Env func(ctx context.Context, s *session.Session) (agent.Env, error)
	Who string // shown to others while a session is held
	// Wait is how long a session that another holds is waited for. 0: not at
	// all, the error is a *session.HeldError.
	Wait time.Duration
	// TTL is how long a session may be idle before its key begins a new one.
	// 0: forever. The old one stays where it is. TTLFor says it for each key
	// instead, if it is not nil.
	TTL    time.Duration
	TTLFor func(session.Key) time.Duration
	// Detach has the background's work done elsewhere: it is told a session in
	// which some is due, and has Finish called for it in another process. If it
	// cannot it returns false, and the work is done here. It may be nil, and is
	// not told of work that needs no model.
	Detach func(id session.ID) bool
	// OnBackground is told what the background has appended, or why it could not. It
	// may be nil, and is called from any goroutine.
	OnBackground func(id session.ID, rec session.Record, err error)
	// Learnt is told what a refusal says about a model's window, so that Env
	// can remember it. It may be nil.
	Learnt func(agent.Learnt)
}

// Waiting says that another holds the session, and that it is waited for.
type Waiting struct {
	agent.Event
	By *session.HeldError
}

// Continued says that what was to be said in the mirror of another program's
// session is said in a session of our own, which begins with its past.
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

// Runner runs turns. It may be used from many goroutines: a session in memory
// belongs to whoever took it.
type Runner struct {
	o Options

	mu   sync.Mutex
	live map[session.ID]*session.Session // as they were after their last turn here

	late   sync.WaitGroup // work in the background
	busy   map[session.ID]bool
	brief  map[session.ID]chan struct{} // held by the background, until closed
	made   map[session.ID]*made         // what waits for its place between two turns
	closed bool
	ctx    context.Context // of the background
	stop   context.CancelFunc
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Clock == nil {
		o.Clock = session.System{}
	}
	r := &Runner{o: o, live: map[session.ID]*session.Session{}, busy: map[session.ID]bool{}, brief: map[session.ID]chan struct{}{}, made: map[session.ID]*made{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Load returns the current session of key, begun now if there is none or if
// the last one has been idle for too long.
func (r *Runner) Load(ctx context.Context, key session.Key) (*session.Session, error) {
	return r.Begin(ctx, session.Header{Key: key})
}

// Begin is Load with a header for the session that it begins, if it does.
func (r *Runner) Begin(ctx context.Context, h session.Header) (*session.Session, error) {
	id, err := r.find(ctx, h)
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, r.o.Store, id)
}

// Peek is Load without the beginning: where Load would begin a session, Peek
// returns a draft of it, and nothing is kept.
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

// find is Begin without the reading.
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

// current returns the session of key to go on in, "" if one is to be begun
// instead of the one that was seen.
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
		case errors.Is(err, session.ErrNotFound): // begun when something is said
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

// open returns the session in, from memory if nothing was appended since. It
// is the caller's alone until remember gives it back.
func (r *Runner) open(ctx context.Context, in session.Info) (*session.Session, error) {
	r.mu.Lock()
	s := r.live[in.ID]
	delete(r.live, in.ID)
	r.mu.Unlock()
	if s != nil && s.Last == in.Last {
		return s, nil
	}
	return session.Open(ctx, r.o.Store, in.ID)
}

// Run runs a turn of key's session: in is what the user said, or an empty
// message to go on with what was broken off. Every Recorded event is durable
// when it is seen. Breaking out of the loop ends the turn.
func (r *Runner) Run(ctx context.Context, key session.Key, in llm.Message) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		id, err := r.find(ctx, session.Header{Key: key})
		if err != nil {
			yield(nil, err)
			return
		}
		r.run(ctx, id, in, yield)
	}
}

// RunID is Run for the session id, whatever its key.
func (r *Runner) RunID(ctx context.Context, id session.ID, in llm.Message) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) { r.run(ctx, id, in, yield) }
}

func (r *Runner) run(ctx context.Context, id session.ID, in llm.Message, yield func(agent.Event, error) bool) {
	id, ok := r.own(ctx, id, yield)
	if !ok {
		return
	}
	release, err := r.hold(ctx, id, yield)
	if err != nil {
		if err != errOver {
			yield(nil, err)
		}
		return
	}
	defer release()
	// Only now is the log ours: what was loaded before may be old.
	info, err := session.Stat(ctx, r.o.Store, id)
	if err != nil {
		yield(nil, err)
		return
	}
	s, err := r.open(ctx, info)
	if err != nil {
		yield(nil, err)
		return
	}
	env, err := r.o.Env(ctx, s)
	if err != nil {
		yield(nil, err)
		return
	}
	if env.Clock == nil {
		env.Clock = r.o.Clock
	}
	h := hand{r: r, s: s}
	if !h.catchUp(ctx, yield) {
		return
	}
	to := session.ModelChange{Provider: env.Prompt.Provider, Model: env.Prompt.Model}
	if from, ok := s.LastModel(); ok && to.Model != "" && from != to && !yield(Switched{From: from, To: to}, nil) {
		return
	}
	for ev, err := range agent.Turn(ctx, s, in, env) {
		if rec, ok := ev.(agent.Recorded); ok && err == nil {
			if ev, err = h.keep(ctx, rec.Record); err != nil {
				yield(nil, err)
				return
			}
		}
		if l, ok := ev.(agent.Learnt); ok && r.o.Learnt != nil {
			r.o.Learnt(l)
		}
		if _, ok := ev.(agent.Done); ok {
			if err := h.title(ctx, yield); err != nil {
				if err != errOver {
					yield(nil, err)
				}
				return
			}
		}
		if _, ok := ev.(agent.Done); ok {
			if !h.catchUp(ctx, yield) {
				break
			}
			r.after(s, env)
		}
		if !yield(ev, err) {
			break
		}
	}
	r.remember(s)
}

// own returns the session to say something in: id, or, if that is a mirror,
// the one that continues it.
func (r *Runner) own(ctx context.Context, id session.ID, yield func(agent.Event, error) bool) (session.ID, bool) {
	from, err := session.Stat(ctx, r.o.Store, id)
	if err != nil {
		yield(nil, err)
		return id, false
	}
	if !from.Mirror() {
		return id, true
	}
	to, err := mirrors.Continue(ctx, r.o.Store, from, r.o.Clock)
	if err != nil {
		yield(nil, err)
		return id, false
	}
	return to.ID, yield(Continued{From: from, To: to}, nil)
}

// maxLive is how many sessions are held in memory between turns.
const maxLive = 64

// remember holds s for its next turn. Whichever goes to make room is opened
// again from the store when it is needed.
func (r *Runner) remember(s *session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.live {
		if len(r.live) < maxLive {
			break
		}
		delete(r.live, id)
	}
	r.live[s.ID] = s
}

var errOver = errors.New("runner: over")

func (r *Runner) forget(id session.ID) {
	r.mu.Lock()
	delete(r.live, id)
	r.mu.Unlock()
}

// hold takes the session, waiting for another if that is allowed.
func (r *Runner) hold(ctx context.Context, id session.ID, yield func(agent.Event, error) bool) (func(), error) {
	said := false
	began := time.Now()
	deadline := began.Add(r.o.Wait)
	for {
		release, err := r.o.Store.Lock(ctx, string(id), r.o.Who)
		var held *session.HeldError
		if errors.As(err, &held) {
			r.mu.Lock()
			brief := r.brief[id]
			r.mu.Unlock()
			if brief != nil { // our own background: an append, no more
				<-brief
				continue
			}
		}
		if err == nil || !errors.As(err, &held) || !time.Now().Before(deadline) {
			return release, err
		}
		// Whoever only appends something is gone in a moment.
		if !said && time.Since(began) >= moment {
			said = true
			if !yield(Waiting{By: held}, nil) {
				return nil, errOver
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// moment is how long a session may be held by another without a word about it.
const moment = 200 * time.Millisecond

// hand appends the records of one turn.
type hand struct {
	r *Runner
	s *session.Session
}

// keep appends rec and applies it. What the user stops is still recorded:
// the context's end does not end the append.
func (h hand) keep(ctx context.Context, rec session.Record) (agent.Recorded, error) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if c, ok := rec.Body.(session.Compaction); ok {
		if rec, err = h.carry(ctx, c, rec); err != nil {
			return agent.Recorded{}, err
		}
	}
	rec, err = session.Keep(ctx, h.r.o.Store, h.s, rec, h.r.o.Clock)
	if err != nil {
		return agent.Recorded{}, fmt.Errorf("the conversation cannot be kept: %w", err)
	}
	return agent.Recorded{Record: rec, Info: h.s.Info}, nil
}

// carry records the chosen model again before the compaction c, if c folds the
// choice away: a session is read from the first record that c keeps, and would
// not know of it. It returns the record of c, in its new place.
func (h hand) carry(ctx context.Context, c session.Compaction, rec session.Record) (session.Record, error) {
	chosen, ok := h.s.Chosen()
	if !ok {
		return rec, nil
	}
	for _, r := range h.s.Branch {
		if r.ID == c.FirstKept {
			break
		}
		if r.ID == chosen.ID {
			change := chosen.Body.(session.ModelChange)
			change.Chosen = true
			if _, err := session.Keep(ctx, h.r.o.Store, h.s, h.s.Next(change, h.r.o.Clock), h.r.o.Clock); err != nil {
				return rec, err
			}
			return h.s.Next(c, h.r.o.Clock), nil
		}
	}
	return rec, nil
}

// Record appends b to the session id outside of a turn: a title, a label, a
// change of model. It returns the record and what the session is with it.
func (r *Runner) Record(ctx context.Context, id session.ID, b session.Body) (agent.Recorded, error) {
	info, err := session.Stat(ctx, r.o.Store, id)
	if err != nil {
		return agent.Recorded{}, err
	}
	s, err := r.open(ctx, info)
	if err != nil {
		return agent.Recorded{}, err
	}
	rec, err := hand{r: r, s: s}.keep(ctx, s.Next(b, r.o.Clock))
	if err == nil {
		r.remember(s)
	}
	return rec, err
}

// Follow yields what is recorded in the session id behind after, and then
// what will be.
func (r *Runner) Follow(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for rec, err := range session.Follow(ctx, r.o.Store, id, after) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !yield(agent.Recorded{Record: rec}, nil) {
				return
			}
		}
	}
}

// Close waits for what is still being done in the background, as long as ctx
// allows, and gives it up then: only that is lost. The store stays open; turns
// that are run later leave nothing in the background.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	defer r.stop()
	done := make(chan struct{})
	go func() { r.late.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		r.stop()
		<-done
		return ctx.Err()
	}
}
