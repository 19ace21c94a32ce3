package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/provider/internal/wiretest"
)

func TestMain(m *testing.M) {
	wiretest.Main(m, func(stream string) string {
		if strings.Contains(stream, `"type":"response.`) {
			return compareResponses(stream)
		}
		return compareStreams(stream)
	})
}

// provider returns a provider for a test server, and its waits.
func provider(url string, change ...func(*Config)) (*Provider, *[]time.Duration) {
	policy, waits := wiretest.Policy()
	c := Config{BaseURL: url, APIKey: "sk-test", Retry: policy}
	for _, f := range change {
		f(&c)
	}
	return New(c), waits
}

// chunk is one event whose only choice has delta and finish, as JSON.
func chunk(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini-2024-07-18","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null}`+"\n\n", delta, finish)
}

const (
	role  = `{"role":"assistant","content":""}`
	usual = `data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini-2024-07-18","choices":[],"usage":{"prompt_tokens":1117,"completion_tokens":46,"total_tokens":1163,"prompt_tokens_details":{"cached_tokens":1024,"cache_write_tokens":10,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\n"
	done  = "data: [DONE]\n\n"
)

func content(s string) string { return fmt.Sprintf(`{"content":%q}`, s) }

// text is a whole answer that says words, each in a chunk of its own.
func text(words ...string) []string {
	out := []string{chunk(role, "null")}
	for _, w := range words {
		out = append(out, chunk(content(w), "null"))
	}
	return append(out, chunk("{}", `"stop"`), usual, done)
}

var hello = llm.Request{Model: "gpt-4o-mini", Messages: []llm.Message{llm.UserText("hi")}}

