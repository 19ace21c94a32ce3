package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/provider/internal/wiretest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/window"
)

// anyLog draws a log, sane or insane, and holds the bytes that would be sent
// for it against what the API refuses.
func anyLog(t *rapid.T) {
	bodies := append(sessiontest.AnyBodies(t, "anthropic", "claude-sonnet-4-5"), sessiontest.User("and now?"))
	s, err := session.Replay("s", sessiontest.Yield(sessiontest.Log(bodies...)...))
	if err != nil {
		t.Fatal(err)
	}
	req := window.Build(s, window.Prompt{Provider: "anthropic", Model: "claude-sonnet-4-5", System: "Be brief.", Tail: "now"}, window.Loose)
	body, _, err := build(req, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := wiretest.Anthropic(body); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

func TestAnyLogIsAccepted(t *testing.T) { rapid.Check(t, anyLog) }

func FuzzAnyLog(f *testing.F) {
	sessiontest.Seeds(f)
	f.Fuzz(rapid.MakeFuzz(anyLog))
}

// With many images each may be smaller only, and no request holds too many.
func TestManyImages(t *testing.T) {
	for _, c := range []struct{ images, sent, wide int }{{20, 20, 1}, {21, 20, 0}, {130, 90, 0}} {
		req := llm.Request{Model: "claude-sonnet-4-5"}
		call := llm.ToolCall{ID: "c1", Name: "shoot", Args: json.RawMessage(`{}`)}
		shown := llm.Result(call, "a picture")
		shown.Blocks = append(shown.Blocks, wiretest.Wide())
		last := llm.Message{Role: llm.User, Blocks: []llm.Block{shown}}
		for range c.images - 1 {
			last.Blocks = append(last.Blocks, llmtest.Images[0])
		}
		req.Messages = []llm.Message{llm.UserText("q"), {Role: llm.Assistant, Blocks: []llm.Block{call}}, last}
		body, _, err := build(req, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := wiretest.Anthropic(body); err != nil {
			t.Errorf("%d images: %v", c.images, err)
		}
		sent, wide := strings.Count(string(body), `"type":"image"`), strings.Count(string(body), wiretest.Wide().Data)
		if sent != c.sent || wide != c.wide {
			t.Errorf("of %d images %d were sent, %d of them wide, want %d and %d", c.images, sent, wide, c.sent, c.wide)
		}
		if _, ok := last.Blocks[0].(llm.ToolResult).Blocks[1].(llm.Image); !ok {
			t.Error("the request that was handed in was changed")
		}
	}
}

func TestLastAnswerIsTrimmed(t *testing.T) {
	body, _, err := build(llm.Request{Model: "m", Messages: []llm.Message{llm.UserText("q "), llm.AssistantText("The answer is: \n")}}, 0)
	if err != nil || !strings.Contains(string(body), `"text":"The answer is:"`) || !strings.Contains(string(body), `"text":"q "`) {
		t.Errorf("sent %s, %v", body, err)
	}
}
