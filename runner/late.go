package runner

import (
	"context"
	"errors"
	"time"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/session"
	"goclaw/window"
)

// job is work for the background: it makes a body from a snapshot, and says
// whether the body still has a place in the session when it is there.
type job struct {
	make func(ctx context.Context) (session.Body, error)
	fits func(s *session.Session) bool
}

// pause is how long the background stays away from a session after a failure:
// so many turns, twice as many after each.
type pause struct{ fails, turns int }

// after begins what is due once a turn is over. It only looks; the work is
// done while the session goes on.
func (r *Runner) after(s *session.Session, env agent.Env) {
	if env.Compact == nil || env.Summarizer == nil || env.Tokens == nil {
		return
	}
	if env.Tools != nil {
		env.Prompt.Tools = env.Tools.Specs()
	}
	r.mu.Lock()
	p := r.paused[s.ID]
	if p.turns > 0 {
		p.turns--
		r.paused[s.ID] = p
	}
	wait := p.turns > 0 || r.closed || r.busy[s.ID]
	r.mu.Unlock()
	if wait {
		return
	}
	j, ok := r.checkpoint(s, env)
	if !ok {
		j, ok = r.improve(s, env)
	}
	if ok {
		r.start(s.ID, j)
	}
}

// checkpoint is due at so many percent of the window or messages.
func (r *Runner) checkpoint(s *session.Session, env agent.Env) (job, bool) {
	b := window.Measure(s, env.Prompt, env.Tokens, env.Budget)
	if !compact.Due(s, b, *env.Compact) {
		return job{}, false
	}
	snap, ok := compact.Snapshot(s, env.Prompt, env.Tokens, b)
	if !ok {
		return job{}, false
	}
	covers := ""
	return job{
		make: func(ctx context.Context) (session.Body, error) {
			cp, err := snap.Checkpoint(ctx, env.Summarizer)
			covers = cp.Covers
			return cp, err
		},
		// A fold, a rewind or a fork may have taken away what it tells of.
		fits: func(s *session.Session) bool { return contains(s, covers) },
	}, true
}

func contains(s *session.Session, id string) bool {
	for i := len(s.Branch) - 1; i >= 0; i-- {
		if s.Branch[i].ID == id {
			return true
		}
	}
	return false
}

// improve is due where the past was folded without a model: after the first
// turn since, the second, the fourth, and so on.
func (r *Runner) improve(s *session.Session, env agent.Env) (job, bool) {
	if _, same := env.Summarizer.(compact.Extractor); same || !compact.IsExtract(s) {
		return job{}, false
	}
	at, _, _ := s.Fold()
	n := 0
	for _, rec := range s.Branch[at:] {
		if session.IsTurn(rec.Body) {
			n++
		}
	}
	if n == 0 || n&(n-1) != 0 {
		return job{}, false
	}
	id, fold := s.ID, s.Branch[at].ID
	return job{
		make: func(ctx context.Context) (session.Body, error) {
			whole, err := session.Replay(id, r.o.Store.Read(ctx, id, 0))
			if err != nil {
				return nil, err
			}
			cut, ok := compact.Again(whole, env.Prompt, env.Tokens, env.Budget)
			if !ok {
				return nil, errGone
			}
			return cut.Improve(ctx, env.Summarizer)
		},
		fits: func(s *session.Session) bool {
			at, _, ok := s.Fold()
			return ok && s.Branch[at].ID == fold
		},
	}, true
}

// errGone: what a job was for is no longer there.
var errGone = errors.New("runner: nothing is left to do")

// start runs a job beside everything else, one at a time for each session.
func (r *Runner) start(id session.ID, j job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.busy[id] {
		return
	}
	r.busy[id] = true
	r.late.Add(1)
	go func() {
		defer r.late.Done()
		rec, err := r.do(id, j)
		r.mu.Lock()
		delete(r.busy, id)
		p := r.paused[id]
		switch {
		case err == nil || errors.Is(err, errGone):
			delete(r.paused, id)
		default:
			p.fails++
			p.turns = 1 << min(p.fails, 6)
			r.paused[id] = p
		}
		r.mu.Unlock()
		if r.o.Late != nil && !errors.Is(err, errGone) {
			r.o.Late(id, rec, err)
		}
	}()
}

// made is a body that waits for its place between two turns. Whoever takes
// it, the background or the next turn, says on done what came of it.
type made struct {
	job
	body session.Body
	done chan outcome
}

type outcome struct {
	rec session.Record
	err error
}

// do makes the body and appends it between two turns.
func (r *Runner) do(id session.ID, j job) (session.Record, error) {
	body, err := j.make(r.ctx)
	if err != nil {
		return session.Record{}, err
	}
	m := &made{job: j, body: body, done: make(chan outcome, 1)}
	r.mu.Lock()
	r.made[id] = m
	r.mu.Unlock()
	for {
		release, err := r.brieflyHold(id)
		if err == nil {
			if r.take(id) == m {
				// A session of its own: the one of the turns may be read
				// elsewhere.
				var s *session.Session
				if s, err = session.Open(r.ctx, r.o.Store, id); err == nil {
					m.append(r.ctx, hand{r: r, s: s})
				} else {
					m.done <- outcome{err: err}
				}
				r.forget(id)
			}
			release()
		} else if !errors.Is(err, session.ErrHeld) {
			r.take(id)
			return session.Record{}, err
		}
		select {
		case out := <-m.done:
			return out.rec, out.err
		case <-r.ctx.Done():
			if r.take(id) != nil {
				return session.Record{}, r.ctx.Err()
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// take returns what waits for the session id; nil if nothing does.
func (r *Runner) take(id session.ID) *made {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.made[id]
	delete(r.made, id)
	return m
}

// append puts the body into the session of h, if it still has a place there.
func (m *made) append(ctx context.Context, h hand) (session.Record, bool) {
	if !m.fits(h.s) {
		m.done <- outcome{err: errGone}
		return session.Record{}, false
	}
	rec, err := h.keep(ctx, h.s.Next(m.body, h.r.o.Clock))
	m.done <- outcome{rec, err}
	return rec, err == nil
}

// catchUp appends what the background has made for the session of h.
func (h hand) catchUp(ctx context.Context, yield func(agent.Event, error) bool) bool {
	m := h.r.take(h.s.ID)
	if m == nil {
		return true
	}
	rec, ok := m.append(ctx, h)
	return !ok || yield(agent.Recorded{Record: rec}, nil)
}

// brieflyHold takes the session if no turn has it. A turn that comes in the
// meantime waits for release, which is soon.
func (r *Runner) brieflyHold(id session.ID) (release func(), err error) {
	brief := make(chan struct{})
	r.mu.Lock()
	r.brief[id] = brief
	r.mu.Unlock()
	done := func() {
		r.mu.Lock()
		delete(r.brief, id)
		r.mu.Unlock()
		close(brief)
	}
	unlock, err := r.o.Store.Lock(r.ctx, id, r.o.Who)
	if err != nil {
		done()
		return nil, err
	}
	return func() { unlock(); done() }, nil
}
