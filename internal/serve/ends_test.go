package serve

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

// appended puts more records after those of live.
func appended(t *testing.T, st session.Store, bodies ...session.Body) {
	t.Helper()
	in, err := session.Stat(context.Background(), st, "s")
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bodies {
		seq := in.Last + session.Seq(i) + 1
		if err := st.Append(context.Background(), "s", session.Record{Seq: seq, ID: fmt.Sprintf("r%d", seq-1), Parent: fmt.Sprintf("r%d", seq-2), Body: b}); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that comes back to a server that has only the log is told each end of a
// turn that it was not told, and none twice, wherever it stopped.
func TestEndsFromTheLog(t *testing.T) {
	answer := session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: "Yes."}}}, Stop: llm.StopEnd}
	for name, c := range map[string]struct {
		more []session.Body
		ends []string // their places and types
	}{
		"after an answer":             {nil, []string{"8.e1.0 done"}},
		"a title and a checkpoint":    {[]session.Body{session.Title{Title: "x"}, session.Checkpoint{}}, []string{"8.e1.0 done"}},
		"two turns":                   {[]session.Body{session.Message{Message: llm.UserText("again")}, answer}, []string{"8.e1.0 done", "10.e1.0 done"}},
		"interrupted":                 {[]session.Body{session.Message{Message: llm.UserText("again")}}, []string{"8.e1.0 done", "9.e1.0 error"}},
		"interrupted in a part":       {[]session.Body{session.Message{Message: llm.UserText("again")}, session.Partial{Text: "I"}}, []string{"8.e1.0 done", "10.e1.0 error"}},
		"interrupted after a notice":  {[]session.Body{session.Message{Message: llm.UserText("again")}, session.Notice{Percent: 50}, session.Checkpoint{}}, []string{"8.e1.0 done", "10.e1.0 error"}},
		"interrupted, then continued": {[]session.Body{session.Message{Message: llm.UserText("again")}, session.Partial{Text: "I"}, answer}, []string{"8.e1.0 done", "11.e1.0 done"}},
	} {
		t.Run(name, func(t *testing.T) {
			st := memory.New()
			live(t, st, nil, func() {})
			appended(t, st, c.more...)
			in, err := session.Stat(context.Background(), st, "s")
			if err != nil {
				t.Fatal(err)
			}
			back := func(id string) (all []event, ends []string) {
				t.Helper()
				s := newStream(st)
				s.last, s.poke = in.Last, make(chan struct{}, 1)
				rd := &reader{stream: s}
				if err := rd.resume(id, in.Last); err != nil {
					t.Fatal(err)
				}
				if err := (turnsAPI{&Server{peers: &peers{st: st}}}).comeBack(context.Background(), rd, id); err != nil {
					t.Fatal(err)
				}
				all = read(t, rd)
				for _, ev := range all {
					if isEnd(ev.data) {
						ends = append(ends, fmt.Sprintf("%s %s", ev.id, ev.data["type"]))
					}
				}
				if again := read(t, rd); len(again) > 0 {
					t.Errorf("after %s, %q come once more", id, essence(again))
				}
				return all, ends
			}
			all, ends := back("1.a.0")
			if !reflect.DeepEqual(ends, c.ends) {
				t.Fatalf("the ends are %q, want %q", ends, c.ends)
			}
			for n, ev := range all {
				rest, _ := back(ev.id)
				if got, want := essence(slices.Concat(all[:n+1], rest)), essence(all); !reflect.DeepEqual(got, want) {
					t.Errorf("after event %d (%s):\n got %q\nwant %q", n, ev.id, got, want)
				}
			}
			// Whoever knows the records knows the ends, too.
			if _, ends := back(fmt.Sprint(in.Last)); len(ends) > 0 {
				t.Errorf("after the number of the last record, %q are told", ends)
			}
		})
	}
}

// While a turn runs elsewhere its end is not told, and then once, to those who came
// back and to those who came while it ran.
func TestEndOfATurnElsewhere(t *testing.T) {
	for name, answered := range map[string]bool{"which dies": false, "which answers": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			st := memory.New()
			live(t, st, nil, func() {})
			appended(t, st, session.Message{Message: llm.UserText("again")})
			release, err := st.Lock(ctx, "s", "another program")
			if err != nil {
				t.Fatal(err)
			}
			p := &peers{st: st}
			s := newStream(st)
			s.last, s.poke = 9, make(chan struct{}, 1)
			back, now := &reader{stream: s}, &reader{stream: s}
			now.at, now.seen = s.now()
			if err := back.resume("9.a.0", 9); err != nil {
				t.Fatal(err)
			}
			if err := (turnsAPI{&Server{peers: p}}).comeBack(ctx, back, "9.a.0"); err != nil {
				t.Fatal(err)
			}
			if got := read(t, back); len(got) > 0 {
				t.Fatalf("while it runs, %q are told", essence(got))
			}
			want := []string{`{"message":"the turn was interrupted: it can be continued","type":"error"}`}
			if answered {
				appended(t, st, session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: "Yes."}}}, Stop: llm.StopEnd})
				if err := s.catchUp(ctx); err != nil {
					t.Fatal(err)
				}
				want = []string{"delta:Yes.", `{"record":{"seq":10},"type":"recorded"}`, `{"cut":false,"stopReason":"stop","type":"done"}`}
			}
			release()
			p.hear(ctx, s)
			p.hear(ctx, s)
			for who, rd := range map[string]*reader{"who came back": back, "who was there": now} {
				if got := essence(read(t, rd)); !reflect.DeepEqual(got, want) {
					t.Errorf("%s hears %q, want %q", who, got, want)
				}
			}
		})
	}
}

// A follower who comes while a turn runs elsewhere, and gets no record of it, is told
// when it was interrupted. One who comes while only a lock is had is not.
func TestFollowerOfADyingTurn(t *testing.T) {
	for name, c := range map[string]struct {
		more []session.Body
		want int
	}{
		"a turn runs":     {[]session.Body{session.Message{Message: llm.UserText("again")}}, 1},
		"no turn runs":    {nil, 0},
		"with checkpoint": {[]session.Body{session.Message{Message: llm.UserText("again")}, session.Checkpoint{}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			st := &freed{Store: memory.New()}
			live(t, st, nil, func() {})
			appended(t, st, c.more...)
			s := newStream(st)
			s.last, s.poke = session.Seq(8+len(c.more)), make(chan struct{}, 1)
			rd := &reader{stream: s}
			rd.at, rd.seen = s.now()
			(&peers{st: st}).hear(context.Background(), s)
			if got := read(t, rd); len(got) != c.want {
				t.Errorf("it is told %q, want %d events", essence(got), c.want)
			}
		})
	}
}

// freed is a store whose lock another process gives up after the first look.
type freed struct {
	session.Store
	looks int
}

func (f *freed) Lock(ctx context.Context, name, who string) (func(), error) {
	if f.looks++; f.looks == 1 {
		return nil, &session.HeldError{Who: "another program", PID: 1}
	}
	return f.Store.Lock(ctx, name, who)
}
