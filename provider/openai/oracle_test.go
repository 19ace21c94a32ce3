package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
	"goclaw/provider/internal/wiretest"
	"goclaw/session/sessiontest"
)

// OpenAI's own SDK is the oracle here: the same bytes go through it and through
// this package and must mean the same.

// seen is what either makes of a chunk.
type seen struct {
	ID, Model                  string
	Usage                      *llm.Usage
	Choices                    int
	Content, Thinking, Refusal string
	Finish                     string
	Calls                      []callPart
}

func ours(c streamChunk) seen {
	s := seen{ID: string(c.ID), Model: string(c.Model), Choices: len(c.Choices)}
	if c.Usage != nil {
		u := c.Usage.tokens()
		s.Usage = &u
	}
	if len(c.Choices) > 0 {
		d := c.Choices[0].Delta
		s.Content, s.Refusal, s.Finish, s.Calls = string(d.Content), string(d.Refusal), string(c.Choices[0].Finish), d.Calls
		s.Thinking = string(d.ReasoningContent) + "|" + string(d.Reasoning)
	}
	return s
}

func theirs(c sdk.ChatCompletionChunk) seen {
	s := seen{ID: wire.Clean(c.ID), Model: wire.Clean(c.Model), Choices: len(c.Choices)}
	text := func(f respjson.Field) string {
		var t wire.Text
		if f.Raw() == "" || json.Unmarshal([]byte(f.Raw()), &t) != nil {
			return ""
		}
		return string(t)
	}
	if c.JSON.Usage.Valid() {
		d := c.Usage.PromptTokensDetails
		var hit wire.Number
		if raw := c.Usage.JSON.ExtraFields["prompt_cache_hit_tokens"].Raw(); raw != "" {
			json.Unmarshal([]byte(raw), &hit)
		}
		read := int(d.CachedTokens)
		if read == 0 {
			read = hit.N
		}
		write := int(d.CacheWriteTokens)
		s.Usage = &llm.Usage{Input: max(0, int(c.Usage.PromptTokens)-read-write), Output: int(c.Usage.CompletionTokens), CacheRead: read, CacheWrite: write}
	}
	if len(c.Choices) > 0 {
		d := c.Choices[0].Delta
		s.Content, s.Refusal, s.Finish = wire.Clean(d.Content), wire.Clean(d.Refusal), wire.Clean(c.Choices[0].FinishReason)
		s.Thinking = text(d.JSON.ExtraFields["reasoning_content"]) + "|" + text(d.JSON.ExtraFields["reasoning"])
		for _, t := range d.ToolCalls {
			p := callPart{Index: wire.Number{N: int(t.Index), Given: t.JSON.Index.Valid()}, ID: wire.Text(wire.Clean(t.ID))}
			p.Function.Name, p.Function.Arguments = wire.Text(wire.Clean(t.Function.Name)), wire.Text(wire.Clean(t.Function.Arguments))
			s.Calls = append(s.Calls, p)
		}
	}
	return s
}

// compareStreams says where the SDK reads a stream differently, or nothing.
func compareStreams(stream string) string {
	var got, want []seen
	var gotErr, wantErr string
	for c, err := range decode(strings.NewReader(stream)) {
		if err != nil {
			gotErr = err.Error()
			if inside := (*wire.StreamError)(nil); errors.As(err, &inside) {
				gotErr = "error event " + strings.TrimSpace(string(inside.Data))
			}
			break
		}
		got = append(got, ours(c))
	}
	s := ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(wiretest.Stream(stream)), nil)
	for s.Next() {
		want = append(want, theirs(s.Current()))
	}
	if err := s.Err(); err != nil {
		wantErr = err.Error()
		if inside := (*ssestream.StreamError)(nil); errors.As(err, &inside) {
			wantErr = "error event " + strings.TrimSpace(string(inside.Event.Data))
			if !json.Valid(inside.Event.Data) && gotErr != "" {
				wantErr = gotErr // the SDK finds an error in what is no JSON, too
			}
		}
	}
	if _, typ, ok := strings.Cut(wantErr, "cannot unmarshal "); ok { // the rest is the name of a Go type
		wantErr, gotErr = strings.Fields(typ)[0], strings.Fields(strings.TrimPrefix(gotErr, "json: cannot unmarshal ") + " ")[0]
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty()) + cmp.Diff(wantErr, gotErr)
}

