package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// writer appends to a log to which others append as well.
type writer struct {
	st   session.Store
	id   session.ID
	name string
	last session.Seq
	leaf string
	n    int
}

// append appends one record, reading on after each conflict, and returns its id
// when the record is durable.
func (w *writer) append() (string, error) {
	for {
		r := session.Record{Seq: w.last + 1, ID: fmt.Sprintf("%s-%d", w.name, w.n), Parent: w.leaf, Time: sessiontest.Start, Body: sessiontest.User(w.name)}
		err := session.ErrConflict
		if w.last > 0 {
			err = w.st.Append(bg, w.id, r)
		}
		if err == nil {
			w.n++
			w.last, w.leaf = r.Seq, r.ID
			return r.ID, nil
		}
		if !errors.Is(err, session.ErrConflict) {
			return "", err
		}
		for r, err := range w.st.Read(bg, w.id, w.last) {
			if err != nil {
				return "", err
			}
			if r.Seq != w.last+1 {
				return "", fmt.Errorf("read record %d after record %d", r.Seq, w.last)
			}
			w.last, w.leaf = r.Seq, r.ID
		}
	}
}

// contend appends n records to the log id, to which others append as well, and
// returns their ids.
func contend(st session.Store, id session.ID, name string, n int) ([]string, error) {
	w := &writer{st: st, id: id, name: name}
	var mine []string
	for len(mine) < n {
		id, err := w.append()
		if err != nil {
			return mine, err
		}
		mine = append(mine, id)
	}
	return mine, nil
}

// wantRace reports a log that does not have exactly the promised ids, each once
// and those of each writer in order.
func wantRace(t *testing.T, st session.Store, id session.ID, promised [][]string) {
	t.Helper()
	owner, next := map[string]int{}, make([]int, len(promised))
	for w, ids := range promised {
		for _, id := range ids {
			owner[id] = w
		}
	}
	recs := read(t, st, id, 1)
	if len(recs) != len(owner) {
		t.Errorf("%d records were appended, the log has %d", len(owner), len(recs))
	}
	leaf := ""
	for i, r := range recs {
		w, ok := owner[r.ID]
		switch {
		case r.Seq != session.Seq(i)+2:
			t.Fatalf("record %d is at place %d", r.Seq, i+2)
		case !ok:
			t.Fatalf("record %d is %q, which no writer has appended", r.Seq, r.ID)
		case next[w] >= len(promised[w]) || promised[w][next[w]] != r.ID:
			t.Fatalf("record %d is %q, out of its writer's order", r.Seq, r.ID)
		case r.Parent != leaf:
			t.Fatalf("record %d continues %q, but %q is before it", r.Seq, r.Parent, leaf)
		}
		next[w]++
		leaf = r.ID
	}
	wantReplay(t, st, id)
}

func (s suite) eightWriters(t *testing.T) {
	st := s.fresh(t)
	add(t, st, "s1", header("s1", "k"))
	race(t, st, "s1", []session.Store{st, st, st, st, st, st, st, st}, 12)
}

func (s suite) twoHandles(t *testing.T) {
	dir := t.TempDir()
	a, b := s.at(t, dir), s.at(t, dir)
	add(t, a, "s1", header("s1", "k"))
	if got := list(t, b, session.Query{}); len(got) != 1 {
		t.Fatalf("one handle began a log, the other lists %d", len(got))
	}
	recs := logOf("s1", "k", sessiontest.User("1"), sessiontest.Answer("2"), sessiontest.Title("3"))
	add(t, b, "s1", recs[1])
	wantErr(t, "append at a stale place", a.Append(bg, "s1", recs[1]), session.ErrConflict)
	add(t, a, "s1", recs[2])
	add(t, b, "s1", recs[3])
	for _, st := range []session.Store{a, b} {
		wantLog(t, st, "s1", recs)
		wantReplay(t, st, "s1")
	}
	must(t, a.Delete(bg, "s1"))
	if err := b.Append(bg, "s1", session.Record{Seq: 5, ID: "e4", Parent: "e3", Time: sessiontest.Start, Body: sessiontest.User("4")}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("append to a log that another handle deleted: %v, want %v", err, session.ErrNotFound)
	}
	if got := list(t, b, session.Query{}); len(got) != 0 {
		t.Errorf("one handle deleted the log, the other lists %d", len(got))
	}
	must(t, b.Restore(bg, "s1"))
	wantLog(t, a, "s1", recs)
	must(t, a.Delete(bg, "s1"))
	must(t, b.Purge(bg, "s1"))
	_, err := sessiontest.Collect(a.Read(bg, "s1", 0))
	wantErr(t, "read of a log that another handle purged", err, session.ErrNotFound)
	add(t, a, "s1", header("s1", "k"))
	race(t, b, "s1", []session.Store{a, b, a, b}, 12)
}

