package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWait(t *testing.T) {
	half := func() float64 { return 0.5 }
	zero := func() float64 { return 0 }
	for _, c := range []struct {
		name  string
		p     Policy
		n     int
		asked time.Duration
		want  time.Duration
		ok    bool
	}{
		{"first", Policy{Rand: zero}, 0, 0, 500 * time.Millisecond, true},
		{"doubled", Policy{Rand: zero}, 2, 0, 2 * time.Second, true},
		{"jitter", Policy{Rand: half}, 0, 0, 437500 * time.Microsecond, true},
		{"capped", Policy{Rand: zero, Max: 99}, 90, 0, 8 * time.Second, true},
		{"own cap", Policy{Rand: zero, Cap: 700 * time.Millisecond}, 3, 0, 700 * time.Millisecond, true},
		{"used up", Policy{}, 4, 0, 0, false},
		{"none", Policy{Max: -1}, 0, 0, 0, false},
		{"asked, without jitter", Policy{Rand: half}, 0, 3 * time.Second, 3 * time.Second, true},
		{"asked for an hour", Policy{}, 0, time.Hour, time.Hour, false},
		{"patient", Policy{Patience: 2 * time.Hour}, 0, time.Hour, time.Hour, true},
	} {
		if got, ok := c.p.Wait(c.n, c.asked); got != c.want && c.ok || ok != c.ok {
			t.Errorf("%s: Wait(%d, %s) = %s, %v, want %s, %v", c.name, c.n, c.asked, got, ok, c.want, c.ok)
		}
	}
}

func TestAfter(t *testing.T) {
	p := Policy{Now: func() time.Time { return time.Date(2026, 11, 8, 12, 0, 0, 0, time.UTC) }}
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", " 1.5 ", 1500 * time.Millisecond},
		{"Retry-After", "-3", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 365 * 24 * time.Hour},
		{"Retry-After", "soon", 0},
		{"Retry-After", "", 0},
		{"Retry-After", "Sun, 08 Nov 2026 12:01:00 GMT", time.Minute},
		{"Retry-After", "Sunday, 08-Nov-26 12:01:00 GMT", time.Minute},
		{"Retry-After", "Sun, 08 Nov 2026 11:00:00 GMT", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := p.After(h); got != c.want {
			t.Errorf("%s: %q is %s, want %s", c.name, c.value, got, c.want)
		}
	}
	if got := p.After(nil); got != 0 {
		t.Errorf("no header is %s, want 0", got)
	}
}

func TestDo(t *testing.T) {
	busy, bad := errors.New("busy"), errors.New("bad")
	var waits int
	p := Policy{Sleep: func(context.Context, time.Duration) error { waits++; return nil }}
	tries := 0
	var told []string
	tell := func(err error, wait time.Duration, next, of int) bool {
		told = append(told, fmt.Sprintf("%v, %d of %d", err, next, of))
		return next < 4
	}
	err := p.Do(t.Context(), func() error {
		if tries++; tries < 3 {
			return &Again{Err: busy}
		}
		return bad
	}, tell)
	if d := cmp.Diff([]string{"busy, 2 of 5", "busy, 3 of 5"}, told); d != "" {
		t.Errorf("told (-want +got)\n%s", d)
	}
	if err != bad || tries != 3 || waits != 2 {
		t.Errorf("got %v after %d tries and %d waits, want bad after 3 and 2", err, tries, waits)
	}
	if err := p.Do(t.Context(), func() error { return &Again{Err: busy} }, nil); err != busy {
		t.Errorf("got %v, want the error without its mark", err)
	}
	tries = 0
	if err := p.Do(t.Context(), func() error { tries++; return &Again{Err: busy} }, tell); err != busy || tries != 3 {
		t.Errorf("got %v after %d tries, want busy after 3: whoever is told has left", err, tries)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	err := Policy{Base: time.Hour, Cap: time.Hour}.Do(ctx, func() error { return &Again{Err: errors.New("busy")} }, nil)
	if err != context.Canceled {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