// drawChunk draws a chunk whose fields may be missing or of another type.
func drawChunk(t *rapid.T) string {
	odd := func(good string) string { return wiretest.Odd(t, good) }
	name := rapid.SampledFrom([]string{"", "", "", "message", "error"}).Draw(t, "name")
	if rapid.IntRange(0, 9).Draw(t, "special") == 0 {
		data := rapid.SampledFrom([]string{"[DONE]", "[DONE] ", `{"error":{"message":"m","code":500}}`, `{"error":"text"}`, `{"id":`, "nonsense", `"text"`, "[1]", `{"id":"x"}}`}).Draw(t, "data")
		return wiretest.Frame(t, name, data)
	}
	var choices []string
	for range rapid.IntRange(0, 2).Draw(t, "choices") {
		var calls []string
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			calls = append(calls, wiretest.Object(t, "index", odd("1"), "id", odd(`"call_1"`), "type", odd(`"function"`),
				"function", wiretest.Object(t, "name", odd(`"read"`), "arguments", odd(`"{\"a\":"`))))
		}
		delta := wiretest.Object(t, "role", `"assistant"`, "content", odd(`"\u00e4\ud83d\ude00"`), "refusal", odd(`"no"`),
			"reasoning_content", odd(`"hm"`), "reasoning", odd(`"hm"`), "tool_calls", "["+strings.Join(calls, ",")+"]")
		choices = append(choices, wiretest.Object(t, "index", odd("0"), "delta", delta, "finish_reason", odd(`"stop"`)))
	}
	usage := wiretest.Object(t, "prompt_tokens", odd("100"), "completion_tokens", odd("7"), "prompt_cache_hit_tokens", odd("5"),
		"prompt_tokens_details", wiretest.Object(t, "cached_tokens", odd("20"), "cache_write_tokens", odd("3")))
	if rapid.Bool().Draw(t, "no usage") {
		usage = "null"
	}
	return wiretest.Frame(t, name, wiretest.Object(t, "id", odd(`"chatcmpl-1"`), "model", odd(`"gpt"`), "choices", "["+strings.Join(choices, ",")+"]", "usage", usage))
}

func anyStream(t *rapid.T) {
	var b strings.Builder
	for range rapid.IntRange(1, 6).Draw(t, "chunks") {
		b.WriteString(drawChunk(t))
	}
	if diff := compareStreams(b.String()); diff != "" {
		t.Fatalf("stream\n%s\n-theirs +ours\n%s", b.String(), diff)
	}
}

func TestAnyStreamAsTheSDKReadsIt(t *testing.T) { rapid.Check(t, anyStream) }

func FuzzAnyStream(f *testing.F) {
	sessiontest.Seeds(f)
	f.Fuzz(rapid.MakeFuzz(anyStream))
}

// The SDK takes "error":null for an error, and a byte order mark for a name.
func TestStreamsTheSDKCannotRead(t *testing.T) {
	stream := "\uFEFFdata: {\"error\":null,\"model\":\"m\",\"choices\":[]}\n\ndata: [DONE]\n\n"
	n := 0
	for c, err := range decode(strings.NewReader(stream)) {
		if n++; err != nil || c.Model != "m" {
			t.Errorf("got %+v, %v", c, err)
		}
	}
	if n != 1 {
		t.Errorf("got %d chunks", n)
	}
}

