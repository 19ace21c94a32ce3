// Package retry decides when a failed call is repeated and how long to wait
// before it.
//
// An overloaded model often says so in the first event of a stream that began
// with 200, so the caller decides what is tried again, not the status alone. A
// Retry-After of an hour is not slept through, and tests have a clock of their
// own.
package retry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy says how often and after which waits. The zero value retries four
// times, after about 0.5, 1, 2 and 4 seconds.
type Policy struct {
	Max      int           // retries after the first try; 0 is four, negative is none
	Base     time.Duration // the first wait, doubled each time; 0 is 500 ms
	Cap      time.Duration // the longest wait of our own choice; 0 is 8 s
	Patience time.Duration // a longer Retry-After gives up at once; 0 is 60 s

	// For tests. Sleep waits for d or until ctx ends, and then returns
	// ctx.Err(). Rand returns a number in [0, 1) for the jitter.
	Sleep func(ctx context.Context, d time.Duration) error
	Now   func() time.Time
	Rand  func() float64
}

// Again marks an error after which the same call may succeed. After is what
// the server asked for, or zero.
type Again struct {
	Err   error
	After time.Duration
}

func (a *Again) Error() string { return a.Err.Error() }
func (a *Again) Unwrap() error { return a.Err }

// Do calls try until it succeeds, fails with an error that is not marked by
// Again, or the policy gives up; it returns the last error without the mark.
// When ctx ends while it waits it returns ctx.Err(). Before each wait it calls
// tell, which may be nil, with the number of the next try, counted from one, and
// how many there are at most; false from tell gives up.
func (p Policy) Do(ctx context.Context, try func() error, tell func(err error, wait time.Duration, next, of int) bool) error {
	for n := 0; ; n++ {
		err := try()
		var again *Again
		if !errors.As(err, &again) {
			return err
		}
		wait, ok := p.Wait(n, again.After)
		if !ok {
			return again.Err
		}
		if tell != nil && !tell(again.Err, wait, n+2, p.retries()+1) {
			return again.Err
		}
		if err := p.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Wait returns how long to wait after the nth failure, counted from zero, and
// whether to try again at all. What the server asked for is never shortened.
// A quarter of our own waits is jitter, so that clients that failed together
// do not come back together.
func (p Policy) Wait(n int, asked time.Duration) (time.Duration, bool) {
	if n >= p.retries() {
		return 0, false
	}
	if asked > 0 {
		return asked, asked <= cmp.Or(p.Patience, time.Minute)
	}
	longest := cmp.Or(p.Cap, 8*time.Second)
	wait := cmp.Or(p.Base, 500*time.Millisecond)
	for ; n > 0 && wait < longest; n-- {
		wait *= 2
	}
	wait = min(wait, longest)
	random := rand.Float64
	if p.Rand != nil {
		random = p.Rand
	}
	return wait - time.Duration(random()*float64(wait)/4), true
}

func (p Policy) retries() int { return max(cmp.Or(p.Max, 4), 0) }

func (p Policy) sleep(ctx context.Context, d time.Duration) error {
	if p.Sleep != nil {
		return p.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// After reads what a response asks for: retry-after-ms, or Retry-After in
// seconds or as an HTTP date. It returns zero if it asks for nothing or for a
// time that has passed.
func (p Policy) After(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return positive(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return positive(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		now := time.Now
		if p.Now != nil {
			now = p.Now
		}
		return max(0, at.Sub(now()))
	}
	return 0
}

// positive keeps out NaN, negative numbers, and numbers beyond a Duration.
func positive(d float64) time.Duration {
	if !(d > 0) {
		return 0
	}
	return time.Duration(min(d, float64(365*24*time.Hour)))
}
