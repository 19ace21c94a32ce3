package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// stall keeps all appends to the store of dir waiting until release is called.
func stall(t *testing.T, dir string) (release func()) {
	t.Helper()
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	_, err = c.Exec(bg, "BEGIN; LOCK TABLE goclaw_sessions IN EXCLUSIVE MODE")
	must(t, err)
	release = sync.OnceFunc(func() { c.Close(bg) })
	t.Cleanup(release)
	return release
}

// waiting waits until n appends of s wait to be sent.
func waiting(s *Store, n int) {
	for {
		s.group.mu.Lock()
		now := len(s.group.waiting)
		s.group.mu.Unlock()
		if now == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func said(seq session.Seq, parent string) session.Record {
	return session.Record{Seq: seq, ID: fmt.Sprintf("x%03d", seq), Parent: parent, Time: sessiontest.Start, Body: sessiontest.User("x")}
}

// occupy makes all senders of s busy, with appends that last until the store is
// no longer stalled or ctx is done, and end with want.
func occupy(t *testing.T, ctx context.Context, s *Store, wg *sync.WaitGroup, want error) {
	t.Helper()
	for i := range maxSenders {
		id := session.ID(fmt.Sprint("busy", i))
		wg.Go(func() {
			if err := s.Append(ctx, id, session.Record{Seq: 1, Body: session.Header{ID: id}}); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", id, err, want)
			}
		})
		for on := false; !on; time.Sleep(time.Millisecond) { // the next gets a sender of its own
			s.group.mu.Lock()
			on = s.group.senders == i+1 && len(s.group.waiting) == 0
			s.group.mu.Unlock()
		}
	}
}

// Appends that are sent together are judged by themselves: a log that another
// process has continued, one in the trash, one whose lock was lost, one whose row
// lies and one that is given up have no effect on the others.
func TestSentTogether(t *testing.T) {
	dir := t.TempDir()
	a, b := at(t, dir, Options{Lease: time.Hour}), at(t, dir, Options{})
	ids := []session.ID{"good", "locked", "taken", "trashed", "lost", "stale", "gone", "also"}
	for _, id := range ids {
		talk(t, a, id, 3)
	}
	locked, err := a.Lock(bg, "locked", "a")
	must(t, err)
	defer locked()
	lost, err := a.Lock(bg, "lost", "a")
	must(t, err)
	defer lost()
	sql(t, dir, "UPDATE goclaw_locks SET fence = fence + 1000 WHERE name = 'lost'")
	must(t, b.Append(bg, "taken", said(5, "e003")))
	must(t, b.Delete(bg, "trashed"))
	sql(t, dir, "INSERT INTO goclaw_records SELECT n, 0, 5, 0, '', '', '', '{}' FROM goclaw_sessions WHERE id = 'stale'")
	release := stall(t, dir)
	var wg sync.WaitGroup
	occupy(t, bg, a, &wg, nil)
	short, cancel := context.WithCancel(bg)
	errs := map[session.ID]error{}
	var mu sync.Mutex
	for _, id := range append(ids, "new") {
		wg.Go(func() {
			ctx, rec := bg, said(5, "e003")
			switch id {
			case "gone":
				ctx = short
			case "new":
				rec = session.Record{Seq: 1, Body: session.Header{ID: id}}
			}
			err := a.Append(ctx, id, rec)
			mu.Lock()
			defer mu.Unlock()
			errs[id] = err
		})
	}
	waiting(a, len(ids)+1)
	cancel()
	waiting(a, len(ids))
	release()
	wg.Wait()
	for id, want := range map[session.ID]error{"good": nil, "locked": nil, "also": nil, "new": nil, "taken": session.ErrConflict,
		"trashed": session.ErrNotFound, "lost": session.ErrConflict, "stale": session.ErrStale, "gone": context.Canceled} {
		if err := errs[id]; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
		last := session.Seq(4)
		switch {
		case id == "new":
			last = 1
		case want == nil, id == "taken":
			last = 5
		}
		if in, err := session.Stat(bg, b, id); err != nil || in.Last != last {
			t.Errorf("%s: record %d is the last (%v), want %d", id, in.Last, err, last)
		}
	}
}

// An append that is given up while it is on its way ends at once. Those that
// were sent with it are done.
func TestGivenUpOnTheWay(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	for i := range 4 {
		talk(t, s, session.ID(fmt.Sprint("s", i)), 1)
	}
	release := stall(t, dir)
	ctx, cancel := context.WithCancel(bg)
	var wg, group sync.WaitGroup
	occupy(t, ctx, s, &wg, context.Canceled)
	soon, first := context.WithCancel(bg)
	given := make(chan error, 1)
	go func() { given <- s.Append(soon, "s0", said(3, "e001")) }()
	for i := range 3 {
		group.Go(func() {
			if err := s.Append(bg, session.ID(fmt.Sprint("s", i+1)), said(3, "e001")); err != nil {
				t.Error(err)
			}
		})
	}
	waiting(s, 4)
	cancel()
	wg.Wait()
	waiting(s, 0) // they are on their way
	first()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	release()
	group.Wait()
	for i := range 4 {
		in, err := session.Stat(bg, s, session.ID(fmt.Sprint("s", i)))
		if must(t, err); in.Last != 3 {
			t.Errorf("s%d ends with record %d, want 3", i, in.Last)
		}
	}
}

// Groups that append to the same sessions under locks that are being renewed
// never wait for each other in a circle.
func TestNoDeadlock(t *testing.T) {
	dir := t.TempDir()
	a, b := at(t, dir, Options{Lease: 30 * time.Millisecond}), at(t, dir, Options{})
	const sessions = 20
	for i := range sessions {
		id := session.ID(fmt.Sprintf("s%02d", (i*7)%sessions))
		talk(t, a, id, 1)
		release, err := a.Lock(bg, string(id), "a")
		must(t, err)
		defer release()
	}
	sql(t, dir, "UPDATE goclaw_locks SET expires = now() + interval '1 hour'")
	var wg sync.WaitGroup
	for i := range 2 * sessions {
		st, id := []*Store{a, b}[i%2], session.ID(fmt.Sprintf("s%02d", i/2))
		wg.Go(func() {
			for range 15 {
				in, err := session.Stat(bg, st, id)
				if err == nil {
					err = st.Append(bg, id, session.Record{Seq: in.Last + 1, ID: fmt.Sprintf("%d-%03d", i%2, in.Last), Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("x")})
				}
				if err != nil && !errors.Is(err, session.ErrConflict) {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	defer c.Close(bg)
	var n int64
	must(t, c.QueryRow(bg, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n))
	if n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// An append finds the row of its session by its number, although its plan was
// made when there was none.
func TestPlanOfSmallTable(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	for i := range 20 {
		id := session.ID(fmt.Sprint("s", i))
		talk(t, s, id, 1)
		for j := range 3 {
			must(t, s.Append(bg, id, said(session.Seq(3+j), []string{"e001", "x003", "x004"}[j])))
		}
	}
	must(t, s.Close()) // its connections report what they did when they end
	must(t, opened{Store: s}.Settle())
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	defer c.Close(bg)
	var rows, scans int64
	must(t, c.QueryRow(bg, `SELECT sum(idx_tup_read)::bigint, sum(idx_scan) FILTER (WHERE indexrelname = 'goclaw_sessions_minute')::bigint
FROM pg_stat_user_indexes WHERE relid = 'goclaw_sessions'::regclass`).Scan(&rows, &scans))
	if rows > 100 || scans != 0 {
		t.Errorf("60 appends read %d rows, the index of List %d times", rows, scans)
	}
}