// race lets one writer for each of handles append n records and checks the log.
func race(t *testing.T, st session.Store, id session.ID, handles []session.Store, n int) {
	t.Helper()
	promised := make([][]string, len(handles))
	errs := make([]error, len(handles))
	var wg sync.WaitGroup
	for w := range handles {
		wg.Go(func() { promised[w], errs[w] = contend(handles[w], id, fmt.Sprintf("w%d", w), n) })
	}
	wg.Wait()
	must(t, errors.Join(errs...))
	wantRace(t, st, id, promised)
}

func (s suite) lock(t *testing.T) {
	dir := t.TempDir()
	a, b := s.at(t, dir), s.at(t, dir)
	add(t, a, "s1", header("s1", "k"))
	release, err := a.Lock(bg, "s1", "the repl")
	must(t, err)
	for name, st := range map[string]session.Store{"the same handle": a, "another handle": b} {
		_, err := st.Lock(bg, "s1", "someone else")
		var held *session.HeldError
		if !errors.As(err, &held) || !errors.Is(err, session.ErrHeld) {
			t.Fatalf("second lock through %s: %v, want a HeldError", name, err)
		}
		if held.Name != "s1" || held.Who != "the repl" || held.PID != os.Getpid() || time.Since(held.Since).Abs() > time.Minute {
			t.Errorf("through %s the lock is held as %+v", name, held)
		}
	}
	other, err := b.Lock(bg, "s2", "someone else") // need not exist yet
	must(t, err)
	other()
	if got := list(t, a, session.Query{}); len(got) != 1 {
		t.Errorf("locking made a log: %d are listed", len(got))
	}
	add(t, b, "s1", session.Record{Seq: 2, ID: "e1", Time: sessiontest.Start, Body: sessiontest.User("a lock is advice")})
	release()
	release() // again is harmless
	second, err := b.Lock(bg, "s1", "the next")
	if err != nil {
		t.Fatalf("lock after release: %v", err)
	}
	release() // a lock that another has now
	if _, err := a.Lock(bg, "s1", "a third"); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a late release let a third in: %v", err)
	}
	second()

	// Eight writers want it three times each: all get it, one at a time.
	var held, most atomic.Int32
	end := time.Now().Add(soon)
	var wg sync.WaitGroup
	for w := range 8 {
		st := []session.Store{a, b}[w%2]
		wg.Go(func() {
			for wins := 0; wins < 3; {
				release, err := st.Lock(bg, "s1", fmt.Sprint("writer ", w))
				if errors.Is(err, session.ErrHeld) && time.Now().Before(end) {
					time.Sleep(200 * time.Microsecond)
					continue
				}
				if err != nil {
					t.Errorf("writer %d, after %d locks: %v", w, wins, err)
					return
				}
				wins++
				if n := held.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(100 * time.Microsecond)
				held.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d writers had the lock at once", most.Load())
	}
}

func (s suite) wait(t *testing.T) {
	dir := t.TempDir()
	a, b := s.at(t, dir), s.at(t, dir)
	recs := logOf("s1", "k", bodies(3)...)
	add(t, a, "s1", recs[:2]...)
	ctx, cancel := context.WithTimeout(bg, soon)
	defer cancel()
	for name, st := range map[string]session.Store{"the same handle": a, "another handle": b} {
		w, ok := st.(session.Waiter)
		if !ok {
			continue // optional: Follow polls without it
		}
		must(t, w.Wait(ctx, "s1", 1)) // there is more already
		short, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		for short.Err() == nil { // it may return early, but must not block for long
			if err := w.Wait(short, "s1", session.Seq(len(read(t, st, "s1", 0)))); err != nil && short.Err() == nil {
				t.Fatalf("wait through %s: %v", name, err)
			}
		}
		cancel()
	}
	for i, st := range []session.Store{a, b} {
		w, ok := st.(session.Waiter)
		if !ok {
			continue
		}
		last := session.Seq(2 + i)
		done := make(chan error, 1)
		go func() {
			for {
				if err := w.Wait(ctx, "s1", last); err != nil {
					done <- err
					return
				}
				if more, err := sessiontest.Collect(st.Read(ctx, "s1", last)); err != nil || len(more) > 0 {
					done <- err
					return
				}
			}
		}()
		time.Sleep(10 * time.Millisecond)
		add(t, a, "s1", recs[2+i])
		if err := <-done; err != nil {
			t.Fatalf("wait did not see record %d: %v", recs[2+i].Seq, err)
		}
	}
}

func (s suite) follow(t *testing.T) {
	dir := t.TempDir()
	a, b := s.at(t, dir), s.at(t, dir)
	recs := logOf("s1", "k", bodies(40)...)
	add(t, a, "s1", recs[:5]...)
	ctx, cancel := context.WithTimeout(bg, soon)
	defer cancel()
	type end struct {
		got []session.Seq
		err error
	}
	ends := make(chan end, 2)
	for _, st := range []session.Store{a, b} {
		go func() {
			var e end
			for r, err := range session.Follow(ctx, st, "s1", 2) {
				if err != nil {
					e.err = err
					break
				}
				if e.got = append(e.got, r.Seq); r.Seq == recs[len(recs)-1].Seq {
					break
				}
			}
			ends <- e
		}()
	}
	for _, r := range recs[5:] {
		add(t, a, "s1", r)
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		e := <-ends
		if e.err != nil {
			t.Fatalf("follow: %v", e.err)
		}
		for i, seq := range e.got {
			if seq != session.Seq(i)+3 {
				t.Fatalf("follow yields record %d at place %d", seq, i)
			}
		}
		if len(e.got) != len(recs)-2 {
			t.Errorf("follow yields %d records, want %d", len(e.got), len(recs)-2)
		}
	}
	gone, stop := context.WithCancel(bg)
	time.AfterFunc(20*time.Millisecond, stop)
	for _, err := range session.Follow(gone, a, "s1", recs[len(recs)-1].Seq) {
		t.Errorf("a cancelled follow yields %v", err)
	}
}

func (s suite) readWhileAppending(t *testing.T) {
	st := s.fresh(t)
	recs := logOf("s1", "k", bodies(200)...)
	add(t, st, "s1", recs[:10]...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for last := 10; ; {
				select {
				case <-stop:
					return
				default:
				}
				n := 0
				for r, err := range st.Read(bg, "s1", 0) {
					if err != nil {
						t.Errorf("read while appending: %v", err)
						return
					}
					if n++; r.Seq != session.Seq(n) {
						t.Errorf("read while appending yields record %d at place %d", r.Seq, n)
						return
					}
				}
				if n < last {
					t.Errorf("a reader saw %d records, then %d", last, n)
					return
				}
				last = n
				for in, err := range st.List(bg, session.Query{ID: "s1"}) {
					if err != nil || int(in.Last) < last {
						t.Errorf("after %d records were read, list says %d (%v)", last, in.Last, err)
						return
					}
				}
			}
		})
	}
	// An append during a read must not wait for the read to end.
	next := 10
	for range st.Read(bg, "s1", 0) {
		if next < 20 {
			add(t, st, "s1", recs[next])
			next++
		}
	}
	for _, r := range recs[next:] {
		add(t, st, "s1", r)
	}
	close(stop)
	wg.Wait()
	wantLog(t, st, "s1", recs)
}

