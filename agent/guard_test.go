package agent_test

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// byFour takes four bytes for a token, as the scripted model does.
type byFour struct{}

func (byFour) Count(text string) int { return len(text) / 4 }

// tokens is a text of n tokens.
func tokens(n int) string { return strings.Repeat("abc ", n) }

func talk(n, size int) []session.Body {
	var log []session.Body
	for i := range n {
		log = append(log, User(fmt.Sprintf("question %d %s", i+1, tokens(size/2))), Answer(fmt.Sprintf("answer %d %s", i+1, tokens(size/2))))
	}
	return log
}

var flush = []window.Threshold{
	{Percent: 50, Text: "half full", As: window.AsSystem},
	{Percent: 90, Text: "save to memory/YYYY-MM-DD.md", As: window.AsMarked},
}

func TestNextStaysInsideTheWindow(t *testing.T) {
	p := agent.Policy{Flush: flush, Compact: &compact.Options{}, Tokens: byFour{}}
	note := func(percent int, as string) session.Notice {
		return session.Notice{Percent: percent, Text: "n", As: as}
	}
	log := func(end ...session.Body) []session.Body { return append(talk(10, 80), end...) }
	for _, c := range []struct {
		name string
		used int // of 1000, 100 of them reserved
		q    window.Squeeze
		log  []session.Body
		want string
	}{
		{"room", 400, window.Loose, log(User("q")), "ask loose"},
		{"half full: a notice for the system comes before the question", 500, window.Loose, log(User("q")), "warn 50"},
		{"once", 500, window.Loose, log(User("q"), note(50, "system")), "ask loose"},
		{"a message does not come between the user and the answer", 874, window.Loose, log(note(50, "system"), User("q")), "ask loose"},
		{"it comes after the answer", 900, window.Loose, log(note(50, "system"), User("q"), Answer("a")), "warn 90"},
		{"and is answered", 900, window.Loose, log(note(50, "system"), User("q"), Answer("a"), note(90, "marked")), "ask loose"},
		{"once, too", 900, window.Loose, log(User("q"), Answer("a"), note(90, "marked"), Answer("NO_REPLY")), "rest"},
		{"nor between two tools before it is due", 874, window.Loose, log(note(50, "system"), User("q"), Call("c", "read"), Result("c", "r")), "ask loose"},
		{"full: compacted", 900, window.Loose, log(note(90, "marked"), Answer("NO_REPLY"), User("q")), "compaction"},
		{"full, and not warned: a question is open, and needs the room", 950, window.Loose, log(User("q")), "compaction"},
		{"full between two tools, and not warned", 950, window.Loose, log(User("q"), Call("c", "read"), Result("c", "r")), "compaction"},
		{"full, and warned beside the question", 950, window.Loose, log(User("q"), note(90, "system")), "compaction"},
		{"full after the answer: the warning comes before the compaction", 950, window.Loose, log(User("q"), Answer("a")), "warn 90"},
		{"and is answered before it", 950, window.Loose, log(User("q"), Answer("a"), note(90, "marked")), "ask loose"},
		{"fuller than full: no time for warnings", 990, window.Loose, log(User("q")), "compaction"},
		{"compacted once", 950, window.Loose, append(log(), Compaction("s", "e5"), User("q")), "compaction"},
		{"compacted twice without relief: not again", 990, window.Loose, append(log(User("q")), Compaction("s", "e3"), Compaction("s", "e5")), "ask loose"},
		{"too long for the model: cut results", 300, window.Results, log(User("q")), "ask results"},
		{"too long even so: compact", 300, window.Compact, log(User("q")), "compaction"},
		{"nothing to compact", 300, window.Compact, []session.Body{User("q")}, "ask compact"},
		{"stopped by the user", 950, window.Loose, log(User("q"), Stopped(llm.StopAborted, Answer("a"))), "rest"},
	} {
		got := agent.Next(Replay(t, c.log...), window.Budget{Window: 1000, Reserve: 100, Used: c.used}, c.q, p)
		text := ""
		switch a := got.(type) {
		case agent.Ask:
			text = "ask " + a.Squeeze.String()
		case agent.Warn:
			text = fmt.Sprint("warn ", a.Threshold.Percent)
			if last := c.log[len(c.log)-1]; a.Threshold.As != window.AsSystem && !isAnswer(last) {
				t.Errorf("%s: a notice as a message while a question is open", c.name)
			}
		case agent.Compact:
			text = "compaction"
		case agent.Rest:
			text = "rest"
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
	between := Replay(t, log(note(50, "system"), User("q"), Call("c", "read"), Result("c", "r"))...)
	got := agent.Next(between, window.Budget{Window: 1000, Reserve: 50, Used: 901}, window.Loose, p)
	if w, ok := got.(agent.Warn); !ok || w.Threshold.Percent != 90 || w.Threshold.As != window.AsSystem {
		t.Errorf("a notice that is due between two tools, with room for an answer: %+v", got)
	}
}

func isAnswer(b session.Body) bool {
	m, ok := b.(session.Message)
	return ok && m.Role == llm.Assistant && len(m.Calls()) == 0
}

// A model that answers every notice with NO_REPLY still answers the user, in
// every state of the window.
func TestFlushNeverSwallowsAQuestion(t *testing.T) {
	obedient := func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		last := req.Messages[len(req.Messages)-1]
		text := last.Text()
		switch {
		case strings.Contains(text, window.Mark) || strings.HasSuffix(text, "NO_REPLY."):
			return llmtest.Say("NO_REPLY")(ctx, req)
		case len(last.Results()) == 0 && len(text) < 40:
			return llmtest.Call(fmt.Sprint("c", len(req.Messages)), "read", `{}`)(ctx, req)
		}
		return llmtest.Say("the answer")(ctx, req)
	}
	for used := 300; used <= 1000; used += 20 {
		env := guarded(&llmtest.Model{Rest: summarising(obedient)}, 1000)
		env.Flush = []window.Threshold{{Percent: 50, Text: "half", As: window.AsSystem}, {Percent: 90, Text: "save; if nothing, reply NO_REPLY.", As: window.AsMarked}}
		env.Tools = hands{"read": func(context.Context) (string, error) { return strings.Repeat("word ", 60), nil }}
		log := append(talk(10, 80), Used(used, Answer("so far")))
		_, events, err := play(t, context.Background(), Replay(t, log...), llm.UserText("and now?"), env)
		said := ""
		for _, e := range events {
			if d, ok := e.(agent.Said); ok {
				said += d.Text
			}
		}
		if !strings.Contains(said, "the answer") && err == nil {
			t.Errorf("%d of 1000 tokens used: the question was answered %q", used, said)
		}
	}
}

// summarising answers summaries and passes everything else on.
func summarising(next llmtest.Step) llmtest.Step {
	return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		if strings.Contains(req.System, "You summarise") {
			return llmtest.Say(`{"summary":"many questions were asked, and all of them have been answered"}`)(ctx, req)
		}
		return next(ctx, req)
	}
}

