package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	"goclaw/store/memory"
)

// TestSteeredAtAnyTime: whenever the user sends something into a turn, it is
// recorded once, in order, never between a call and its result; it is durable
// when it is seen; and the model has seen it by the end of the turn. What comes
// too late, or after a stop, stays with the caller.
func TestSteeredAtAnyTime(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		st := memory.New()
		var steps []llmtest.Step
		for i := range rapid.IntRange(0, 4).Draw(t, "rounds") {
			var calls []llm.Block
			for k := range rapid.IntRange(1, 3).Draw(t, "calls") {
				calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("c%d_%d", i, k), Name: "mark", Args: []byte("{}")})
			}
			steps = append(steps, llmtest.Answer(calls...))
		}
		model := llmtest.New(append(steps, llmtest.Say("done"))...) // refuses what a strict API refuses
		r := withTools(st, model, dir)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		s, err := r.Load(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		var waiting, taken, sent []string
		steer := func() llm.Message {
			if len(waiting) == 0 {
				return llm.Message{}
			}
			m := llm.UserText(waiting[0])
			waiting, taken = waiting[1:], append(taken, waiting[0])
			return m
		}
		stopAt := rapid.IntRange(0, 60).Draw(t, "stop")
		for ev, err := range r.RunSteered(ctx, s.ID, llm.UserText("begin"), steer) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				break
			}
			if stopAt--; stopAt == 0 {
				stop()
			}
			if len(sent) < 5 && rapid.IntRange(0, 5).Draw(t, "sends") == 0 {
				sent = append(sent, fmt.Sprint("message ", len(sent)))
				waiting = append(waiting, sent[len(sent)-1])
			}
			if rec, ok := ev.(agent.Recorded); ok && session.IsTurn(rec.Record.Body) {
				if got := texts(t, st, s.ID); got[len(got)-1] != rec.Record.Body.(session.Message).Text() {
					t.Fatalf("shown before it was kept: %q", got)
				}
			}
		}
		got := texts(t, st, s.ID)
		want := append([]string{"begin"}, taken...)
		if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(append(taken, waiting...)) != fmt.Sprint(sent) {
			t.Fatalf("the log has %q; taken %q and left %q of %q", got, taken, waiting, sent)
		}
		after, err := session.Open(context.Background(), st, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if after.Turns != len(got) {
			t.Errorf("%d turns, want one for each of %q", after.Turns, got)
		}
		if ctx.Err() == nil {
			reqs := model.Requests()
			all := ""
			for _, m := range reqs[len(reqs)-1].Messages {
				all += m.Text() + "\n"
			}
			for _, text := range got {
				if !strings.Contains(all, text) {
					t.Errorf("the model was not asked about %q", text)
				}
			}
		}
		for _, err := range r.RunID(context.Background(), s.ID, llm.UserText("and now?")) {
			if err != nil {
				t.Fatalf("the next turn: %v", err)
			}
		}
	})
}

// texts returns what the user said, in the order of the log. It fails if
// something is between a call and its result.
func texts(t *rapid.T, st session.Store, id session.ID) (said []string) {
	open := map[string]bool{}
	for rec, err := range st.Read(context.Background(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		m, ok := rec.Body.(session.Message)
		if !ok {
			continue
		}
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
		for _, r := range m.Results() {
			delete(open, r.CallID)
		}
		if session.IsTurn(m) {
			if len(open) > 0 {
				t.Fatalf("%q comes before the results of %v", m.Text(), open)
			}
			said = append(said, m.Text())
		}
	}
	return said
}