func TestText(t *testing.T) {
	srv := wiretest.Serve(t, wiretest.SSE(text("Hel", "lo", "!")...))
	p, _ := provider(srv.URL)
	got := wiretest.Collect(t, p.Stream(t.Context(), hello))
	want := wiretest.Got{Text: "Hello!", Deltas: 4, Begun: llm.Usage{Input: 83, Output: 46, CacheRead: 1024, CacheWrite: 10}, End: &llm.Answer{
		Message: llm.AssistantText("Hello!"), Stop: llm.StopEnd, Model: "gpt-4o-mini-2024-07-18",
		Usage: llm.Usage{Input: 83, Output: 46, CacheRead: 1024, CacheWrite: 10},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	r := srv.Requests()[0]
	if r.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer sk-test" {
		t.Errorf("asked %s with %q", r.Path, r.Header.Get("Authorization"))
	}
	if got, want := string(r.Body), `{"stream":true,"messages":[{"role":"user","content":"hi"}],"model":"gpt-4o-mini","stream_options":{"include_usage":true}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// A local server wants no key and gets none, whatever the environment holds.
func TestNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://nowhere.invalid")
	srv := wiretest.Serve(t, wiretest.SSE(text("ok")...))
	p, _ := provider(srv.URL+"/v1/", func(c *Config) { c.APIKey = ""; c.Header = map[string]string{"X-Title": "goclaw"} })
	if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); got.Text != "ok" {
		t.Errorf("got %q, %v", got.Text, got.Err)
	}
	r := srv.Requests()[0]
	if _, ok := r.Header["Authorization"]; ok || r.Path != "/v1/chat/completions" || r.Header.Get("X-Title") != "goclaw" {
		t.Errorf("asked %s with headers %v", r.Path, r.Header)
	}
	got := wiretest.Collect(t, New(Config{}).Stream(t.Context(), hello))
	if !errors.Is(got.Err, llm.ErrAuth) || got.Err.Error() != "openai: no API key" {
		t.Errorf("OpenAI without a key: %v", got.Err)
	}
}

func TestParallelTools(t *testing.T) {
	a := llm.ToolCall{ID: "call_a", Name: "read_file", Args: json.RawMessage(`{"path":"a.go"}`)}
	b := llm.ToolCall{ID: "call_b", Name: "now", Args: json.RawMessage(`{}`)}
	for _, c := range []struct {
		name   string
		pieces []string
		want   []llm.ToolCall
	}{
		{"OpenAI, in pieces", []string{
			chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read_file","arguments":""}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"a.go\"}"}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"now","arguments":""}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`, "null"),
			chunk("{}", `"tool_calls"`), usual, done}, []llm.ToolCall{a, b}},
		{"whole, all with index 0, finished with stop", []string{
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a.go\"}"}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":0,"id":"call_b","type":"function","function":{"name":"now","arguments":"{}"}}]}`, "null"),
			chunk("{}", `"stop"`), done}, []llm.ToolCall{a, b}},
		{"without ids", []string{
			chunk(`{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{\"path\":\"a.go\"}"}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":0,"function":{"name":"now","arguments":"{}"}}]}`, "null"),
			chunk("{}", `"tool_calls"`), done},
			[]llm.ToolCall{{ID: "call_1_0", Name: a.Name, Args: a.Args}, {ID: "call_2_1", Name: b.Name, Args: b.Args}}},
		{"ids of other letters, and used ones", []string{
			chunk(`{"tool_calls":[{"index":0,"id":"functions.read_file:0","function":{"name":"read_file","arguments":"{\"path\":\"a.go\"}"}}]}`, "null"),
			chunk(`{"tool_calls":[{"index":1,"id":"old","function":{"name":"now","arguments":"{}"}}]}`, "null"),
			chunk("{}", `"tool_calls"`), done},
			[]llm.ToolCall{{ID: "functions_read_file_0_f9cc2c7822d54220", Name: a.Name, Args: a.Args}, {ID: "old-2", Name: b.Name, Args: b.Args}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := llm.ToolCall{ID: "old", Name: "now", Args: json.RawMessage(`{}`)}
			req := llm.Request{Model: "m", Messages: []llm.Message{llm.UserText("hi"),
				{Role: llm.Assistant, Blocks: []llm.Block{old}}, {Role: llm.User, Blocks: []llm.Block{llm.Result(old, "noon")}}}}
			srv := wiretest.Serve(t, wiretest.SSE(c.pieces...))
			p, _ := provider(srv.URL)
			got := wiretest.Collect(t, p.Stream(t.Context(), req))
			if got.Err != nil || got.End.Stop != llm.StopTool {
				t.Fatalf("got %+v, %v", got.End, got.Err)
			}
			if diff := cmp.Diff(c.want, got.Calls); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			req.Messages = append(req.Messages, got.End.Message, llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Result(got.Calls[0], "x"), llm.Result(got.Calls[1], "y")}})
			if err := llmtest.Validate(req); err != nil {
				t.Errorf("the answer makes no valid conversation: %v", err)
			}
		})
	}
}

func TestReasoning(t *testing.T) {
	for name, field := range map[string]string{"llama.cpp, DeepSeek": "reasoning_content", "Ollama, OpenRouter": "reasoning"} {
		srv := wiretest.Serve(t, wiretest.SSE(
			chunk(`{"role":"assistant","content":null,"`+field+`":"Let me "}`, "null"),
			chunk(`{"content":"","`+field+`":"see."}`, "null"),
			chunk(`{"content":"Yes.","`+field+`":null}`, "null"),
			chunk("{}", `"stop"`), usual, done))
		p, _ := provider(srv.URL)
		got := wiretest.Collect(t, p.Stream(t.Context(), hello))
		want := []llm.Block{llm.Thinking{Text: "Let me see."}, llm.Text{Text: "Yes."}}
		if got.Thinking != "Let me see." || got.Text != "Yes." || got.End == nil || cmp.Diff(want, got.End.Message.Blocks) != "" {
			t.Errorf("%s: got %+v, %v", name, got, got.Err)
		}
	}
}

