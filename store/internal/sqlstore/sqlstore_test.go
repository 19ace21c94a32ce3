package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

func TestStamp(t *testing.T) {
	// In the order of time.
	times := []time.Time{
		time.Date(-271821, 4, 20, 0, 0, 0, 0, time.UTC), // the first date of JavaScript
		time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(0, 2, 29, 0, 0, 0, 0, time.UTC),
		{},
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(2026, 11, 15, 1, 32, 0, 134e6, time.FixedZone("", 3600)),
		time.Date(2026, 11, 15, 0, 32, 0, 134e6+1, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(275760, 9, 13, 0, 0, 0, 0, time.UTC), // the last one
	}
	var stamps []string
	for _, at := range times {
		s := Stamp(at)
		if got := ParseStamp(s); !got.Equal(at) {
			t.Errorf("%v became %q and then %v", at, s, got)
		}
		stamps = append(stamps, s)
	}
	if !slices.IsSorted(stamps) {
		t.Errorf("the stamps are out of order: %q", stamps)
	}
	for _, s := range []string{"", "never", "~", "-", "2026-11-15", "~~~~~~~~~~", "2026-11-15T00:32:00Z", "x\x00"} {
		if got := ParseStamp(s); !got.IsZero() {
			t.Errorf("%q is %v, want the zero time", s, got)
		}
	}
}

// line is a row whose columns are the given values.
type line []any

func (l line) Int(col int) int64   { n, _ := l[col].(int64); return n }
func (l line) Text(col int) string { s, _ := l[col].(string); return s }

func TestScanValues(t *testing.T) {
	in := session.Info{
		ID: "id", Key: "k\x00ey", Title: "title", Parent: "parent", CWD: "/cwd",
		Origin:  session.Origin{Program: "pi", Path: "/p", Key: "ok", ID: "oid", Seq: 7},
		Created: sessiontest.Start, Updated: sessiontest.Start.Add(time.Nanosecond), Trashed: sessiontest.Start.Add(time.Hour),
		Records: 1, Last: 2, Compactions: 3, Spent: llm.Usage{Input: 4, Output: 5, CacheRead: 6, CacheWrite: 8},
		Turns: 9, Provider: "anthropic", Model: "m", Thinking: "high", Used: 10, Leaf: "leaf", KeepFrom: 11, LastBend: 12,
	}
	n, got := Scan(append(line{int64(42), Stamp(in.Trashed)}, Values(in)...))
	if d := cmp.Diff(in, got); d != "" || n != 42 {
		t.Errorf("session %d (-want +got):\n%s", n, d)
	}
	old := in
	old.Updated = in.Created.Add(-time.Hour) // of the records that a fork began with
	if _, got := Scan(append(line{int64(42), ""}, Values(old)...)); !got.Updated.Equal(in.Created) {
		t.Errorf("a session of %s was updated at %s", got.Created, got.Updated)
	}
	if len(Values(in)) != len(columns()) || len(Growing(in)) != len(growing) {
		t.Errorf("%d values for %d columns, %d for %d that grow", len(Values(in)), len(columns()), len(Growing(in)), len(growing))
	}
}

func TestTypeOf(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"message","id":"1"}`:   "message",
		`{"id":"1", "type": "leaf"}`:    "leaf",
		`{"type":"a\u0062c"}`:           "abc",
		`{"type":7}`:                    "",
		`{"type":"torn`:                 "",
		`[1]`:                           "",
		``:                              "",
		`{"type":"","x":"{\"type\":1"}`: "",
	} {
		if got := typeOf([]byte(line)); got != want {
			t.Errorf("%s is of type %q, want %q", line, got, want)
		}
	}
}

// db is a database in memory that is as good as its rows.
type db struct {
	rows map[session.ID]session.Info
	logs map[session.ID][]session.Record
	n    map[session.ID]int64
	ask  int // questions that read the log
}

func (d *db) id(n int64) session.ID {
	for id, v := range d.n {
		if v == n {
			return id
		}
	}
	return ""
}

func (d *db) Session(id session.ID) (int64, session.Info, error) { return d.n[id], d.rows[id], nil }

func (d *db) Find(n int64, record string) (session.Seq, error) {
	for _, r := range d.logs[d.id(n)] {
		if r.ID == record {
			return r.Seq, nil
		}
	}
	return 0, nil
}

func (d *db) Top(n int64) (top string, err error) {
	for _, r := range d.logs[d.id(n)] {
		top = max(top, r.ID)
	}
	return top, nil
}

