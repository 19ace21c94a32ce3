package llmtest_test

import (
	"context"
	"fmt"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

// A scripted model takes one step per request and refuses what an API would.
func Example() {
	model := llmtest.New(llmtest.Say("It is noon."), llmtest.Say("Still noon."))
	ask := func(messages ...llm.Message) {
		for d, err := range model.Stream(context.Background(), llm.Request{Model: "any", Messages: messages}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			if d.End != nil {
				fmt.Println(d.End.Message.Text())
			}
		}
	}
	question := llm.UserText("What time is it?")
	ask(question)
	ask(question, question)
	// Output:
	// It is noon.
	// llmtest: messages.1: role is "user", want "assistant" (HTTP 400)
}
