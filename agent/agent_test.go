package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

func TestNext(t *testing.T) {
	call := llm.ToolCall{ID: "c1", Name: "read", Args: []byte("{}")}
	for _, c := range []struct {
		name string
		log  []session.Body
		want agent.Action
	}{
		{"nothing was said", nil, agent.Rest{}},
		{"the user spoke", []session.Body{User("q")}, agent.Ask{}},
		{"the model answered", []session.Body{User("q"), Answer("a")}, agent.Rest{}},
		{"the model calls", []session.Body{User("q"), Call("c1", "read")}, agent.Call{Calls: []llm.ToolCall{call}}},
		{"the result is there", []session.Body{User("q"), Call("c1", "read"), Result("c1", "ok")}, agent.Ask{}},
		{"one of two results is there", []session.Body{User("q"), Calls(llm.ToolCall{ID: "c0", Name: "x"}, call), Result("c0", "ok")}, agent.Call{Calls: []llm.ToolCall{call}}},
		{"a title came in between", []session.Body{User("q"), Title("t")}, agent.Ask{}},
		{"the user speaks over an open call", []session.Body{User("q"), Call("c1", "read"), User("stop")}, agent.Ask{}},
		{"the answer was stopped", []session.Body{User("q"), Stopped(llm.StopAborted, Call("c1", "read"))}, agent.Rest{}},
		{"the answer failed: it is asked again", []session.Body{User("q"), Stopped(llm.StopError, Answer("ha"))}, agent.Ask{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := agent.Next(Replay(t, c.log...), window.Budget{}, window.Loose, agent.Policy{})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// hands are scripted tools.
type hands map[string]func(ctx context.Context) (string, error)

func (h hands) Specs() []llm.ToolSpec {
	var out []llm.ToolSpec
	for name := range h {
		out = append(out, llm.ToolSpec{Name: name, Schema: []byte(`{"type":"object"}`)})
	}
	return out
}

func (h hands) Run(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	text, err := h[c.Name](ctx)
	return llm.Result(c, text), err
}

// play runs a turn, keeps every record as a store would, and returns what was
// recorded, a line each, and how the turn ended.
func play(t *testing.T, ctx context.Context, s *session.Session, in llm.Message, env agent.Env) (kept []string, events []agent.Event, last error) {
	t.Helper()
	env.Clock = &Clock{}
	for ev, err := range agent.Turn(ctx, s, in, env) {
		if err != nil {
			last = err
			break
		}
		events = append(events, ev)
		if r, ok := ev.(agent.Recorded); ok {
			if err := s.Apply(r.Record); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, line(r.Record))
		}
	}
	return kept, events, last
}

func line(r session.Record) string {
	m, ok := r.Body.(session.Message)
	if !ok {
		return fmt.Sprintf("%T", r.Body)
	}
	out := string(m.Role) + ":"
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Text:
			out += " " + b.Text
		case llm.ToolCall:
			out += " call " + b.ID
		case llm.ToolResult:
			out += " result " + b.CallID + " " + b.Text()
		}
	}
	if m.Stop != "" {
		out += " [" + string(m.Stop) + "]"
	}
	return out
}

func TestTurn(t *testing.T) {
	tools := hands{
		"read": func(context.Context) (string, error) { return "ok", nil },
		"boom": func(context.Context) (string, error) { panic("boom") },
		"die":  func(context.Context) (string, error) { return "", errors.New("disk gone") },
	}
	long := []session.Body{User("a"), Call("l1", "read"), Result("l1", strings.Repeat("long ", 2000)), Answer("b"), User("c"), Answer("d")}
	for _, c := range []struct {
		name  string
		log   []session.Body
		in    string
		steps []llmtest.Step
		want  []string
		err   string
	}{
		{"an answer", nil, "hi", []llmtest.Step{llmtest.Say("hello you")}, []string{"user: hi", "assistant: hello you [stop]"}, ""},
		{"a call", nil, "hi", []llmtest.Step{llmtest.Call("c1", "read", `{}`), llmtest.Say("done")},
			[]string{"user: hi", "assistant: call c1 [toolUse]", "user: result c1 ok", "assistant: done [stop]"}, ""},
		{"a tool that panics has failed, the turn has not", nil, "hi", []llmtest.Step{llmtest.Call("c1", "boom", `{}`), llmtest.Say("oh")},
			[]string{"user: hi", "assistant: call c1 [toolUse]", "user: result c1 the tool boom panicked: boom", "assistant: oh [stop]"}, ""},
		{"a broken tool ends the turn, with a result", nil, "hi", []llmtest.Step{llmtest.Call("c1", "die", `{}`)},
			[]string{"user: hi", "assistant: call c1 [toolUse]", "user: result c1 stopped: disk gone"}, "disk gone"},
		{"no answer at all", nil, "hi", []llmtest.Step{llmtest.Fail(llm.ErrNetwork)}, []string{"user: hi"}, "not reached"},
		{"an answer that breaks off is kept", nil, "hi", []llmtest.Step{llmtest.Break("hal", llm.ErrNetwork)},
			[]string{"user: hi", "assistant: hal [error]"}, "not reached"},
		{"a torn past is not run again", []session.Body{User("q"), Call("c1", "die")}, "", []llmtest.Step{llmtest.Say("sorry")},
			[]string{"user: result c1 " + window.Interrupted, "assistant: sorry [stop]"}, ""},
		{"an unanswered question is answered", []session.Body{User("q")}, "", []llmtest.Step{llmtest.Say("late")}, []string{"assistant: late [stop]"}, ""},
		{"what was stopped goes on", []session.Body{User("q"), Stopped(llm.StopAborted, Answer("half"))}, "", []llmtest.Step{llmtest.Say("whole")}, []string{"user: Go on.", "assistant: whole [stop]"}, ""},
		{"what was stopped before its first word is asked again", []session.Body{User("q"), Stopped(llm.StopAborted, Answer(""))}, "", []llmtest.Step{llmtest.Say("whole")}, []string{"assistant: whole [stop]"}, ""},
		{"nothing to go on with", []session.Body{User("q"), Answer("a")}, "", nil, nil, ""},
		{"too long, and short enough with cut results", long, "hi", []llmtest.Step{llmtest.Fail(&llm.OverflowError{}), llmtest.Say("fits")},
			[]string{"user: hi", "assistant: fits [stop]"}, ""},
		{"too long whatever is done", long, "hi", []llmtest.Step{llmtest.Fail(&llm.OverflowError{}), llmtest.Fail(&llm.OverflowError{}), llmtest.Fail(&llm.OverflowError{Tokens: 9, Window: 5})},
			[]string{"user: hi"}, "prompt of 9 tokens exceeds the context window of 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Replay(t, c.log...)
			var in llm.Message
			if c.in != "" {
				in = llm.UserText(c.in)
			}
			kept, _, err := play(t, context.Background(), s, in, agent.Env{Provider: llmtest.New(c.steps...), Tools: tools})
			for i := range kept { // stacks differ
				kept[i], _, _ = strings.Cut(kept[i], "\n")
			}
			if diff := cmp.Diff(c.want, kept); diff != "" {
				t.Errorf("recorded (-want +got)\n%s", diff)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

// TestRecordedBeforeReliedOn stops the turn at each of its records and checks
// that what depends on that record has not happened.
func TestRecordedBeforeReliedOn(t *testing.T) {
	for stop := 1; stop <= 4; stop++ {
		var did []string
		model := llmtest.New(llmtest.Call("c1", "read", `{}`), llmtest.Say("done"))
		tools := hands{"read": func(context.Context) (string, error) { did = append(did, "tool"); return "ok", nil }}
		s := Replay(t)
		n := 0
		for ev, err := range agent.Turn(context.Background(), s, llm.UserText("hi"), agent.Env{Provider: model, Tools: tools, Clock: &Clock{}}) {
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := ev.(agent.Recorded); ok {
				if n++; n == stop {
					break // the store failed
				}
				if err := s.Apply(r.Record); err != nil {
					t.Fatal(err)
				}
			}
		}
		asked := len(model.Requests())
		want := map[int]string{1: "0 []", 2: "1 []", 3: "1 [tool]", 4: "2 [tool]"}[stop]
		if got := fmt.Sprint(asked, " ", did); got != want {
			t.Errorf("record %d was not kept, yet asked and did %s, want %s", stop, got, want)
		}
	}
}

func TestParallelCallsAreRecordedInOrder(t *testing.T) {
	second := make(chan struct{})
	tools := hands{
		"slow": func(context.Context) (string, error) { <-second; return "slow", nil },
		"fast": func(context.Context) (string, error) { close(second); return "fast", nil },
	}
	model := llmtest.New(llmtest.Answer(llm.ToolCall{ID: "c1", Name: "slow", Args: []byte("{}")}, llm.ToolCall{ID: "c2", Name: "fast", Args: []byte("{}")}), llmtest.Say("ok"))
	kept, _, err := play(t, context.Background(), Replay(t), llm.UserText("go"), agent.Env{Provider: model, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"user: go", "assistant: call c1 call c2 [toolUse]", "user: result c1 slow", "user: result c2 fast", "assistant: ok [stop]"}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// careful are hands that know which of them change something.
type careful struct {
	hands
	mutates map[string]bool
}

func (c careful) Mutates(call llm.ToolCall) bool { return c.mutates[call.Name] }

// A call that changes something runs when all before it are recorded, and
// those behind it wait for it.
func TestCallsThatChangeSomethingRunInOrder(t *testing.T) {
	var mu sync.Mutex
	var did []string
	does := func(name string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, name)
			return name, nil
		}
	}
	beside := make(chan struct{})
	tools := careful{hands{
		"write": does("write"), "bash": does("bash"), "check": does("check"),
		"slow": func(ctx context.Context) (string, error) { <-beside; return does("slow")(ctx) },
		"fast": func(ctx context.Context) (string, error) { defer close(beside); return does("fast")(ctx) },
	}, map[string]bool{"write": true, "bash": true}}
	var calls []llm.Block
	for i, name := range []string{"slow", "fast", "write", "bash", "check"} {
		calls = append(calls, llm.ToolCall{ID: fmt.Sprint("c", i+1), Name: name, Args: []byte("{}")})
	}
	_, events, err := play(t, context.Background(), Replay(t), llm.UserText("go"), agent.Env{Provider: llmtest.New(llmtest.Answer(calls...), llmtest.Say("ok")), Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"fast", "slow", "write", "bash", "check"}; !cmp.Equal(did, want) {
		t.Errorf("done %q, want %q", did, want)
	}
	var got []string
	for _, ev := range events {
		switch ev := ev.(type) {
		case agent.Calling:
			got = append(got, "calling "+ev.Call.Name)
		case agent.Recorded:
			if m, ok := ev.Record.Body.(session.Message); ok && len(m.Results()) > 0 {
				got = append(got, "recorded "+m.Results()[0].Text())
			}
		}
	}
	want := []string{"calling slow", "calling fast", "recorded slow", "recorded fast", "calling write", "recorded write", "calling bash", "recorded bash", "calling check", "recorded check"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What has not begun when the user stops, or when a tool ends the turn, does
// not begin any more, and says so.
func TestWhatHasNotBegunDoesNotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		first func(stop func()) error
		want  string
	}{
		"stopped": {func(stop func()) error { stop(); return nil }, "stopped by the user"},
		"failed":  {func(func()) error { return errors.New("the disk is gone") }, "stopped: the disk is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ran := false
			tools := careful{hands{
				"first":  func(context.Context) (string, error) { return "done", c.first(cancel) },
				"second": func(context.Context) (string, error) { ran = true; return "done", nil },
			}, map[string]bool{"first": true, "second": true}}
			model := llmtest.New(llmtest.Answer(llm.ToolCall{ID: "c1", Name: "first", Args: []byte("{}")}, llm.ToolCall{ID: "c2", Name: "second", Args: []byte("{}")}))
			kept, _, err := play(t, ctx, Replay(t), llm.UserText("go"), agent.Env{Provider: model, Tools: tools})
			if ran {
				t.Error("the second call ran")
			}
			if err == nil || len(kept) < 4 || kept[3] != "user: result c2 "+c.want {
				t.Errorf("error %v, kept %q, want a result %q of c2", err, kept, c.want)
			}
		})
	}
}

func TestStopKeepsWhatWasSaid(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := Replay(t)
	var kept []string
	var last error
	for ev, err := range agent.Turn(ctx, s, llm.UserText("hi"), agent.Env{Provider: llmtest.New(llmtest.Say("one two three four")), Clock: &Clock{}}) {
		if err != nil {
			last = err
			break
		}
		switch ev := ev.(type) {
		case agent.Said:
			if strings.Contains(ev.Text, "two") {
				cancel()
			}
		case agent.Recorded:
			if err := s.Apply(ev.Record); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, line(ev.Record))
		}
	}
	if want := []string{"user: hi", "assistant: one two  [aborted]"}; !cmp.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", last)
	}
}

func TestStopBeforeTheFirstWord(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	silent := func(ctx context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) { cancel(); yield(llm.Delta{}, ctx.Err()) }
	}
	kept, _, err := play(t, ctx, Replay(t), llm.UserText("hi"), agent.Env{Provider: llmtest.New(silent)})
	if want := []string{"user: hi", "assistant: [aborted]"}; !cmp.Equal(kept, want) || !errors.Is(err, context.Canceled) {
		t.Errorf("kept %q, error %v; want %q", kept, err, want)
	}
}

func TestNoToolOutlivesItsTurn(t *testing.T) {
	var done atomic.Bool
	started := make(chan struct{})
	tools := hands{
		"slow": func(ctx context.Context) (string, error) {
			close(started)
			<-ctx.Done()
			done.Store(true)
			return "", ctx.Err()
		},
		"fast": func(context.Context) (string, error) { <-started; return "ok", nil },
	}
	s := Replay(t)
	model := llmtest.New(llmtest.Answer(llm.ToolCall{ID: "c1", Name: "fast", Args: []byte("{}")}, llm.ToolCall{ID: "c2", Name: "slow", Args: []byte("{}")}))
	for ev, err := range agent.Turn(context.Background(), s, llm.UserText("go"), agent.Env{Provider: model, Tools: tools, Clock: &Clock{}}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(agent.Called); ok {
			break // the consumer leaves while slow still runs
		}
		if r, ok := ev.(agent.Recorded); ok {
			if err := s.Apply(r.Record); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !done.Load() {
		t.Error("the turn is over and a tool still runs")
	}
}

func TestStopWhileToolsRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var once sync.Once
	tools := hands{"wait": func(ctx context.Context) (string, error) {
		once.Do(cancel)
		<-ctx.Done()
		return "half", ctx.Err()
	}}
	s := Replay(t)
	model := llmtest.New(llmtest.Answer(llm.ToolCall{ID: "c1", Name: "wait", Args: []byte("{}")}, llm.ToolCall{ID: "c2", Name: "wait", Args: []byte("{}")}))
	kept, _, err := play(t, ctx, s, llm.UserText("go"), agent.Env{Provider: model, Tools: tools})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	want := []string{"user: go", "assistant: call c1 call c2 [toolUse]", "user: result c1 half\n(stopped by the user)", "user: result c2 half\n(stopped by the user)", "assistant: [aborted]"}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := agent.Next(s, window.Budget{}, window.Loose, agent.Policy{}); got != (agent.Rest{}) {
		t.Errorf("a stopped turn leaves %T to do: it looks like a crash", got)
	}
}

// A model that calls a tool by a name that no API takes, or by none, learns
// what was wrong: the call goes back to it with its result.
func TestOddNamesGoBackToTheModel(t *testing.T) {
	for name, sent := range map[string]string{"": "unknown_tool", "functions.read_file": "functions_read_file", "读文件": "unknown_tool"} {
		model := llmtest.New(llmtest.Call("c1", name, `{"path":"a"}`), llmtest.Say("sorry"))
		_, _, err := play(t, context.Background(), Replay(t), llm.UserText("go"), agent.Env{Provider: model, Tools: hands{}})
		reqs := model.Requests()
		if err != nil || len(reqs) != 2 {
			t.Fatalf("%q: %d requests, %v", name, len(reqs), err)
		}
		msgs := reqs[1].Messages
		call, result := msgs[1].Calls()[0], msgs[2].Results()[0]
		if call.Name != sent || string(call.Args) != `{"path":"a"}` || !result.IsError || result.Text() == "" {
			t.Errorf("%q: the model is told %+v and %+v", name, call, result)
		}
	}
}

func TestEndlessCallsEnd(t *testing.T) {
	n := 0
	model := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		n++
		return llmtest.Call(fmt.Sprint("c", n), "read", `{}`)(ctx, req)
	}}
	tools := hands{"read": func(context.Context) (string, error) { return "ok", nil }}
	_, _, err := play(t, context.Background(), Replay(t), llm.UserText("go"), agent.Env{Provider: model, Tools: tools, MaxSteps: 7})
	if !errors.Is(err, agent.ErrSteps) || n != 7 {
		t.Errorf("asked %d times, error %v", n, err)
	}
}

// A model that makes only calls that cannot be run is told why each time, and
// the turn ends soon. One that can be run begins the count again.
func TestFutileCallsEndTheTurn(t *testing.T) {
	n := 0
	tools := hands{"read": func(context.Context) (string, error) { return "ok", nil }}
	run := func(name func(n int) string) (asked int, err error) {
		n = 0
		model := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
			if n++; n > 20 {
				return llmtest.Say("done")(ctx, req)
			}
			return llmtest.Call(fmt.Sprint("c", n), name(n), `{}`)(ctx, req)
		}}
		_, _, err = play(t, context.Background(), Replay(t), llm.UserText("go"), agent.Env{Provider: model, Tools: safe{tools}})
		for _, r := range model.Requests()[1:] {
			if rs := r.Messages[len(r.Messages)-1].Results(); len(rs) != 1 || rs[0].Text() != "ok" && !rs[0].IsError {
				t.Errorf("the model is told %+v", rs)
			}
		}
		return n, err
	}
	for _, name := range []string{"", " ", "functions.read_file", "读文件", strings.Repeat("n", 200)} {
		if n, err := run(func(int) string { return name }); !errors.Is(err, agent.ErrFutile) || n != 5 {
			t.Errorf("%.20q: asked %d times, %v", name, n, err)
		}
	}
	if n, err := run(func(n int) string { return []string{"read", ""}[n%2] }); err != nil || n != 21 {
		t.Errorf("every other call is fine: asked %d times, %v", n, err)
	}
}