// everything is a request with one of everything that Validate accepts.
func everything() llm.Request {
	png := llmtest.Images[0]
	a := llm.ToolCall{ID: "call_1", Name: "shoot", Args: json.RawMessage(`{"path":"a","n":12345678901234567890}`)}
	b := llm.ToolCall{ID: "call_2", Name: "read_file", Args: json.RawMessage(`{}`)}
	shown := llm.Result(a, "a picture")
	shown.Blocks = append(shown.Blocks, png)
	return llm.Request{
		Model: "gpt-4o", System: "Be brief.", MaxTokens: 1000,
		Tools: []llm.ToolSpec{{Name: "read_file", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}`)}},
		Messages: []llm.Message{
			{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: "look <at> \u2028 \x01\"this\""}, llm.Text{Text: "closely"}, png}},
			{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "hm", Signature: "sig"}, llm.Text{Text: "Looking."}, a, b}},
			{Role: llm.User, Blocks: []llm.Block{shown, llm.Failed(b, "no such file"), llm.Text{Text: "and then?"}}},
			{Role: llm.Assistant, Blocks: []llm.Block{llm.ToolCall{ID: "call_3", Name: "read_file", Args: json.RawMessage(`{"z":"b"}`)}}},
			{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "call_3", Name: "read_file", Blocks: []llm.Block{llm.Text{Text: "b's text"}}}}},
		},
		Tail: "[Context: 1k/200k tokens (1%)]",
	}
}

func TestRequestOnTheWire(t *testing.T) {
	req := everything()
	if err := llmtest.Validate(req); err != nil {
		t.Fatal(err)
	}
	srv := wiretest.Serve(t, wiretest.SSE(text("ok")...))
	p, _ := provider(srv.URL)
	if got := wiretest.Collect(t, p.Stream(t.Context(), req)); got.Err != nil {
		t.Fatal(got.Err)
	}
	var got, want any
	body := srv.Requests()[0].Body
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	const whole = `{
	 "model":"gpt-4o","max_tokens":1000,"stream":true,"stream_options":{"include_usage":true},
	 "tools":[{"type":"function","function":{"name":"read_file","description":"Reads.",
	   "parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}}}],
	 "messages":[
	  {"role":"system","content":"Be brief."},
	  {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}},
	   {"type":"text","text":"look <at> \u2028 \u0001\"this\"\nclosely"}]},
	  {"role":"assistant","content":"Looking.","tool_calls":[
	   {"id":"call_1","type":"function","function":{"name":"shoot","arguments":"{\"path\":\"a\",\"n\":12345678901234567890}"}},
	   {"id":"call_2","type":"function","function":{"name":"read_file","arguments":"{}"}}]},
	  {"role":"tool","tool_call_id":"call_1","content":"a picture\n\n[images: 1, see the next message]"},
	  {"role":"tool","tool_call_id":"call_2","content":"Error: no such file"},
	  {"role":"user","content":[{"type":"text","text":"[from shoot, call call_1]"},
	   {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}},
	   {"type":"text","text":"and then?"}]},
	  {"role":"assistant","tool_calls":[{"id":"call_3","type":"function","function":{"name":"read_file","arguments":"{\"z\":\"b\"}"}}]},
	  {"role":"tool","tool_call_id":"call_3","content":"b's text\n\n[Context: 1k/200k tokens (1%)]"}]}`
	if err := json.Unmarshal([]byte(whole), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if exact := `"properties":{"z":{"type":"string"},"a":{"type":"integer"}}`; !strings.Contains(string(body), exact) {
		t.Errorf("the body does not hold %s: the order was changed", exact)
	}
}

func TestUnsendable(t *testing.T) {
	req := llm.Request{Model: "m", System: " ", Tail: "now", Messages: []llm.Message{
		{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: " "}, llm.Image{MIME: "image/heic", Data: "AA=="}, llm.Other{Raw: json.RawMessage(`{}`)}}},
		{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "t", Signature: "s"}}},
		{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: "ok"}}},
	}}
	body, err := New(Config{BaseURL: "http://localhost"}).build(req, "")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"stream":true,"messages":[{"role":"user","content":"[image left out: \"image/heic\" cannot be read]"},{"role":"assistant","content":"ok"},{"role":"user","content":"now"}],"model":"m","stream_options":{"include_usage":true}}`
	if string(body) != want {
		t.Errorf("sent\n%s\nwant\n%s", body, want)
	}
}

// Turn n+1 begins with the bytes of turn n, but for cache marks and the tail.
func TestStablePrefix(t *testing.T) {
	for _, base := range []string{"http://localhost:8080", DefaultBaseURL, "https://openrouter.ai/api/v1"} {
		p := New(Config{BaseURL: base})
		all := everything()
		all.Model = "anthropic/claude-sonnet-4.5"
		var before, key string
		for n := 1; n <= len(all.Messages); n += 2 {
			req := all
			req.Messages = all.Messages[:n]
			req.Tail = fmt.Sprintf("TAIL%d", n)
			body, err := p.build(req, "")
			if err != nil {
				t.Fatal(err)
			}
			plain := strings.ReplaceAll(string(body), `,"cache_control":{"type":"ephemeral"}`, "")
			head, _, ok := strings.Cut(plain, req.Tail)
			if !ok {
				t.Fatalf("no tail in %s", plain)
			}
			// What leads up to the tail: a part of its own, or the end of a text.
			head = strings.TrimSuffix(strings.TrimSuffix(head, `,{"type":"text","text":"`), `\n\n`)
			if !strings.HasPrefix(head, before) {
				t.Errorf("%s: request with %d messages begins\n%s\nwant\n%s", base, n, head, before)
			}
			before = head
			var fields struct {
				Key string `json:"prompt_cache_key"`
			}
			if json.Unmarshal(body, &fields); n > 1 && fields.Key != key {
				t.Errorf("%s: prompt_cache_key changed from %q to %q", base, key, fields.Key)
			}
			key = fields.Key
		}
		if (key != "") != (base == DefaultBaseURL) {
			t.Errorf("%s: prompt_cache_key is %q", base, key)
		}
	}
}

// Claude behind OpenRouter caches what is marked, and nothing else.
func TestCacheMarks(t *testing.T) {
	p := New(Config{BaseURL: "https://openrouter.ai/api/v1"})
	req := llm.Request{Model: "anthropic/claude-sonnet-4.5", System: "S", Tail: "T", Messages: []llm.Message{
		llm.UserText("one"), llm.AssistantText("1"), llm.UserText("two"), llm.AssistantText("2"), llm.UserText("three")}}
	body, err := p.build(req, "")
	if err != nil {
		t.Fatal(err)
	}
	const m = `,"cache_control":{"type":"ephemeral"}`
	want := `[{"role":"system","content":[{"type":"text","text":"S"` + m + `}]},{"role":"user","content":[{"type":"text","text":"one"}]},{"role":"assistant","content":"1"},` +
		`{"role":"user","content":[{"type":"text","text":"two"` + m + `}]},{"role":"assistant","content":"2"},{"role":"user","content":[{"type":"text","text":"three"` + m + `},{"type":"text","text":"T"}]}]`
	if !strings.Contains(string(body), want) {
		t.Errorf("sent\n%s\nwant\n%s", body, want)
	}
	req.Model = "openai/gpt-5"
	if body, _ := p.build(req, ""); strings.Contains(string(body), "cache_control") {
		t.Error("cache marks for a model that caches by itself")
	}
}

func TestEffort(t *testing.T) {
	tools := []llm.ToolSpec{{Name: "x"}}
	for _, c := range []struct {
		f            flavour
		model, level string
		tools        []llm.ToolSpec
		want         string
	}{
		{plain, "qwen3:8b", "", nil, ""},
		{plain, "qwen3:8b", "off", nil, "none"},
		{plain, "qwen3:8b", "minimal", nil, "low"},
		{plain, "gpt-oss:20b", "high", tools, "high"},
		{plain, "gpt-oss:20b", "xhigh", tools, "high"},
		{own, "gpt-4o", "high", nil, ""},
		{own, "gpt-4.1-mini", "off", nil, ""},
		{own, "gpt-5-chat-latest", "high", nil, ""},
		{own, "o3", "off", nil, "low"},
		{own, "o4-mini", "xhigh", tools, "high"},
		{own, "gpt-5", "off", tools, "minimal"},
		{own, "gpt-5-mini", "minimal", tools, "minimal"},
		{own, "gpt-5.1", "off", tools, "none"},
		{own, "gpt-5.1", "minimal", nil, "low"},
		{own, "gpt-5.2", "xhigh", nil, "xhigh"},
		{own, "gpt-5.6-terra", "high", nil, "high"},
		{own, "gpt-5.6-terra", "high", tools, "none"},
		{own, "gpt-6.1-sol", "", tools, "none"},
		{openRouter, "openai/gpt-6.1-sol", "xhigh", tools, "xhigh"},
		{openRouter, "anthropic/claude-opus-5.5", "medium", tools, "medium"},
	} {
		if got := effort(c.f, llm.Request{Model: c.model, Thinking: c.level, Tools: c.tools}); got != c.want {
			t.Errorf("effort(%d, %s, %q, tools %v) = %q, want %q", c.f, c.model, c.level, c.tools != nil, got, c.want)
		}
	}
}

// What a model refuses of the thinking is left out, at once the next time.
func TestEffortRefused(t *testing.T) {
	no := wiretest.Status(400, `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-9 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}`)
	ok := wiretest.SSE(text("ok")...)
	req := llm.Request{Model: "gpt-9", Thinking: "high", Messages: hello.Messages}
	srv := wiretest.Serve(t, no, ok, ok, no, no, no)
	p, _ := provider(srv.URL)
	for range 2 {
		if got := wiretest.Collect(t, p.Stream(t.Context(), req)); got.Text != "ok" {
			t.Fatalf("got %q, %v", got.Text, got.Err)
		}
	}
	req.Thinking = "low"
	if got := wiretest.Collect(t, p.Stream(t.Context(), req)); !errors.Is(got.Err, llm.ErrRefused) || !strings.Contains(got.Err.Error(), "level of thinking is not accepted") {
		t.Errorf("got %v", got.Err)
	}
	var efforts []any
	for _, r := range srv.Requests() {
		efforts = append(efforts, r.JSON(t)["reasoning_effort"])
	}
	if want := []any{"high", "none", "none", "low", "none", nil}; !slices.Equal(efforts, want) {
		t.Errorf("efforts %v, want %v", efforts, want)
	}
}

func TestMaxTokens(t *testing.T) {
	for _, c := range []struct{ base, model, want string }{
		{"http://localhost", "llama3", `"max_tokens":77`},
		{"http://localhost", "gpt-5-mini", `"max_completion_tokens":77`},
		{DefaultBaseURL, "gpt-4o", `"max_completion_tokens":77`},
		{"https://x.openai.azure.com/openai/v1", "any", `"max_completion_tokens":77`},
		{"https://openrouter.ai/api/v1", "openai/o3", `"max_completion_tokens":77`},
	} {
		body, err := New(Config{BaseURL: c.base, MaxTokens: 77}).build(llm.Request{Model: c.model, Messages: hello.Messages}, "")
		if err != nil || !strings.Contains(string(body), c.want) {
			t.Errorf("%s at %s: %s, %v, want %s", c.model, c.base, body, err, c.want)
		}
	}
}

func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]llm.Stop{"stop": llm.StopEnd, "length": llm.StopLength, "eos": llm.StopEnd} {
		srv := wiretest.Serve(t, wiretest.SSE(chunk(content("ok"), "null"), chunk("{}", `"`+reason+`"`), done))
		p, _ := provider(srv.URL)
		if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); got.End == nil || got.End.Stop != want {
			t.Errorf("%s: got %+v, %v, want %s", reason, got.End, got.Err, want)
		}
	}
	srv := wiretest.Serve(t, wiretest.SSE(chunk(content("How to"), "null"), chunk("{}", `"content_filter"`), done))
	p, _ := provider(srv.URL)
	if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); !errors.Is(got.Err, llm.ErrRefused) || got.Text != "How to" {
		t.Errorf("content_filter: got %q, %v", got.Text, got.Err)
	}
	srv = wiretest.Serve(t, wiretest.SSE(chunk(`{"refusal":"I cannot help."}`, "null"), chunk("{}", `"stop"`), done))
	p, _ = provider(srv.URL)
	if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); got.Text != "I cannot help." {
		t.Errorf("refusal: got %q, %v", got.Text, got.Err)
	}
}

