package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// pair is a primary and a standby that confirms its commits.
type pair struct {
	t                *testing.T
	primary, standby *pgtest.Server
}

func startPair(t *testing.T) *pair {
	t.Helper()
	a, err := pgtest.Start("fsync=off", "shared_buffers=16MB")
	must(t, err)
	t.Cleanup(a.Stop)
	b, err := a.Standby()
	must(t, err)
	t.Cleanup(b.Stop)
	return &pair{t, a, b}
}

// dsn returns a DSN of a new database with both, the primary first.
func (p *pair) dsn() string {
	p.t.Helper()
	name := fmt.Sprintf("d%x", time.Now().UnixNano())
	_, err := p.primary.SQL("CREATE DATABASE " + name)
	must(p.t, err)
	return pgtest.Hosts(name, p.primary, p.standby)
}

// fail kills the primary and promotes the standby. The old primary is then the
// standby, and not running until it is back.
func (p *pair) fail() {
	p.t.Helper()
	must(p.t, p.primary.Kill())
	p.promote()
}

func (p *pair) promote() {
	p.t.Helper()
	must(p.t, p.standby.Promote())
	p.primary, p.standby = p.standby, p.primary
}

// back starts the standby that was killed.
func (p *pair) back() {
	p.t.Helper()
	must(p.t, p.standby.Rejoin(p.primary))
}

// traffic is writers, followers and a reader of the feed, in several handles. A call
// that fails is reported: clients recover by themselves.
type traffic struct {
	t       *testing.T
	stores  []*Store
	ctx     context.Context // of followers
	stop    func()
	ending  atomic.Bool
	writing sync.WaitGroup
	reading sync.WaitGroup

	mu     sync.Mutex
	acked  map[session.ID][]string // the ids of the records that were confirmed
	seen   map[session.ID][]string // those that followers saw
	turns  map[string]int          // how often each writer was confirmed
	fences []int64                 // of the lock that all take, in turn
	known  map[session.ID]session.Seq
}

const shared = session.ID("shared")

