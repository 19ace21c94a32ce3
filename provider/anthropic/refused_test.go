package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/provider/internal/wiretest"
)

// A 400 that names messages.N is mapped to the block of the request that it
// means, also if blocks before it are not sent. The messages are the API's own.
func TestRefusedBlockIsFound(t *testing.T) {
	call := llm.ToolCall{ID: "c1", Name: "shoot", Args: json.RawMessage(`{}`)}
	shown := llm.Result(call, "a picture")
	shown.Blocks = append(shown.Blocks, llmtest.Images[0])
	req := llm.Request{Model: "claude-sonnet-4-5", Tail: "[Context: 1%]", Messages: []llm.Message{
		llm.UserText("q"),
		{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "not signed"}, llm.Text{Text: "I shall look"}, call}},
		{Role: llm.User, Blocks: []llm.Block{shown, llm.Text{Text: " "}, llm.Text{Text: "and this"}, llmtest.Images[1]}},
	}}
	const none = -2
	for _, c := range []struct {
		msg            string
		message, block int // none: it is not a RefusedError
		image          bool
		why            string
	}{
		{"messages.2.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum: 17699328 bytes > 5242880 bytes", 2, 0, true, "image exceeds 5 MB maximum: 17699328 bytes > 5242880 bytes"},
		{"messages.2.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels", 2, 3, true, "At least one of the image dimensions exceed max allowed size: 8000 pixels"},
		{"messages.1.content.1.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", 1, 2, false, "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"messages.1: something about all of it", 1, -1, false, "something about all of it"},
		{"Could not process image", -1, -1, true, "Could not process image"},
		{"messages.2.content.3: the tail is ours", none, 0, false, ""},
		{"messages.7.content.0: no such message", none, 0, false, ""},
		{"tools.0.custom.name: String should match pattern", none, 0, false, ""},
	} {
		srv := wiretest.Serve(t, wiretest.Status(http.StatusBadRequest, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, c.msg)))
		policy, _ := wiretest.Policy()
		got := wiretest.Collect(t, New(Config{BaseURL: srv.URL, APIKey: "k", Retry: policy}).Stream(t.Context(), req))
		var e *llm.RefusedError
		if !errors.Is(got.Err, llm.ErrRefused) {
			t.Errorf("%s: %v is not a refusal", c.msg, got.Err)
		}
		switch found := errors.As(got.Err, &e); {
		case !found:
			if c.message != none {
				t.Errorf("%s: no place was found in %v", c.msg, got.Err)
			}
		case e.Message != c.message || e.Block != c.block || e.Image != c.image || e.Why != c.why:
			t.Errorf("%s: message %d, block %d, image %v, %q; want %+v", c.msg, e.Message, e.Block, e.Image, e.Why, c)
		}
	}
}
