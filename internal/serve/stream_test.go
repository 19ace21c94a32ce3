package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"testing"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

// script is a session in which a turn calls a tool and answers in two parts that
// are recorded on the way.
func script() []session.Body {
	said := func(blocks ...llm.Block) session.Message {
		return session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: blocks}, Stop: llm.StopEnd}
	}
	return []session.Body{
		session.Header{Version: session.Version, ID: "s", Key: "main:web:a"},
		session.Message{Message: llm.UserText("look")},
		said(llm.Thinking{Text: "hm "}, llm.Text{Text: "I look."}, llm.ToolCall{ID: "c1", Name: "glob", Args: json.RawMessage(`{}`)}, llm.ToolCall{ID: "c2", Name: "grep", Args: json.RawMessage(`{}`)}),
		session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "c1", Blocks: []llm.Block{llm.Text{Text: "a.go"}}}}}},
		session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "c2", Blocks: []llm.Block{llm.Text{Text: "none"}}}}}},
		session.Partial{Text: "It is "},
		session.Partial{Offset: 6, Text: "in a.go, "},
		said(llm.Text{Text: "It is in a.go, über all."}),
	}
}

// live feeds a stream as a turn in this process does: pieces of an answer come
// before its record. step is called after each change.
func live(t *testing.T, st session.Store, s *stream, step func()) {
	t.Helper()
	if s != nil {
		s.here(true)
	}
	for i, body := range script() {
		rec := session.Record{Seq: session.Seq(i + 1), ID: fmt.Sprintf("r%d", i), Body: body}
		if i > 1 {
			rec.Parent = fmt.Sprintf("r%d", i-1)
		}
		if _, ok := body.(session.Header); ok {
			rec.ID = "s"
		}
		if err := st.Append(context.Background(), "s", rec); err != nil {
			t.Fatal(err)
		}
		if s == nil {
			continue
		}
		switch i {
		case 2: // its pieces came before it
			for _, p := range []piece{{true, "hm "}, {false, "I "}, {false, "look."}} {
				s.say(p)
				step()
			}
		case 5:
			s.say(piece{false, "It is "})
			step()
		case 7:
			s.say(piece{false, "in a.go, üb"})
			step()
		}
		s.add(rec)
		step()
	}
}

func newStream(st session.Store) *stream {
	return &stream{id: "s", st: st, changed: make(chan struct{}), record: func(r session.Record) (json.RawMessage, error) {
		return json.Marshal(map[string]any{"seq": r.Seq})
	}}
}

