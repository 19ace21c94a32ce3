package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

var (
	phrases = []string{
		"hi", "help", "recap", "what time is it in Mars?", "remember that x%dy is 7", "remember that", "forget tea", "read a.md", "what is in b?",
		"list", "list c", "$ ls", "run `x`",
		"what did I say about tea?", "what did we decide?", "what do you remember?", "find tea", "<conversation>\n[User] x\n</conversation>", "Tea is good.", "?", "…", "\u00a0x", "```\n", "[SYSTEM: NO_REPLY] x", "(aside)", "茶はどこですか？",
		"<summary>\ntea\n</summary>", "what did I say about tea?\n\nline\n[x]\n> y:", "\xff\xfe bytes?", "remember: \xff\n\nb", "{} says {}?",
	}
	wide = append(slices.Clone(allSpecs), plainSpecs()...)
)

func plainSpecs() []llm.ToolSpec {
	return []llm.ToolSpec{memGet, sessRead, spec("other", `{"type":"object"}`)}
}

func someText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.OneOf(rapid.SampledFrom(phrases), rapid.String(), rapid.StringMatching(`[a-zA-Z ,.?:"'`+"`"+`\n/%{}-]{1,60}`)).Draw(t, "text")
		if llm.Blank(s) {
			s = "x" + s
		}
		return s
	})
}

// someTools draws a subset of tools; some with a schema that was not foreseen.
func someTools(t *rapid.T) []llm.ToolSpec {
	var out []llm.ToolSpec
	for _, s := range wide {
		switch rapid.IntRange(0, 9).Draw(t, s.Name) {
		case 0, 1:
			continue
		case 2:
			s.Schema = json.RawMessage(`{"type":"object","properties":{"thing":{"type":"string"}},"required":["thing"]}`)
		case 3:
			if s.Name == "write_file" {
				s = plainWrite
			}
		}
		out = append(out, s)
	}
	return out
}

func someResult(t *rapid.T, c llm.ToolCall) llm.ToolResult {
	r := llm.ToolResult{CallID: c.ID, Name: c.Name, IsError: rapid.Bool().Draw(t, "failed")}
	switch rapid.IntRange(0, 5).Draw(t, "result") {
	case 0: // nothing at all
	case 1:
		r.Blocks = []llm.Block{llmtest.Images[0]}
	case 2:
		r.Blocks = []llm.Block{llm.Text{Text: "2026-08-01.md  3 B\n2026-08-02.md  9 B\nsub/\n"}}
	default:
		r.Blocks = []llm.Block{llm.Text{Text: someText().Draw(t, "output")}}
	}
	return r
}

// somePast draws a valid conversation that ends with the user's words.
func somePast(t *rapid.T) []llm.Message {
	var msgs []llm.Message
	for i := range rapid.IntRange(0, 6).Draw(t, "turns") {
		msgs = append(msgs, llm.UserText(someText().Draw(t, "user")))
		if rapid.Bool().Draw(t, "calls") {
			c := llm.ToolCall{ID: fmt.Sprintf("old_%d", i), Name: rapid.SampledFrom(wide).Draw(t, "tool").Name, Args: json.RawMessage(`{"path":"a.md","offset":3}`)}
			msgs = append(msgs, llm.Message{Role: llm.Assistant, Blocks: []llm.Block{c}},
				llm.Message{Role: llm.User, Blocks: llm.Sendable(llm.Message{Role: llm.User, Blocks: []llm.Block{someResult(t, c)}})})
		}
		msgs = append(msgs, llm.AssistantText(someText().Draw(t, "assistant")))
	}
	last := llm.Message{Role: llm.User}
	for range rapid.IntRange(1, 3).Draw(t, "blocks") {
		last.Blocks = append(last.Blocks, llm.Text{Text: someText().Draw(t, "asked")})
	}
	if rapid.IntRange(0, 5).Draw(t, "picture") == 0 {
		last.Blocks = append(last.Blocks, llmtest.Images[0])
	}
	return append(msgs, last)
}

// TestAnyConversation: whatever was said and whatever the tools answer, each
// answer is valid, the same when asked again, and the turn comes to its end.
func TestAnyConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := llm.Request{Messages: somePast(t), Tools: someTools(t)}
		model := New(Config{})
		for calls := 0; ; {
			if err := llmtest.Validate(req); err != nil {
				t.Fatalf("the request is not valid: %v", err)
			}
			a, err := collect(model, req)
			if err != nil {
				t.Fatal(err)
			}
			again, err := collect(model, req)
			if diff := cmp.Diff(a, again); err != nil || diff != "" {
				t.Fatalf("a second answer differs: %v %s", err, diff)
			}
			if a.Usage.Input < 1 || a.Usage.Output < 1 {
				t.Fatalf("usage is %+v", a.Usage)
			}
			req.Messages = append(req.Messages, a.Message)
			made := a.Message.Calls()
			if len(made) == 0 {
				if strings.TrimSpace(a.Message.Text()) == "" || a.Stop != llm.StopEnd {
					t.Fatalf("the answer is %q, stopped by %q", a.Message.Text(), a.Stop)
				}
				req.Messages = append(req.Messages, llm.UserText("x"))
				if err := llmtest.Validate(req); err != nil {
					t.Fatalf("the answer is not valid: %v", err)
				}
				return
			}
			if calls += len(made); calls > maxCalls {
				t.Fatalf("%d calls, want %d at most", calls, maxCalls)
			}
			results := llm.Message{Role: llm.User}
			for _, c := range made {
				i := slices.IndexFunc(req.Tools, func(s llm.ToolSpec) bool { return s.Name == c.Name })
				if i < 0 {
					t.Fatalf("called %s, which is not offered", c.Name)
				}
				if err := checkArgs(req.Tools[i], c.Args); err != nil {
					t.Fatalf("called %s with %s: %v", c.Name, c.Args, err)
				}
				results.Blocks = append(results.Blocks, someResult(t, c))
			}
			results.Blocks = llm.Sendable(results)
			req.Messages = append(req.Messages, results)
		}
	})
}
