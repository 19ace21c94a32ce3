package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// price takes a dollar for a token of the prompt and two for one of the answer.
func price(u llm.Usage) llm.Cost {
	c := llm.Cost{Input: float64(u.Input), Output: 2 * float64(u.Output)}
	c.Total = c.Input + c.Output
	return c
}

// breaks says deltas and then ends as f says.
func breaks(f func() error, deltas ...llm.Delta) llmtest.Step {
	return func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
			yield(llm.Delta{}, f())
		}
	}
}

// What an answer that broke off has used is what the provider has reported,
// and an estimate of the rest, which says that it is one.
func TestBrokenAnswersAreCounted(t *testing.T) {
	text := llm.Delta{Text: strings.Repeat("word ", 40)} // 50 tokens and a message's own four
	for _, c := range []struct {
		name   string
		stop   bool
		deltas []llm.Delta
		want   llm.Usage // without Cost
	}{
		{"stopped before it began", true, nil, llm.Usage{}},
		{"stopped before the first word", true, []llm.Delta{{Begun: &llm.Usage{Input: 70, CacheRead: 30, Output: 1}}}, llm.Usage{Input: 70, CacheRead: 30, Output: 1}},
		{"stopped, the prompt reported", true, []llm.Delta{{Begun: &llm.Usage{Input: 70, Output: 1}}, text}, llm.Usage{Input: 70, Output: 54, Estimated: true}},
		{"stopped, nothing reported", true, []llm.Delta{{Begun: &llm.Usage{}}, text}, llm.Usage{Input: 14, Output: 54, Estimated: true}},
		{"stopped, all of it reported", true, []llm.Delta{text, {Begun: &llm.Usage{Input: 70, Output: 60}}}, llm.Usage{Input: 70, Output: 60}},
		{"broken off", false, []llm.Delta{{Begun: &llm.Usage{Input: 70, Output: 1}}, text}, llm.Usage{Input: 70, Output: 54, Estimated: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			model := llmtest.New(breaks(func() error {
				if c.stop {
					cancel()
					return ctx.Err()
				}
				return llm.ErrNetwork
			}, c.deltas...))
			s := Replay(t)
			env := agent.Env{Provider: model, Prompt: window.Prompt{Provider: "p", Model: "m"}, Tokens: quarter{}, Price: price, NoLine: true}
			_, _, err := play(t, ctx, s, llm.UserText("a question of forty bytes of text, or so"), env)
			if err == nil {
				t.Fatal("the turn did well")
			}
			m, ok := s.Branch[len(s.Branch)-1].Body.(session.Message)
			if !ok || m.Role != llm.Assistant {
				t.Fatalf("the last record is %+v", s.Branch[len(s.Branch)-1])
			}
			c.want.Cost = price(c.want)
			got := m.Usage
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// quarter takes four bytes for a token.
type quarter struct{}

func (quarter) Count(text string) int { return len(text) / 4 }

// Every answer is recorded with what it cost, and a turn ends with the sum.
func TestAnswersAreRecordedWithTheirCost(t *testing.T) {
	tools := hands{"read": func(context.Context) (string, error) { return "ok", nil }}
	s := Replay(t)
	env := agent.Env{Provider: llmtest.New(llmtest.Call("c1", "read", "{}"), llmtest.Say("done")), Prompt: window.Prompt{Provider: "p", Model: "m"}, Tools: tools, Price: price}
	_, events, err := play(t, context.Background(), s, llm.UserText("go"), env)
	if err != nil {
		t.Fatal(err)
	}
	var sum llm.Usage
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok && m.Role == llm.Assistant {
			if m.Usage.Cost != price(m.Usage) || m.Usage.Cost.Total == 0 {
				t.Errorf("an answer of %+v cost %+v", m.Usage.Tokens(), m.Usage.Cost)
			}
			sum = sum.Add(m.Usage)
		}
	}
	done, ok := events[len(events)-1].(agent.Done)
	if d := cmp.Diff(sum, done.Usage); !ok || d != "" {
		t.Errorf("the turn says (-want +got)\n%s", d)
	}
	if s.Spent != sum.Tokens() {
		t.Errorf("the session has spent %+v, want %+v", s.Spent, sum.Tokens())
	}
}

// NO_REPLY is silence where a notice was answered, and said where the user
// asked something.
func TestSilenceIsSaid(t *testing.T) {
	for _, c := range []struct {
		name string
		log  []session.Body
		want bool
	}{
		{"the user asked", []session.Body{User("anyone there?")}, true},
		{"a tool answered", []session.Body{User("q"), Call("c1", "read"), Result("c1", "ok")}, true},
		{"a notice was given with the question", []session.Body{User("q"), session.Notice{Percent: 50, Text: "half full", As: "system"}}, true},
		{"a notice was given after the answer", []session.Body{User("q"), Answer("a"), session.Notice{Percent: 90, Text: "save", As: "marked"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Replay(t, c.log...)
			_, events, err := play(t, context.Background(), s, llm.Message{}, agent.Env{Provider: llmtest.New(llmtest.Say("no_reply"))})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			said, text := false, ""
			for _, ev := range events {
				switch ev := ev.(type) {
				case agent.Silent:
					said = true
				case agent.Said:
					text += ev.Text
				}
			}
			if said != c.want || text != "" {
				t.Errorf("silence is said: %v, want %v; shown is %q", said, c.want, text)
			}
		})
	}
}
