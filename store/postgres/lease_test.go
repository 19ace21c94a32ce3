package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

// sql runs statements behind the store's back.
func sql(t testing.TB, dir, text string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	defer c.Close(bg)
	_, err = c.Exec(bg, text, args...)
	must(t, err)
}

// expire ends all leases, as if their holders had been paused for long.
func expire(t testing.TB, dir string) {
	sql(t, dir, "UPDATE goclaw_locks SET expires = now() - interval '1 hour'")
}

// A holder that was away loses the lock to another and is told so at its next
// append, whether the other has written or not, and has gone or not.
func TestFencing(t *testing.T) {
	for _, c := range []struct {
		name            string
		writes, release bool
	}{{"the other holds it", false, false}, {"the other has released it", false, true}, {"the other has written", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := at(t, dir, Options{Lease: time.Hour}), at(t, dir, Options{Lease: time.Hour})
			recs := talk(t, a, "s1", 3)
			release, err := a.Lock(bg, "s1", "a")
			must(t, err)
			next := session.Record{Seq: 5, ID: "a1", Parent: recs[3].ID, Time: sessiontest.Start, Body: sessiontest.User("mine")}
			must(t, a.Append(bg, "s1", next))
			if _, err := b.Lock(bg, "s1", "b"); !errors.Is(err, session.ErrHeld) {
				t.Fatalf("the lock of another: %v", err)
			}
			expire(t, dir)
			other, err := b.Lock(bg, "s1", "b")
			must(t, err)
			want := append(recs, next)
			if c.writes {
				r := session.Record{Seq: 6, ID: "b1", Parent: "a1", Time: sessiontest.Start, Body: sessiontest.User("theirs")}
				must(t, b.Append(bg, "s1", r))
				want = append(want, r)
			}
			if c.release {
				other()
			}
			late := session.Record{Seq: session.Seq(len(want) + 1), ID: "a2", Parent: want[len(want)-1].ID, Time: sessiontest.Start, Body: sessiontest.User("late")}
			err = a.Append(bg, "s1", late)
			if !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), "the lock was lost") {
				t.Errorf("a late append: %v", err)
			}
			late.Seq = 6 // whatever is there by now
			if err := a.Append(bg, "s1", late); !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), "the lock was lost") {
				t.Errorf("a late append, of an old number: %v", err)
			}
			late.Seq = session.Seq(len(want) + 1)
			got, err := sessiontest.Collect(b.Read(bg, "s1", 0))
			must(t, err)
			if len(got) != len(want) {
				t.Errorf("the log has %d records, want %d", len(got), len(want))
			}
			if _, err := a.Lock(bg, "s1", "a again"); !errors.Is(err, session.ErrHeld) { // until its first holder knows
				t.Errorf("a second lock of the process that lost it: %v", err)
			}
			release()
			if !c.release {
				if _, err := a.Lock(bg, "s1", "a again"); !errors.Is(err, session.ErrHeld) {
					t.Errorf("a late release let a third in: %v", err)
				}
				other()
			}
			again, err := a.Lock(bg, "s1", "a again")
			must(t, err)
			must(t, a.Append(bg, "s1", late))
			again()
		})
	}
}

// Of two processes that begin the session of a key, the one that was away
// meanwhile begins none: the conversation is not split.
func TestFencedKey(t *testing.T) {
	dir := t.TempDir()
	a, b := at(t, dir, Options{Lease: time.Hour}), at(t, dir, Options{Lease: time.Hour})
	release, err := a.Lock(bg, session.KeyLock("t:cli:x"), "a")
	must(t, err)
	expire(t, dir)
	s, err := session.Load(bg, b, "t:cli:x", session.System{})
	must(t, err)
	err = a.Append(bg, "late", session.Record{Seq: 1, Body: session.Header{ID: "late", Key: "t:cli:x", Version: session.Version}})
	if !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), "the lock was lost") {
		t.Errorf("a late session: %v", err)
	}
	release()
	if in, err := session.Current(bg, a, "t:cli:x"); err != nil || in.ID != s.ID {
		t.Errorf("the session of the key is %s (%v), want %s", in.ID, err, s.ID)
	}
}

// A lease is renewed for as long as its holder lives: others wait in vain.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	a, b := at(t, dir, Options{Lease: 300 * time.Millisecond}), at(t, dir, Options{Lease: 300 * time.Millisecond})
	release, err := a.Lock(bg, "s1", "a")
	must(t, err)
	var fence int64
	for range 3 {
		sql(t, dir, "UPDATE goclaw_locks SET expires = now() + interval '5 seconds'") // however slow this machine is
		before := expiry(t, dir)
		for expiry(t, dir).Equal(before) {
			time.Sleep(10 * time.Millisecond)
		}
		if f, ok := a.leases.fence("s1"); !ok || fence != 0 && f != fence {
			t.Errorf("the fencing number changed from %d to %d", fence, f)
		}
	}
	release()
	again, err := b.Lock(bg, "s1", "b")
	must(t, err)
	again()
	// Close gives locks back.
	if _, err = a.Lock(bg, "s1", "a"); err != nil {
		t.Fatal(err)
	}
	must(t, a.Close())
	if again, err = b.Lock(bg, "s1", "b"); err != nil {
		t.Fatal(err)
	}
	again()
}