// Usage as others than OpenAI report it.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		usage string
		want  llm.Usage
	}{
		"none":     {``, llm.Usage{}},
		"plain":    {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`, llm.Usage{Input: 10, Output: 5}},
		"DeepSeek": {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}`, llm.Usage{Input: 2, Output: 5, CacheRead: 8}},
		"absurd":   {`{"prompt_tokens":3,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}`, llm.Usage{Output: 5, CacheRead: 8}},
	} {
		pieces := []string{chunk(content("ok"), `"stop"`)}
		if c.usage != "" {
			pieces = append(pieces, `data: {"id":"x","choices":[],"usage":`+c.usage+"}\n\n")
		}
		srv := wiretest.Serve(t, wiretest.SSE(append(pieces, done)...))
		p, _ := provider(srv.URL)
		if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); got.End == nil || got.End.Usage != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got.End, got.Err, c.want)
		}
	}
}

func TestRawArguments(t *testing.T) {
	for in, want := range map[string]string{`{\"path\": \"a`: `{"_raw":"{\"path\": \"a"}`, `read a`: `{"_raw":"read a"}`, ``: `{}`} {
		srv := wiretest.Serve(t, wiretest.SSE(
			chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"`+in+`"}}]}`, "null"), chunk("{}", `"tool_calls"`), done))
		p, _ := provider(srv.URL)
		got := wiretest.Collect(t, p.Stream(t.Context(), hello))
		if len(got.Calls) != 1 || string(got.Calls[0].Args) != want {
			t.Errorf("arguments %s became %+v, %v, want %s", in, got.Calls, got.Err, want)
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	srv := wiretest.Serve(t, wiretest.SSE(chunk("{\"content\":\"a\xffb\",\"reasoning\":\"\xfe\"}", `"stop"`), done))
	p, _ := provider(srv.URL)
	if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); got.Text != "a\uFFFDb" || got.Thinking != "\uFFFD" {
		t.Errorf("got %q, %q, %v", got.Text, got.Thinking, got.Err)
	}
}

func TestRetry(t *testing.T) {
	ok := wiretest.SSE(text("ok")...)
	for _, c := range []struct {
		name    string
		answers []http.HandlerFunc
		waits   []time.Duration
	}{
		{"Retry-After", []http.HandlerFunc{wiretest.Status(429, "{}", "Retry-After: 3"), wiretest.Status(503, "{}", "Retry-After-Ms: 40"), ok}, []time.Duration{3 * time.Second, 40 * time.Millisecond}},
		{"reset", []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, ok}, []time.Duration{500 * time.Millisecond}},
		{"cut before a delta", []http.HandlerFunc{wiretest.Cut(chunk(role, "null")), ok}, []time.Duration{500 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := wiretest.Serve(t, c.answers...)
			p, waits := provider(srv.URL)
			if got := wiretest.Collect(t, p.Stream(t.Context(), hello)); got.Text != "ok" {
				t.Errorf("got %q, %v", got.Text, got.Err)
			}
			if diff := cmp.Diff(c.waits, *waits); diff != "" {
				t.Errorf("waits -want +got\n%s", diff)
			}
			for _, r := range srv.Requests()[1:] {
				if string(r.Body) != string(srv.Requests()[0].Body) {
					t.Errorf("tried again with another body: %s", r.Body)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	p, waits := provider(wiretest.Refused(t), func(c *Config) { c.Name = "ollama" })
	got := wiretest.Collect(t, p.Stream(t.Context(), hello))
	if !errors.Is(got.Err, llm.ErrNetwork) || !strings.HasPrefix(got.Err.Error(), "ollama: cannot reach 127.0.0.1:") || len(*waits) != 4 {
		t.Errorf("got %v after %d waits", got.Err, len(*waits))
	}
}

func TestBrokenInTheMiddle(t *testing.T) {
	some := chunk(role, "null") + chunk(content("Hel"), "null")
	wiretest.BrokenInTheMiddle(t, at,
		wiretest.Break{Name: "connection dropped", Answer: wiretest.Cut(some), Kind: llm.ErrNetwork, Says: "lost the connection"},
		wiretest.Break{Name: "ended in good order", Answer: wiretest.SSE(some), Kind: llm.ErrNetwork, Says: "ended before the answer did"},
		wiretest.Break{Name: "done without a reason", Answer: wiretest.SSE(some + done), Kind: llm.ErrNetwork, Says: "ended before the answer did"},
		wiretest.Break{Name: "dropped behind the reason", Answer: wiretest.Cut(some + chunk("{}", `"stop"`)), Kind: llm.ErrNetwork, Says: "lost the connection"},
		wiretest.Break{Name: "error event", Answer: wiretest.SSE(some + `data: {"error":{"message":"upstream died","type":"server_error","code":500}}` + "\n\n"), Kind: llm.ErrBusy, Says: "upstream died"},
		wiretest.Break{Name: "not JSON", Answer: wiretest.SSE(some + "data: {\"choices\":[\n\n"), Kind: llm.ErrNetwork, Says: "malformed event"},
		wiretest.Break{Name: "too long, too late", Answer: wiretest.SSE(some + `data: {"error":{"code":500,"message":"Context size has been exceeded.","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}` + "\n\n"), Kind: llm.ErrBusy, Says: "Context size"},
	)
}