// guarded is an Env that compacts.
func guarded(m llm.Provider, w int) agent.Env {
	return agent.Env{
		Provider: m, Prompt: window.Prompt{Provider: "p", Model: "m", MaxTokens: 100_000}, Budget: window.Budget{Window: w, Reserve: w / 10}, Tokens: window.NewCounter(byFour{}, 1),
		Compact: &compact.Options{}, Summarizer: compact.Chain{{Provider: m, Name: "m", Window: w, Tokens: byFour{}}},
	}
}

func kinds(events []agent.Event) []string {
	var out []string
	for _, e := range events {
		switch e := e.(type) {
		case agent.Squeezed:
			if e.Answer > 0 {
				out = append(out, fmt.Sprint("shorter answer ", e.Answer))
				continue
			}
			out = append(out, "squeezed "+e.To.String())
		case agent.Compacting:
			out = append(out, "compacting")
		case agent.Learnt:
			out = append(out, fmt.Sprint("learnt ", stdcmp.Or(e.Window, e.Answer), " ", e.Exact))
		case agent.Done:
			out = append(out, "done")
		}
	}
	return out
}

func TestFullWindowIsCompactedBeforeTheQuestion(t *testing.T) {
	m := &llmtest.Model{Rest: summarising(llmtest.Within(2000, llmtest.Say("here you are")))}
	s := Replay(t, talk(20, 100)...)
	_, events, err := play(t, context.Background(), s, llm.UserText("and now?"), guarded(m, 2000))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"compacting", "done"}, kinds(events)); d != "" {
		t.Error(d)
	}
	last := m.Requests()[len(m.Requests())-1]
	if n := llmtest.Tokens(last); n > 1800 || !strings.Contains(last.Messages[0].Text(), "many questions") {
		t.Errorf("%d tokens sent: %.200s", n, last.Messages[0].Text())
	}
	if last.MaxTokens <= 0 || last.MaxTokens+llmtest.Tokens(last) > 2000 {
		t.Errorf("max tokens %d beside %d", last.MaxTokens, llmtest.Tokens(last))
	}
}

