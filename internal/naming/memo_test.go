package naming_test

import (
	"context"
	"testing"

	"goclaw/internal/naming"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

// A title that was made is made again when the log has grown.
func TestMemo(t *testing.T) {
	ctx, st := context.Background(), memory.New()
	s, err := session.Begin(ctx, st, session.Header{Key: "main:cli:a"}, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(b session.Body) {
		t.Helper()
		if _, err := session.Keep(ctx, st, s, s.Next(b, session.System{}), session.System{}); err != nil {
			t.Fatal(err)
		}
	}
	var memo naming.Memo
	for i, step := range []struct {
		body session.Body
		want string
	}{
		{nil, ""},
		{session.Message{Message: llm.UserText("Plan the trip to Lisbon")}, "Plan the trip to Lisbon"},
		{session.Title{Title: "Lisbon"}, "Lisbon"},
	} {
		if step.body != nil {
			add(step.body)
		}
		for range 2 {
			if got := memo.Title(ctx, st, s.Info); got != step.want {
				t.Errorf("step %d: the title is %q, want %q", i, got, step.want)
			}
		}
	}
}
