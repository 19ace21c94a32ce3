package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// background does what is due between turns: checkpoints, and better summaries.
type background struct {
	*slots
	detach  func(id session.ID) bool
	working func(id session.ID, on bool)
	told    func(id session.ID, rec session.Record, err error)

	ctx    context.Context // ends when its work is given up
	stop   context.CancelFunc
	mu     sync.Mutex
	closed bool
	jobs   sync.WaitGroup
}

// job is work for the background: it makes a body from a snapshot, and says
// whether the body still has a place in the session when it is made.
type job struct {
	make func(ctx context.Context) (session.Body, error)
	fits func(s *session.Session) bool
}

// after starts what is due once a turn is over. It only looks; the work is done
// while the session continues.
func (b *background) after(s *session.Session, env agent.Env) {
	id := s.ID // s belongs to the turns
	done, ok := b.claim(id)
	if !ok {
		return
	}
	j, ok, err := b.due(b.ctx, s, env)
	if err != nil {
		b.tell(id, session.Record{}, err)
	}
	if err != nil || !ok || !extracts(env) && b.detach != nil && b.detach(id) {
		done()
		return
	}
	go func() {
		defer done()
		if b.working != nil {
			b.working(id, true)
			defer b.working(id, false)
		}
		if rec, err := b.attempt(b.ctx, id, j); !errors.Is(err, errGone) {
			b.tell(id, rec, err)
		}
	}()
}

func (b *background) tell(id session.ID, rec session.Record, err error) {
	if b.told != nil {
		b.told(id, rec, err)
	}
}

// claim makes the caller the only one that works for the session id in the
// background, until done is called. ok is false if another does, or if the
// background is closed.
func (b *background) claim(id session.ID) (done func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sl, leave := b.enter(id)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if b.closed || sl.busy {
		leave()
		return nil, false
	}
	sl.busy = true
	b.jobs.Add(1)
	return func() {
		sl.mu.Lock()
		sl.busy = false
		sl.mu.Unlock()
		leave()
		b.jobs.Done()
	}, true
}

// finish does in the session id what is due, now.
func (b *background) finish(ctx context.Context, s *session.Session, env agent.Env) (session.Record, error) {
	done, ok := b.claim(s.ID)
	if !ok {
		return session.Record{}, nil
	}
	defer done()
	j, ok, err := b.due(ctx, s, env)
	if err != nil || !ok {
		return session.Record{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	return b.attempt(ctx, s.ID, j)
}

// close waits for the work that was started, as long as ctx allows, and gives
// it up then.
func (b *background) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	defer b.stop()
	done := make(chan struct{})
	go func() { b.jobs.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		b.stop()
		<-done
		return ctx.Err()
	}
}

// extracts reports whether summaries are made without a model: that takes no
// time and does not fail.
func extracts(env agent.Env) bool {
	_, ok := env.Summarizer.(compact.Extractor)
	return ok
}

// due returns what there is to do for s between two turns.
func (b *background) due(ctx context.Context, s *session.Session, env agent.Env) (job, bool, error) {
	if env.Compact == nil || env.Summarizer == nil || env.Tokens == nil {
		return job{}, false, nil
	}
	j, ok := checkpoint(s, env)
	if !ok {
		j, ok = b.improve(s, env)
	}
	if !ok || extracts(env) {
		return j, ok, nil
	}
	wait, err := b.backsOff(ctx, s)
	return j, !wait, err
}

// checkpoint is due at so many percent of the window or messages.
func checkpoint(s *session.Session, env agent.Env) (job, bool) {
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
			if _, err := env.MayAsk(ctx, llm.Usage{}, snap.Estimate(env.Summarizer)); err != nil {
				return nil, err
			}
			cp, err := snap.Checkpoint(ctx, env.Summarizer)
			covers = cp.Covers
			return cp, err
		},
		// A compaction, a rewind or a fork may have removed what it covers.
		fits: func(s *session.Session) bool {
			return slices.ContainsFunc(s.Branch, func(r session.Record) bool { return r.ID == covers })
		},
	}, true
}

// improve is due where the past was summarised without a model: after the first
// turn since, the second, the fourth, and so on.
func (b *background) improve(s *session.Session, env agent.Env) (job, bool) {
	if extracts(env) || !compact.IsExtract(s) {
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
	id, extract := s.ID, s.Branch[at].ID
	return job{
		make: func(ctx context.Context) (session.Body, error) {
			whole, err := session.Replay(id, b.store.Read(ctx, id, 0))
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
			return ok && s.Branch[at].ID == extract
		},
	}, true
}

// errGone: what a job was for is no longer there.
var errGone = errors.New("runner: nothing is left to do")

// failedType is the custom record that a failed attempt leaves. It is never
// sent, and other programs ignore it.
const failedType = "goclaw.failed"

// failed is the content of that record.
type failed struct {
	Problem string `json:"problem"`
}

// attempt does a job. If it fails, that is recorded; one that was given up has
// not failed.
func (b *background) attempt(ctx context.Context, id session.ID, j job) (session.Record, error) {
	rec, err := b.do(ctx, id, j)
	if err == nil || errors.Is(err, errGone) || ctx.Err() != nil {
		return rec, err
	}
	data, e := json.Marshal(failed{Problem: fmt.Sprintf("%.500s", err.Error())})
	if e == nil {
		_, e = b.do(ctx, id, job{
			make: func(context.Context) (session.Body, error) { return session.Custom{Type: failedType, Data: data}, nil },
			fits: func(*session.Session) bool { return true },
		})
	}
	return rec, errors.Join(err, e)
}

// makeLimit is how long a job may take. One that takes longer has failed.
const makeLimit = 10 * time.Minute

// do does a job and has its result appended between two turns.
func (b *background) do(ctx context.Context, id session.ID, j job) (session.Record, error) {
	limited, cancel := context.WithTimeout(ctx, makeLimit)
	defer cancel()
	body, err := j.make(limited)
	if err != nil {
		return session.Record{}, err
	}
	sl, leave := b.enter(id)
	defer leave()
	r := &result{job: j, body: body, done: make(chan struct{})}
	sl.offer(r)
	for {
		freed := sl.settle(ctx)
		select {
		case <-r.done:
			return r.rec.Record, r.err
		case <-freed:
		case <-pause(freed):
		case <-ctx.Done():
			if sl.take() == r {
				return session.Record{}, ctx.Err()
			}
			<-r.done // a turn is appending it
			return r.rec.Record, r.err
		}
	}
}

// backsOff reports whether the background stays away from s because it failed
// before.
func (b *background) backsOff(ctx context.Context, s *session.Session) (bool, error) {
	wait, sure := waits(s)
	if sure {
		return wait, nil
	}
	whole, err := session.Replay(s.ID, b.store.Read(ctx, s.ID, 0))
	if err != nil {
		return true, err
	}
	wait, _ = waits(whole)
	return wait, nil
}

// waits reports whether s is in the pause after a failure: two turns, and twice
// as many after each further failure in a row. sure is false if that depends on
// records from before those of s: compactions that are extracts do not end a
// row of failures.
func waits(s *session.Session) (wait, sure bool) {
	fails, turns := 0, 0
	waits := func() bool { return fails > 0 && turns < 1<<min(fails, 6) }
	for _, r := range slices.Backward(s.Branch) {
		switch b := r.Body.(type) {
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