// The stages of the guard, against a model that takes less than it says.
func TestGuard(t *testing.T) {
	long := []session.Body{User("a"), Call("l1", "read"), Result("l1", tokens(3000)), Answer("b"), User("c"), Answer("d")}
	small := func(window int) llmtest.Step { return summarising(llmtest.Within(window, llmtest.Say("fits"))) }
	silent := func(window int) llmtest.Step { // gives no numbers
		return summarising(func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
			if llmtest.Tokens(req) > window {
				return llmtest.Fail(&llm.OverflowError{})(ctx, req)
			}
			return llmtest.Say("fits")(ctx, req)
		})
	}
	for _, c := range []struct {
		name string
		log  []session.Body
		rest llmtest.Step
		want []string
	}{
		{"as it is", talk(5, 100), small(9000), []string{"done"}},
		{"with long results cut", long, silent(2500), []string{"learnt 2886 false", "squeezed results", "done"}},
		{"the refusal tells the window: compacted", talk(30, 100), small(2000), []string{"learnt 2000 true", "squeezed compact", "compacting", "done"}},
		{"the refusal tells nothing: compacted", talk(30, 100), silent(2500), []string{"learnt 3216 false", "squeezed compact", "compacting", "done"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &llmtest.Model{Rest: c.rest}
			s := Replay(t, c.log...)
			_, events, err := play(t, context.Background(), s, llm.UserText("go"), guarded(m, 10_000))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, kinds(events)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A compaction that does not help is not repeated.
func TestEndlessCompaction(t *testing.T) {
	asked := 0
	m := &llmtest.Model{Rest: summarising(func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		asked++
		return llmtest.Fail(&llm.OverflowError{})(ctx, req)
	})}
	s := Replay(t, talk(40, 100)...)
	_, events, err := play(t, context.Background(), s, llm.UserText("go"), guarded(m, 10_000))
	var full *agent.FullError
	if !errors.As(err, &full) || !errors.Is(err, llm.ErrOverflow) || full.Compactions != agent.MaxCompactions {
		t.Fatalf("%v after %v", err, kinds(events))
	}
	if asked > 4 {
		t.Errorf("the model was asked %d times", asked)
	}
	if n := strings.Count(strings.Join(kinds(events), " "), "compacting"); n != agent.MaxCompactions {
		t.Errorf("compacted %d times", n)
	}
	for _, want := range []string{"compacted 2 times", "larger window"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A compaction that would make the context larger is not made, says so once,
// and the question is answered all the same.
func TestUselessCompactionIsNotMade(t *testing.T) {
	vain := 0
	for size := 1; size < 100; size += 2 {
		m := &llmtest.Model{Rest: summarising(llmtest.Say("here you are"))}
		env := guarded(m, 1000)
		// What is pinned stays word for word: a summary is shorter by what
		// was said beside it.
		s := Replay(t, User("remember "+tokens(200)), Answer(tokens(size)), Pin("e1"))
		_, events, err := play(t, context.Background(), s, llm.UserText(tokens(700-size)), env)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, e := range events {
			if e, ok := e.(agent.NotCompacted); ok {
				told++
				if e.Err.After < e.Err.Before || !strings.Contains(e.Err.Error(), "more room than what it replaces") {
					t.Error(e.Err)
				}
			}
		}
		if _, _, compacted := s.Compaction(); compacted && told > 0 {
			t.Errorf("of %d tokens: not compacted, and compacted", size)
		}
		if told > 1 {
			t.Errorf("of %d tokens: said %d times", size, told)
		}
		vain += told
	}
	if vain == 0 {
		t.Error("every compaction was made: the test shows nothing")
	}
}

// A message that is too long by itself is an error, without a question, and
// the session goes on with the next one.
func TestGiantMessageDoesNotBrickTheSession(t *testing.T) {
	m := &llmtest.Model{Rest: summarising(llmtest.Within(2000, llmtest.Say("ok")))}
	s := Replay(t, talk(3, 100)...)
	_, _, err := play(t, context.Background(), s, llm.UserText(tokens(5000)), guarded(m, 2000))
	var full *agent.FullError
	if !errors.As(err, &full) || !full.Alone {
		t.Fatal(err)
	}
	kept, _, err := play(t, context.Background(), s, llm.UserText("never mind"), guarded(m, 2000))
	if err != nil {
		t.Fatal(err)
	}
	if last := kept[len(kept)-1]; last != "assistant: ok [stop]" {
		t.Errorf("%q", last)
	}
}

// A tool result that is too long by itself is cut, in the newest turn as well.
func TestGiantResultDoesNotBrickTheSession(t *testing.T) {
	m := &llmtest.Model{Steps: []llmtest.Step{llmtest.Call("c1", "read", `{}`)}, Rest: summarising(llmtest.Within(3000, llmtest.Say("ok")))}
	env := guarded(m, 3000)
	env.Tools = hands{"read": func(context.Context) (string, error) { return tokens(20_000), nil }}
	kept, _, err := play(t, context.Background(), Replay(t), llm.UserText("read it"), env)
	if err != nil {
		t.Fatal(err)
	}
	if last := kept[len(kept)-1]; last != "assistant: ok [stop]" {
		t.Errorf("%q", last)
	}
	req := m.Requests()[len(m.Requests())-1]
	if text := req.Messages[2].Results()[0].Text(); !strings.Contains(text, "bytes cut") {
		t.Errorf("sent whole: %d bytes", len(text))
	}
}

// The context line describes the request that it stands in: after long
// results were cut, after the past was compacted, and in the turn after that.
func TestContextLineDescribesItsRequest(t *testing.T) {
	for name, c := range map[string]struct {
		log  []session.Body
		read []int // tokens that the tool returns, call by call
	}{
		"a result is cut":                   {nil, []int{20_000}},
		"results are cut one after another": {talk(4, 100), []int{3000, 3000, 3000, 3000}},
		"the past is compacted":             {talk(60, 120), []int{1000, 1000}},
		"both":                              {talk(60, 120), []int{20_000, 2000, 9000}},
	} {
		t.Run(name, func(t *testing.T) {
			read := 0
			m := &llmtest.Model{Rest: summarising(llmtest.Within(8000, func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
				lineIsTrue(t, req)
				if read < len(c.read) {
					return llmtest.Call(fmt.Sprint("c", read), "read", `{}`)(ctx, req)
				}
				return llmtest.Say("ok")(ctx, req)
			}))}
			env := guarded(m, 8000)
			env.Tools = hands{"read": func(context.Context) (string, error) { read++; return tokens(c.read[read-1]), nil }}
			s := Replay(t, c.log...)
			for _, say := range []string{"read it", "and now?", "and then?"} {
				if _, _, err := play(t, context.Background(), s, llm.UserText(say), env); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The model is warned before its past is compacted, never after; once, with the
// date, and its silence is not shown.
func TestFlushComesBeforeTheCompaction(t *testing.T) {
	var asked []string
	m := &llmtest.Model{Rest: summarising(func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		last := req.Messages[len(req.Messages)-1].Text()
		asked = append(asked, last+"|"+req.Tail)
		if strings.Contains(last, window.Mark) {
			if len(req.Messages[len(req.Messages)-1].Results()) == 0 && !strings.Contains(last, "wrote") {
				return llmtest.Call(fmt.Sprint("c", len(req.Messages)), "write_file", `{"path":"memory/2026-11-15.md","content":"x"}`)(ctx, req)
			}
		}
		if len(req.Messages[len(req.Messages)-1].Results()) > 0 {
			return llmtest.Say("no_reply")(ctx, req)
		}
		return llmtest.Say(tokens(60))(ctx, req)
	})}
	env := guarded(m, 2000)
	env.Budget.Reserve = 150 // it is full after 90 percent, where the notice is due
	env.Flush = flush
	env.Tools = hands{"write_file": func(context.Context) (string, error) { return "wrote", nil }}
	s := Replay(t, talk(11, 100)...)
	var said string
	marked, compacted := 0, false
	for i := range 14 {
		_, events, err := play(t, context.Background(), s, llm.UserText(fmt.Sprint("turn ", i)), env)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if d, ok := e.(agent.Said); ok {
				said += d.Text
			}
			if _, ok := e.(agent.Compacting); ok {
				compacted = true
			}
			if r, ok := e.(agent.Recorded); ok {
				if n, ok := r.Record.Body.(session.Notice); ok && n.As == "marked" {
					marked++
					if compacted {
						t.Error("the flush came after the compaction")
					}
					if !strings.Contains(n.Text, "memory/2026-11-15.md") {
						t.Errorf("no date: %q", n.Text)
					}
				}
			}
		}
		if marked == 1 && !compacted && !window.Saved(s) {
			t.Error("it is not known that the model wrote to its memory")
		}
	}
	if marked != 1 || !compacted {
		t.Errorf("%d notices; asked %q", marked, asked)
	}
	if strings.Contains(strings.ToLower(said), "no_reply") {
		t.Errorf("shown: %q", said)
	}
	// The notice for the system stays as long as the window is half full.
	for _, a := range asked {
		m := contextLine.FindStringSubmatch(a)
		if percent, _ := strconv.Atoi(m[3]); strings.Contains(a, "half full") != (percent >= 50) {
			t.Errorf("asked with %q", a)
		}
	}
	if !strings.Contains(asked[0], "half full") || !strings.Contains(asked[1], "half full") {
		t.Errorf("tails: %q", asked[:2])
	}
}

// The user has the answer: that the model could not be asked to save
// something is no failure of the turn, and the next turn goes on.
func TestFailedFlushIsNoFailure(t *testing.T) {
	reports := func(text string, used int) llmtest.Step {
		return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				a := llm.Answer{Message: llm.AssistantText(text), Stop: llm.StopEnd, Usage: llm.Usage{Input: used, Output: 1}}
				yield(llm.Delta{End: &a}, nil)
			}
		}
	}
	for name, fail := range map[string]error{"busy": llm.ErrBusy, "too long": &llm.OverflowError{}} {
		m := llmtest.New(reports("here you are", 950), llmtest.Fail(fail), reports("go on", 960))
		env := agent.Env{Provider: m, Tokens: byFour{}, Budget: window.Budget{Window: 1000}, Flush: flush}
		s := Replay(t, User("a"), Used(600, Answer("b")))
		kept, events, err := play(t, context.Background(), s, llm.UserText("c"), env)
		if k := kinds(events); err != nil || len(k) != 1 || k[0] != "done" {
			t.Errorf("%s: %v, %v", name, err, k)
		}
		if d := cmp.Diff([]string{"user: c", "session.Notice", "assistant: here you are [stop]", "session.Notice"}, kept); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if kept, _, err = play(t, context.Background(), s, llm.UserText("d"), env); err != nil || kept[len(kept)-1] != "assistant: go on [stop]" {
			t.Errorf("%s: %v, %q", name, err, kept)
		}
	}
}

func TestSilenceIsNotShown(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"NO_REPLY"}, ""},
		{[]string{"NO", "_RE", "PLY"}, ""},
		{[]string{"no_", "reply", "\n"}, ""},
		{[]string{"NO", " way"}, "NO way"},
		{[]string{"No_Reply", " is what I would say"}, "No_Reply is what I would say"},
		{[]string{"N", "O"}, "NO"},
		{[]string{"hello ", "you"}, "hello you"},
	} {
		m := &llmtest.Model{Rest: func(_ context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				for _, p := range c.pieces {
					if !yield(llm.Delta{Text: p}, nil) {
						return
					}
				}
				yield(llm.Delta{End: &llm.Answer{Message: llm.AssistantText(strings.Join(c.pieces, "")), Stop: llm.StopEnd}}, nil)
			}
		}}
		kept, events, err := play(t, context.Background(), Replay(t), llm.UserText("q"), agent.Env{Provider: m})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range events {
			if d, ok := e.(agent.Said); ok {
				got += d.Text
			}
		}
		if got != c.want {
			t.Errorf("%q: shown %q, want %q", c.pieces, got, c.want)
		}
		if len(kept) != 2 || !strings.Contains(kept[1], strings.Join(c.pieces, "")) {
			t.Errorf("kept %q", kept)
		}
	}
}