// The SDK understands every field of a request, and would send the same; and
// it asks the same address with the same headers.
func TestRequestsAsTheSDKSendsThem(t *testing.T) {
	req := everything()
	for _, model := range []string{"gpt-4o", "gpt-5", "gpt-5.2", "o3", "gpt-6.1-sol", "qwen3:8b"} {
		for _, level := range []string{"", "off", "minimal", "low", "medium", "high", "xhigh"} {
			for _, base := range []string{"", "http://host:8080", "https://gateway/openai/v1/"} {
				req.Model, req.Thinking = model, level
				compareRequests(t, req, base)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) { compareRequests(t, wiretest.Conversation(rt), "http://host/v1") })
}

func compareRequests(t *testing.T, req llm.Request, base string) {
	t.Helper()
	own := &wiretest.Answered{Status: 400, Header: http.Header{}, Body: "{}"}
	header := map[string]string{"http-referer": "https://example.org", "X-Title": "goclaw"}
	for range New(Config{BaseURL: base, APIKey: "key", HTTPClient: own.Client(), Header: header}).Stream(t.Context(), req) {
	}
	var params sdk.ChatCompletionNewParams
	if err := json.Unmarshal(own.Sent, &params); err != nil {
		t.Fatalf("the SDK cannot read %s: %v", own.Sent, err)
	}
	their := &wiretest.Answered{Status: 400, Header: http.Header{}, Body: "{}"}
	at, _ := resolve(base)
	service := sdk.NewChatCompletionService(option.WithBaseURL(at+"/"), option.WithAPIKey("key"), option.WithHTTPClient(their.Client()), option.WithMaxRetries(0),
		option.WithHeader("http-referer", "https://example.org"), option.WithHeader("X-Title", "goclaw"))
	service.NewStreaming(t.Context(), params).Close()
	sameRequest(t, own, their)
}

// sameRequest checks that both were sent the same, to the same address.
func sameRequest(t *testing.T, own, their *wiretest.Answered) {
	t.Helper()
	var got, want map[string]any
	if json.Unmarshal(own.Sent, &got) != nil || json.Unmarshal(their.Sent, &want) != nil {
		t.Fatalf("sent %s and %s", own.Sent, their.Sent)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-theirs +ours\n%s", diff)
	}
	if g, w := own.Request.URL.String(), their.Request.URL.String(); g != w || own.Request.Method != their.Request.Method {
		t.Errorf("asked %s, the SDK %s", g, w)
	}
	headers := maps.Clone(their.Request.Header)
	for k := range headers {
		if strings.HasPrefix(k, "X-Stainless-") {
			delete(headers, k) // who and where the SDK is
		}
	}
	headers.Set("User-Agent", "goclaw")
	if diff := cmp.Diff(headers, own.Request.Header); diff != "" {
		t.Errorf("headers -theirs +ours\n%s", diff)
	}
}

// Errors say the same to both, where the SDK knows their shape.
func TestErrorsAsTheSDKReadsThem(t *testing.T) {
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Status int
		Body   json.RawMessage
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d answers, %v", len(cases), err)
	}
	compared := 0
	for _, c := range cases {
		their := &wiretest.Answered{Status: c.Status, Header: http.Header{"Content-Type": {"application/json"}}, Body: string(c.Body)}
		service := sdk.NewChatCompletionService(option.WithBaseURL("http://host/"), option.WithHTTPClient(their.Client()), option.WithMaxRetries(0))
		stream := service.NewStreaming(t.Context(), sdk.ChatCompletionNewParams{Model: "m"})
		var want *sdk.Error
		if c.Status < 400 || !errors.As(stream.Err(), &want) || want.Message == "" {
			continue
		}
		got := read(c.Status, nil, c.Body)
		if got.above {
			continue // what the provider behind OpenRouter said, which the SDK does not look at
		}
		compared++
		if got.status != want.StatusCode || got.msg != wire.Line(want.Message) || got.typ != want.Type || got.code != want.Code || got.param != want.Param {
			t.Errorf("%s: read as %+v, by the SDK as %+v", c.Name, got, want)
		}
	}
	if compared == 0 {
		t.Error("no error was compared")
	}
}