// startTraffic opens so many handles of dsn, each with two sessions of its own and
// one that all write to.
func startTraffic(t *testing.T, dsn string, handles int, opts Options) *traffic {
	t.Helper()
	l := &traffic{t: t, acked: map[session.ID][]string{}, seen: map[session.ID][]string{}, turns: map[string]int{}, known: map[session.ID]session.Seq{}}
	l.ctx, l.stop = context.WithCancel(bg)
	t.Cleanup(l.stop)
	open := func() *Store {
		s, err := Open(bg, dsn, opts)
		must(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	for range handles {
		l.stores = append(l.stores, open())
	}
	talk(t, l.stores[0], shared, 0)
	for i, s := range l.stores {
		for j := range 2 {
			id := session.ID(fmt.Sprintf("w%d-%d", i, j))
			talk(t, s, id, 0)
			l.writing.Go(func() { l.write(s, id) })
			reader := l.stores[(i+1)%handles]
			l.reading.Go(func() { l.follow(reader, id) })
		}
		l.writing.Go(func() { l.share(s, fmt.Sprint("h", i)) })
	}
	feed := open()
	l.reading.Go(func() { l.feed(feed) })
	return l
}

// add appends record i to the log id.
func (l *traffic) add(s *Store, id session.ID, last session.Seq, leaf, name, text string) bool {
	r := session.Record{Seq: last + 1, ID: name, Parent: leaf, Time: sessiontest.Start, Body: sessiontest.User(text)}
	if err := s.Append(bg, id, r); err != nil {
		l.t.Errorf("append to %s: %v", id, err)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[id] = append(l.acked[id], name)
	return true
}

func (l *traffic) confirm(writer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns[writer]++
}

// write appends to a log under its lock until the end.
func (l *traffic) write(s *Store, id session.ID) {
	release, err := s.Lock(bg, string(id), "a writer")
	if err != nil {
		l.t.Errorf("lock of %s: %v", id, err)
		return
	}
	defer release()
	leaf := ""
	for i := 0; !l.ending.Load(); i++ {
		name := fmt.Sprintf("r%05d", i)
		if !l.add(s, id, session.Seq(i+1), leaf, name, "x") {
			return
		}
		leaf = name
		l.confirm(string(id))
	}
}

// share appends to a log that others append to as well.
func (l *traffic) share(s *Store, who string) {
	for i := 0; !l.ending.Load(); i++ {
		release, err := s.Lock(bg, string(shared), who)
		if errors.Is(err, session.ErrHeld) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			l.t.Errorf("the lock that all take: %v", err)
			return
		}
		fence, _ := s.leases.fence(string(shared))
		in, err := session.Stat(bg, s, shared)
		if err != nil {
			l.t.Errorf("stat: %v", err)
			release()
			return
		}
		ok := l.add(s, shared, in.Last, in.Leaf, fmt.Sprintf("%s-%d", who, i), fmt.Sprint(fence))
		if ok {
			l.mu.Lock()
			l.fences = append(l.fences, fence)
			l.mu.Unlock()
			l.confirm(who)
		}
		release()
		if !ok {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *traffic) follow(s *Store, id session.ID) {
	for r, err := range session.Follow(l.ctx, s, id, 1) {
		if err != nil {
			if l.ctx.Err() == nil {
				l.t.Errorf("following %s: %v", id, err)
			}
			return
		}
		l.mu.Lock()
		l.seen[id] = append(l.seen[id], r.ID)
		l.mu.Unlock()
	}
}

// feed reads what changed, until the end and once more.
func (l *traffic) feed(s *Store) {
	since := ""
	for last := false; ; {
		ended := l.ctx.Err() != nil
		ch, err := s.Changes(bg, since)
		if err != nil {
			l.t.Errorf("feed: %v", err)
			return
		}
		since = ch.Now
		l.mu.Lock()
		for _, c := range ch.Logs {
			l.known[c.ID] = max(l.known[c.ID], c.Last)
		}
		l.mu.Unlock()
		if last {
			return
		}
		last = ended
		time.Sleep(5 * time.Millisecond)
	}
}

// goOn waits until every writer was confirmed n times more.
func (l *traffic) goOn(n int) {
	l.t.Helper()
	l.mu.Lock()
	want := map[string]int{}
	for i := range l.stores {
		for _, w := range []string{fmt.Sprintf("w%d-0", i), fmt.Sprintf("w%d-1", i), fmt.Sprint("h", i)} {
			want[w] = l.turns[w] + n
		}
	}
	l.mu.Unlock()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var late []string
		l.mu.Lock()
		for w, n := range want {
			if l.turns[w] < n {
				late = append(late, w)
			}
		}
		l.mu.Unlock()
		if len(late) == 0 {
			return
		}
		if l.t.Failed() || time.Since(begin) > 2*time.Minute {
			slices.Sort(late)
			l.t.Fatalf("these do not go on: %v", late)
		}
	}
}

// end ends the load and compares the store with what was confirmed.
func (l *traffic) end() {
	l.t.Helper()
	t := l.t
	l.ending.Store(true)
	l.writing.Wait()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) { // followers may be a moment late
		l.mu.Lock()
		behind := 0
		for id := range l.seen {
			behind += len(l.acked[id]) - len(l.seen[id])
		}
		l.mu.Unlock()
		if behind <= 0 || time.Since(begin) > 2*time.Minute {
			break
		}
	}
	l.stop()
	l.reading.Wait()
	s := l.stores[0]
	total := 0
	for id, want := range l.acked {
		var got []string
		var fences []string
		for r, err := range s.Read(bg, id, 1) {
			must(t, err)
			got = append(got, r.ID)
			fences = append(fences, r.Body.(session.Message).Text())
		}
		total += len(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %d records, confirmed were %d\n%v\n%v", id, len(got), len(want), got, want)
		}
		if l.known[id] != session.Seq(len(want)+1) {
			t.Errorf("the feed knows %s up to record %d of %d", id, l.known[id], len(want)+1)
		}
		if _, err := session.Replay(id, s.Read(bg, id, 0)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if id == shared {
			for i, f := range fences {
				if f != fmt.Sprint(l.fences[i]) {
					t.Errorf("record %d was written with fencing number %s, not %d", i+2, f, l.fences[i])
				}
			}
			continue
		}
		if !slices.Equal(l.seen[id], want) {
			t.Errorf("a follower of %s saw %d records of %d", id, len(l.seen[id]), len(want))
		}
	}
	if !slices.IsSorted(l.fences) || len(slices.Compact(slices.Clone(l.fences))) != len(l.fences) {
		t.Errorf("fencing numbers went back: %v", l.fences)
	}
	must(t, s.Check(bg, func(id session.ID, err error) { t.Errorf("check of %s: %v", id, err) }))
	t.Logf("%d records, %d turns of the lock that all take", total, len(l.fences))
}

// Tests with one pair after another.
func TestFailover(t *testing.T) {
	p := startPair(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *pair)
	}{
		{"promoted under load", testPromoted},
		{"feed", testFeedAfterPromotion},
		{"the answer is lost with the primary", testAnswerLost},
		{"the primary hangs", testHangs},
		{"the standby does not confirm", testUnconfirmed},
		{"only the standby is left", testStandbyOnly},
	} {
		ok := t.Run(c.name, func(t *testing.T) {
			p.t = t
			c.test(t, p)
		})
		if !ok {
			return // the servers may be in any state
		}
	}
}

// The primary is killed under load, and its standby promoted: nothing that was
// confirmed is lost, nothing is there twice, and every client goes on by itself.
// Then the old primary comes back as a standby.
func testPromoted(t *testing.T, p *pair) {
	dsn := p.dsn()
	l := startTraffic(t, dsn, 3, Options{})
	l.goOn(5)
	must(t, p.primary.Kill())
	late := make(chan error, 1) // a process that is started meanwhile
	go func() {
		s, err := Open(bg, dsn, Options{})
		if err == nil {
			err = s.Close()
		}
		late <- err
	}()
	time.Sleep(100 * time.Millisecond)
	p.promote()
	must(t, <-late)
	l.goOn(5)
	listening(t, p.primary, 3)
	p.back()
	l.goOn(5)
	l.end()
}

// listening waits until so many handles listen for notifications of a server.
func listening(t *testing.T, s *pgtest.Server, want int) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		n, err := s.SQL("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN goclaw'")
		must(t, err)
		if n == fmt.Sprint(want) {
			return
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("%s connections listen, want %d", n, want)
		}
	}
}

