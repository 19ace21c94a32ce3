package agent_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	. "goclaw/session/sessiontest"
)

// A refusal that cannot be true is doubted once, and never remembered; one that
// goes against the configuration counts in its turn only.
func TestRefusalIsDoubted(t *testing.T) {
	wrong := func(window int) llmtest.Step { return llmtest.Fail(&llm.OverflowError{Tokens: 5000, Window: window}) }
	fits := summarising(llmtest.Within(4000, llmtest.Say("fits")))
	for _, c := range []struct {
		name     string
		steps    []llmtest.Step
		accepted int
		fixed    bool
		want     []string
	}{
		{"a slip, less than any model takes", []llmtest.Step{wrong(1000)}, 0, false, []string{"doubted 1000: that is too little to be believed", "done"}},
		{"a slip, less than it took", []llmtest.Step{wrong(3000)}, 3500, false, []string{"doubted 3000: it took 3.5k tokens before", "done"}},
		{"it insists", []llmtest.Step{wrong(3000), wrong(3000)}, 3500, false,
			[]string{"doubted 3000: it took 3.5k tokens before", "learnt 3000 true", "once: it took 3.5k tokens before", "squeezed compact", "compacting", "done"}},
		{"plausible", []llmtest.Step{wrong(3000)}, 2900, false, []string{"learnt 3000 true", "squeezed compact", "compacting", "done"}},
		{"configured", []llmtest.Step{wrong(3000)}, 2900, true, []string{"learnt 3000 true", "once: 10k are configured", "squeezed compact", "compacting", "done"}},
		{"without numbers, not below what it took", []llmtest.Step{llmtest.Fail(&llm.OverflowError{})}, 3350, false, []string{"learnt 3350 false", "squeezed compact", "compacting", "done"}},
		{"a slip, another count", []llmtest.Step{llmtest.Fail(&llm.OverflowError{Tokens: 9000, Window: 8000})}, 0, false,
			[]string{"doubted 8000: the request has about 3.3k tokens, not 9k", "done"}},
		{"another count, and it insists", []llmtest.Step{llmtest.Fail(&llm.OverflowError{Tokens: 9000, Window: 8000}), llmtest.Fail(&llm.OverflowError{Tokens: 9000, Window: 8000})}, 0, false,
			[]string{"doubted 8000: the request has about 3.3k tokens, not 9k", "learnt 8000 true", "squeezed compact", "compacting", "done"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &llmtest.Model{Steps: c.steps, Rest: fits}
			env := guarded(m, 10_000)
			env.Accepted, env.Fixed = c.accepted, c.fixed
			_, events, err := play(t, context.Background(), Replay(t, talk(30, 100)...), llm.UserText("go"), env)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ev := range events {
				switch e := ev.(type) {
				case agent.Doubted:
					got = append(got, fmt.Sprintf("doubted %d: %s", e.Window, e.Why))
				case agent.Learnt:
					got = append(got, kinds([]agent.Event{e})...)
					if e.Once != "" {
						got = append(got, "once: "+e.Once)
					}
				default:
					got = append(got, kinds([]agent.Event{e})...)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// What the model took is noted, unless the report cannot be true; within the
// turn it counts at once.
func TestAcceptedPromptIsNoted(t *testing.T) {
	call := func(prompt int) llmtest.Step {
		return func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
			c := llm.ToolCall{ID: "c1", Name: "read", Args: []byte(`{}`)}
			return func(yield func(llm.Delta, error) bool) {
				if yield(llm.Delta{Call: &c}, nil) {
					yield(llm.Delta{End: &llm.Answer{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{c}}, Stop: llm.StopTool, Usage: llm.Usage{Input: prompt, Output: 5}}}, nil)
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		prompt int
		took   []int
		doubts int
	}{
		{"a report", 3400, []int{3400}, 1},
		{"far above our count", 9900, []int{840}, 0}, // of the answer after a compaction
		{"above the window", 20_000, []int{840}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &llmtest.Model{Steps: []llmtest.Step{call(c.prompt), llmtest.Fail(&llm.OverflowError{Tokens: 5000, Window: 3000})}, Rest: summarising(llmtest.Say("fits"))}
			env := guarded(m, 10_000)
			env.Tools = hands{"read": func(context.Context) (string, error) { return "it", nil }}
			var took []int
			env.Took = func(n int) { took = append(took, n) }
			_, events, err := play(t, context.Background(), Replay(t, talk(30, 100)...), llm.UserText("go"), env)
			if err != nil {
				t.Fatal(err)
			}
			doubts := 0
			for _, ev := range events {
				if _, ok := ev.(agent.Doubted); ok {
					doubts++
				}
			}
			if d := cmp.Diff(c.took, took); d != "" || doubts != c.doubts {
				t.Errorf("%d doubts, %s", doubts, d)
			}
		})
	}
}
