package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// failedType is the custom record that a failed attempt leaves. It is never
// sent, and other programs ignore it.
const failedType = "goclaw.failed"

// failed is what the record of a failed attempt says.
type failed struct {
	Problem string `json:"problem"`
}

// backsOff reports whether the background stays away from s: for two turns
// after a failure, and twice as many after each further one in a row. sure is
// false if that depends on records from before those of s: failures in a row
// go on over compactions that are extracts.
func backsOff(s *session.Session) (wait, sure bool) {
	fails, turns := 0, 0
	waits := func() bool { return fails > 0 && turns < 1<<min(fails, 6) }
	for i := len(s.Branch) - 1; i >= 0; i-- {
		switch b := s.Branch[i].Body.(type) {
		case session.Custom:
			if b.Type == failedType {
				fails++
			}
		case session.Checkpoint:
			return waits(), true // that went well: what failed before does not count
		case session.Compaction:
			if !compact.DetailsOf(b).Extract {
				return waits(), true
			}
		default:
			if fails == 0 && session.IsTurn(b) {
				turns++
			}
		}
	}
	return waits(), waits() || s.KeepFrom <= 1
}

// staysAway is backsOff for a session that was opened, whose records need not
// be all of the log's.
func (r *Runner) staysAway(ctx context.Context, s *session.Session) (bool, error) {
	wait, sure := backsOff(s)
	if sure {
		return wait, nil
	}
	whole, err := session.Replay(s.ID, r.o.Store.Read(ctx, s.ID, 0))
	if err != nil {
		return true, err
	}
	wait, _ = backsOff(whole)
	return wait, nil
}

// after begins what is due once a turn is over. It only looks; the work is
// done while the session goes on.
func (r *Runner) after(s *session.Session, env agent.Env) {
	r.mu.Lock()
	wait := r.closed || r.busy[s.ID]
	r.mu.Unlock()
	if wait {
		return
	}
	j, ok, err := r.due(r.ctx, s, env)
	if err != nil && r.o.OnBackground != nil {
		r.o.OnBackground(s.ID, session.Record{}, err)
	}
	if err != nil || !ok {
		return
	}
	if _, quick := env.Summarizer.(compact.Extractor); !quick && r.o.Detach != nil && r.o.Detach(s.ID) {
		return
	}
	r.start(s.ID, j)
}

// due returns what there is to do for s between two turns.
func (r *Runner) due(ctx context.Context, s *session.Session, env agent.Env) (job, bool, error) {
	if env.Compact == nil || env.Summarizer == nil || env.Tokens == nil {
		return job{}, false, nil
	}
	if env.Tools != nil {
		env.Prompt.Tools = env.Tools.Specs()
	}
	j, ok := r.checkpoint(s, env)
	if !ok {
		j, ok = r.improve(s, env)
	}
	if _, quick := env.Summarizer.(compact.Extractor); !ok || quick { // an extract does not fail
		return j, ok, nil
	}
	away, err := r.staysAway(ctx, s)
	return j, !away, err
}

// Finish does what is due in the session id between two turns, if there is
// anything: a checkpoint, or a better summary. It returns what was recorded,
// which has no number if there was nothing to do or if another process is at
// it. A failure is recorded as well: it keeps the next attempt off for a while.
func (r *Runner) Finish(ctx context.Context, id session.ID) (session.Record, error) {
	release, err := r.o.Store.Lock(ctx, "late\x00"+string(id), r.o.Who)
	if errors.Is(err, session.ErrHeld) {
		return session.Record{}, nil
	}
	if err != nil {
		return session.Record{}, err
	}
	defer release()
	s, env, err := r.envOf(ctx, id)
	if err != nil {
		return session.Record{}, err
	}
	j, ok, err := r.due(ctx, s, env)
	if err != nil || !ok {
		return session.Record{}, err
	}
	defer context.AfterFunc(ctx, r.stop)()
	return r.attempt(id, j)
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
	at, _, _ := s.Compaction()
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
			at, _, ok := s.Compaction()
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
		rec, err := r.attempt(id, j)
		r.mu.Lock()
		delete(r.busy, id)
		r.mu.Unlock()
		if r.o.OnBackground != nil && !errors.Is(err, errGone) {
			r.o.OnBackground(id, rec, err)
		}
	}()
}

// attempt does a job and records if it fails. One that was given up has not
// failed.
func (r *Runner) attempt(id session.ID, j job) (session.Record, error) {
	rec, err := r.do(id, j)
	if err == nil || errors.Is(err, errGone) || r.ctx.Err() != nil {
		return rec, err
	}
	data, e := json.Marshal(failed{Problem: fmt.Sprintf("%.500s", err.Error())})
	if e != nil {
		return rec, errors.Join(err, e)
	}
	_, e = r.do(id, job{
		make: func(context.Context) (session.Body, error) { return session.Custom{Type: failedType, Data: data}, nil },
		fits: func(*session.Session) bool { return true },
	})
	if e != nil {
		err = errors.Join(err, e)
	}
	return rec, err
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

// makeLimit is how long a body may take to be made. What takes longer has
// failed.
const makeLimit = 10 * time.Minute

// maxWait is the longest pause between two looks whether a turn is over.
const maxWait = 250 * time.Millisecond

// do makes the body and appends it between two turns.
func (r *Runner) do(id session.ID, j job) (session.Record, error) {
	ctx, cancel := context.WithTimeout(r.ctx, makeLimit)
	defer cancel()
	body, err := j.make(ctx)
	if err != nil {
		return session.Record{}, err
	}
	m := &made{job: j, body: body, done: make(chan outcome, 1)}
	r.mu.Lock()
	r.made[id] = m
	r.mu.Unlock()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, maxWait) {
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
		case <-time.After(wait):
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
func (m *made) append(ctx context.Context, h hand) (agent.Recorded, bool) {
	if !m.fits(h.s) {
		m.done <- outcome{err: errGone}
		return agent.Recorded{}, false
	}
	rec, err := h.keep(ctx, h.s.Next(m.body, h.r.o.Clock))
	m.done <- outcome{rec.Record, err}
	return rec, err == nil
}

// catchUp appends what the background has made for the session of h.
func (h hand) catchUp(ctx context.Context, yield func(agent.Event, error) bool) bool {
	m := h.r.take(h.s.ID)
	if m == nil {
		return true
	}
	rec, ok := m.append(ctx, h)
	return !ok || yield(rec, nil)
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
	unlock, err := r.o.Store.Lock(r.ctx, string(id), r.o.Who)
	if err != nil {
		done()
		return nil, err
	}
	return func() { unlock(); done() }, nil
}