// The numbers of transactions that left no trace are given again by a standby that
// is promoted: the feed misses none of them.
func testFeedAfterPromotion(t *testing.T, p *pair) {
	s, err := Open(bg, p.dsn(), Options{})
	must(t, err)
	defer s.Close()
	talk(t, s, "s1", 1)
	ch, err := s.Changes(bg, "")
	must(t, err)
	talk(t, s, "s2", 1)
	for range 5 {
		_, err = p.primary.SQL("BEGIN; SELECT pg_current_xact_id(); ROLLBACK")
		must(t, err)
	}
	ch, err = s.Changes(bg, ch.Now)
	must(t, err)
	if len(ch.Logs) != 1 || ch.Logs[0].ID != "s2" {
		t.Fatalf("the feed is %+v", ch)
	}
	p.fail()
	talk(t, s, "s3", 1)
	ch, err = s.Changes(bg, ch.Now)
	must(t, err)
	if len(ch.Logs) != 1 || ch.Logs[0].ID != "s3" || ch.All {
		t.Errorf("the feed has %+v, not what was written after the promotion", ch)
	}
	// A server that was set back, or another one, gives all.
	if ch, err = s.Changes(bg, "999999999"); err != nil || !ch.All || len(ch.Logs) != 3 {
		t.Errorf("from a position that was never given, the feed is %+v (%v)", ch, err)
	}
	p.back()
	h, err := s.Health(bg)
	must(t, err)
	if got, want := h.Standbys(), "1 follow it and records wait for *: a failover to it loses none"; got != want {
		t.Errorf("health says %q, want %q", got, want)
	}
	h.Confirm = ""
	if got, want := h.Standbys(), "1 follow it and none confirms records"; !strings.HasPrefix(got, want) {
		t.Errorf("health says %q, want %q", got, want)
	}
}