// What is sent on one turn begins with the bytes sent on the turn before:
// the context line and notices for the system do not break a prompt cache.
// Printed is what a cache would have to write anew in 100 turns.
func TestPrefixStaysStable(t *testing.T) {
	m := &llmtest.Model{Rest: summarising(llmtest.Say(tokens(150)))}
	env := guarded(m, 150_000)
	env.Flush = flush
	env.Prompt.System = tokens(2000)
	s := Replay(t)
	compactions := 0
	var sent, again, fresh, broken int
	var before []byte
	seen := 0
	for i := range 100 {
		_, events, err := play(t, context.Background(), s, llm.UserText(fmt.Sprintf("turn %d %s", i, tokens(800))), env)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds(events) {
			if k == "compacting" {
				compactions++
			}
		}
		for _, req := range m.Requests()[seen:] {
			seen++
			if strings.Contains(req.System, "You summarise") {
				continue
			}
			now := prefixBytes(t, req)
			n := common(before, now)
			sent += len(now) + len(req.Tail)
			fresh += len(now) - n
			if n < len(before) {
				broken++
				again += len(before) - n
			}
			before = now
		}
	}
	t.Logf("100 turns, %d compactions, %d notices: %d bytes sent, %d of them new (%d in a turn), %d written again after %d breaks of the prefix", compactions, noticed(s), sent, fresh, fresh/100, again, broken)
	if noticed(s) == 0 {
		t.Error("no notice was given: the test shows nothing")
	}
	if broken != compactions || compactions > 1 {
		t.Errorf("the prefix broke %d times with %d compactions", broken, compactions)
	}
	if fresh > sent/10 {
		t.Errorf("%d of %d bytes were new", fresh, sent)
	}
}

