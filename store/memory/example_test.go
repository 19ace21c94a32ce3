package memory_test

import (
	"context"
	"fmt"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

// A store in memory is enough for a program that need not remember.
func Example() {
	ctx, clock := context.Background(), session.System{}
	st := memory.New()
	s, err := session.Load(ctx, st, "main:cli:ana", clock)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := session.Keep(ctx, st, s, s.Next(session.Message{Message: llm.UserText("hi")}, clock), clock); err != nil {
		fmt.Println(err)
		return
	}
	for in, err := range st.List(ctx, session.Query{}) {
		fmt.Println(in.Key, in.Turns, err)
	}
	// Output: main:cli:ana 1 <nil>
}