func TestSilence(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"before the head": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the stream":   wiretest.Hang(chunk(role, "null")),
	} {
		srv := wiretest.Serve(t, answer)
		p, _ := provider(srv.URL, func(c *Config) { c.Idle = 40 * time.Millisecond })
		got := wiretest.Collect(t, p.Stream(t.Context(), hello))
		if !errors.Is(got.Err, llm.ErrNetwork) || !strings.Contains(got.Err.Error(), "nothing came for 40ms") {
			t.Errorf("%s: got %v", name, got.Err)
		}
	}
}

func TestCancel(t *testing.T) {
	srv := wiretest.Serve(t, wiretest.Hang(chunk(content("Hel"), "null")))
	p, _ := provider(srv.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	start := time.Now()
	for d, err := range p.Stream(ctx, hello) {
		if last = err; d.Text == "Hel" {
			cancel()
		}
	}
	if last != context.Canceled || time.Since(start) > time.Minute { // silence would end it after five
		t.Errorf("got %v after %s", last, time.Since(start))
	}
}

func TestReaderLeaves(t *testing.T) {
	left := make(chan struct{})
	srv := wiretest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		wiretest.Hang(chunk(content("Hel"), "null"))(w, r)
		close(left)
	})
	p, _ := provider(srv.URL)
	for range p.Stream(t.Context(), hello) {
		break
	}
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the call was not ended")
	}
}

