package compact_test

// Where other systems fail, by name. Endless compacting and a flush after the
// compaction are in package agent, which decides about both.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// Wherever the cut falls, no call is without its result and no result
// without its call.
func TestOrphanedPairAfterACut(t *testing.T) {
	var log []session.Body
	for i := range 30 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		log = append(log, User(fmt.Sprint("do ", i, words(20))), Calls(llm.ToolCall{ID: a, Name: "read"}, llm.ToolCall{ID: b, Name: "list"}),
			Result(b, words(30+i)), Result(a, words(60)), Answer("done "+words(10)))
	}
	for keep := 1; keep < 95; keep += 3 {
		s := Replay(t, log...)
		c, ok := compact.Plan(s, prompt, byWord{}, window.Budget{Window: 3000, Reserve: 100}, compact.Options{Keep: keep, Force: true})
		if !ok {
			continue
		}
		comp, err := c.Compact(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(s.Next(comp, &Clock{})); err != nil {
			t.Fatal(err)
		}
		req := window.Build(s, prompt, window.Loose)
		req.Messages = append(req.Messages, llm.UserText("go on"))
		if err := llmtest.Validate(req); err != nil {
			t.Errorf("keep %d%%: %v", keep, err)
		}
		for _, m := range req.Messages {
			for _, r := range m.Results() {
				if r.Text() == window.Interrupted {
					t.Errorf("keep %d%%: the result of %s was compacted away from its call", keep, r.CallID)
				}
			}
		}
	}
}

// After a compaction the count falls at once, grows with what is said, and takes
// the next report; notices are due again.
func TestFrozenCountersAfterACompaction(t *testing.T) {
	var log []session.Body
	used := 100
	for i := range 20 {
		used += 100
		m := By("a", "m", Answer(fmt.Sprint("answer ", i, words(45))))
		m.Usage = llm.Usage{Input: used - 50, Output: 50}
		log = append(log, User(fmt.Sprint("question ", i, words(45))), m)
	}
	log = append(log, session.Notice{Percent: 75, Text: "n", As: "system"})
	s := Replay(t, log...)
	b := window.Budget{Window: 2600, Reserve: 300}
	ts := []window.Threshold{{Percent: 75, Text: "n", As: window.AsSystem}}
	before := window.Measure(s, prompt, byWord{}, b)
	c, ok := compact.Plan(s, prompt, byWord{}, before, compact.Options{Force: true})
	if !ok {
		t.Fatal("no cut")
	}
	comp, err := c.Compact(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	clock := &Clock{}
	add := func(body session.Body) window.Budget {
		if err := s.Apply(s.Next(body, clock)); err != nil {
			t.Fatal(err)
		}
		return window.Measure(s, prompt, byWord{}, b)
	}
	after := add(comp)
	if after.Used > before.Used/2 {
		t.Errorf("%d tokens before the compaction, %d after", before.Used, after.Used)
	}
	said := add(User(words(200)))
	if said.Used < after.Used+200 {
		t.Errorf("%d tokens after the compaction, %d after 200 words more", after.Used, said.Used)
	}
	m := By("a", "m", Answer("yes"))
	m.Usage = llm.Usage{Input: 2000, Output: 1}
	if told := add(m); told.Used != 2001 {
		t.Errorf("the model reports 2001, the count says %d", told.Used)
	}
	if _, due := window.Due(s, window.Measure(s, prompt, byWord{}, b), ts); !due {
		t.Error("the notice of the new cycle is not due")
	}
}

// The task is what was asked first, however often something else is asked
// and whatever the model takes for it.
func TestFollowUpTakenForTheTask(t *testing.T) {
	first := []session.Body{User("hi"), Answer("hello"), User("Port the billing service to Go, without cgo."), Answer("ok")}
	wrong := compact.Chain{{Provider: &llmtest.Model{Rest: llmtest.Say(`{"task":"make the button blue","summary":"the user wants the button to be blue now, and nothing else"}`)}, Name: "m", Window: 9000, Tokens: byWord{}}}
	for name, sum := range map[string]compact.Summarizer{"a model": wrong, "no model": nil} {
		s := compactions(t, 3, sum, append(first, User("and make the button blue"), Answer("done"))...)
		at, _, _ := s.Compaction()
		if got := compact.Parse(s.Branch[at].Body.(session.Compaction).Summary).Task; got != "Port the billing service to Go, without cgo." {
			t.Errorf("%s: the task is %q", name, got)
		}
	}
}

// What the first compaction kept is kept or told by the second.
func TestKeptMessagesLostAtTheSecondCompaction(t *testing.T) {
	var told []string
	sum := tells(func(j compact.Job) {
		for _, r := range j.Past {
			told = append(told, r.ID)
		}
	})
	s := compactions(t, 2, sum)
	at, keep, _ := s.Compaction()
	for i, r := range s.Branch[:at] {
		m, ok := r.Body.(session.Message)
		if ok && i < keep && !slices.Contains(told, r.ID) {
			t.Errorf("record %d (%.20q) is neither kept nor told", i, m.Text())
		}
	}
	// The second compaction begins where the first one kept from, not after it.
	count := map[string]int{}
	for _, id := range told {
		count[id]++
		if count[id] > 1 {
			t.Errorf("record %s was told twice", id)
		}
	}
}

// tells is a Summarizer that shows what it is given.
type tells func(compact.Job)

func (f tells) Summarize(_ context.Context, j compact.Job) (compact.Summary, string, llm.Usage, error) {
	f(j)
	return compact.Summary{Text: "what was told so far, in a few words: " + strings.Repeat("so ", 5)}, "m", llm.Usage{}, nil
}
