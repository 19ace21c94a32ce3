package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
	"goclaw/provider/internal/wiretest"
	"goclaw/session/sessiontest"
)

// Anthropic's own SDK is the oracle here: the same bytes go through it and
// through this package and must mean the same.

// seen is what either makes of an event.
type seen struct {
	Type, Model string
	Index       int
	Began, Sum  llm.Usage
	Given       [4]bool // which counts of Sum are there
	Block       map[string]string
	Delta       map[string]string
}

func filled(kv ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] != "" {
			out[kv[i]] = wire.Clean(kv[i+1]) // the SDK passes bad bytes on
		}
	}
	return out
}

func sorted(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil || v == nil {
		return ""
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func ours(ev streamEvent) seen {
	s := seen{Type: string(ev.Type), Index: ev.Index.N, Model: string(ev.Message.Model)}
	ev.Message.Usage.set(&s.Began)
	ev.Usage.set(&s.Sum)
	s.Given = [4]bool{ev.Usage.Input.Given, ev.Usage.Output.Given, ev.Usage.CacheRead.Given, ev.Usage.CacheWrite.Given}
	b, d := ev.Block, ev.Delta
	s.Block = filled("type", string(b.Type), "text", string(b.Text), "thinking", string(b.Thinking), "signature", string(b.Signature),
		"data", string(b.Data), "id", string(b.ID), "name", string(b.Name), "input", sorted(b.Input), "raw", sorted(b.raw))
	s.Delta = filled("type", string(d.Type), "text", string(d.Text), "thinking", string(d.Thinking), "signature", string(d.Signature),
		"json", string(d.JSON), "stop", string(d.StopReason), "why", string(d.Details.Explanation))
	return s
}

func theirs(ev sdk.MessageStreamEventUnion) seen {
	u, sum := ev.Message.Usage, ev.Usage
	s := seen{Type: ev.Type, Index: int(ev.Index), Model: string(ev.Message.Model)}
	s.Began = llm.Usage{Input: int(u.InputTokens), Output: int(u.OutputTokens), CacheRead: int(u.CacheReadInputTokens), CacheWrite: int(u.CacheCreationInputTokens)}
	s.Sum = llm.Usage{Input: int(sum.InputTokens), Output: int(sum.OutputTokens), CacheRead: int(sum.CacheReadInputTokens), CacheWrite: int(sum.CacheCreationInputTokens)}
	s.Given = [4]bool{sum.JSON.InputTokens.Valid(), sum.JSON.OutputTokens.Valid(), sum.JSON.CacheReadInputTokens.Valid(), sum.JSON.CacheCreationInputTokens.Valid()}
	b, d := ev.ContentBlock, ev.Delta
	input, _ := json.Marshal(b.Input)
	s.Block = filled("type", b.Type, "text", b.Text, "thinking", b.Thinking, "signature", b.Signature,
		"data", b.Data, "id", b.ID, "name", b.Name, "input", sorted(input), "raw", sorted([]byte(b.RawJSON())))
	s.Delta = filled("type", d.Type, "text", d.Text, "thinking", d.Thinking, "signature", d.Signature,
		"json", d.PartialJSON, "stop", string(d.StopReason), "why", d.StopDetails.Explanation)
	return s
}

// compareStreams says where the SDK reads a stream differently, or nothing.
func compareStreams(stream string) string {
	var got, want []seen
	var gotErr, wantErr string
	for ev, err := range decode(strings.NewReader(stream)) {
		if err != nil {
			gotErr = err.Error()
			if inside := (*wire.StreamError)(nil); errors.As(err, &inside) {
				gotErr = "error event " + strings.TrimSpace(string(inside.Data))
			}
			break
		}
		got = append(got, ours(ev))
	}
	res := wiretest.Stream(stream)
	res.Request, _ = http.NewRequest(http.MethodPost, "http://localhost/v1/messages", nil)
	s := ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(res), nil)
	for s.Next() {
		want = append(want, theirs(s.Current()))
	}
	if err := s.Err(); err != nil {
		wantErr = err.Error()
		if inside := (*sdk.Error)(nil); errors.As(err, &inside) {
			wantErr = "error event " + strings.TrimSpace(inside.RawJSON())
		}
	}
	return cmp.Diff(want, got) + cmp.Diff(wantErr, gotErr)
}

func drawUsage(t *rapid.T) string {
	return wiretest.Object(t, "input_tokens", wiretest.Odd(t, "12"), "output_tokens", wiretest.Odd(t, "7"),
		"cache_read_input_tokens", wiretest.Odd(t, "100"), "cache_creation_input_tokens", wiretest.Odd(t, `3`))
}

// drawEvent draws an event whose fields may be missing or of another type.
func drawEvent(t *rapid.T) string {
	odd := func(good string) string { return wiretest.Odd(t, good) }
	name := rapid.SampledFrom([]string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error", "", "later"}).Draw(t, "name")
	data := `{"type":"` + name + `"}`
	switch name {
	case "message_start":
		data = wiretest.Object(t, "type", `"message_start"`, "message", wiretest.Object(t, "id", `"m"`, "model", odd(`"claude"`), "usage", drawUsage(t)))
	case "content_block_start":
		kind := rapid.SampledFrom([]string{"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "hologram"}).Draw(t, "kind")
		data = wiretest.Object(t, "type", `"content_block_start"`, "index", odd("1"), "content_block",
			wiretest.Object(t, "type", `"`+kind+`"`, "text", odd(`"hi"`), "thinking", odd(`"hm"`), "signature", odd(`"s"`), "data", odd(`"d"`),
				"id", odd(`"toolu_1"`), "name", odd(`"read"`), "input", odd(`{"b":1,"a":[2.5]}`)))
	case "content_block_delta":
		kind := rapid.SampledFrom([]string{"text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta"}).Draw(t, "kind")
		data = wiretest.Object(t, "type", `"content_block_delta"`, "index", odd("1"), "delta",
			wiretest.Object(t, "type", `"`+kind+`"`, "text", odd(`"\u00e4\ud83d\ude00"`), "thinking", odd(`"hm"`), "signature", odd(`"s"`), "partial_json", odd(`"{\"a\":"`)))
	case "message_delta":
		data = wiretest.Object(t, "type", `"message_delta"`, "delta",
			wiretest.Object(t, "stop_reason", odd(`"end_turn"`), "stop_details", wiretest.Object(t, "type", `"refusal"`, "explanation", odd(`"no"`))), "usage", drawUsage(t))
	case "error":
		data = rapid.SampledFrom([]string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, `{"error":1}`, `[]`}).Draw(t, "error")
	}
	if rapid.IntRange(0, 30).Draw(t, "broken") == 0 {
		data = rapid.SampledFrom([]string{`{"type":`, "", "nonsense", `{"type":"x"}}`}).Draw(t, "data")
	}
	return wiretest.Frame(t, name, data)
}

func anyStream(t *rapid.T) {
	var b strings.Builder
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		b.WriteString(drawEvent(t))
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

// The SDK understands every field of a request, and would send the same; and
// it asks the same address with the same headers.
func TestRequestsAsTheSDKSendsThem(t *testing.T) {
	req := everything()
	for _, model := range []string{"claude-3-5-haiku-latest", "claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5", "claude-opus-5-5", "claude-sonnet-5-5", "m"} {
		for _, level := range []string{"", "off", "minimal", "low", "medium", "high", "xhigh"} {
			req.Model, req.Thinking = model, level
			compareRequests(t, req)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		req := wiretest.Conversation(rt)
		req.Model = "claude-sonnet-4-5"
		compareRequests(t, req)
	})
}

func compareRequests(t *testing.T, req llm.Request) {
	t.Helper()
	own := &wiretest.Answered{Status: 400, Header: http.Header{}, Body: "{}"}
	for range New(Config{BaseURL: "http://host/base/v1/", APIKey: "key", HTTPClient: own.Client()}).Stream(t.Context(), req) {
	}
	var params sdk.MessageNewParams
	if err := json.Unmarshal(own.Sent, &params); err != nil {
		t.Fatalf("the SDK cannot read %s: %v", own.Sent, err)
	}
	their := &wiretest.Answered{Status: 400, Header: http.Header{}, Body: "{}"}
	opts := []option.RequestOption{option.WithBaseURL("http://host/base/"), option.WithAPIKey("key"), option.WithHTTPClient(their.Client()), option.WithMaxRetries(0)}
	if beta := own.Request.Header.Get("Anthropic-Beta"); beta != "" {
		opts = append(opts, option.WithHeader("anthropic-beta", beta))
	}
	service := sdk.NewMessageService(opts...)
	stream := service.NewStreaming(t.Context(), params)
	stream.Close()
	var got, want map[string]any
	if json.Unmarshal(own.Sent, &got) != nil || json.Unmarshal(their.Sent, &want) != nil {
		t.Fatalf("sent %s and %s", own.Sent, their.Sent)
	}
	// The SDK does not know the control of bindings yet and leaves it out.
	if th, ok := got["thinking"].(map[string]any); ok {
		delete(th, "block_binding")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-theirs +ours\n%s", diff)
	}
	if g, w := own.Request.URL.String(), their.Request.URL.String(); g != w || own.Request.Method != their.Request.Method {
		t.Errorf("asked %s, the SDK %s", g, w)
	}
	compareHeaders(t, own.Request.Header, their.Request.Header)
}

// compareHeaders holds the headers against the SDK's, but for those in which
// it says who and where it is.
func compareHeaders(t *testing.T, got, want http.Header) {
	t.Helper()
	want = maps.Clone(want)
	for k := range want {
		if strings.HasPrefix(k, "X-Stainless-") {
			delete(want, k)
		}
	}
	want.Set("User-Agent", "goclaw")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers -theirs +ours\n%s", diff)
	}
}

// Errors say the same to both.
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
	for _, c := range cases {
		body := c.Body
		var text string
		if json.Unmarshal(body, &text) == nil {
			body = []byte(text)
		}
		their := &wiretest.Answered{Status: c.Status, Header: http.Header{"Content-Type": {"application/json"}}, Body: string(body)}
		service := sdk.NewMessageService(option.WithBaseURL("http://host/"), option.WithHTTPClient(their.Client()), option.WithMaxRetries(0))
		stream := service.NewStreaming(t.Context(), sdk.MessageNewParams{Model: "m", MaxTokens: 1})
		var want *sdk.Error
		if c.Status < 400 || !errors.As(stream.Err(), &want) {
			continue // the SDK takes a page with 200 for a stream
		}
		got := read(c.Status, nil, body)
		if got.status != want.StatusCode || got.typ != string(want.Type()) {
			t.Errorf("%s: read as %d %q, by the SDK as %d %q", c.Name, got.status, got.typ, want.StatusCode, want.Type())
		}
	}
}

// What is not in the SDK's decoder: a byte order mark, and an end to patience.
func TestStreamsTheSDKCannotRead(t *testing.T) {
	all := text("Hi")
	for name, stream := range map[string]string{
		"a byte order mark": "\uFEFF" + events(all...),
	} {
		var types []string
		for ev, err := range decode(strings.NewReader(stream)) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			types = append(types, string(ev.Type))
		}
		if len(types) != len(all)-1 || !slices.Contains(types, "message_start") { // no ping
			t.Errorf("%s: got %v", name, types)
		}
	}
	endless := bytes.Repeat([]byte("x"), 40<<20)
	for name, stream := range map[string]string{
		"one line":   "event: message_start\ndata: " + string(endless),
		"many lines": "event: message_start\n" + strings.Repeat("data: "+string(endless[:1<<20])+"\n", 40),
	} {
		var last error
		for _, err := range decode(strings.NewReader(stream)) {
			last = err
		}
		var garbled *wire.MalformedError
		if !errors.As(last, &garbled) || !strings.Contains(last.Error(), "more than 8 MiB") {
			t.Errorf("%s: got %v", name, last)
		}
	}
}
