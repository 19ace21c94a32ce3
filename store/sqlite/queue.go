package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// request is one thing to write: lines to append to the log id, or do, which
// runs in a separate transaction.
type request struct {
	id    session.ID
	recs  []session.Record
	lines []sqlstore.Line
	do    func() error

	err error // the outcome

	wake    chan bool // true: lead; false: served
	leading bool
}

// queue is group commit: requests that wait for the writer share its next
// transaction. It starts no goroutine. The first request leads: its
// goroutine serves all that wait by then. The first that came in the meantime
// leads the next round. A single writer serves itself and never switches
// goroutines.
type queue struct {
	// serve writes. It calls take once it can write and sets the err of each
	// request that it took; later ones go into the next round. ctx is the
	// leader's. serve returns an error only if it took nothing: that is the
	// outcome of all requests, or of the leader alone if its ctx is done.
	serve func(ctx context.Context, take func() []*request) error
	// after is called once the served requests know their outcome, before the
	// next one leads.
	after func()

	mu      sync.Mutex
	waiting []*request
	led     bool // a request leads
	closed  bool
	last    int           // requests in the last round
	prev    int           // requests in the round before
	round   time.Duration // how long the last round took

	wanted int // close enough when this many wait; 0: gather does not wait
	enough chan struct{}
}

// put has r served and returns its outcome. If ctx is done before r is taken,
// nothing is written; later ctx has no effect.
func (q *queue) put(ctx context.Context, r *request) error { return q.add(ctx, r, false) }

// close has r served after all others and refuses later requests.
func (q *queue) close(r *request) error { return q.add(context.Background(), r, true) }

func (q *queue) add(ctx context.Context, r *request, closes bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.wake = make(chan bool, 1)
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return session.ErrClosed
	}
	q.closed = closes
	q.waiting = append(q.waiting, r)
	if q.wanted > 0 && len(q.waiting) >= q.wanted {
		q.wanted = 0
		close(q.enough)
	}
	if !q.led {
		q.next()
	}
	q.mu.Unlock()
	for {
		select {
		case lead := <-r.wake:
			if !lead {
				return r.err
			}
			q.lead(ctx, r)
		case <-ctx.Done():
			if q.leave(r) {
				return ctx.Err()
			}
			ctx = context.Background() // taken: wait for the outcome
		}
	}
}

// leave removes r from the queue and reports whether it was still there.
func (q *queue) leave(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if r.leading {
		q.next()
	}
	return true
}

// next appoints a leader. q.mu is held.
func (q *queue) next() {
	q.led = len(q.waiting) > 0
	if q.led {
		q.waiting[0].leading = true
		q.waiting[0].wake <- true
	}
}

// lead serves the requests that wait, r among them, and appoints the next
// leader.
func (q *queue) lead(ctx context.Context, r *request) {
	var taken []*request
	var start time.Time
	take := func() []*request {
		q.gather()
		q.mu.Lock()
		defer q.mu.Unlock()
		taken, q.waiting = q.waiting, nil
		q.prev, q.last = q.last, len(taken)
		start = time.Now()
		return taken
	}
	err := q.serve(ctx, take)
	if taken == nil && err != nil {
		if ctx.Err() != nil && q.leave(r) { // leave appoints the next leader
			r.err = ctx.Err()
			r.wake <- false
			return
		}
		for _, w := range take() {
			w.err = err
		}
	}
	q.round = time.Since(start)
	r.leading = false
	for _, w := range taken {
		w.wake <- false
	}
	q.after()
	q.mu.Lock()
	q.next()
	q.mu.Unlock()
}

// gather waits until as many requests wait as were served together before, for
// at most a quarter of the last round. Without it the first writer to come back
// would lead a round of one: 64 writers on a disk whose sync takes 5 ms get 10
// to 20 % more done. A single writer never waits here.
func (q *queue) gather() {
	q.mu.Lock()
	n := max(q.last, q.prev)
	if len(q.waiting) >= n {
		q.mu.Unlock()
		return
	}
	enough := make(chan struct{})
	q.wanted, q.enough = n, enough
	q.mu.Unlock()
	timer := time.NewTimer(q.round / 4)
	defer timer.Stop()
	select {
	case <-enough:
	case <-timer.C:
		q.mu.Lock()
		q.wanted = 0
		q.mu.Unlock()
	}
}
