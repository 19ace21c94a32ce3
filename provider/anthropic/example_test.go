package anthropic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"goclaw/llm"
	"goclaw/provider/anthropic"
)

// events is an answer as the Messages API streams it.
const events = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

`

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, events)
	}))
	defer server.Close()
	p := anthropic.New(anthropic.Config{APIKey: "key", BaseURL: server.URL})
	req := llm.Request{Model: "claude-sonnet-4-5", Messages: []llm.Message{llm.UserText("hi")}}
	for d, err := range p.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(d.Text)
	}
	// Output: Hello.
}
