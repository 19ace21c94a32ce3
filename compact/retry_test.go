package compact_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"goclaw/compact"
	"goclaw/llm"
)

// again answers with a summary after a call that was repeated.
type again struct{}

func (again) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if yield(llm.Delta{Retry: &llm.Retry{Why: "429", Err: errors.New("busy"), Wait: time.Second, Try: 2, Of: 5}}, nil) {
			m := llm.AssistantText(`{"task": "the boat", "summary": "They talked about the colour of the boat, which is blue, and about the sea."}`)
			yield(llm.Delta{End: &llm.Answer{Message: m, Stop: llm.StopEnd, Usage: llm.Usage{Input: 100, Output: 20}}}, nil)
		}
	}
}

// A summary that a model is asked for again is told, and its price is known
// before: that of the model that is asked first.
func TestSummaryTellsRetriesAndPrice(t *testing.T) {
	c, ok := plan(t, 2000, compact.Options{}, turns(20, 100)...)
	if !ok {
		t.Fatal("no cut")
	}
	price := func(u llm.Usage) llm.Cost { return llm.Cost{Total: float64(u.Input) / 1000} }
	chain := compact.Chain{{Provider: again{}, Name: "small", Price: price}, {Provider: again{}, Name: "large"}}
	if u := c.Estimate(chain); u.Input < 1000 || u.Output == 0 || u.Cost.Total != float64(u.Input)/1000 {
		t.Errorf("the estimate is %+v", u)
	}
	if u := c.Estimate(compact.Extractor{}); u.Total() != 0 {
		t.Errorf("an extract uses %+v", u)
	}
	var told []llm.Retry
	c.Retrying = func(r llm.Retry) { told = append(told, r) }
	if _, err := c.Compact(t.Context(), chain); err != nil || len(told) != 1 || told[0].Try != 2 {
		t.Errorf("told %+v, %v", told, err)
	}
}