// The leader of a cluster that Patroni manages is killed under load, with its
// Patroni: clients go on by themselves, and nothing that was confirmed is lost.
func TestPatroni(t *testing.T) {
	p, err := pgtest.StartPatroni(2)
	if errors.Is(err, pgtest.ErrNoPatroni) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(p.Stop)
	l := startTraffic(t, p.Hosts("postgres"), 3, Options{})
	l.goOn(5)
	old, err := p.Leader()
	must(t, err)
	must(t, old.Kill())
	l.goOn(5)
	leader, err := p.Leader()
	must(t, err)
	if leader == old {
		t.Error("the leader that was killed leads")
	}
	listening(t, &leader.Server, 3)
	l.end()
}

// dropped is a connection on which the answer to a statement is lost after it came,
// if armed.
type dropped struct {
	net.Conn
	statement string
	armed     *atomic.Bool
	then      func()
	sent      *atomic.Bool // the statement was sent when it was armed
}

func (d dropped) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(d.statement)) && d.armed.CompareAndSwap(true, false) {
		d.sent.Store(true)
	}
	return d.Conn.Write(b)
}

func (d dropped) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if err == nil && d.sent.CompareAndSwap(true, false) {
		d.then()
		d.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// dropAnswers has s lose the next answer to a statement each time that the result is
// set, and calls then before. Other statements, such as the hints for followers, are
// answered. The result is false again when the statement was sent.
func dropAnswers(s *Store, statement string, then func()) *atomic.Bool {
	armed := &atomic.Bool{}
	dial := s.db.pool.config.DialFunc
	s.db.pool.config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return dropped{c, statement, armed, then, &atomic.Bool{}}, nil
	}
	s.db.pool.reset()
	return armed
}

// The primary has committed an append, and dies before the client hears of it: the
// record is found on the new primary, and is there once.
func testAnswerLost(t *testing.T, p *pair) {
	s, err := Open(bg, p.dsn(), Options{})
	must(t, err)
	defer s.Close()
	var failed atomic.Bool
	armed := dropAnswers(s, callAppend, func() { // before anything runs beside the test
		p.fail()
		failed.Store(true)
	})
	recs := talk(t, s, "s1", 2)
	armed.Store(true)
	must(t, s.Append(bg, "s1", session.Record{Seq: 4, ID: "x", Parent: recs[2].ID, Time: sessiontest.Start, Body: sessiontest.User("once")}))
	if !failed.Load() {
		t.Fatal("the answer was not lost")
	}
	got, err := sessiontest.Collect(s.Read(bg, "s1", 0))
	must(t, err)
	if len(got) != 4 || got[3].ID != "x" {
		t.Errorf("the log has %d records, want 4", len(got))
	}
	p.back()
}

// All processes of the primary stop without a word: clients notice, and go on when
// the standby has taken over.
func testHangs(t *testing.T, p *pair) {
	l := startTraffic(t, p.dsn()+"&connect_timeout=1", 2, Options{Answer: time.Second})
	l.goOn(3)
	must(t, p.primary.Pause())
	p.promote()
	l.goOn(3)
	l.end()
	must(t, p.standby.Kill())
	p.back()
}

