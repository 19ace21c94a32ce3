package openai

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

// A 400 that names messages[N] is mapped to the block of the request that it
// means: here one message of the request becomes several. The words are those of
// OpenAI, Azure and DashScope.
func TestRefusedBlockIsFound(t *testing.T) {
	one := llm.ToolCall{ID: "c1", Name: "shoot", Args: json.RawMessage(`{}`)}
	two := llm.ToolCall{ID: "c2", Name: "list", Args: json.RawMessage(`{}`)}
	shown := llm.Result(one, "a picture")
	shown.Blocks = append(shown.Blocks, llmtest.Images[0])
	req := llm.Request{Model: "gpt-5", System: "Be brief.", Tail: "[Context: 1%]", Messages: []llm.Message{
		llm.UserText("q"), // 1 on the wire
		{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "hm"}, llm.Text{Text: "I shall look"}, one, two}},        // 2
		{Role: llm.User, Blocks: []llm.Block{shown, llm.Result(two, "a.txt"), llm.Text{Text: "and this"}, llmtest.Images[1]}}, // 3, 4, 5
		llm.AssistantText("ok"), // 6
		llm.UserText("go on"),   // 7
	}}
	for _, c := range []struct {
		msg, param     string
		message, block int
	}{
		{"Invalid 'messages[2].tool_calls[1].function.name': string does not match pattern.", "messages[2].tool_calls[1].function.name", 1, 3},
		{"Invalid 'messages[2].tool_calls': array too long.", "messages[2].tool_calls", 1, -1},
		{"Invalid parameter: messages with role 'tool' must be a response to a preceding message.", "messages.[3].role", 2, 0},
		{"Invalid 'messages[4].content': string too long.", "messages[4].content", 2, 1},
		{"Invalid content type. image_url is only supported by certain models.", "messages.[5].content.[1].type", 2, 0},
		{"Invalid image.", "messages.[5].content.[2].image_url", 2, 3},
		{"The following tool_call_ids did not have response messages: message[2].role", "", 1, -1},
		{"Invalid 'messages[6].content'", "messages[6].content", 3, 0},
		{"You uploaded an unsupported image. Please make sure your image is valid.", "", -1, -1},
		{"Invalid 'messages[0].content': string too long.", "messages[0].content", nowhere, 0},
		{"Invalid 'messages[9]'", "messages[9]", nowhere, 0},
		{"Invalid 'tools[0].function.name'", "tools[0].function.name", nowhere, 0},
	} {
		srv := wiretest.Serve(t, refuses(c.msg, c.param))
		policy, _ := wiretest.Policy()
		refusedAt(t, New(Config{BaseURL: srv.URL, APIKey: "k", Retry: policy}), req, c.msg, c.message, c.block)
	}
}

// nowhere is the message of an error that says of no part of the request that it
// is refused.
const nowhere = -2

// refuses answers with a 400.
func refuses(msg, param string) http.HandlerFunc {
	return wiretest.Status(http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":%q,"code":"invalid_value"}}`, msg, param))
}

// refusedAt asks p, and checks that the refusal is about that block of req.
func refusedAt(t *testing.T, p llm.Provider, req llm.Request, msg string, message, block int) {
	t.Helper()
	got := wiretest.Collect(t, p.Stream(t.Context(), req))
	if !errors.Is(got.Err, llm.ErrRefused) {
		t.Errorf("%s: %v is not a refusal", msg, got.Err)
	}
	var e *llm.RefusedError
	switch found := errors.As(got.Err, &e); {
	case !found:
		if message != nowhere {
			t.Errorf("%s: no place was found in %v", msg, got.Err)
		}
	case e.Message != message || e.Block != block:
		t.Errorf("%s: message %d, block %d; want %d, %d", msg, e.Message, e.Block, message, block)
	}
}
