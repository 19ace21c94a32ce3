package naming_test

import (
	"context"
	"fmt"
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

// A list reads a bounded number of logs for titles; those that have one, and
// imported ones, are always named.
func TestListOfUntitled(t *testing.T) {
	ctx, st := context.Background(), memory.New()
	const mirrors = 3
	for i := range 250 + mirrors {
		h := session.Header{Key: session.Key(fmt.Sprintf("main:cli:%d", i))}
		if i < mirrors {
			h.Origin = session.Origin{Program: "pi", Path: "/x.jsonl"}
		}
		s, err := session.Begin(ctx, st, h, session.System{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Keep(ctx, st, s, s.Next(session.Message{Message: llm.UserText("Plan the trip to Lisbon")}, session.System{}), session.System{}); err != nil {
			t.Fatal(err)
		}
	}
	own, imported := 0, 0
	for in, err := range naming.List(ctx, st, naming.Choice{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case in.Title != "" && in.Mirror():
			imported++
		case in.Title != "":
			own++
		}
	}
	if own != 200 || imported != mirrors {
		t.Errorf("%d of our own and %d imported sessions have titles, want 200 and %d", own, imported, mirrors)
	}
}