func noticed(s *session.Session) int {
	n := 0
	for _, r := range s.Branch {
		if _, ok := r.Body.(session.Notice); ok {
			n++
		}
	}
	return n
}

// prefixBytes is what a prompt cache sees of a request, block by block.
func prefixBytes(t *testing.T, req llm.Request) []byte {
	t.Helper()
	var b []byte
	b = append(b, req.System...)
	for _, m := range req.Messages {
		for _, bl := range m.Blocks {
			text, err := json.Marshal(bl)
			if err != nil {
				t.Fatal(err)
			}
			b = append(append(b, m.Role...), text...)
		}
	}
	return b
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// full is a conversation that uses exactly n tokens, as the model reports, and
// has a past that can be compacted.
func full(t *testing.T, n int) *session.Session {
	t.Helper()
	return Replay(t, append(talk(20, n/20-10), User("and?"), Used(n-2, Answer("so far")))...)
}

// An answer has room: the past is compacted before less is free than an
// answer needs, on every window and from every direction. A limit below 1,024
// tokens is sent only where the whole window has no more to give.
func TestRoomForTheAnswer(t *testing.T) {
	for _, w := range []int{4096, 8192, 32_768, 200_000, 1_000_000} {
		keeps := window.Reserve(w, 64_000, 4000)
		for _, percent := range []int{80, 88, 89, 90, 91, 93, 95, 97, 98, 99, 100} {
			m := &llmtest.Model{Rest: summarising(llmtest.Say("ok"))}
			env := guarded(m, w)
			env.Budget.Reserve = keeps
			env.Flush = flush
			used := w * percent / 100
			_, events, err := play(t, context.Background(), full(t, used), llm.UserText("go"), env)
			if err != nil {
				t.Errorf("%d of %d: %v", used, w, err)
				continue
			}
			for _, req := range m.Requests() {
				if !strings.Contains(req.System, "You summarise") && req.MaxTokens < 1024 {
					t.Errorf("%d of %d used: an answer may have %d tokens (%v)", used, w, req.MaxTokens, kinds(events))
				}
			}
			last := m.Requests()[len(m.Requests())-1]
			if last.MaxTokens < min(keeps, 16_000)/4 {
				t.Errorf("%d of %d used: the last answer may have %d tokens of %d kept (%v)", used, w, last.MaxTokens, keeps, kinds(events))
			}
		}
	}
}

// No question is asked while less than the reserve is free: the past is
// compacted first, whether or not the model was warned before.
func TestReserveIsFreeBeforeTheQuestion(t *testing.T) {
	const w = 200_000
	for _, used := range []int{183_000, 186_000, 190_000, 194_000, 195_000, 199_000} {
		m := &llmtest.Model{Rest: summarising(llmtest.Say("ok"))}
		env := guarded(m, w)
		env.Budget.Reserve = window.Reserve(w, 64_000, 4000)
		env.Flush = flush
		s := full(t, used)
		b := window.Measure(s, env.Prompt, env.Tokens, env.Budget)
		first := agent.CompactsFirst(s, b, agent.Policy{Flush: env.Flush, Compact: env.Compact, Prompt: env.Prompt, Tokens: env.Tokens})
		_, events, err := play(t, context.Background(), s, llm.UserText("go"), env)
		if err != nil {
			t.Errorf("%d used: %v", used, err)
			continue
		}
		full := used > w-env.Budget.Reserve
		if got := slices.Contains(kinds(events), "compacting"); got != full || first != full {
			t.Errorf("%d used: compacted %v, foretold %v, want %v", used, got, first, full)
		}
		for _, req := range m.Requests() {
			if !strings.Contains(req.System, "You summarise") && req.MaxTokens < env.Budget.Reserve {
				t.Errorf("%d used: an answer may have %d tokens, fewer than the %d of the reserve", used, req.MaxTokens, env.Budget.Reserve)
			}
		}
		if last, _ := s.Branch[len(s.Branch)-1].Body.(session.Message); last.Text() != "ok" {
			t.Errorf("%d used: the question has no answer: %q", used, last.Text())
		}
	}
}

// Where the past cannot be compacted any more, long results make room.
func TestRoomIsMadeOfLongResults(t *testing.T) {
	m := &llmtest.Model{Steps: []llmtest.Step{llmtest.Call("c1", "read", `{}`)}, Rest: summarising(llmtest.Say("ok"))}
	env := guarded(m, 8000)
	env.Budget.Reserve = 2000
	env.Tools = hands{"read": func(context.Context) (string, error) { return tokens(7400), nil }}
	if _, _, err := play(t, context.Background(), Replay(t), llm.UserText("read it"), env); err != nil {
		t.Fatal(err)
	}
	req := m.Requests()[len(m.Requests())-1]
	if req.MaxTokens < 1024 {
		t.Errorf("an answer may have %d tokens beside %d", req.MaxTokens, llmtest.Tokens(req))
	}
}

// Results none of which is long make room as well, where together they fill the
// window.
func TestRoomIsMadeOfManyResults(t *testing.T) {
	call := func(id string) llm.Block { return llm.ToolCall{ID: id, Name: "read", Args: []byte(`{}`)} }
	m := &llmtest.Model{
		Steps: []llmtest.Step{llmtest.Answer(call("c1"), call("c2"), call("c3"), call("c4"), call("c5"), call("c6"), call("c7"), call("c8"))},
		Rest:  summarising(llmtest.Say("ok")),
	}
	env := guarded(m, 8000)
	env.Budget.Reserve = 2000
	env.Tools = hands{"read": func(context.Context) (string, error) { return tokens(950), nil }}
	if _, _, err := play(t, context.Background(), Replay(t), llm.UserText("read them"), env); err != nil {
		t.Fatal(err)
	}
	req := m.Requests()[len(m.Requests())-1]
	if req.MaxTokens < 1024 {
		t.Errorf("an answer may have %d tokens beside %d", req.MaxTokens, llmtest.Tokens(req))
	}
	for _, r := range req.Messages[len(req.Messages)-1].Results() {
		if n := len(r.Text()); n < 900 || !strings.Contains(r.Text(), "bytes cut") {
			t.Errorf("of a result %d bytes are left", n)
		}
	}
}

// cutShort answers with blocks and reaches the limit.
func cutShort(blocks ...llm.Block) llmtest.Step {
	return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for d, err := range llmtest.Answer(blocks...)(ctx, req) {
				if d.End != nil {
					d.End.Stop, d.End.Usage.Output = llm.StopLength, 300
				}
				if !yield(d, err) {
					return
				}
			}
		}
	}
}

