package agent_test

import (
	"context"
	"fmt"
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
