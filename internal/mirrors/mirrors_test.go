package mirrors_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/mirrors"
	"goclaw/internal/naming"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// TestContinue: a mirror stays as it is; what continues it begins with its
// live branch, once, and says where it came from.
func TestContinue(t *testing.T) {
	ctx := context.Background()
	st := memory.New()
	say := func(seq session.Seq, id, parent, text string) session.Record {
		return session.Record{Seq: seq, ID: id, Parent: parent, Time: time.Unix(int64(seq), 0).UTC(), Body: session.Message{Message: llm.UserText(text)}}
	}
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}
	if err := st.Append(ctx, "m",
		session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: "agent:main:main", Origin: origin}},
		session.Record{Seq: 2, ID: "t", Side: true, Body: session.Title{Title: "Old friends"}},
		say(3, "a", "", "one"), say(4, "dead", "a", "never mind"), say(5, "b", "a", "two")); err != nil {
		t.Fatal(err)
	}
	m, err := session.Current(ctx, st, "agent:main:main")
	if err != nil || !m.Mirror() {
		t.Fatalf("%+v, %v: not a mirror", m, err)
	}
	own, err := mirrors.Continue(ctx, st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := mirrors.Continue(ctx, st, m, session.System{})
	if err != nil || again.ID != own.ID {
		t.Errorf("continued twice: %s and %s, %v", own.ID, again.ID, err)
	}
	if own.Mirror() || own.Key != "goclaw:main:main" || own.Title != "Old friends" {
		t.Errorf("mirror %v, key %q, title %q", own.Mirror(), own.Key, own.Title)
	}
	if diff := cmp.Diff(session.Origin{Program: "goclaw", Key: "agent:main:main", ID: "m", Seq: 5}, own.Origin); diff != "" {
		t.Errorf("origin (-want +got):\n%s", diff)
	}
	s, err := session.Open(ctx, st, own.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok {
			got = append(got, m.Text())
		}
	}
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
		t.Errorf("its past (-want +got):\n%s", diff)
	}
	after, err := session.Stat(ctx, st, "m")
	if err != nil || after != m {
		t.Errorf("the mirror has changed: %+v, %v", after, err)
	}
}

// TestContinueWhatMoved: a mirror that was given another key goes on where it
// was continued.
func TestContinueWhatMoved(t *testing.T) {
	ctx := context.Background()
	st := memory.New()
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:recovered:m", ID: "m"}
	if err := st.Append(ctx, "m",
		session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: origin.Key, Origin: origin}},
		session.Record{Seq: 2, ID: "a", Time: time.Unix(2, 0).UTC(), Body: session.Message{Message: llm.UserText("one")}}); err != nil {
		t.Fatal(err)
	}
	var own session.ID
	for i, key := range []session.Key{origin.Key, "agent:main:main", "agent:main:other"} {
		if i > 0 {
			if err := st.Append(ctx, "m", session.Record{Seq: session.Seq(2 + i), ID: string(key), Parent: "a", Side: true, Body: session.Moved{Key: key}}); err != nil {
				t.Fatal(err)
			}
		}
		m, err := session.Current(ctx, st, key)
		if err != nil || m.ID != "m" || m.Leaf != "a" {
			t.Fatalf("%s: %+v, %v", key, m, err)
		}
		got, err := mirrors.Continue(ctx, st, m, session.System{})
		if err != nil || own != "" && got.ID != own {
			t.Errorf("%s is continued in %s, %v; want %s", key, got.ID, err, own)
		}
		own = got.ID
	}
}

