package storetest

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

func size(r session.Record) int {
	m, ok := r.Body.(session.Message)
	if !ok || len(m.Blocks) != 1 {
		return -1
	}
	switch b := m.Blocks[0].(type) {
	case llm.Text:
		return len(b.Text)
	case llm.ToolCall:
		return len(b.Args)
	case llm.ToolResult:
		return len(b.Text())
	}
	return -1
}

func TestConversation(t *testing.T) {
	const n = 20_000
	recs := slices.Collect(Conversation(7, n))
	if len(recs) != n {
		t.Fatalf("a conversation of %d records has %d", n, len(recs))
	}
	var sizes []int
	tools, compactions := 0, 0
	for _, r := range recs {
		if s := size(r); s >= 0 {
			sizes = append(sizes, s)
		}
		if m, ok := r.Body.(session.Message); ok && len(m.Calls())+len(m.Results()) > 0 {
			tools++
		}
		if _, ok := r.Body.(session.Compaction); ok {
			compactions++
		}
	}
	slices.Sort(sizes)
	near := func(what string, got, want, off float64) {
		t.Helper()
		if math.Abs(got-want) > off*want {
			t.Errorf("%s is %.3g, want about %.3g", what, got, want)
		}
	}
	near("the median size", float64(sizes[len(sizes)/2]), 400, 0.1)
	near("p99 of the sizes", float64(sizes[len(sizes)*99/100]), 30_000, 0.25)
	near("the part of tool calls and results", float64(tools)/n, 0.35, 0.1)
	near("the number of compactions", float64(compactions), 4, 0.01)

	s, err := session.Replay(ConversationID(7), sessiontest.Yield(recs...))
	if err != nil {
		t.Fatal(err)
	}
	if s.LastBend != 0 || len(s.Branch) != n-1 || s.KeepFrom < n-6000 {
		t.Errorf("a conversation is not a straight line: %+v", s.Info)
	}
	if short := slices.Collect(Conversation(7, 300)); !reflect.DeepEqual(recs[:300], short) {
		t.Errorf("a shorter conversation begins otherwise:\n%s", clip(cmp.Diff(recs[:300], short)))
	}
	// Not with cmp, which takes long to describe what differs.
	if reflect.DeepEqual(recs[:300], slices.Collect(Conversation(8, 300))) {
		t.Error("two seeds give one conversation")
	}
}