// A call that the limit cut is not run, and the model is told why; those before
// it came whole and are run.
func TestCallCutByTheLimit(t *testing.T) {
	call := func(id, args string) llm.Block { return llm.ToolCall{ID: id, Name: "write", Args: []byte(args)} }
	for _, c := range []struct {
		name   string
		blocks []llm.Block
		ran    int
		torn   string
	}{
		{"torn arguments", []llm.Block{call("c1", `{"_raw":"{\"path\":\"a.txt\",\"content\":\"beg"}`)}, 0, "c1"},
		{"no arguments yet", []llm.Block{call("c1", `{}`)}, 0, "c1"},
		{"the last of two", []llm.Block{call("c1", `{"path":"a"}`), call("c2", `{"_raw":"{"}`)}, 1, "c2"},
		{"whole", []llm.Block{call("c1", `{"path":"a"}`)}, 1, ""},
		{"what was garbled before the limit is the tool's to judge", []llm.Block{call("c1", `{"_raw":"x"}`), call("c2", `{"path":"a"}`)}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := llmtest.New(cutShort(c.blocks...), llmtest.Say("done"))
			var ran atomic.Int32
			tools := hands{"write": func(context.Context) (string, error) { ran.Add(1); return "ok", nil }}
			kept, events, err := play(t, context.Background(), Replay(t), llm.UserText("write"), agent.Env{Provider: m, Tools: tools})
			if err != nil || int(ran.Load()) != c.ran {
				t.Fatalf("%d calls ran, want %d: %v", ran.Load(), c.ran, err)
			}
			text := strings.Join(kept, "\n")
			if told := strings.Contains(text, "result "+c.torn+" not run: your answer reached the limit on its length (max_tokens) after 300 tokens"); told != (c.torn != "") {
				t.Errorf("the model was told %q", text)
			}
			if done := events[len(events)-1].(agent.Done); done.Stop != llm.StopEnd {
				t.Errorf("the turn ended with %q", done.Stop)
			}
		})
	}
}

