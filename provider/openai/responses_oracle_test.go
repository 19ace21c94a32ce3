package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	sdkresponses "github.com/openai/openai-go/v3/responses"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
	"goclaw/provider/internal/wiretest"
	"goclaw/session/sessiontest"
)

// seenEvent is what OpenAI's SDK and this package make of an event.
type seenEvent struct {
	Type, Delta, Model, Reason, Code string
	Index, Part                      int
	Usage                            *llm.Usage
	Item                             seenItem
}

type seenItem struct {
	Type, ID, CallID, Name, Arguments, Phase, Encrypted string
	Parts                                               []string
}

func ourEvent(ev responseEvent) seenEvent {
	s := seenEvent{Type: string(ev.Type), Delta: string(ev.Delta), Index: ev.Index.N, Part: ev.Part.N, Model: string(ev.Response.Model), Reason: string(ev.Response.Details.Reason)}
	if ev.Response.Usage != nil {
		u := ev.Response.Usage.tokens()
		s.Usage = &u
	}
	var e struct{ Code wire.Text }
	if ev.Type == "error" {
		json.Unmarshal(ev.raw, &e)
	} else {
		json.Unmarshal(ev.Response.Error, &e)
	}
	s.Code = string(e.Code)
	it := ev.Item
	s.Item = seenItem{string(it.Type), string(it.ID), string(it.CallID), string(it.Name), string(it.Arguments), string(it.Phase), string(it.Encrypted), nil}
	for _, p := range it.Summary {
		s.Item.Parts = append(s.Item.Parts, "summary "+string(p.Text))
	}
	for _, p := range it.Content {
		s.Item.Parts = append(s.Item.Parts, "content "+string(p.Text)+"|"+string(p.Refusal))
	}
	return s
}

func theirEvent(ev sdkresponses.ResponseStreamEventUnion) seenEvent {
	s := seenEvent{Type: wire.Clean(ev.Type), Delta: wire.Clean(ev.Delta), Index: int(ev.OutputIndex), Part: int(ev.SummaryIndex), Model: wire.Clean(string(ev.Response.Model)), Reason: wire.Clean(ev.Response.IncompleteDetails.Reason)}
	if ev.Response.JSON.Usage.Valid() {
		u := ev.Response.Usage
		read, write := int(u.InputTokensDetails.CachedTokens), int(u.InputTokensDetails.CacheWriteTokens)
		s.Usage = &llm.Usage{Input: max(0, int(u.InputTokens)-read-write), Output: int(u.OutputTokens), CacheRead: read, CacheWrite: write}
	}
	s.Code = wire.Clean(string(ev.Response.Error.Code))
	if ev.Type == "error" {
		s.Code = wire.Clean(ev.Code)
	}
	it := ev.Item
	s.Item = seenItem{wire.Clean(it.Type), wire.Clean(it.ID), wire.Clean(it.CallID), wire.Clean(it.Name), wire.Clean(it.Arguments.OfString), wire.Clean(string(it.Phase)), wire.Clean(it.EncryptedContent), nil}
	for _, p := range it.Summary {
		s.Item.Parts = append(s.Item.Parts, "summary "+wire.Clean(p.Text))
	}
	switch it.Type {
	case "message":
		for _, p := range it.AsMessage().Content {
			s.Item.Parts = append(s.Item.Parts, "content "+wire.Clean(p.Text)+"|"+wire.Clean(p.Refusal))
		}
	case "reasoning":
		for _, p := range it.AsReasoning().Content {
			s.Item.Parts = append(s.Item.Parts, "content "+wire.Clean(p.Text)+"|")
		}
	}
	return s
}