func BenchmarkBuild200k(b *testing.B) {
	p := New(Config{BaseURL: "http://localhost"})
	req := everything()
	for len(req.Messages) < 400 {
		req.Messages = append(req.Messages, llm.AssistantText(strings.Repeat("word ", 400)), llm.UserText(strings.Repeat("word ", 400)))
	}
	for b.Loop() { // 800 KB are about 200k tokens
		body, err := p.build(req, "")
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

// Every server's word for an answer that reached its limit; one that filled the
// window before the first word is a prompt that was too long.
func TestLengthFinishes(t *testing.T) {
	for _, finish := range []string{"length", "model_length", "max_tokens", "model_context_window_exceeded"} {
		srv := wiretest.Serve(t, wiretest.SSE(chunk(`{"role":"assistant","content":"Hel"}`, "null"), chunk(`{}`, `"`+finish+`"`), "data: [DONE]\n\n"))
		p, _ := provider(srv.URL)
		got := wiretest.Collect(t, p.Stream(t.Context(), llm.Request{Model: "m", Messages: []llm.Message{llm.UserText("hi")}}))
		if got.Err != nil || got.End.Stop != llm.StopLength || got.Text != "Hel" {
			t.Errorf("%s: %+v, %v", finish, got.End, got.Err)
		}
	}
	srv := wiretest.Serve(t, wiretest.SSE(chunk(`{"role":"assistant","content":""}`, `"model_context_window_exceeded"`), "data: [DONE]\n\n"))
	p, _ := provider(srv.URL)
	got := wiretest.Collect(t, p.Stream(t.Context(), llm.Request{Model: "m", Messages: []llm.Message{llm.UserText("hi")}}))
	if !errors.Is(got.Err, llm.ErrOverflow) || got.Deltas != 0 {
		t.Errorf("%d deltas, %v", got.Deltas, got.Err)
	}
}
