package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// Of an answer with a great many calls, the first are run, and the model is told
// of each of the others that it was not: none is dropped.
func TestTooManyCallsInOneAnswer(t *testing.T) {
	for _, c := range []struct{ calls, limit, want int }{{200, 0, 128}, {10_000, 0, 128}, {10, 3, 3}, {3, 3, 3}, {1000, 1, 1}} {
		var blocks []llm.Block
		for i := range c.calls {
			blocks = append(blocks, llm.ToolCall{ID: fmt.Sprint("c", i), Name: "look", Args: json.RawMessage(`{}`)})
		}
		model := llmtest.New(llmtest.Answer(blocks...), llmtest.Say("done"))
		var ran atomic.Int32
		look := hands{"look": func(context.Context) (string, error) { ran.Add(1); return "seen", nil }}
		s := Replay(t)
		_, events, err := play(t, context.Background(), s, llm.UserText("go"), agent.Env{Provider: model, Tools: look, MaxCalls: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		if int(ran.Load()) != c.want {
			t.Errorf("%d of %d calls were run, want %d", ran.Load(), c.calls, c.want)
		}
		told, refused := 0, 0
		for _, m := range model.Requests()[1].Messages {
			for _, r := range m.Results() {
				told++
				if strings.Contains(r.Text(), fmt.Sprintf("not run: too many calls in one answer. It has %d, and only the first %d were run", c.calls, c.want)) && r.IsError {
					refused++
				}
			}
		}
		if kept := min(c.calls, 2*c.want); told != kept || refused != kept-c.want {
			t.Errorf("the model was told of %d calls, %d of them not run; want %d and %d", told, refused, kept, kept-c.want)
		}
		shown := 0
		for _, ev := range events {
			if _, ok := ev.(agent.Called); ok {
				shown++
			}
		}
		if shown > c.want+1 {
			t.Errorf("%d results are shown, want those of the calls that were run and one more", shown)
		}
	}
}

// Before each request, what the turn has used is judged; an error ends the turn,
// and everything recorded stays.
func TestBeforeEndsTheTurn(t *testing.T) {
	enough := errors.New("enough")
	model := llmtest.New(llmtest.Call("c1", "look", `{}`), llmtest.Say("never asked"))
	var seen []int
	s := Replay(t)
	env := agent.Env{Provider: model, Tools: hands{"look": func(context.Context) (string, error) { return "seen", nil }}, Price: price,
		Before: func(_ context.Context, u, _ llm.Usage) (int, error) {
			seen = append(seen, u.Output)
			if u.Cost.Total > 0 {
				return 0, enough
			}
			return 7, nil
		}}
	_, _, err := play(t, context.Background(), s, llm.UserText("go"), env)
	if !errors.Is(err, enough) || len(model.Requests()) != 1 || len(seen) != 2 || seen[0] != 0 || seen[1] == 0 {
		t.Errorf("the turn ended with %v after %d requests, %v; want it to end before the second", err, len(model.Requests()), seen)
	}
	if open := s.Unanswered(); len(open) > 0 {
		t.Errorf("the result was not recorded: %v", open)
	}
	if got := model.Requests()[0].MaxTokens; got != 7 {
		t.Errorf("the answer may have %d tokens, want 7, as Before says", got)
	}
}

// reports answers with text and that usage.
func reports(u llm.Usage, text string) llmtest.Step {
	return func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			m := llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: text}}}
			if yield(llm.Delta{Begun: &u}, nil) && yield(llm.Delta{Text: text}, nil) {
				yield(llm.Delta{End: &llm.Answer{Message: m, Stop: llm.StopEnd, Usage: u}}, nil)
			}
		}
	}
}

// Usage that cannot be true is not recorded: an estimate is, and the user is
// told once.
func TestAbsurdUsageIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		u   llm.Usage
		bad bool
	}{
		"negative input":  {llm.Usage{Input: -1, Output: 5}, true},
		"negative output": {llm.Usage{Input: 10, Output: -5}, true},
		"negative cache":  {llm.Usage{Input: 10, Output: 5, CacheRead: -7}, true},
		"absurd":          {llm.Usage{Input: 100_001, Output: 5}, true},
		"overflow":        {llm.Usage{Input: math.MaxInt, Output: math.MaxInt, CacheRead: math.MaxInt}, true},
		"large":           {llm.Usage{Input: 100_000, Output: 5}, false},
		"nothing":         {llm.Usage{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Replay(t)
			env := agent.Env{Provider: llmtest.New(reports(c.u, "an answer of some words")), Prompt: window.Prompt{Provider: "p", Model: "m"}, Tokens: quarter{}, Price: price, Budget: window.Budget{Window: 1000}}
			_, events, err := play(t, context.Background(), s, llm.UserText("a question"), env)
			if err != nil {
				t.Fatal(err)
			}
			said := 0
			for _, ev := range events {
				if m, ok := ev.(agent.Miscounted); ok && m.Reported == c.u {
					said++
				}
			}
			got := s.Branch[len(s.Branch)-1].Body.(session.Message).Usage
			if c.bad != (said == 1) || c.bad != got.Estimated {
				t.Errorf("said %d times, recorded %+v", said, got)
			}
			if c.bad && (got.Input < 1 || got.Input > 100 || got.Output < 1 || got.Output > 100 || got.Cost.Total <= 0) {
				t.Errorf("recorded %+v, want an estimate with its cost", got)
			}
			if !c.bad && got.Tokens() != c.u {
				t.Errorf("recorded %+v, want %+v", got, c.u)
			}
		})
	}
}

// A model that never ends its answers, not even those to notices, ends the turn.
func TestEndlessAnswersEndTheTurn(t *testing.T) {
	long := cutShort(llm.Text{Text: strings.Repeat("word ", 9000)})
	model := &llmtest.Model{Rest: summarising(long)}
	s := Replay(t)
	env := guarded(model, 10_000)
	env.Flush = flush
	_, events, err := play(t, context.Background(), s, llm.UserText("go"), env)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(model.Requests()); n > 8 {
		t.Errorf("%d requests were sent", n)
	}
	if done := events[len(events)-1].(agent.Done); done.Stop != llm.StopLength {
		t.Errorf("the turn ended with %q", done.Stop)
	}
}

// TestRetryingIsAnEvent: a call that is repeated is shown, and is no part of the
// answer.
func TestRetryingIsAnEvent(t *testing.T) {
	again := func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if !yield(llm.Delta{Retry: &llm.Retry{Why: "timeout", Try: 2, Of: 5}}, nil) {
				return
			}
			reports(llm.Usage{Input: 10, Output: 5}, "late")(context.Background(), llm.Request{})(yield)
		}
	}
	s := Replay(t)
	_, events, err := play(t, context.Background(), s, llm.UserText("go"), agent.Env{Provider: llmtest.New(again)})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, ev := range events {
		if r, ok := ev.(agent.Retrying); ok && r.Why == "timeout" && r.Try == 2 {
			told++
		}
	}
	if m := s.Branch[len(s.Branch)-1].Body.(session.Message); told != 1 || m.Text() != "late" {
		t.Errorf("told %d times, answered %q", told, m.Text())
	}
}
