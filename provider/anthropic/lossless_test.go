package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/provider/internal/wiretest"
)

// sent is a block on the wire.
type sent struct {
	Type, Text, Thinking, Signature, Data, ID, Name string
	ToolUseID                                       string `json:"tool_use_id"`
	IsError                                         bool   `json:"is_error"`
	Input                                           json.RawMessage
	Content                                         []sent
	Source                                          struct {
		Type, Data string
		Media      string `json:"media_type"`
	}
	Mark *struct{ Type string } `json:"cache_control"`
}

// block reads one back. Results carry no tool name on the wire.
func (s sent) block(t *rapid.T) llm.Block {
	switch s.Type {
	case "text":
		return llm.Text{Text: s.Text}
	case "thinking":
		return llm.Thinking{Text: s.Thinking, Signature: s.Signature}
	case "redacted_thinking":
		return llm.Thinking{Signature: s.Data, Redacted: true}
	case "image":
		return llm.Image{MIME: s.Source.Media, Data: s.Source.Data}
	case "tool_use":
		return llm.ToolCall{ID: s.ID, Name: s.Name, Args: s.Input}
	case "tool_result":
		r := llm.ToolResult{CallID: s.ToolUseID, Name: "tool0", IsError: s.IsError}
		for _, c := range s.Content {
			r.Blocks = append(r.Blocks, c.block(t))
		}
		return r
	}
	t.Fatalf("block of type %q on the wire", s.Type)
	return nil
}

// Whatever llmtest.Validate accepts can be read back from the wire as it was.
func TestLossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := wiretest.Conversation(t)
		body, _, err := build(req, 0)
		if err != nil {
			t.Fatal(err)
		}
		var wire struct {
			Model    string
			System   []sent
			Messages []struct {
				Role    llm.Role
				Content []sent
			}
			Tools []struct {
				Name, Description string
				Schema            json.RawMessage `json:"input_schema"`
			}
		}
		if err := json.Unmarshal(body, &wire); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		got := llm.Request{Model: wire.Model}
		marks := 0
		for _, s := range wire.System {
			got.System += s.Text
		}
		for _, tool := range wire.Tools {
			got.Tools = append(got.Tools, llm.ToolSpec(tool))
		}
		for i, m := range wire.Messages {
			msg := llm.Message{Role: m.Role}
			for j, s := range m.Content {
				if s.Mark != nil {
					marks++
				}
				if i == len(wire.Messages)-1 && j == len(m.Content)-1 && s.Mark == nil {
					got.Tail = s.Text
					continue
				}
				msg.Blocks = append(msg.Blocks, s.block(t))
			}
			got.Messages = append(got.Messages, msg)
		}
		if llm.Blank(req.Tail) {
			req.Tail = ""
		}
		if llm.Blank(req.System) {
			req.System = ""
		}
		if diff := cmp.Diff(req, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("-sent +read back\n%s", diff)
		}
		if want := min(2, (len(req.Messages)+1)/2); marks != want {
			t.Fatalf("%d marks in the messages, want %d", marks, want)
		}
	})
}