// TestCurrentOfCopies: of logs that were begun at once, the one that was
// written last is current, then the longer one, then the original. Their ids
// say nothing.
func TestCurrentOfCopies(t *testing.T) {
	ctx := context.Background()
	type log struct {
		id    session.ID
		begun int64 // in seconds
		said  []int64
	}
	tests := map[string]struct {
		logs []log
		want session.ID
	}{
		"begun last":   {[]log{{"b", 1, []int64{9}}, {"a", 2, []int64{3}}}, "a"},
		"written last": {[]log{{"z-m", 1, []int64{2, 3}}, {"m", 1, []int64{4}}}, "m"},
		"longer":       {[]log{{"z-m", 1, []int64{3}}, {"m", 1, []int64{2, 3}}}, "m"},
		"the original": {[]log{{"z-m", 1, []int64{3}}, {"m", 1, []int64{3}}}, "m"},
		"a prior id":   {[]log{{"a-m", 1, []int64{3}}, {"m", 1, []int64{3}}}, "m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			st := memory.New()
			for _, l := range test.logs {
				recs := []session.Record{{Seq: 1, Time: time.Unix(l.begun, 0).UTC(), Body: session.Header{Version: 3, ID: l.id, Key: "k", Origin: session.Origin{Program: "pi", Path: "/x.jsonl", ID: "m"}}}}
				parent := ""
				for i, at := range l.said {
					id := string(rune('0' + i))
					recs = append(recs, session.Record{Seq: session.Seq(i + 2), ID: id, Parent: parent, Time: time.Unix(at, 0).UTC(), Body: session.Message{Message: llm.UserText("x")}})
					parent = id
				}
				if err := st.Append(ctx, l.id, recs...); err != nil {
					t.Fatal(err)
				}
			}
			in, err := session.Current(ctx, st, "k")
			if err != nil || in.ID != test.want {
				t.Errorf("Current is %s, %v; want %s", in.ID, err, test.want)
			}
			if in, err = naming.Find(ctx, st, "k", false, naming.Listed{}); err != nil || in.ID != test.want {
				t.Errorf("Find is %s, %v; want %s", in.ID, err, test.want)
			}
		})
	}
}

