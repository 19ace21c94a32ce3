package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"goclaw/llm"
	"goclaw/provider/openai"
)

// chunks is an answer as chat completions are streamed.
const chunks = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

// Any server that speaks OpenAI's chat completions will do, a local one too.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, chunks)
	}))
	defer server.Close()
	p := openai.New(openai.Config{Name: "local", BaseURL: server.URL})
	req := llm.Request{Model: "m", Messages: []llm.Message{llm.UserText("hi")}}
	for d, err := range p.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(d.Text)
	}
	// Output: Hello.
}