func expiry(t testing.TB, dir string) (at time.Time) {
	t.Helper()
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	defer c.Close(bg)
	must(t, c.QueryRow(bg, "SELECT expires FROM goclaw_locks").Scan(&at))
	return at
}

// A transaction that began first and ends last is in the feed.
func TestFeedMissesNothing(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	talk(t, s, "slow", 1)
	talk(t, s, "fast", 1)
	ch, err := s.Changes(bg, "")
	must(t, err)
	if !ch.All || len(ch.Logs) != 2 {
		t.Fatalf("at first the feed is %+v", ch)
	}
	c, err := pgx.Connect(bg, dsnOf(dir))
	must(t, err)
	defer c.Close(bg)
	tx, err := c.Begin(bg)
	must(t, err)
	_, err = tx.Exec(bg, `WITH s AS (UPDATE goclaw_sessions SET last = 3 WHERE id = 'slow' RETURNING n)
INSERT INTO goclaw_records (session, xact, seq, crc32c, id, parent, type, data) SELECT n, pg_current_xact_id()::text::bigint, 3, 0, 'x', '', '', '{}' FROM s`)
	must(t, err)
	for i := range 3 {
		must(t, s.Append(bg, "fast", session.Record{Seq: session.Seq(3 + i), ID: fmt.Sprint("f", i), Parent: "e001", Time: sessiontest.Start, Body: sessiontest.User("x")}))
		if ch, err = s.Changes(bg, ch.Now); err != nil || len(ch.Logs) != 1 || ch.Logs[0].ID != "fast" || ch.Logs[0].Last != session.Seq(3+i) {
			t.Fatalf("the feed is %+v (%v)", ch, err)
		}
	}
	must(t, tx.Commit(bg))
	ch, err = s.Changes(bg, ch.Now)
	must(t, err)
	found := false
	for _, l := range ch.Logs {
		found = found || l.ID == "slow" && l.Last == 3
	}
	if !found {
		t.Errorf("what was committed last is not in the feed: %+v", ch)
	}
	if ch, err = s.Changes(bg, ch.Now); err != nil || len(ch.Logs) != 0 {
		t.Errorf("without a change the feed is %+v (%v)", ch, err)
	}
}

// A database that was dumped and restored on another server has numbers of
// transactions that are still to come there: the feed does not report its records
// again and again.
func TestFeedOfADump(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	for i := range 5 {
		talk(t, s, session.ID(fmt.Sprint("s", i)), 2)
	}
	sql(t, dir, "UPDATE goclaw_records SET xact = xact + 1000000")
	ch, err := s.Changes(bg, "")
	must(t, err)
	if len(ch.Logs) != 5 || !ch.All {
		t.Fatalf("the feed is %+v", ch)
	}
	if ch, err = s.Changes(bg, ch.Now); err != nil || len(ch.Logs) != 0 {
		t.Errorf("without a change the feed is %+v (%v)", ch, err)
	}
	must(t, s.Append(bg, "s1", session.Record{Seq: 4, ID: "new", Parent: "e002", Time: sessiontest.Start, Body: sessiontest.User("x")}))
	if ch, err = s.Changes(bg, ch.Now); err != nil || len(ch.Logs) != 1 || ch.Logs[0].ID != "s1" || ch.All {
		t.Errorf("after a change of s1 the feed is %+v (%v)", ch, err)
	}
	// Another server that has come less far than the one that gave the position.
	sql(t, dir, "UPDATE goclaw_records SET xact = 0")
	if ch, err = s.Changes(bg, "1000000000"); err != nil || len(ch.Logs) != 5 || !ch.All {
		t.Errorf("from a position that is to come the feed is %+v (%v)", ch, err)
	}
}

// Many writers, in two handles, while one follows the feed: at the end it knows
// all.
func TestFeedOfMany(t *testing.T) {
	dir := t.TempDir()
	a, b := at(t, dir, Options{}), at(t, dir, Options{})
	var wg sync.WaitGroup
	for w := range 8 {
		st := []*Store{a, b}[w%2]
		wg.Go(func() {
			for i := range 12 {
				id := session.ID(fmt.Sprintf("w%d-%d", w, i%3))
				in, err := session.Stat(bg, st, id)
				if err != nil {
					err = st.Append(bg, id, session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id}})
				} else {
					err = st.Append(bg, id, session.Record{Seq: in.Last + 1, ID: fmt.Sprint("r", i), Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("x")})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	known, since := map[session.ID]session.Seq{}, ""
	for last := false; ; {
		ch, err := a.Changes(bg, since)
		must(t, err)
		since = ch.Now
		for _, l := range ch.Logs {
			known[l.ID] = max(known[l.ID], l.Last)
		}
		if last {
			break
		}
		select {
		case <-done:
			last = true
		default:
		}
	}
	if len(known) != 24 {
		t.Errorf("%d sessions are known of 24", len(known))
	}
	for id, last := range known {
		if last != 4 {
			t.Errorf("%s is known up to record %d of 4", id, last)
		}
	}
}

var _ interface {
	session.Waiter
	storekit.Feed
	storekit.Checker
	storekit.Redactions
} = (*Store)(nil)
