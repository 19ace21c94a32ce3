package session_test

import (
	"context"
	"fmt"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/memory"
)

// A session is what its log adds up to: what is appended is there after Open.
func Example() {
	ctx := context.Background()
	store := memory.New()
	s, err := session.Load(ctx, store, "main:cli:ana", session.System{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := s.Next(session.Message{Message: llm.UserText("hello")}, session.System{})
	if err := store.Append(ctx, s.ID, rec); err != nil {
		fmt.Println(err)
		return
	}
	again, err := session.Open(ctx, store, s.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	last := again.Branch[len(again.Branch)-1]
	fmt.Println(last.Seq, last.Body.(session.Message).Text())
	// Output: 2 hello
}
