package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	. "goclaw/session/sessiontest"
)

// typed is what a user sends while a turn runs.
type typed struct{ texts []string }

func (q *typed) say(text string) { q.texts = append(q.texts, text) }

func (q *typed) next() (m llm.Message) {
	if len(q.texts) > 0 {
		m, q.texts = llm.UserText(q.texts[0]), q.texts[1:]
	}
	return m
}

func TestSteer(t *testing.T) {
	for _, c := range []struct {
		name  string
		tools func(*typed) hands
		steps func(*typed) []llmtest.Step
		want  []string
	}{
		{"while calls run: after all of their results",
			func(q *typed) hands {
				return hands{"read": func(context.Context) (string, error) { q.say("not that one"); return "ok", nil }, "look": func(context.Context) (string, error) { return "seen", nil }}
			},
			func(*typed) []llmtest.Step {
				return []llmtest.Step{llmtest.Answer(llm.ToolCall{ID: "c1", Name: "read", Args: []byte(`{}`)}, llm.ToolCall{ID: "c2", Name: "look", Args: []byte(`{}`)}), llmtest.Say("sorry")}
			},
			[]string{"user: hi", "assistant: call c1 call c2 [toolUse]", "user: result c1 ok", "user: result c2 seen", "user: not that one", "assistant: sorry [stop]"}},
		{"while the last answer comes: the turn goes on",
			func(*typed) hands { return nil },
			func(q *typed) []llmtest.Step {
				return []llmtest.Step{during(q, llmtest.Say("forty-two"), "in words", "and in French"), llmtest.Say("quarante-deux")}
			},
			[]string{"user: hi", "assistant: forty-two [stop]", "user: in words", "user: and in French", "assistant: quarante-deux [stop]"}},
		{"before the first request",
			func(q *typed) hands { q.say("quickly"); return nil },
			func(*typed) []llmtest.Step { return []llmtest.Step{llmtest.Say("yes")} },
			[]string{"user: hi", "user: quickly", "assistant: yes [stop]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &typed{}
			model := llmtest.New(c.steps(q)...) // it refuses what a strict API refuses
			s := Replay(t)
			kept, _, err := play(t, context.Background(), s, llm.UserText("hi"), agent.Env{Provider: model, Tools: c.tools(q), Steer: q.next})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, kept); diff != "" {
				t.Errorf("recorded (-want +got)\n%s", diff)
			}
			if n := len(c.steps(q)); len(model.Requests()) != n {
				t.Errorf("asked %d times, want %d", len(model.Requests()), n)
			}
		})
	}
}

// during says texts while step answers.
func during(q *typed, step llmtest.Step, texts ...string) llmtest.Step {
	return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		for _, text := range texts {
			q.say(text)
		}
		return step(ctx, req)
	}
}

// TestSteerBeforeReliedOn: a message that was not recorded is not sent.
func TestSteerBeforeReliedOn(t *testing.T) {
	q := &typed{}
	q.say("first")
	model := llmtest.New()
	s := Replay(t)
	for ev, err := range agent.Turn(context.Background(), s, llm.UserText("hi"), agent.Env{Provider: model, Steer: q.next, Clock: &Clock{}}) {
		if err != nil {
			t.Fatal(err)
		}
		r, ok := ev.(agent.Recorded)
		if !ok {
			continue
		}
		if line(r.Record) == "user: first" {
			break // the store failed
		}
		if err := s.Apply(r.Record); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(model.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestStopTakesNoMessage: what the user sends and then stops stays with the
// caller.
func TestStopTakesNoMessage(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	q := &typed{}
	tools := hands{"read": func(context.Context) (string, error) { q.say("later"); stop(); return "ok", nil }}
	_, _, err := play(t, ctx, Replay(t), llm.UserText("hi"), agent.Env{Provider: llmtest.New(llmtest.Call("c1", "read", `{}`)), Tools: tools, Steer: q.next})
	if !errors.Is(err, context.Canceled) || fmt.Sprint(q.texts) != "[later]" {
		t.Errorf("%v, left %q", err, q.texts)
	}
}