// Some servers give calls no id, or the same one twice: they are run all the
// same, and each gets its own result.
func TestCallsWithoutAnID(t *testing.T) {
	for _, id := range []string{"", "c1"} {
		model := llmtest.New(llmtest.Answer(llm.ToolCall{ID: id, Name: "one"}, llm.ToolCall{ID: id, Name: "two"}), llmtest.Say("done"))
		tools := hands{"one": func(context.Context) (string, error) { return "1", nil }, "two": func(context.Context) (string, error) { return "2", nil }}
		if _, _, err := play(t, context.Background(), Replay(t), llm.UserText("go"), agent.Env{Provider: model, Tools: tools}); err != nil {
			t.Fatal(err)
		}
		msgs := model.Requests()[1].Messages
		calls, results := msgs[1].Calls(), msgs[2].Results()
		if len(calls) != 2 || len(results) != 2 {
			t.Fatalf("id %q: %d calls, %d results", id, len(calls), len(results))
		}
		for i, want := range []string{"1", "2"} {
			if results[i].CallID != calls[i].ID || results[i].Text() != want || results[i].IsError {
				t.Errorf("id %q: %s got %q, want %q", id, calls[i].Name, results[i].Text(), want)
			}
		}
	}
}

// safe are tools that answer a call of a tool that does not exist.
type safe struct{ hands }