// While the standby confirms nothing, nothing is confirmed to the client, although
// the record can be seen once the wait for the standby was given up.
func testUnconfirmed(t *testing.T, p *pair) {
	dsn := p.dsn()
	s, err := Open(bg, dsn, Options{Answer: 300 * time.Millisecond, Patience: 2 * time.Second})
	must(t, err)
	defer s.Close()
	recs := talk(t, s, "s1", 1)
	must(t, p.standby.Pause())
	next := session.Record{Seq: 3, ID: "x", Parent: recs[1].ID, Time: sessiontest.Start, Body: sessiontest.User("once")}
	err = s.Append(bg, "s1", next)
	if err == nil || !strings.Contains(err.Error(), "it is not known whether record 3") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without the standby: %v", err)
	}
	must(t, p.standby.Resume())
	patient, err := Open(bg, dsn, Options{})
	must(t, err)
	defer patient.Close()
	if err := patient.Append(bg, "s1", next); err != nil && !errors.Is(err, session.ErrConflict) {
		t.Errorf("with the standby again: %v", err)
	}
	got, err := sessiontest.Collect(s.Read(bg, "s1", 0))
	must(t, err)
	if len(got) != 3 || got[2].ID != "x" {
		t.Errorf("the log has %d records, want 3", len(got))
	}
}

// A standby is read from. It takes nothing, and says so in one line.
func testStandbyOnly(t *testing.T, p *pair) {
	both := p.dsn()
	s, err := Open(bg, both, Options{})
	must(t, err)
	talk(t, s, "s1", 2)
	must(t, s.Close())
	must(t, p.standby.CatchUp(p.primary))
	must(t, p.primary.Kill())
	name := strings.Split(both[strings.LastIndexByte(both, '/')+1:], "?")[0]
	refuses := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", what, err, want)
		}
	}
	const line = "the server is read-only (a standby?): nothing was written"
	_, err = Open(bg, p.standby.TCP(name)+"&target_session_attrs=read-write", Options{})
	refuses("open for writing", err, line)
	_, err = Open(bg, both, Options{Patience: 300 * time.Millisecond})
	refuses("open of both", err, fmt.Sprintf("no host can be used: 127.0.0.1:%d: connect: connection refused; 127.0.0.1:%d: read-only (a standby?)", p.primary.Port, p.standby.Port))
	for what, open := range map[string]func() (*Store, error){
		"alone": func() (*Store, error) {
			return Open(bg, p.standby.TCP(name), Options{Patience: 300 * time.Millisecond})
		},
		"both, to be read": func() (*Store, error) { return Open(bg, both, Options{ReadOnly: true}) },
	} {
		s, err := open()
		must(t, err)
		got, err := sessiontest.Collect(s.Read(bg, "s1", 0))
		if err != nil || len(got) != 3 {
			t.Errorf("%s: %d records are read, of 3 (%v)", what, len(got), err)
		}
		if ch, err := s.Changes(bg, ""); err != nil || len(ch.Logs) != 1 {
			t.Errorf("%s: the feed is %+v (%v)", what, ch, err)
		}
		if what == "alone" {
			refuses("append", s.Append(bg, "s2", session.Record{Seq: 1, Body: session.Header{ID: "s2"}}), line)
			_, err = s.Lock(bg, "s1", "x")
			refuses("lock", err, line)
		}
		must(t, s.Close())
	}
	p.promote()
	p.back()
}

// A lock whose answer is lost with the connection is had, not found held.
func TestLockAnswerLost(t *testing.T) {
	s := at(t, t.TempDir(), Options{})
	armed := dropAnswers(s, takeLock, func() {})
	release, err := s.Lock(bg, "other", "a") // has a connection now
	must(t, err)
	armed.Store(true)
	again, err := s.Lock(bg, "s1", "a")
	must(t, err)
	if armed.Load() {
		t.Error("the answer was not lost")
	}
	again()
	release()
}

// A session that is not there is not found, although the first try did not get
// through.
func TestMoveNotSent(t *testing.T) {
	s := at(t, t.TempDir(), Options{})
	var failed atomic.Bool
	dial := s.db.pool.config.DialFunc
	s.db.pool.config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if failed.CompareAndSwap(false, true) {
			return nil, &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
		}
		return dial(ctx, network, addr)
	}
	s.db.pool.reset()
	if err := s.Delete(bg, "nothing"); !errors.Is(err, session.ErrNotFound) || !failed.Load() {
		t.Errorf("delete: %v, want %v", err, session.ErrNotFound)
	}
}