// TestNewSince: what is said in a mirror after it was continued is counted, until
// it is continued again from there.
func TestNewSince(t *testing.T) {
	ctx := context.Background()
	st := memory.New()
	say := func(seq session.Seq, id, parent string) session.Record {
		return session.Record{Seq: seq, ID: id, Parent: parent, Time: time.Unix(int64(seq), 0).UTC(), Body: session.Message{Message: llm.UserText(id)}}
	}
	add := func(recs ...session.Record) {
		t.Helper()
		if err := st.Append(ctx, "m", recs...); err != nil {
			t.Fatal(err)
		}
	}
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}
	add(session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: origin.Key, Origin: origin}}, say(2, "a", ""))
	m, err := session.Stat(ctx, st, "m")
	if err != nil {
		t.Fatal(err)
	}
	own, err := mirrors.Continue(ctx, st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	behind := func(own session.Info) int {
		t.Helper()
		_, n, err := mirrors.NewSince(ctx, st, own)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	add(session.Record{Seq: 3, ID: "t", Parent: "a", Side: true, Time: time.Unix(3, 0).UTC(), Body: session.Title{Title: "x"}})
	if n := behind(own); n != 0 {
		t.Errorf("a title counts: %d", n)
	}
	add(say(4, "b", "a"), say(5, "c", "b"))
	if all, mirror := behind(own), behind(m); all != 2 || mirror != 0 {
		t.Errorf("%d messages, %d of the mirror itself; want 2, 0", all, mirror)
	}
	s, err := session.Open(ctx, st, "m")
	if err != nil {
		t.Fatal(err)
	}
	f, err := session.Fork(ctx, st, s, own.Key, 0, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := mirrors.Continue(ctx, st, m, session.System{})
	if err != nil || again.ID != f.ID || behind(again) != 0 {
		t.Errorf("continued in %s, %v, %d behind; want %s, 0", again.ID, err, behind(again), f.ID)
	}
}

// TestMerge: what was said in a mirror since is appended to what continues it,
// once, with a note before it; what was said here stays as it was.
func TestMerge(t *testing.T) {
	ctx := context.Background()
	st := memory.New()
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	say := func(seq session.Seq, id, parent string, role llm.Role, blocks ...llm.Block) session.Record {
		m := session.Message{Message: llm.Message{Role: role, Blocks: blocks}, Usage: llm.Usage{Input: 1000 * int(seq)}}
		if role == llm.Assistant {
			m.Provider, m.Model = "theirs", "t"
		}
		return session.Record{Seq: seq, ID: id, Parent: parent, Time: at(int64(seq)), Body: m}
	}
	text := func(s string) llm.Block { return llm.Text{Text: s} }
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}
	add := func(recs ...session.Record) {
		t.Helper()
		if err := st.Append(ctx, "m", recs...); err != nil {
			t.Fatal(err)
		}
	}
	add(session.Record{Seq: 1, Time: at(1), Body: session.Header{Version: 3, ID: "m", Key: origin.Key, Origin: origin}},
		say(2, "a", "", llm.User, text("one")), say(3, "b", "a", llm.Assistant, text("first")))
	m, err := session.Stat(ctx, st, "m")
	if err != nil {
		t.Fatal(err)
	}
	own, err := mirrors.Continue(ctx, st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(ctx, st, own.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []session.Message{{Message: llm.UserText("ours")}, {Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{text("to us")}}, Provider: "ours", Model: "o"}} {
		if _, err := session.Keep(ctx, st, s, s.Next(m, session.System{}), session.System{}); err != nil {
			t.Fatal(err)
		}
	}
	merge := func(want int) []string {
		t.Helper()
		n, err := mirrors.Merge(ctx, st, own, session.System{})
		if err != nil || n != want {
			t.Errorf("%d messages, %v; want %d", n, err, want)
		}
		s, err := session.Replay(own.ID, st.Read(ctx, own.ID, 0))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range s.Branch {
			switch b := r.Body.(type) {
			case session.Message:
				for _, bl := range b.Blocks {
					switch bl := bl.(type) {
					case llm.Text:
						out = append(out, bl.Text)
					case llm.ToolCall:
						out = append(out, "call "+bl.ID)
					case llm.ToolResult:
						out = append(out, "result "+bl.CallID)
					}
				}
			case session.CustomMessage:
				out = append(out, llm.Message{Blocks: b.Blocks}.Text())
			}
		}
		if used, _ := s.LastModel(); used.Name() != "ours/o" || s.Model != "o" {
			t.Errorf("the model of another program counts here: %s, %s", used.Name(), s.Model)
		}
		if s.Used != 3000 {
			t.Errorf("the window of another program counts here: %d tokens", s.Used)
		}
		return out
	}
	past := []string{"one", "first", "ours", "to us"}
	if got := merge(0); !cmp.Equal(past, got) {
		t.Errorf("nothing is new, and yet: %q", got)
	}
	add(say(4, "c", "b", llm.User, text("two")), say(5, "d", "c", llm.Assistant, llm.ToolCall{ID: "t1", Name: "f", Args: []byte("{}")}),
		say(6, "e", "d", llm.User, llm.ToolResult{CallID: "t1", Blocks: []llm.Block{text("x")}}), say(7, "f", "e", llm.Assistant, text("second")), say(8, "g", "f", llm.User, text("three")))
	past = append(past, "[Meanwhile in agent:main:main of openclaw, 1970-01-01 00:00 to 00:00 UTC:]", "two", "call t1", "result t1", "second")
	if diff := cmp.Diff(past, merge(3)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(past, merge(0)); diff != "" {
		t.Errorf("a question without an answer is waited for (-want +got):\n%s", diff)
	}
	if _, n, err := mirrors.NewSince(ctx, st, own); err != nil || n != 1 {
		t.Errorf("%d messages are new, %v; want the question", n, err)
	}
	add(say(9, "h", "g", llm.Assistant, text("third")))
	past = append(past, "[Meanwhile in agent:main:main of openclaw, 1970-01-01 00:00 to 00:00 UTC:]", "three", "third")
	if diff := cmp.Diff(past, merge(2)); diff != "" {
		t.Errorf("merged again (-want +got):\n%s", diff)
	}
	if _, n, err := mirrors.NewSince(ctx, st, own); err != nil || n != 0 {
		t.Errorf("%d messages are new, %v", n, err)
	}
	if n, err := mirrors.Merge(ctx, st, m, session.System{}); n != 0 || err != nil {
		t.Errorf("a mirror takes in %d messages, %v", n, err)
	}
}

// Messages of their model do not choose a model for a continuation that has used
// none.
func TestMergeChoosesNoModel(t *testing.T) {
	st := memory.New()
	log := sessiontest.Log(session.Header{Version: 3, ID: "m", Key: "agent:main:main", Origin: session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}},
		sessiontest.User("one"), sessiontest.By("theirs", "t", sessiontest.Answer("first")))
	if err := st.Append(t.Context(), "m", log[:2]...); err != nil {
		t.Fatal(err)
	}
	m, err := session.Stat(t.Context(), st, "m")
	if err != nil {
		t.Fatal(err)
	}
	own, err := mirrors.Continue(t.Context(), st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Append(t.Context(), "m", log[2:]...); err != nil {
		t.Fatal(err)
	}
	if n, err := mirrors.Merge(t.Context(), st, own, session.System{}); n != 1 || err != nil {
		t.Fatalf("%d messages, %v; want 1", n, err)
	}
	s, err := session.Open(t.Context(), st, own.ID)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := s.LastModel(); ok {
		t.Errorf("the merge chose %s", c.Name())
	}
}
