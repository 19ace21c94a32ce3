//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// OpenAI's own client talks to a conversation that lasts: what it sends again is
// not recorded again, and what it edits becomes a branch.
func TestServeCompletions(t *testing.T) {
	t.Parallel()
	model, _ := slowly(t)
	s := serving(t, t.TempDir(), t.TempDir(), model)
	client := openai.NewClient(option.WithBaseURL(s.url+"/v1"), option.WithAPIKey(s.token))
	ctx := context.Background()
	user, assistant := openai.UserMessage[string], openai.AssistantMessage[string]
	say := func(key string, messages ...openai.ChatCompletionMessageParamUnion) string {
		t.Helper()
		resp, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "goclaw", Messages: messages}, option.WithHeader("x-openclaw-session-key", key))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Choices[0].FinishReason != "stop" || resp.Usage.CompletionTokens == 0 {
			t.Errorf("the answer is %s", resp.RawJSON())
		}
		return resp.Choices[0].Message.Content
	}
	turns := func(key string, want int, texts ...string) {
		t.Helper()
		var in struct{ Turns int }
		s.get(200, "GET", "/v1/sessions/"+key, "", &in)
		if in.Turns != want {
			t.Errorf("%s has %d turns, want %d", key, in.Turns, want)
		}
		var sent struct{ Messages []any }
		s.get(200, "GET", "/v1/sessions/"+key+"/context", "", &sent)
		all := strings.Join(strings.Fields(strings.ToLower(sprint(sent.Messages))), " ")
		for _, text := range texts {
			without := strings.TrimPrefix(text, "!")
			if n := strings.Count(all, without); (n == 1) == (text != without) || n > 1 {
				t.Errorf("%s is sent with %q %d times:\n%s", key, without, n, all)
			}
		}
	}

	const key = "main:webui:7"
	if got := say(key, user("alpha")); got != "echo: alpha" {
		t.Errorf("the answer is %q", got)
	}
	say(key, user("alpha"), assistant("echo: alpha"), user("beta"))
	say(key, user("gamma")) // only what is new
	say(key, user("alpha"), assistant("echo: alpha"), user("beta"), assistant("echo:  beta\n"), user("gamma"), assistant("echo: gamma"), user("delta"))
	turns(key, 4, "echo: alpha", "echo: beta", "echo: gamma", "echo: delta")
	// The second message is changed.
	say(key, user("alpha"), assistant("echo: alpha"), user("epsilon"))
	turns(key, 2, "echo: alpha", "!beta", "!gamma", "echo: epsilon")
	// The last answer is asked for once more.
	say(key, user("alpha"), assistant("echo: alpha"), user("epsilon"))
	turns(key, 2, "echo: alpha", "echo: epsilon")
	// A past that the log does not have.
	say("main:webui:8", openai.SystemMessage("Be brief."), user("one"), assistant("answered elsewhere"), user("two"))
	turns("main:webui:8", 2, "be brief.", "answered elsewhere", "echo: two")
	// Without a key, a conversation is known by how it begins.
	var list struct{ Sessions []struct{ Key string } }
	for range 2 {
		if _, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{user("omega"), assistant("yes"), user("psi")}}); err != nil {
			t.Fatal(err)
		}
	}
	s.get(200, "GET", "/v1/sessions?channel=api", "", &list)
	if len(list.Sessions) != 1 {
		t.Errorf("the sessions are %v", list)
	}

	// A request that is sent again runs once, and changes nothing.
	var ends []int
	for _, more := range []string{"", `"stream":true,`, ""} {
		var whole struct {
			Choices []struct{ Message struct{ Content string } }
		}
		resp := s.ask("POST", "/v1/chat/completions", `{`+more+`"model":"goclaw","user":"bo","messages":[{"role":"user","content":"iota"}]}`, "Idempotency-Key", "again")
		text, err := io.ReadAll(resp.Body)
		if json.Unmarshal(text, &whole); err != nil || more == "" && (len(whole.Choices) != 1 || whole.Choices[0].Message.Content != "echo: iota") || strings.Count(string(text), "iota") != 1 {
			t.Errorf("the answer is %s (%v)", text, err)
		}
		var log struct{ End int }
		s.get(200, "GET", "/v1/sessions/main:api:bo/records", "", &log)
		ends = append(ends, log.End)
	}
	if ends[0] != ends[1] || ends[0] != ends[2] {
		t.Errorf("the log ends with the records %v", ends)
	}
	turns("main:api:bo", 1, "echo: iota")

	// Streamed.
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: "goclaw", Messages: []openai.ChatCompletionMessageParamUnion{user("zeta")}, User: openai.String("ana"), StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if acc.Choices[0].Message.Content != "echo: zeta" || acc.Choices[0].FinishReason != "stop" || acc.Usage.TotalTokens == 0 {
		t.Errorf("streamed: %+v", acc.ChatCompletion)
	}
	turns("main:api:ana", 1, "echo: zeta")

	s.get(200, "POST", "/v1/chat/completions", `{"model":"goclaw","user":"ana","messages":[{"role":"user","content":"eta"}]}`, nil) // as documented
	models, err := client.Models.List(ctx)
	if err != nil || len(models.Data) == 0 {
		t.Errorf("the models are %v (%v)", models, err)
	}
	for name, p := range map[string]openai.ChatCompletionNewParams{
		"no messages":   {Model: "goclaw"},
		"unknown model": {Model: "nobody/nothing", Messages: []openai.ChatCompletionMessageParamUnion{user("x")}},
		"two answers":   {Model: "goclaw", N: openai.Int(2), Messages: []openai.ChatCompletionMessageParamUnion{user("x")}},
	} {
		_, err := client.Chat.Completions.New(ctx, p)
		apiErr, ok := err.(*openai.Error)
		if !ok || apiErr.StatusCode/100 != 4 || apiErr.Message == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func sprint(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
