package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"goclaw/session"
)

// Time is virtual: whoever was served has asked again before the next round ends,
// however busy the machine is.
func TestQueueShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds, most atomic.Int64
		q := queue{after: func() {}}
		q.serve = func(ctx context.Context, take func() []*request) error {
			reqs := take()
			rounds.Add(1)
			most.Store(max(most.Load(), int64(len(reqs))))
			time.Sleep(time.Millisecond)
			for _, r := range reqs {
				if r.id == "bad" {
					r.err = session.ErrConflict
				}
			}
			return nil
		}
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				for range 10 {
					id := session.ID("good")
					if i%8 == 0 {
						id = "bad"
					}
					if err := q.put(context.Background(), &request{id: id}); errors.Is(err, session.ErrConflict) != (id == "bad") {
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		}
		wg.Wait()
		if rounds.Load() > 200 || most.Load() < 8 {
			t.Errorf("640 requests took %d rounds, %d at most in one", rounds.Load(), most.Load())
		}
		served := false
		if err := q.close(&request{do: func() error { served = true; return nil }}); err != nil || served {
			t.Errorf("close: %v; do is for serve to call", err)
		}
		if err := q.put(context.Background(), &request{}); !errors.Is(err, session.ErrClosed) {
			t.Errorf("put after close: %v", err)
		}
	})
}

func TestQueueContext(t *testing.T) {
	taken, goOn := make(chan int), make(chan bool)
	q := queue{after: func() {}}
	q.serve = func(ctx context.Context, take func() []*request) error {
		taken <- len(take())
		<-goOn
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- q.put(ctx, &request{id: "taken"}) }()
	if n := <-taken; n != 1 {
		t.Fatalf("%d were taken", n)
	}
	go func() { second <- q.put(ctx, &request{id: "waiting"}) }()
	for { // until it waits
		q.mu.Lock()
		n := len(q.waiting)
		q.mu.Unlock()
		if n == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("who waits learns %v", err)
	}
	goOn <- true
	if err := <-first; err != nil {
		t.Errorf("who was taken learns %v, want the outcome", err)
	}
	if err := q.put(ctx, &request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("put with a cancelled context: %v", err)
	}
	// The queue goes on.
	go func() { first <- q.put(context.Background(), &request{}) }()
	<-taken
	goOn <- true
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// A leader that gives up while it waits to write leaves the others to the next.
func TestQueueLeaderLeaves(t *testing.T) {
	begun := make(chan bool, 1)
	q := queue{after: func() {}}
	q.serve = func(ctx context.Context, take func() []*request) error {
		if ctx.Value(patient{}) == nil {
			begun <- true
			<-ctx.Done()
			return errors.New("interrupted")
		}
		take()
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- q.put(ctx, &request{}) }()
	<-begun
	go func() { second <- q.put(context.WithValue(context.Background(), patient{}, true), &request{}) }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader learns %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the next one learns %v", err)
	}
}

type patient struct{}