// compareResponses says where the SDK reads a stream differently, or nothing.
func compareResponses(stream string) string {
	var got, want []seenEvent
	var gotErr, wantErr string
	for ev, err := range decodeEvents(strings.NewReader(stream)) {
		if err != nil {
			gotErr = "error"
			if inside := (*wire.StreamError)(nil); errors.As(err, &inside) {
				gotErr = "error event " + strings.TrimSpace(string(inside.Data))
			}
			break
		}
		got = append(got, ourEvent(ev))
	}
	s := ssestream.NewStream[sdkresponses.ResponseStreamEventUnion](ssestream.NewDecoder(wiretest.Stream(stream)), nil)
	for s.Next() {
		want = append(want, theirEvent(s.Current()))
	}
	if err := s.Err(); err != nil {
		wantErr = "error"
		if inside := (*ssestream.StreamError)(nil); errors.As(err, &inside) && gotErr != "error" {
			wantErr = "error event " + strings.TrimSpace(string(inside.Event.Data))
		}
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty()) + cmp.Diff(wantErr, gotErr)
}

// drawEvent draws an event of any kind; fields may be missing.
func drawEvent(t *rapid.T) string {
	name := rapid.SampledFrom([]string{"response.created", "response.in_progress", "response.output_item.added", "response.output_item.done", "response.output_text.delta",
		"response.refusal.delta", "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
		"response.function_call_arguments.delta", "response.function_call_arguments.done", "response.content_part.done", "response.completed", "response.incomplete", "response.failed", "error", "response.new_kind"}).Draw(t, "type")
	if rapid.IntRange(0, 15).Draw(t, "special") == 0 {
		return wiretest.Frame(t, name, rapid.SampledFrom([]string{"[DONE]", `{"error":{"message":"m","code":500}}`, `{"error":"text"}`, `{"type":`, "nonsense", `{"type":"x"}}`}).Draw(t, "data"))
	}
	str := func(s string) string {
		return rapid.SampledFrom([]string{s, s, s, "null", `""`, `"\u00e4\ud83d\ude00"`}).Draw(t, "string")
	}
	num := func(n string) string { return rapid.SampledFrom([]string{n, n, "0", "null", "2.0"}).Draw(t, "number") }
	fields := []string{"type", `"` + name + `"`, "sequence_number", num("3")}
	if strings.HasSuffix(name, ".delta") {
		fields = append(fields, "delta", str(`"Hel"`))
	}
	if strings.Contains(name, "item") || strings.HasSuffix(name, ".delta") || strings.Contains(name, "part") {
		fields = append(fields, "output_index", num("1"), "summary_index", num("1"), "content_index", num("0"))
	}
	if strings.HasPrefix(name, "response.output_item") {
		kind := rapid.SampledFrom([]string{"message", "reasoning", "function_call"}).Draw(t, "item")
		it := []string{"id", str(`"x_1"`), "status", str(`"completed"`)}
		switch kind {
		case "message":
			it = append(it, "role", `"assistant"`, "phase", str(`"commentary"`), "content", "["+wiretest.Object(t, "type", `"output_text"`, "text", str(`"hi"`), "annotations", "[]")+","+wiretest.Object(t, "type", `"refusal"`, "refusal", str(`"no"`))+"]")
		case "reasoning":
			it = append(it, "summary", "["+wiretest.Object(t, "type", `"summary_text"`, "text", str(`"hm"`))+"]", "encrypted_content", str(`"gAAA"`), "content", "["+wiretest.Object(t, "type", `"reasoning_text"`, "text", str(`"hm"`))+"]")
		default:
			it = append(it, "call_id", str(`"call_1"`), "name", str(`"read"`), "arguments", str(`"{}"`))
		}
		fields = append(fields, "item", `{"type":"`+kind+`",`+strings.TrimPrefix(wiretest.Object(t, it...), "{"))
		if strings.HasSuffix(fields[len(fields)-1], ",}") {
			fields[len(fields)-1] = `{"type":"` + kind + `"}`
		}
	}
	switch name {
	case "response.created", "response.completed", "response.incomplete", "response.failed":
		usage := wiretest.Object(t, "input_tokens", num("100"), "output_tokens", num("7"), "input_tokens_details", wiretest.Object(t, "cached_tokens", num("20"), "cache_write_tokens", num("3")))
		if rapid.Bool().Draw(t, "no usage") {
			usage = "null"
		}
		fields = append(fields, "response", wiretest.Object(t, "id", str(`"resp_1"`), "model", str(`"gpt-5"`), "usage", usage, "incomplete_details", wiretest.Object(t, "reason", str(`"max_output_tokens"`)),
			"error", rapid.SampledFrom([]string{"null", `{"code":"server_error","message":"m"}`}).Draw(t, "failure")))
	case "error":
		fields = append(fields, "code", str(`"server_error"`), "message", str(`"m"`), "param", str(`"input"`))
	}
	data := `{"type":"` + name + `"`
	for i := 2; i < len(fields); i += 2 {
		if rapid.IntRange(0, 9).Draw(t, "missing") > 0 {
			data += `,"` + fields[i] + `":` + fields[i+1]
		}
	}
	return wiretest.Frame(t, name, data+"}")
}

