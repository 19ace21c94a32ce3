package llm_test

import (
	"context"
	"fmt"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

// A Provider streams deltas; the last one has the whole answer.
func Example() {
	var p llm.Provider = llmtest.New(llmtest.Say("four"))
	req := llm.Request{Model: "any", Messages: []llm.Message{llm.UserText("2 + 2?")}}
	for d, err := range p.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d.End != nil {
			fmt.Println(d.End.Message.Text())
		}
	}
	// Output: four
}