// Done tells an answer that was cut from one that was not, whatever a notice
// was answered with after it.
func TestDoneTellsACutAnswer(t *testing.T) {
	reports := func(step llmtest.Step) llmtest.Step {
		return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				for d, err := range step(ctx, req) {
					if d.End != nil {
						d.End.Usage.Input = 930
					}
					yield(d, err)
				}
			}
		}
	}
	for want, answer := range map[llm.Stop]llmtest.Step{llm.StopLength: cutShort(llm.Text{Text: "too lo"}), llm.StopEnd: llmtest.Say("here")} {
		m := llmtest.New(reports(answer), llmtest.Say("NO_REPLY"))
		env := agent.Env{Provider: m, Tokens: byFour{}, Budget: window.Budget{Window: 1000}, Flush: flush[1:]}
		kept, events, err := play(t, context.Background(), Replay(t), llm.UserText("q"), env)
		if err != nil || len(kept) != 4 {
			t.Fatalf("%v: %q", err, kept)
		}
		if done := events[len(events)-1].(agent.Done); done.Stop != want {
			t.Errorf("the turn ended with %q, want %q", done.Stop, want)
		}
	}
}

// strict is a server that refuses what does not fit beside the answer asked
// for, and tells its numbers.
func strict(win, most int) llmtest.Step {
	return summarising(func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		n, answer := llmtest.Tokens(req), stdcmp.Or(req.MaxTokens, win)
		switch {
		case most > 0 && answer > most:
			return llmtest.Fail(&llm.OverflowError{Answer: answer, Most: most})(ctx, req)
		case n+answer > win:
			return llmtest.Fail(&llm.OverflowError{Tokens: n, Answer: answer, Window: win})(ctx, req)
		}
		return llmtest.Say("fits")(ctx, req)
	})
}

