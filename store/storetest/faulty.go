package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
	"goclaw/store/memory"
)

// errFault is the error of a faulty store.
var errFault = errors.New("storetest: this call is meant to fail")

// faulty is a store of which every nth call fails. Every other failure comes
// after the call has had its effect. A read fails in its middle.
type faulty struct {
	session.Store
	n     int64
	calls atomic.Int64
}

func newFaulty(st session.Store, n int) session.Store { return &faulty{Store: st, n: int64(n)} }

// fate reports whether this call fails, and whether after its effect.
func (f *faulty) fate() (fails, after bool) {
	c := f.calls.Add(1)
	return c%f.n == 0, c/f.n%2 == 0
}

func (f *faulty) do(call func() error) error {
	fails, after := f.fate()
	if fails && !after {
		return errFault
	}
	if err := call(); err != nil || !fails {
		return err
	}
	return errFault
}

func (f *faulty) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	return f.do(func() error { return f.Store.Append(ctx, id, recs...) })
}

func (f *faulty) Delete(ctx context.Context, id session.ID) error {
	return f.do(func() error { return f.Store.Delete(ctx, id) })
}

func (f *faulty) Restore(ctx context.Context, id session.ID) error {
	return f.do(func() error { return f.Store.Restore(ctx, id) })
}

func (f *faulty) Purge(ctx context.Context, id session.ID) error {
	return f.do(func() error { return f.Store.Purge(ctx, id) })
}

func (f *faulty) Lock(ctx context.Context, name, who string) (func(), error) {
	if fails, _ := f.fate(); fails {
		return nil, errFault
	}
	return f.Store.Lock(ctx, name, who)
}

func (f *faulty) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return failing(f, f.Store.Read(ctx, id, after))
}

func (f *faulty) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return failing(f, f.Store.List(ctx, q))
}

// failing yields seq. If it is to fail, it does so before the third item or at
// the end.
func failing[T any](f *faulty, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		fails, _ := f.fate()
		n := 0
		for v, err := range seq {
			if n++; fails && n == 3 {
				yield(none, errFault)
				return
			}
			if !yield(v, err) {
				return
			}
		}
		if fails && n < 3 {
			yield(none, errFault)
		}
	}
}

// faults tests that callers of a store that fails lose nothing and can be called
// again.
func (s suite) faults(t *testing.T) {
	st := s.fresh(t)
	n, failing := 2500, []int{3, 4, 5, 7}
	if testing.Short() {
		n, failing = 1100, failing[1:2]
	}
	recs := logOf("s1", "k", bodies(n)...)
	add(t, st, "s1", recs...)
	for _, n := range failing {
		for side, stores := range map[string][2]session.Store{
			"source": {memory.New(), newFaulty(st, n)},
			"target": {newFaulty(memory.New(), n), st},
		} {
			repeat(t, fmt.Sprintf("copy with every %dth call to the %s failing", n, side), func() error {
				_, err := storekit.Copy(bg, stores[0], stores[1], "s1")
				return err
			})
			dst := stores[0]
			if f, ok := dst.(*faulty); ok {
				dst = f.Store
			}
			wantLog(t, dst, "s1", recs)
		}
	}
	for _, n := range []int{6, 7, 9} { // a load that begins a session is six calls: with fewer the same one might fail forever
		key := session.Key(fmt.Sprintf("every %d", n))
		bad := newFaulty(st, n)
		clock := &sessiontest.Clock{Seed: uint64(n)}
		var one *session.Session
		load := func() (err error) {
			one, err = session.Load(bg, bad, key, clock)
			return err
		}
		repeat(t, "load", load)
		var want []string
		for i := range 20 {
			r := one.Next(sessiontest.User(fmt.Sprint(i)), clock)
			want = append(want, r.ID)
			for bad.Append(bg, one.ID, r) != nil {
				// The record may have been written all the same: append it again
				// only if it is not there.
				repeat(t, "load", load)
				if one.Leaf == r.ID {
					break
				}
			}
			if one.Leaf != r.ID {
				must(t, one.Apply(r))
			}
		}
		var got []string
		for _, r := range read(t, st, one.ID, 1) {
			got = append(got, r.ID)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("with every %dth call failing (-want +got):\n%s", n, d)
		}
		wantReplay(t, st, one.ID)
	}
}

// repeat calls f until it succeeds. It may fail only with errFault.
func repeat(t *testing.T, what string, f func() error) {
	t.Helper()
	for range 300 {
		err := f()
		if err == nil {
			return
		}
		if !errors.Is(err, errFault) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	t.Fatalf("%s: failed 300 times", what)
}
