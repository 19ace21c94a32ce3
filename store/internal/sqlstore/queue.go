package sqlstore

import (
	"context"
	"runtime"
	"sync"
	"time"

	"goclaw/session"
)

// Request is one thing to be written: Lines behind the end of the log ID, or
// whatever Do does, alone.
type Request struct {
	ID    session.ID
	Recs  []session.Record
	Lines []Line
	Do    func() error

	Err error // the outcome

	wake    chan bool // true: lead; false: served
	leading bool
}

// Queue lets those who wait for one writer share its transactions. There is
// no goroutine of its own: whoever comes first leads, and serves all who wait
// by then; the first who came in the meantime leads next. Alone, one serves
// itself without a switch to another goroutine.
type Queue struct {
	// Serve writes. It calls take once it can write, and sets the Err of what
	// it took; what is not taken by then goes into the next round. ctx is the
	// leader's. An error, which only says that nothing was taken, is the
	// outcome of all who wait, unless it is ctx that is done.
	Serve func(ctx context.Context, take func() []*Request) error
	// After is called when all who were served know their outcome, and before
	// the next one leads.
	After func()

	mu      sync.Mutex
	waiting []*Request
	led     bool // someone leads
	closed  bool
	last    int           // how many were served together last
	prev    int           // and before that
	round   time.Duration // how long that took
}

// Put has r served and returns its outcome. If ctx is done before r is taken,
// that is the outcome, and nothing is written; afterwards ctx is not asked.
func (q *Queue) Put(ctx context.Context, r *Request) error { return q.put(ctx, r, false) }

// Close has r served behind all others, and refuses whoever comes later.
func (q *Queue) Close(r *Request) error { return q.put(context.Background(), r, true) }

func (q *Queue) put(ctx context.Context, r *Request, closes bool) error {
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
	if !q.led {
		q.led, r.leading = true, true
		r.wake <- true
	}
	q.mu.Unlock()
	for {
		select {
		case lead := <-r.wake:
			if !lead {
				return r.Err
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

// leave takes r out of the queue and reports whether it was still there.
func (q *Queue) leave(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiting {
		if w == r {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			if r.leading {
				q.next()
			}
			return true
		}
	}
	return false
}

// next appoints a leader. q.mu is held.
func (q *Queue) next() {
	q.led = len(q.waiting) > 0
	if q.led {
		q.waiting[0].leading = true
		q.waiting[0].wake <- true
	}
}

// lead serves those who wait, r among them, and appoints the next leader.
func (q *Queue) lead(ctx context.Context, r *Request) {
	var taken []*Request
	var begin time.Time
	take := func() []*Request {
		q.gather()
		q.mu.Lock()
		defer q.mu.Unlock()
		taken, q.waiting = q.waiting, nil
		q.prev, q.last = q.last, len(taken)
		begin = time.Now()
		return taken
	}
	err := q.Serve(ctx, take)
	if taken == nil && err != nil {
		if ctx.Err() != nil && q.leave(r) { // leave appoints the next
			r.Err = ctx.Err()
			r.wake <- false
			return
		}
		for _, w := range take() {
			w.Err = err
		}
	}
	q.round = time.Since(begin)
	r.leading = false
	for _, w := range taken {
		w.wake <- false
	}
	q.After()
	q.mu.Lock()
	q.next()
	q.mu.Unlock()
}

// gather lets those come again who were served in the last rounds: without it
// the first of them would lead a round for itself alone. It waits for a fraction
// of the time that a round takes.
func (q *Queue) gather() {
	for begin := time.Now(); ; runtime.Gosched() {
		q.mu.Lock()
		enough := len(q.waiting) >= max(q.last, q.prev)
		q.mu.Unlock()
		if enough || time.Since(begin) > q.round/4 {
			return
		}
	}
}
