package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/session"
)

// slots are the sessions that a Runner works on.
type slots struct {
	store session.Store
	clock session.Clock
	who   string

	mu sync.Mutex
	of map[session.ID]*slot
}

// slot is one session: its log in the store, and what is in memory of it.
type slot struct {
	*slots
	id    session.ID
	users int // guarded by slots.mu

	// mu is held for moments only: while the session's lock is taken or
	// released, and while the background appends. A turn that starts meanwhile
	// waits for that.
	mu     sync.Mutex
	latest *session.Session // after the last turn here; nil: it is read from the store
	freed  chan struct{}    // closed when the turn that runs here is over; nil: there is none
	busy   bool             // the background is working for the session
	ready  *result          // what the background has made and nobody has appended yet
}

// maxSlots is how many sessions stay in memory between turns.
const maxSlots = 64

// enter returns the slot of the session id. The caller calls leave when it is
// done with it.
func (ss *slots) enter(id session.ID) (sl *slot, leave func()) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	sl = ss.of[id]
	if sl == nil {
		sl = &slot{slots: ss, id: id}
		ss.of[id] = sl
	}
	sl.users++
	return sl, func() { ss.leave(sl) }
}

// leave ends one use of sl. Of too many slots those that nobody uses go: their
// sessions are read from the store again when they are needed.
func (ss *slots) leave(sl *slot) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	sl.users--
	for id, sl := range ss.of {
		if len(ss.of) <= maxSlots {
			return
		}
		if sl.users == 0 {
			delete(ss.of, id)
		}
	}
}

// open returns the session, from memory if nothing was appended since. It is
// the caller's alone until remember gives it back.
func (sl *slot) open(ctx context.Context) (*session.Session, error) {
	sl.mu.Lock()
	s := sl.latest
	sl.latest = nil
	sl.mu.Unlock()
	if s != nil {
		in, err := session.Stat(ctx, sl.store, sl.id)
		if err != nil {
			return nil, err
		}
		if s.Last == in.Last {
			return s, nil
		}
	}
	return session.Open(ctx, sl.store, sl.id)
}

// remember keeps s in memory for the next turn.
func (sl *slot) remember(s *session.Session) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.latest = s
}

// remembered reports whether the session is in memory.
func (sl *slot) remembered() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.latest != nil
}

const (
	// moment is how long a session may be locked by another before a word is
	// said about it: whoever only appends something is gone by then.
	moment = 200 * time.Millisecond
	// retry is the pause between two attempts to lock a session that another
	// process has: nothing tells when that process is done.
	retry = 50 * time.Millisecond
)

// lock takes the session's lock for a turn, waiting for it up to limit. If that
// takes more than a moment, told is called once and may give up by returning
// false.
func (sl *slot) lock(ctx context.Context, limit time.Duration, told func(*session.HeldError) bool) (release func(), err error) {
	end, long := time.After(limit), time.After(moment)
	for {
		release, freed, err := sl.tryLock(ctx)
		var held *session.HeldError
		if limit <= 0 || !errors.As(err, &held) {
			return release, err
		}
		select {
		case <-freed:
		case <-long:
			if !told(held) {
				return nil, errOver
			}
		case <-end:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-pause(freed):
		}
	}
}

// pause returns when to try again to lock a session: never if freed says it.
func pause(freed <-chan struct{}) <-chan time.Time {
	if freed != nil {
		return nil
	}
	return time.After(retry)
}

// tryLock takes the session's lock for a turn. If a turn of this Runner has it,
// freed is closed when that turn is over.
func (sl *slot) tryLock(ctx context.Context) (release func(), freed <-chan struct{}, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	unlock, err := sl.store.Lock(ctx, string(sl.id), sl.who)
	if err != nil {
		return nil, sl.freed, err
	}
	sl.freed = make(chan struct{})
	return func() {
		sl.mu.Lock()
		defer sl.mu.Unlock()
		unlock()
		close(sl.freed)
		sl.freed = nil
	}, nil, nil
}

// append appends rec to the log and applies it to s. What the user stops is
// still recorded: the end of ctx does not end the append.
func (sl *slot) append(ctx context.Context, s *session.Session, rec session.Record) (agent.Recorded, error) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if c, ok := rec.Body.(session.Compaction); ok {
		if rec, err = sl.carry(ctx, s, c, rec); err != nil {
			return agent.Recorded{}, err
		}
	}
	rec, err = session.Keep(ctx, sl.store, s, rec, sl.clock)
	if err != nil {
		return agent.Recorded{}, fmt.Errorf("the conversation could not be saved: %w", err)
	}
	return agent.Recorded{Record: rec, Info: s.Info}, nil
}

// carry records the chosen model again before the compaction c, if c covers the
// choice: a session is read from the first record that c keeps, and would not
// know of it. It returns the record of c, in its new place.
func (sl *slot) carry(ctx context.Context, s *session.Session, c session.Compaction, rec session.Record) (session.Record, error) {
	chosen, ok := s.Chosen()
	if !ok {
		return rec, nil
	}
	for _, r := range s.Branch {
		if r.ID == c.FirstKept {
			break
		}
		if r.ID == chosen.ID {
			change := chosen.Body.(session.ModelChange)
			change.Chosen = true
			if _, err := session.Keep(ctx, sl.store, s, s.Next(change, sl.clock), sl.clock); err != nil {
				return rec, err
			}
			return s.Next(c, sl.clock), nil
		}
	}
	return rec, nil
}

// result is a body that the background has made. Whoever appends it, the
// background or a turn, fills in the rest and closes done.
type result struct {
	job
	body session.Body
	done chan struct{}
	rec  agent.Recorded
	err  error
}

// offer leaves r to be appended between two turns.
func (sl *slot) offer(r *result) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.ready = r
}

// take returns what waits to be appended; nil if nothing does.
func (sl *slot) take() *result {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	r := sl.ready
	sl.ready = nil
	return r
}

// settle appends what the background has made, unless another has the session:
// then freed is closed when a turn of this Runner that has it is over.
func (sl *slot) settle(ctx context.Context) (freed <-chan struct{}) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.ready == nil {
		return nil
	}
	unlock, err := sl.store.Lock(ctx, string(sl.id), sl.who)
	if errors.Is(err, session.ErrHeld) {
		return sl.freed
	}
	r := sl.ready
	sl.ready = nil
	if err == nil {
		defer unlock()
		var s *session.Session // not the one of the turns, which may be read elsewhere
		if s, err = session.Open(ctx, sl.store, sl.id); err == nil {
			r.append(ctx, sl, s)
			return nil
		}
	}
	r.err = err
	close(r.done)
	return nil
}

// append appends r to s if it still has a place there.
func (r *result) append(ctx context.Context, sl *slot, s *session.Session) {
	defer close(r.done)
	if !r.fits(s) {
		r.err = errGone
		return
	}
	r.rec, r.err = sl.append(ctx, s, s.Next(r.body, sl.clock))
}