func read(t *testing.T, r *reader) []event {
	t.Helper()
	out, _, err := r.next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// essence joins deltas, which may come in other pieces, and leaves out ids.
func essence(events []event) (out []string) {
	for _, ev := range events {
		kind := fmt.Sprint(ev.data["type"])
		if kind == "delta" || kind == "thinking" {
			if n := len(out); n > 0 && len(out[n-1]) > len(kind) && out[n-1][:len(kind)+1] == kind+":" {
				out[n-1] += fmt.Sprint(ev.data["text"])
				continue
			}
			out = append(out, kind+":"+fmt.Sprint(ev.data["text"]))
			continue
		}
		data, _ := json.Marshal(ev.data)
		out = append(out, string(data))
	}
	return out
}

// A client that goes away after any event and comes back misses nothing and sees
// nothing twice: to the same server, to another one that only has the log, and
// while the turn runs.
func TestResume(t *testing.T) {
	ctx := context.Background()
	st := memory.New()
	here := newStream(st)
	whole := &reader{stream: here}
	var all []event
	live(t, st, here, func() { all = append(all, read(t, whole)...) })
	want := essence(all)
	if len(want) != 13 {
		t.Fatalf("the turn has %d events: %q", len(want), want)
	}

	elsewhere := newStream(st)
	for rec, err := range st.Read(ctx, "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		elsewhere.add(rec)
	}
	behind := newStream(st) // has seen only the end of the log
	behind.last = elsewhere.last
	for n := range all {
		if all[n].id == "" {
			t.Fatalf("event %d has no id", n)
		}
		at, err := parsePosition(all[n].id)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*stream{"the same server": here, "another server": elsewhere, "a server that reads the log": behind} {
			rest := read(t, &reader{stream: s, at: at})
			if got := essence(append(all[:n+1:n+1], rest...)); !reflect.DeepEqual(got, want) {
				t.Errorf("after event %d (%s) on %s:\n got %q\nwant %q", n, all[n].id, name, got, want)
			}
		}
	}

	// While the turn runs: a client that comes back after each event.
	st = memory.New()
	here = newStream(st)
	var seen []event
	at := position{}
	live(t, st, here, func() {
		for {
			more := read(t, &reader{stream: here, at: at})
			if len(more) == 0 {
				return
			}
			seen = append(seen, more[0])
			var err error
			if at, err = parsePosition(more[0].id); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := essence(seen); !reflect.DeepEqual(got, want) {
		t.Errorf("coming back after each event:\n got %q\nwant %q", got, want)
	}
}

func TestPositions(t *testing.T) {
	for _, p := range []position{{}, {Seq: 3, Sub: all}, {Seq: 4, Sub: 2, Offset: 17}, {Seq: 1, Offset: 3}, {Seq: 5, Sub: all + 2, Offset: 1}} {
		if got, err := parsePosition(p.String()); err != nil || got != p {
			t.Errorf("%v is read as %v (%v)", p, got, err)
		}
	}
	if got, err := parsePosition("12"); err != nil || got != (position{Seq: 12, Sub: all}) {
		t.Errorf("the number of a record is read as %v (%v)", got, err)
	}
	for _, bad := range []string{"", "x", "1.2", "1.2.3.4", "-1", "1.-2.0", "1.a.-3", "1.b.2", "1.e.2", "1.ex.2"} {
		if _, err := parsePosition(bad); err == nil {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

// A reader that does not read costs nothing: what it missed comes from the log,
// and events that only pass are dropped.
func TestSlowReader(t *testing.T) {
	st := memory.New()
	s := newStream(st)
	slow := &reader{stream: s}
	live(t, st, s, func() {})
	for i := range 3 * keepPassing {
		s.pass(map[string]any{"type": "notice", "text": fmt.Sprint(i)})
	}
	if len(s.recent) > keepRecords || len(s.passing) > keepPassing {
		t.Errorf("%d records and %d events are kept", len(s.recent), len(s.passing))
	}
	got := read(t, slow)
	if last := got[len(got)-1].data["text"]; last != fmt.Sprint(3*keepPassing-1) {
		t.Errorf("the last event is %v", last)
	}
	records := 0
	for _, ev := range got {
		if ev.data["type"] == "recorded" {
			records++
		}
	}
	if records != len(script())-2 { // without the parts of the answer
		t.Errorf("%d records were read", records)
	}
	if more := read(t, slow); len(more) != 0 {
		t.Errorf("%d events come twice", len(more))
	}
}

// The end of a turn is told once, after its records and before those of the next
// turn: to those who are there and to those who come back, wherever they stopped.
// Who begins to read later is not told.
func TestEnds(t *testing.T) {
	st := memory.New()
	s := newStream(st)
	there := &reader{stream: s}
	var all []event
	live(t, st, s, func() { all = append(all, read(t, there)...) })
	first := s.pass(map[string]any{"type": "done"})
	if now, _ := s.now(); now != first {
		t.Errorf("the stream ends at %v, the turn at %v", now, first)
	}
	s.pass(map[string]any{"type": "error", "message": "refused"}) // a turn without a record
	rec := session.Record{Seq: s.last + 1, ID: "next", Parent: "r7", Body: session.Message{Message: llm.UserText("again")}}
	if err := st.Append(context.Background(), "s", rec); err != nil {
		t.Fatal(err)
	}
	s.add(rec)
	s.say(piece{false, "I do"})
	s.pass(map[string]any{"type": "notice"})
	all = append(all, read(t, there)...)
	want := essence(all)
	if got, end := want[len(want)-5:], []string{`{"type":"done"}`, `{"message":"refused","type":"error"}`, `{"record":{"seq":9},"type":"recorded"}`, "delta:I do", `{"type":"notice"}`}; !reflect.DeepEqual(got, end) {
		t.Fatalf("the last events are %q, want %q", got, end)
	}
	want = want[:len(want)-1] // a notice is not repeated
	for n, ev := range all[:len(all)-1] {
		back := &reader{stream: s}
		if err := back.resume(ev.id, s.last); err != nil {
			t.Fatal(err)
		}
		if got := essence(append(all[:n+1:n+1], read(t, back)...)); !reflect.DeepEqual(got, want) {
			t.Errorf("after event %d (%s):\n got %q\nwant %q", n, ev.id, got, want)
		}
	}
	// Whoever knows the records up to there knows the end.
	later := &reader{stream: s}
	if err := later.resume("8", s.last); err != nil {
		t.Fatal(err)
	}
	if got := essence(read(t, later)); len(got) != 2 {
		t.Errorf("after the record 8 come %q", got)
	}
	later.at, later.seen = s.now()
	if got := read(t, later); len(got) != 0 {
		t.Errorf("from now on come %q", essence(got))
	}
	if err := later.resume("10", s.last); err == nil {
		t.Error("an id beyond the end is taken")
	}
}

// reads counts how often a store is read.
type reads struct {
	session.Store
	n int
}

func (r *reads) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	r.n++
	return r.Store.Read(ctx, id, after)
}

// A long answer, whose parts a turn records without telling, is read once for all
// who follow, and each record is written as JSON once.
func TestFollowersShareALongAnswer(t *testing.T) {
	ctx := context.Background()
	st := &reads{Store: memory.New()}
	s := newStream(st)
	made := 0
	s.record = func(r session.Record) (json.RawMessage, error) { made++; return json.Marshal(r.Seq) }
	seq := session.Seq(0)
	add := func(b session.Body) session.Record {
		seq++
		rec := session.Record{Seq: seq, ID: fmt.Sprint("r", seq), Body: b}
		if seq > 2 {
			rec.Parent = fmt.Sprint("r", seq-1)
		}
		if err := st.Append(ctx, "s", rec); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	s.add(add(script()[0]))
	s.here(true)
	s.observe(ctx, agent.Recorded{Record: add(session.Message{Message: llm.UserText("speak")})}, nil)
	readers := make([]*reader, 20)
	for i := range readers {
		readers[i] = &reader{stream: s}
		readers[i].at, readers[i].seen = s.now()
	}
	text := ""
	for i := range 3 * keepRecords {
		more := fmt.Sprint("word ", i, ", ")
		s.observe(ctx, agent.Said{Delta: llm.Delta{Text: more}}, nil)
		add(session.Partial{Offset: len(text), Text: more})
		text += more
	}
	s.observe(ctx, agent.Recorded{Record: add(session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: text}}}, Stop: llm.StopEnd})}, nil)
	made = 0
	want := []string{"delta:" + text, fmt.Sprintf(`{"record":%d,"type":"recorded"}`, seq)}
	for i, r := range readers {
		if got := essence(read(t, r)); !reflect.DeepEqual(got, want) {
			t.Errorf("reader %d is told %.300q", i, got)
		}
	}
	if st.n != 1 || made != 1 {
		t.Errorf("the log was read %d times, and the record written %d times, for %d readers", st.n, made, len(readers))
	}
	if len(s.recent) > keepRecords {
		t.Errorf("%d records are kept", len(s.recent))
	}
}

// A program that speaks OpenAI's API is no one to ask: it cannot answer.
func TestProgramsAreNotAsked(t *testing.T) {
	st := memory.New()
	s := newStream(st)
	live(t, st, s, func() {})
	done := make(chan struct{})
	close(done)
	asked := 0
	err := completionsAPI{}.follow(context.Background(), &turn{stream: s, done: done, end: map[string]any{"type": "done"}}, func(map[string]any) string {
		if asked++; s.watched() {
			t.Error("a program counts as someone who reads")
		}
		return ""
	})
	if err != nil || asked == 0 {
		t.Errorf("%d events, %v", asked, err)
	}
}