func (d *db) Records(n int64) iter.Seq2[session.Record, error] {
	d.ask++
	return func(yield func(session.Record, error) bool) {
		for _, r := range d.logs[d.id(n)] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (d *db) save(l *Log, recs []session.Record) {
	id := l.Info.ID
	if l.N == 0 {
		l.N = int64(len(d.n) + 1)
		d.n[id] = l.N
	}
	d.rows[id] = l.Info
	d.logs[id] = append(d.logs[id], recs...)
}

// However records come, are saved and are forgotten, the rows say what Replay
// computes.
func TestBookIsReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &db{map[session.ID]session.Info{}, map[session.ID][]session.Record{}, map[session.ID]int64{}, 0}
		var b Book
		var l *Log
		seq := session.Seq(0)
		for range rapid.IntRange(1, 40).Draw(t, "appends") {
			var recs []session.Record
			for range rapid.IntRange(1, 6).Draw(t, "batch") {
				seq++
				r := session.Record{Seq: seq, Time: sessiontest.Start, ID: fmt.Sprint("e", rapid.IntRange(1, 30).Draw(t, "id"))}
				if rapid.Bool().Draw(t, "straight") && l != nil && len(recs) == 0 {
					r.ID, r.Parent = fmt.Sprintf("f%04d", seq), l.Info.Leaf
				} else {
					r.Parent = fmt.Sprint("e", rapid.IntRange(1, 30).Draw(t, "parent"))
				}
				switch rapid.IntRange(0, 6).Draw(t, "body") {
				case 0:
					r.Body = session.Compaction{FirstKept: fmt.Sprint("e", rapid.IntRange(1, 30).Draw(t, "kept")), Summary: "s"}
				case 1:
					r.Body = session.Leaf{Target: fmt.Sprint("e", rapid.IntRange(1, 30).Draw(t, "target"))}
				case 2:
					r.Body = session.Title{Title: fmt.Sprint("title ", seq)}
				case 3:
					r.Body = session.Reset{}
				default:
					r.Body = sessiontest.User("x")
				}
				if seq == 1 {
					r = session.Record{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: "s", Key: "k"}}
				}
				recs = append(recs, r)
			}
			var err error
			if l, err = b.Plan(d, "s", recs); err != nil {
				t.Fatal(err)
			}
			d.save(l, recs)
			if rapid.IntRange(0, 4).Draw(t, "forget") == 0 {
				b.Forget()
			}
		}
		want, err := session.Replay("s", d.Records(1))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Info, d.rows["s"]); diff != "" {
			t.Fatalf("row (-replay +row):\n%s", diff)
		}
	})
}

// The everyday append reads no log, whatever its length.
func TestBookAsksLittle(t *testing.T) {
	d := &db{map[session.ID]session.Info{}, map[session.ID][]session.Record{}, map[session.ID]int64{}, 0}
	var b Book
	recs := sessiontest.Log(sessiontest.User("1"), sessiontest.Answer("2"), sessiontest.User("3"))
	id := recs[0].Body.(session.Header).ID
	for _, r := range recs {
		l, err := b.Plan(d, id, []session.Record{r})
		if err != nil {
			t.Fatal(err)
		}
		d.save(l, []session.Record{r})
		b.Forget()
	}
	if d.ask != 0 {
		t.Errorf("the log was read %d times", d.ask)
	}
	last := recs[len(recs)-1]
	odd := session.Record{Seq: last.Seq + 1, ID: "odd", Parent: recs[1].ID, Time: last.Time, Body: sessiontest.User("back")}
	for i := range 5 {
		odd.Seq, odd.ID = last.Seq+1+session.Seq(i), fmt.Sprint("odd", i)
		l, err := b.Plan(d, id, []session.Record{odd})
		if err != nil {
			t.Fatal(err)
		}
		d.save(l, []session.Record{odd})
	}
	if d.ask != 1 {
		t.Errorf("for five records that go back the log was read %d times, want once", d.ask)
	}
}

func TestQueueShares(t *testing.T) {
	var rounds, most atomic.Int64
	q := Queue{After: func() {}}
	q.Serve = func(ctx context.Context, take func() []*Request) error {
		reqs := take()
		rounds.Add(1)
		most.Store(max(most.Load(), int64(len(reqs))))
		time.Sleep(time.Millisecond)
		for _, r := range reqs {
			if r.ID == "bad" {
				r.Err = session.ErrConflict
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
				if err := q.Put(context.Background(), &Request{ID: id}); errors.Is(err, session.ErrConflict) != (id == "bad") {
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
	if err := q.Close(&Request{Do: func() error { served = true; return nil }}); err != nil || served {
		t.Errorf("close: %v; Do is for Serve to call", err)
	}
	if err := q.Put(context.Background(), &Request{}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
}

func TestQueueContext(t *testing.T) {
	taken, goOn := make(chan int), make(chan bool)
	q := Queue{After: func() {}}
	q.Serve = func(ctx context.Context, take func() []*Request) error {
		taken <- len(take())
		<-goOn
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- q.Put(ctx, &Request{ID: "taken"}) }()
	if n := <-taken; n != 1 {
		t.Fatalf("%d were taken", n)
	}
	go func() { second <- q.Put(ctx, &Request{ID: "waiting"}) }()
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
	if err := q.Put(ctx, &Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("put with a cancelled context: %v", err)
	}
	// The queue goes on.
	go func() { first <- q.Put(context.Background(), &Request{}) }()
	<-taken
	goOn <- true
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// A leader that gives up while it waits to write leaves the others to the next.
func TestQueueLeaderLeaves(t *testing.T) {
	begun := make(chan bool, 1)
	q := Queue{After: func() {}}
	q.Serve = func(ctx context.Context, take func() []*Request) error {
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
	go func() { first <- q.Put(ctx, &Request{}) }()
	<-begun
	go func() { second <- q.Put(context.WithValue(context.Background(), patient{}, true), &Request{}) }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader learns %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the next one learns %v", err)
	}
}

type patient struct{}
