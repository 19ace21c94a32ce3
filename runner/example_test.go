package runner_test

import (
	"context"
	"fmt"

	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/store/memory"
)

// A conversation of two turns. The second request holds the first turn: it was
// read back from the store.
func Example() {
	ctx := context.Background()
	model := llmtest.New(llmtest.Say("Hello, Ana."), llmtest.Say("You are Ana."))
	store := memory.New() // or sqlite.Open("sessions.db")
	for _, text := range []string{"I am Ana.", "Who am I?"} {
		r := runner.Simple(store, runner.Model{Provider: model, Name: "test/model"})
		for piece, err := range r.Say(ctx, "main:cli:ana", text) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Print(piece)
		}
		fmt.Println()
		r.Close(ctx)
	}
	in, err := session.Current(ctx, store, "main:cli:ana")
	fmt.Println(in.Turns, "turns", err)
	// Output:
	// Hello, Ana.
	// You are Ana.
	// 2 turns <nil>
}