func (s suite) stopReading(t *testing.T) {
	st := s.fresh(t)
	recs := logOf("s1", "k", bodies(50)...)
	add(t, st, "s1", recs...)
	seq := st.Read(bg, "s1", 0)
	for range 200 { // a read must release everything each time
		for r, err := range seq {
			must(t, err)
			if r.Seq == 3 {
				break
			}
		}
		for range st.List(bg, session.Query{}) {
			break
		}
	}
	n := 0
	for _, err := range seq { // a Seq can be read again
		must(t, err)
		n++
	}
	if n != len(recs) {
		t.Errorf("a read that was stopped yields %d records the next time, want %d", n, len(recs))
	}
	add(t, st, "s1", session.Record{Seq: 52, ID: "e51", Parent: "e50", Time: sessiontest.Start, Body: sessiontest.User("on")})
}

func (s suite) cancelled(t *testing.T) {
	st := s.fresh(t)
	recs := logOf("s1", "k", bodies(30)...)
	add(t, st, "s1", recs[:20]...)
	gone, cancel := context.WithCancel(bg)
	cancel()
	for what, err := range map[string]error{
		"append":              st.Append(gone, "s1", recs[20]),
		"append of a new log": st.Append(gone, "s2", header("s2", "k")),
		"delete":              st.Delete(gone, "s1"),
		"restore":             st.Restore(gone, "s1"),
		"purge":               st.Purge(gone, "s1"),
		"read":                second(sessiontest.Collect(st.Read(gone, "s1", 0))),
		"list":                second(sessiontest.Collect(st.List(gone, session.Query{}))),
		"lock":                second(st.Lock(gone, "s1", "me")),
	} {
		wantErr(t, what+" with a cancelled context", err, context.Canceled)
	}
	wantLog(t, st, "s1", recs[:20])
	if got := list(t, st, session.Query{}); len(got) != 1 {
		t.Errorf("cancelled calls left %d logs, want 1", len(got))
	}
	if release, err := st.Lock(bg, "s1", "me"); err != nil {
		t.Errorf("a cancelled lock is held: %v", err)
	} else {
		release()
	}

	mid, stop := context.WithCancel(bg)
	defer stop()
	var n int
	var last error
	for _, err := range st.Read(mid, "s1", 0) {
		if err != nil {
			last = err
			continue
		}
		if n++; n == 3 {
			stop()
		}
	}
	if n < 20 { // a reader may have read everything by then
		wantErr(t, fmt.Sprintf("a read cancelled after 3, ended after %d", n), last, context.Canceled)
	}

	// An append that is cancelled halfway is there or not, and one that
	// succeeds is there in any case.
	next := 20
	for try := 0; next < len(recs); try++ {
		ctx, cancel := context.WithTimeout(bg, time.Duration(try%7)*30*time.Microsecond)
		err := st.Append(ctx, "s1", recs[next])
		cancel()
		have := len(read(t, st, "s1", 0))
		switch {
		case have != next && have != next+1:
			t.Fatalf("after %d records and one append (%v) there are %d", next, err, have)
		case err == nil && have != next+1:
			t.Fatalf("record %d was appended and is not there", next+1)
		case err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
			t.Fatalf("append with a short deadline: %v", err)
		}
		next = have
		if try > 60 {
			add(t, st, "s1", recs[next:]...)
			break
		}
	}
	wantLog(t, st, "s1", recs)
	wantReplay(t, st, "s1")
}