func (s safe) Run(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	if s.hands[c.Name] == nil {
		return llm.Failed(c, "there is no such tool"), nil
	}
	return s.hands.Run(ctx, c)
}

// A turn on a long history counts no more than its new text.
func TestCountsOnlyWhatIsNew(t *testing.T) {
	log := []session.Body{}
	for range 200 {
		log = append(log, User("question"), Used(1000, Answer("answer")))
	}
	tok := &counting{}
	s := Replay(t, log...)
	_, _, err := play(t, context.Background(), s, llm.UserText("new words"), agent.Env{Provider: llmtest.New(llmtest.Say("ok")), Tokens: tok, Budget: window.Budget{Window: 10_000}})
	if err != nil {
		t.Fatal(err)
	}
	if tok.bytes > 100 {
		t.Errorf("%d bytes were counted for a turn of 9", tok.bytes)
	}
}

type counting struct{ bytes int }

func (c *counting) Count(text string) int { c.bytes += len(text); return len(text) / 4 }

func TestTailTellsTheBudget(t *testing.T) {
	model := llmtest.New(llmtest.Say("ok"))
	_, _, err := play(t, context.Background(), Replay(t, User("a"), Used(500, Answer("b"))), llm.UserText("c"),
		agent.Env{Provider: model, Tokens: &counting{}, Budget: window.Budget{Window: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := model.Requests()[0].Tail, "[Context: 504/1k tokens (50%)]"; got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
}

// What a tool prints is an event of its own, and the time of a call is that of
// its run, without a question before it.
func TestPrinted(t *testing.T) {
	clock := &Clock{}
	tools := hands{"make": func(ctx context.Context) (string, error) {
		p := llm.ProgressOf(ctx)
		clock.Move(time.Hour) // the user is asked
		p.Begun()
		p.Output("one", 3)
		clock.Move(time.Second)
		p.Output("one\ntwo", 7)
		return "all", nil
	}, "refuse": func(context.Context) (string, error) { return "no", nil }}
	model := llmtest.New(llmtest.Call("c1", "make", "{}"), llmtest.Call("c2", "refuse", "{}"), llmtest.Say("done"))
	s := Replay(t)
	var got []string
	for ev, err := range agent.Turn(context.Background(), s, llm.UserText("go"), agent.Env{Provider: model, Tools: tools, Clock: clock}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case agent.Recorded:
			if err := s.Apply(ev.Record); err != nil {
				t.Fatal(err)
			}
		case agent.Printed:
			got = append(got, fmt.Sprintf("%s %q %d", ev.Call.ID, ev.Tail, ev.Bytes))
		case agent.Called:
			got = append(got, fmt.Sprintf("%s %s", ev.Call.ID, ev.Took))
		}
	}
	if diff := cmp.Diff([]string{`c1 "one" 3`, `c1 "one\ntwo" 7`, "c1 1s", "c2 0s"}, got); diff != "" {
		t.Error(diff)
	}
}

// A tool that prints does not hang when nobody looks on any more.
func TestPrintedToNobody(t *testing.T) {
	tools := hands{"make": func(ctx context.Context) (string, error) {
		for range 100 {
			llm.ProgressOf(ctx).Output("x", 1)
		}
		return "", ctx.Err()
	}}
	s := Replay(t)
	for ev, err := range agent.Turn(context.Background(), s, llm.UserText("go"), agent.Env{Provider: llmtest.New(llmtest.Call("c1", "make", "{}")), Tools: tools, Clock: &Clock{}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case agent.Recorded:
			if err := s.Apply(ev.Record); err != nil {
				t.Fatal(err)
			}
		case agent.Printed:
			return
		}
	}
	t.Error("nothing was printed")
}