// A refusal over the answer's length teaches the window, not what was left of
// it, and the same request is repeated for a shorter answer. The past is
// compacted only where that is what it takes.
func TestAnswerIsTooLongForTheModel(t *testing.T) {
	either := func(fits int) llmtest.Step { // says only that one of the two is too long
		return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
			if req.MaxTokens > fits {
				return llmtest.Fail(&llm.OverflowError{Answer: req.MaxTokens})(ctx, req)
			}
			return llmtest.Say("fits")(ctx, req)
		}
	}
	stubborn := func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return llmtest.Fail(&llm.OverflowError{Most: 8192})(ctx, req)
	}
	for _, c := range []struct {
		name   string
		log    []session.Body
		window int // as it is thought to be; 0: not known
		rest   llmtest.Step
		want   []string
		fails  bool
	}{
		{"a small window", talk(5, 100), 200_000, strict(4097, 0), []string{"learnt 4097 true", "shorter answer 3400", "done"}, false},
		{"a window that nobody knew", talk(5, 100), 0, strict(4097, 0), []string{"learnt 4097 true", "shorter answer 3403", "done"}, false},
		{"a short answer", talk(5, 100), 200_000, strict(200_000, 16_384), []string{"learnt 16384 true", "shorter answer 16384", "done"}, false},
		{"both", talk(5, 100), 200_000, strict(8192, 4096), []string{"learnt 4096 true", "shorter answer 4096", "done"}, false},
		{"too little would be left", talk(36, 100), 200_000, strict(4097, 0), []string{"learnt 4097 true", "squeezed compact", "compacting", "done"}, false},
		{"no numbers", talk(5, 100), 200_000, either(30_000), []string{"shorter answer 4096", "done"}, false},
		{"no numbers, and it was the prompt", talk(36, 100), 200_000, summarising(either(100)), []string{"shorter answer 4096", "squeezed compact", "compacting"}, true},
		{"a server that refuses what it allows", talk(5, 100), 200_000, stubborn, []string{"learnt 8192 true", "shorter answer 8192"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &llmtest.Model{Rest: c.rest}
			env := guarded(m, 200_000)
			env.Budget.Window = c.window
			_, events, err := play(t, context.Background(), Replay(t, c.log...), llm.UserText("go"), env)
			if (err != nil) != c.fails {
				t.Error(err)
			}
			got := kinds(events)
			if c.fails {
				got = got[:len(c.want)]
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if n := len(m.Requests()); n > 8 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// After a shorter answer the next question asks for what the window allows.
func TestShorterAnswerIsForOneRequest(t *testing.T) {
	m := &llmtest.Model{Steps: []llmtest.Step{
		llmtest.Fail(&llm.OverflowError{Tokens: 150_000, Answer: 49_000, Window: 200_000}), llmtest.Call("c1", "read", `{}`),
	}, Rest: llmtest.Say("ok")}
	env := guarded(m, 200_000)
	env.Tools = hands{"read": func(context.Context) (string, error) { return "short", nil }}
	if _, _, err := play(t, context.Background(), Replay(t), llm.UserText("go"), env); err != nil {
		t.Fatal(err)
	}
	var asked []int
	for _, r := range m.Requests() {
		asked = append(asked, r.MaxTokens)
	}
	if d := cmp.Diff([]int{100_000, 200_000 - 150_000 - 250, 100_000}, asked); d != "" {
		t.Error(d)
	}
}

// What a squeezed request leaves for the answer is not measured by what was
// squeezed out of it.
func TestShorterAnswerOfASqueezedRequest(t *testing.T) {
	long := []session.Body{User("a"), Call("l1", "read"), Result("l1", tokens(9000)), Answer("b"), User("c"), Answer("d"), User("e"), Answer("f")}
	m := &llmtest.Model{Steps: []llmtest.Step{llmtest.Fail(&llm.OverflowError{})}, Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return strict(8192, 0)(ctx, req)
	}}
	env := guarded(m, 20_000)
	_, events, err := play(t, context.Background(), Replay(t, long...), llm.UserText("go"), env)
	if err != nil {
		t.Fatal(err)
	}
	got := kinds(events)
	if len(got) != 5 || got[1] != "squeezed results" || got[2] != "learnt 8192 true" || !strings.HasPrefix(got[3], "shorter answer ") || got[4] != "done" {
		t.Errorf("%q", got)
	}
}