func second[T any](_ T, err error) error { return err }

func (s suite) closed(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := logOf("s1", "k", bodies(2)...)
	add(t, st, "s1", recs...)
	reading, listing := st.Read(bg, "s1", 0), st.List(bg, session.Query{})
	must(t, st.Close())
	errs := map[string]error{
		"append":              st.Append(bg, "s1", session.Record{Seq: 4, ID: "e3", Parent: "e2", Time: sessiontest.Start, Body: sessiontest.User("x")}),
		"append of nothing":   st.Append(bg, "s1"),
		"append of a new log": st.Append(bg, "s2", header("s2", "k")),
		"read":                second(sessiontest.Collect(st.Read(bg, "s1", 0))),
		"read from before":    second(sessiontest.Collect(reading)),
		"list":                second(sessiontest.Collect(st.List(bg, session.Query{}))),
		"list from before":    second(sessiontest.Collect(listing)),
		"delete":              st.Delete(bg, "s1"),
		"restore":             st.Restore(bg, "s1"),
		"purge":               st.Purge(bg, "s1"),
		"lock":                second(st.Lock(bg, "s1", "me")),
	}
	if w, ok := st.(session.Waiter); ok {
		errs["wait"] = w.Wait(bg, "s1", 0)
	}
	for what, err := range errs {
		wantErr(t, what+" after close", err, session.ErrClosed)
	}
	if err := st.Close(); err != nil && !errors.Is(err, session.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	wantLog(t, s.at(t, dir), "s1", recs)

	// Close ends every Wait.
	st = s.at(t, dir)
	if w, ok := st.(session.Waiter); ok {
		done := make(chan error, 1)
		go func() {
			for {
				if err := w.Wait(bg, "s1", 99); err != nil {
					done <- err
					return
				}
			}
		}()
		time.Sleep(5 * time.Millisecond)
		must(t, st.Close())
		select {
		case err := <-done:
			wantErr(t, "a wait that close ends", err, session.ErrClosed)
		case <-time.After(soon):
			t.Error("a wait goes on after close")
		}
	}

	// Close during appends: those that succeeded are kept.
	st = s.at(t, dir)
	promised := make([][]string, 4)
	var wg sync.WaitGroup
	for w := range promised {
		id := session.ID(fmt.Sprintf("busy%d", w))
		add(t, st, id, header(id, "k"))
		wg.Go(func() {
			ids, err := contend(st, id, "x", 1_000_000)
			if promised[w] = ids; !errors.Is(err, session.ErrClosed) {
				t.Errorf("a writer of a closed store ends with %v", err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	must(t, st.Close())
	wg.Wait()
	st = s.at(t, dir)
	for w, ids := range promised {
		id := session.ID(fmt.Sprintf("busy%d", w))
		got := read(t, st, id, 1)
		if len(got) < len(ids) || len(got) > len(ids)+1 {
			t.Errorf("a writer appended %d records before close, %d are there", len(ids), len(got))
		}
		wantReplay(t, st, id)
	}
}

// oneOfKey tests that concurrent loads of a key load one session, through every
// handle, and that a new session of the key can still be begun.
func (s suite) oneOfKey(t *testing.T) {
	dir := t.TempDir()
	handles := []session.Store{s.at(t, dir), s.at(t, dir)}
	for round := range 5 {
		key := session.Key(fmt.Sprintf("x:y:%d", round))
		ids := make([]session.ID, 8)
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range ids {
			wg.Go(func() {
				<-begin
				one, err := session.Load(bg, handles[i%len(handles)], key, session.System{})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = one.ID
			})
		}
		close(begin)
		wg.Wait()
		have := list(t, handles[0], session.Query{Key: key})
		if len(have) != 1 {
			t.Fatalf("eight loads of %s at once gave %d sessions: %v", key, len(have), ids)
		}
		for _, id := range ids {
			if id != have[0].ID {
				t.Errorf("%s is %s, but one load gave %q", key, have[0].ID, id)
			}
		}
	}
	key := session.Key("x:y:0")
	old, err := session.Current(bg, handles[0], key)
	must(t, err)
	// Concurrent renewals begin one session, not one each.
	renewed := make([]session.ID, 8)
	var wg sync.WaitGroup
	for i := range renewed {
		wg.Go(func() {
			one, err := session.Renew(bg, handles[i%len(handles)], session.Header{Key: key}, old.ID, session.System{})
			if err != nil {
				t.Error(err)
				return
			}
			renewed[i] = one.ID
		})
	}
	wg.Wait()
	for _, id := range renewed {
		if id != renewed[0] || id == old.ID {
			t.Errorf("eight renewals of %s at once gave %v", old.ID, renewed)
			break
		}
	}
	two, err := session.Begin(bg, handles[1], session.Header{Key: key}, session.System{})
	must(t, err)
	if n := len(list(t, handles[0], session.Query{Key: key})); n != 3 {
		t.Errorf("%d sessions of %s after one was loaded, one renewed and one begun", n, key)
	}
	if cur, err := session.Current(bg, handles[0], key); err != nil || cur.ID != two.ID {
		t.Errorf("the current session of %s is %s (%v), want the one begun last, %s", key, cur.ID, err, two.ID)
	}
	// Concurrent copies get different keys.
	whole, err := session.Replay(two.ID, handles[0].Read(bg, two.ID, 0))
	must(t, err)
	keys := make([]session.Key, 4)
	for i := range keys {
		wg.Go(func() {
			f, err := session.Fork(bg, handles[i%len(handles)], whole, "", 0, session.System{})
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = f.Key
		})
	}
	wg.Wait()
	slices.Sort(keys)
	if d := cmp.Diff([]session.Key{"x:y:0-2", "x:y:0-3", "x:y:0-4", "x:y:0-5"}, keys); d != "" {
		t.Errorf("keys of four copies (-want +got):\n%s", d)
	}
}