func anyResponse(t *rapid.T) {
	var b strings.Builder
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		b.WriteString(drawEvent(t))
	}
	if diff := compareResponses(b.String()); diff != "" {
		t.Fatalf("stream\n%s\n-theirs +ours\n%s", b.String(), diff)
	}
}

func TestAnyResponseAsTheSDKReadsIt(t *testing.T) { rapid.Check(t, anyResponse) }

func FuzzAnyResponse(f *testing.F) {
	sessiontest.Seeds(f)
	f.Fuzz(rapid.MakeFuzz(anyResponse))
}

// The SDK understands every field of a request, and would send the same; and
// it asks the same address with the same headers.
func TestResponsesRequestsAsTheSDKSendsThem(t *testing.T) {
	req := everything()
	req.Messages[1].Blocks = append([]llm.Block{llm.Thinking{Text: "hm", Signature: sig("rs_1", "gAAA")}}, req.Messages[1].Blocks[1:]...)
	text := req.Messages[1].Blocks[1].(llm.Text)
	text.Signature = `{"v":1,"id":"msg_1","phase":"commentary"}`
	req.Messages[1].Blocks[1] = text
	call := req.Messages[1].Blocks[2].(llm.ToolCall)
	call.Signature = "fc_1"
	req.Messages[1].Blocks[2] = call
	for _, model := range []string{"gpt-4o", "gpt-5", "gpt-5.2", "o3", "gpt-6.1-sol", "qwen3:8b"} {
		for _, level := range []string{"", "off", "minimal", "low", "medium", "high", "xhigh", "max"} {
			for _, base := range []string{"", "http://host:8080", "https://gateway/openai/v1/"} {
				req.Model, req.Thinking = model, level
				compareResponsesRequests(t, req, base)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) { compareResponsesRequests(t, wiretest.Conversation(rt), "http://host/v1") })
}

func compareResponsesRequests(t *testing.T, req llm.Request, base string) {
	t.Helper()
	own := &wiretest.Answered{Status: 400, Header: http.Header{}, Body: "{}"}
	for range NewResponses(Config{BaseURL: base, APIKey: "key", HTTPClient: own.Client(), Header: map[string]string{"X-Title": "goclaw"}}).Stream(t.Context(), req) {
	}
	var params sdkresponses.ResponseNewParams
	if err := json.Unmarshal(own.Sent, &params); err != nil {
		t.Fatalf("the SDK cannot read %s: %v", own.Sent, err)
	}
	var items struct{ Input []json.RawMessage }
	if err := json.Unmarshal(own.Sent, &items); err != nil {
		t.Fatal(err)
	}
	for i, raw := range items.Input {
		// The SDK takes a message of the model for one of the user, as both have
		// the same type.
		var m sdkresponses.ResponseOutputMessageParam
		if json.Unmarshal(raw, &m) == nil && m.Type == "message" && m.ID != "" {
			params.Input.OfInputItemList[i] = sdkresponses.ResponseInputItemUnionParam{OfOutputMessage: &m}
		}
	}
	their := &wiretest.Answered{Status: 400, Header: http.Header{}, Body: "{}"}
	at, _ := resolve(base)
	service := sdkresponses.NewResponseService(option.WithBaseURL(at+"/"), option.WithAPIKey("key"), option.WithHTTPClient(their.Client()), option.WithMaxRetries(0), option.WithHeader("X-Title", "goclaw"))
	service.NewStreaming(t.Context(), params).Close()
	sameRequest(t, own, their)
}
