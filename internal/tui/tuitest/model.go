//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tuitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Model is a server with Anthropic's API whose answers are the caller's. It is
// asked for one answer at a time.
func Model(answer func(q Question, a *Answer)) http.Handler {
	var mu sync.Mutex
	asked := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/messages") {
			http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"not here"}}`, http.StatusNotFound)
			return
		}
		mu.Lock()
		asked++
		q := question(body)
		q.N = asked
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		a := &Answer{ctx: r.Context(), w: w, stop: "end_turn", id: asked}
		a.event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, asked, len(body)/4))
		answer(q, a)
		a.close()
		a.event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"%s","stop_sequence":null},"usage":{"output_tokens":%d}}`, a.stop, 1+a.bytes/4))
		a.event("message_stop", `{"type":"message_stop"}`)
	})
}

// Question is what a model was asked.
type Question struct {
	N       int      // from 1 on
	Said    string   // the user's last words
	Results []string // of tools, that came after them
	Body    string   // all of it
}

func question(body []byte) Question {
	q := Question{Body: string(body)}
	var req struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	json.Unmarshal(body, &req)
	for i := len(req.Messages) - 1; i >= 0 && q.Said == ""; i-- {
		m := req.Messages[i]
		if m.Role != "user" {
			continue
		}
		if json.Unmarshal(m.Content, &q.Said) == nil {
			break
		}
		var blocks []struct {
			Type, Text string
			Content    json.RawMessage
		}
		json.Unmarshal(m.Content, &blocks)
		var results []string
		for _, b := range blocks {
			switch {
			case b.Type == "tool_result":
				results = append(results, string(b.Content))
			case b.Type == "text" && !strings.HasPrefix(b.Text, "[Context:"):
				q.Said = b.Text
			}
		}
		q.Results = append(results, q.Results...) // from the last message to the first
	}
	return q
}

// Answer is what the model says, on the wire as soon as it is said.
type Answer struct {
	ctx   context.Context
	w     http.ResponseWriter
	block int
	open  string
	stop  string
	id    int
	bytes int
}

// Say streams a piece of text.
func (a *Answer) Say(text string) { a.piece("text", "text", "text_delta", text) }

// Think streams a piece of what the model thinks.
func (a *Answer) Think(text string) { a.piece("thinking", "thinking", "thinking_delta", text) }

func (a *Answer) piece(block, field, delta, text string) {
	if a.open != block {
		a.close()
		a.open = block
		a.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"%s","%s":""}}`, a.block, block, field))
	}
	a.bytes += len(text)
	quoted, _ := json.Marshal(text)
	a.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":%s}}`, a.block, delta, field, quoted))
}

// Call calls a tool. args is JSON.
func (a *Answer) Call(name, args string) {
	a.close()
	a.open, a.stop = "call", "tool_use"
	quoted, _ := json.Marshal(args)
	a.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d_%d","name":"%s","input":{}}}`, a.block, a.id, a.block, name))
	a.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, a.block, quoted))
	a.close()
}

// Gone is closed when nobody listens any more.
func (a *Answer) Gone() <-chan struct{} { return a.ctx.Done() }

func (a *Answer) close() {
	if a.open == "" {
		return
	}
	a.open = ""
	a.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, a.block))
	a.block++
}

func (a *Answer) event(name, data string) {
	fmt.Fprintf(a.w, "event: %s\ndata: %s\n\n", name, data)
	if f, ok := a.w.(http.Flusher); ok {
		f.Flush()
	}
}
