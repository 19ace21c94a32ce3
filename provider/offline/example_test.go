package offline_test

import (
	"context"
	"fmt"
	"strings"

	"goclaw/llm"
	"goclaw/provider/offline"
)

// The offline model needs no key and no network, and says what it is.
func Example() {
	p := offline.New(offline.Config{})
	req := llm.Request{Model: offline.Name, Messages: []llm.Message{llm.UserText("help")}}
	var text strings.Builder
	for d, err := range p.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		text.WriteString(d.Text)
	}
	fmt.Println(strings.Contains(text.String(), "not a language model"))
	// Output: true
}
