package wiretest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"

	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

// Conversation draws a request that llmtest.Validate accepts, with everything
// that it accepts in it.
func Conversation(t *rapid.T) llm.Request {
	req := llm.Request{Model: "m", System: rapid.String().Draw(t, "system"), Tail: rapid.String().Draw(t, "tail")}
	for i := range rapid.IntRange(0, 3).Draw(t, "tools") {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: fmt.Sprintf("tool%d", i), Description: rapid.String().Draw(t, "description"), Schema: json.RawMessage(`{"type":"object"}`)})
	}
	var open []llm.ToolCall
	id := 0
	for i := range 2*rapid.IntRange(0, 4).Draw(t, "turns") + 1 {
		m := llm.Message{Role: llm.User}
		if i%2 == 0 {
			for _, c := range open {
				r := llm.ToolResult{CallID: c.ID, Name: c.Name, IsError: rapid.Bool().Draw(t, "failed")}
				for range rapid.IntRange(1, 3).Draw(t, "parts") {
					if r.IsError {
						r.Blocks = append(r.Blocks, text(t))
					} else {
						r.Blocks = append(r.Blocks, words(t))
					}
				}
				m.Blocks = append(m.Blocks, r)
			}
			for range rapid.IntRange(0, 3).Draw(t, "blocks") {
				m.Blocks = append(m.Blocks, words(t))
			}
			if len(m.Blocks) == 0 {
				m.Blocks = []llm.Block{llm.Text{Text: "go on"}}
			}
		} else {
			m.Role = llm.Assistant
			for k := range rapid.IntRange(0, 2).Draw(t, "thoughts") {
				th := llm.Thinking{Signature: "s" + rapid.String().Draw(t, "signature"), Redacted: rapid.Bool().Draw(t, "redacted")}
				if rapid.Bool().Draw(t, "item") { // as the Responses API has it
					th.Signature = fmt.Sprintf(`{"id":"rs_%d_%d","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`, i, k)
				}
				if !th.Redacted {
					th.Text = rapid.String().Draw(t, "thinking")
				}
				m.Blocks = append(m.Blocks, th)
			}
			for range rapid.IntRange(0, 2).Draw(t, "texts") {
				m.Blocks = append(m.Blocks, text(t))
			}
			open = nil
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				id++
				args, err := json.Marshal(map[string]any{"s": rapid.String().Draw(t, "argument"), "n": rapid.Int().Draw(t, "number")})
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, llm.ToolCall{ID: fmt.Sprintf("call_%d", id), Name: "tool0", Args: args})
				m.Blocks = append(m.Blocks, open[len(open)-1])
			}
			if n := len(m.Blocks); n == 0 || isThinking(m.Blocks[n-1]) {
				m.Blocks = append(m.Blocks, text(t))
			}
		}
		req.Messages = append(req.Messages, m)
	}
	if err := llmtest.Validate(req); err != nil {
		t.Fatalf("drew a request that is not valid: %v", err)
	}
	return req
}

func isThinking(b llm.Block) bool {
	_, ok := b.(llm.Thinking)
	return ok
}

func text(t *rapid.T) llm.Block { return llm.Text{Text: "." + rapid.String().Draw(t, "text")} }

// words draws a text or a picture.
func words(t *rapid.T) llm.Block {
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		return rapid.SampledFrom(llmtest.Images).Draw(t, "image")
	}
	return text(t)
}

// Wide is a picture of more pixels than one may have among many.
func Wide() llm.Image {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2500, 1))); err != nil {
		panic(err) // to memory
	}
	return llm.Image{MIME: "image/png", Data: base64.StdEncoding.EncodeToString(b.Bytes())}
}
