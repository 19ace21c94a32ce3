package sqlite

import (
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/internal/sqlstore"
)

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

func (d *db) session(id session.ID) (int64, session.Info, error) { return d.n[id], d.rows[id], nil }

func (d *db) Find(n int64, record string) (session.Seq, error) {
	for _, r := range d.logs[d.id(n)] {
		if r.ID == record {
			return r.Seq, nil
		}
	}
	return 0, nil
}

func (d *db) top(n int64) (top string, err error) {
	for _, r := range d.logs[d.id(n)] {
		top = max(top, r.ID)
	}
	return top, nil
}

func (d *db) Records(n int64, _ session.Seq) iter.Seq2[session.Record, error] {
	d.ask++
	return func(yield func(session.Record, error) bool) {
		for _, r := range d.logs[d.id(n)] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (d *db) save(l *sqlstore.End, recs []session.Record) {
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
		var b book
		var l *sqlstore.End
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
			if l, err = b.plan(d, "s", recs); err != nil {
				t.Fatal(err)
			}
			d.save(l, recs)
			if rapid.IntRange(0, 4).Draw(t, "forget") == 0 {
				b.forget()
			}
		}
		want, err := session.Replay("s", d.Records(1, 0))
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
	var b book
	recs := sessiontest.Log(sessiontest.User("1"), sessiontest.Answer("2"), sessiontest.User("3"))
	id := recs[0].Body.(session.Header).ID
	for _, r := range recs {
		l, err := b.plan(d, id, []session.Record{r})
		if err != nil {
			t.Fatal(err)
		}
		d.save(l, []session.Record{r})
		b.forget()
	}
	if d.ask != 0 {
		t.Errorf("the log was read %d times", d.ask)
	}
	last := recs[len(recs)-1]
	odd := session.Record{Seq: last.Seq + 1, ID: "odd", Parent: recs[1].ID, Time: last.Time, Body: sessiontest.User("back")}
	for i := range 5 {
		odd.Seq, odd.ID = last.Seq+1+session.Seq(i), fmt.Sprint("odd", i)
		l, err := b.plan(d, id, []session.Record{odd})
		if err != nil {
			t.Fatal(err)
		}
		d.save(l, []session.Record{odd})
	}
	if d.ask != 1 {
		t.Errorf("for five records that go back the log was read %d times, want once", d.ask)
	}
}
