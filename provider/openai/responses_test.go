package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/provider/internal/wiretest"
)

// responses returns a provider for a test server, and its waits.
func responses(url string) (*Responses, *[]time.Duration) {
	policy, waits := wiretest.Policy()
	return NewResponses(Config{BaseURL: url, APIKey: "sk-test", Retry: policy}), waits
}

// event is one event of a stream; its data is a JSON object without the type.
func event(name, data string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":7,%s\n\n", name, name, strings.TrimPrefix(data, "{"))
}

// item is an item that begins, what comes of it, and its end.
func item(i int, begun, done string, deltas ...string) string {
	return event("response.output_item.added", fmt.Sprintf(`{"output_index":%d,"item":%s}`, i, begun)) + strings.Join(deltas, "") +
		event("response.output_item.done", fmt.Sprintf(`{"output_index":%d,"item":%s}`, i, done))
}

// delta is a delta of item i.
func delta(kind string, i int, text string) string {
	return event("response."+kind+".delta", fmt.Sprintf(`{"output_index":%d,"item_id":"x","content_index":0,"summary_index":0,"delta":%q}`, i, text))
}

const (
	created   = "event: response.created\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-5-2025-08-07","output":[],"usage":null,"error":null}}` + "\n\n"
	completed = "event: response.completed\n" + `data: {"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"completed","model":"gpt-5-2025-08-07","error":null,"incomplete_details":null,"output":[],"usage":{"input_tokens":1117,"input_tokens_details":{"cached_tokens":1024,"cache_write_tokens":10},"output_tokens":46,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":1163}}}` + "\n\n"
)

// ended is the last event of an answer that was not completed.
func ended(name, rest string) string {
	return event(name, `{"response":{"id":"resp_1","object":"response","model":"gpt-5-2025-08-07","output":[],`+rest+`}}`)
}

// says is a message of the model.
func says(i int, id, phase string, words ...string) string {
	msg := func(status, content string) string {
		return fmt.Sprintf(`{"id":%q,"type":"message","status":%q,"role":"assistant","phase":%s,"content":[%s]}`, id, status, phase, content)
	}
	var deltas []string
	for _, w := range words {
		deltas = append(deltas, delta("output_text", i, w))
	}
	return item(i, msg("in_progress", ""), msg("completed", fmt.Sprintf(`{"type":"output_text","annotations":[],"logprobs":[],"text":%q}`, strings.Join(words, ""))), deltas...)
}

// thinks is a reasoning item with two parts of a summary. What is encrypted of
// it when it begins is not all.
func thinks(i int, id, encrypted string) string {
	part := func(n int) string {
		return event("response.reasoning_summary_part.added", fmt.Sprintf(`{"output_index":%d,"item_id":%q,"summary_index":%d,"part":{"type":"summary_text","text":""}}`, i, id, n))
	}
	return item(i, fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[],"encrypted_content":"beginning"}`, id),
		fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":"**Look**"},{"type":"summary_text","text":"Then act."}],"encrypted_content":%q}`, id, encrypted),
		part(0), delta("reasoning_summary_text", i, "**Lo"), delta("reasoning_summary_text", i, "ok**"), part(1), delta("reasoning_summary_text", i, "Then act."))
}

// calls is a call in pieces.
func calls(i int, id, callID, name string, args ...string) string {
	call := func(status, args string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function_call","status":%q,"call_id":%q,"name":%q,"arguments":%q}`, id, status, callID, name, args)
	}
	var deltas []string
	for _, a := range args {
		deltas = append(deltas, delta("function_call_arguments", i, a))
	}
	return item(i, call("in_progress", ""), call("completed", strings.Join(args, "")), deltas...)
}

var ask = llm.Request{Model: "gpt-5", Messages: []llm.Message{llm.UserText("hi")}}

// sig is the signature of thinking that thinks sends.
func sig(id, encrypted string) string {
	return fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":"**Look**"},{"type":"summary_text","text":"Then act."}],"encrypted_content":%q}`, id, encrypted)
}

const thought = "**Look**\n\nThen act."

func TestResponsesText(t *testing.T) {
	srv := wiretest.Serve(t, wiretest.SSE(created, says(0, "msg_1", `"final_answer"`, "Hel", "lo", "!"), completed))
	p, _ := responses(srv.URL)
	got := wiretest.Collect(t, p.Stream(t.Context(), ask))
	used := llm.Usage{Input: 83, Output: 46, CacheRead: 1024, CacheWrite: 10}
	want := wiretest.Got{Text: "Hello!", Deltas: 4, Begun: used, End: &llm.Answer{
		Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: "Hello!", Signature: `{"v":1,"id":"msg_1","phase":"final_answer"}`}}},
		Stop:    llm.StopEnd, Model: "gpt-5-2025-08-07", Usage: used,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	r := srv.Requests()[0]
	if r.Path != "/v1/responses" || r.Header.Get("Authorization") != "Bearer sk-test" {
		t.Errorf("asked %s with %q", r.Path, r.Header.Get("Authorization"))
	}
	if got, want := string(r.Body), `{"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"model":"gpt-5","reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"],"store":false}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	none := wiretest.Collect(t, NewResponses(Config{}).Stream(t.Context(), ask))
	if !errors.Is(none.Err, llm.ErrAuth) {
		t.Errorf("OpenAI without a key: %v", none.Err)
	}
}

// Reasoning comes back as an item, encrypted, right before what followed from it,
// in an answer with several of them; and each item has its id and its phase.
func TestResponsesReasoningGoesBack(t *testing.T) {
	srv := wiretest.Serve(t,
		wiretest.SSE(created, thinks(0, "rs_1", "gAAA1=="), says(1, "msg_1", `"commentary"`, "I look."), thinks(2, "rs_2", "gAAA2=="),
			calls(3, "fc_1", "call_a", "read_file", `{"path":`, `"a.go"}`), calls(4, "fc_2", "call_b", "now", `{}`), completed),
		wiretest.SSE(created, says(0, "msg_2", `"final_answer"`, "Done."), completed))
	p, _ := responses(srv.URL)
	req := llm.Request{Model: "gpt-5", System: "Be brief.", Tail: "[Context: 1%]", Messages: []llm.Message{llm.UserText("hi")}}
	got := wiretest.Collect(t, p.Stream(t.Context(), req))
	a := llm.ToolCall{ID: "call_a", Name: "read_file", Args: json.RawMessage(`{"path":"a.go"}`), Signature: "fc_1"}
	b := llm.ToolCall{ID: "call_b", Name: "now", Args: json.RawMessage(`{}`), Signature: "fc_2"}
	want := []llm.Block{llm.Thinking{Text: thought, Signature: sig("rs_1", "gAAA1==")}, llm.Text{Text: "I look.", Signature: `{"v":1,"id":"msg_1","phase":"commentary"}`},
		llm.Thinking{Text: thought, Signature: sig("rs_2", "gAAA2==")}, a, b}
	if got.Err != nil || got.End.Stop != llm.StopTool {
		t.Fatalf("got %+v, %v", got.End, got.Err)
	}
	if diff := cmp.Diff(want, got.End.Message.Blocks); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	shown := llm.Result(a, "package a")
	shown.Blocks = append(shown.Blocks, llmtest.Images[0])
	req.Messages = append(req.Messages, got.End.Message, llm.Message{Role: llm.User, Blocks: []llm.Block{shown, llm.Failed(b, "no clock")}})
	if got := wiretest.Collect(t, p.Stream(t.Context(), req)); got.Text != "Done." {
		t.Fatalf("got %+v", got)
	}
	var sent struct {
		Instructions string
		Input        []json.RawMessage
	}
	if err := json.Unmarshal(srv.Requests()[1].Body, &sent); err != nil || sent.Instructions != "Be brief." {
		t.Fatal(err, sent.Instructions)
	}
	img := llmtest.Images[0]
	for i, want := range []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Look**"},{"type":"summary_text","text":"Then act."}],"encrypted_content":"gAAA1=="}`,
		`{"type":"message","role":"assistant","id":"msg_1","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`,
		`{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"**Look**"},{"type":"summary_text","text":"Then act."}],"encrypted_content":"gAAA2=="}`,
		`{"type":"function_call","id":"fc_1","call_id":"call_a","name":"read_file","arguments":"{\"path\":\"a.go\"}"}`,
		`{"type":"function_call","id":"fc_2","call_id":"call_b","name":"now","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"call_a","output":[{"type":"input_text","text":"package a"},{"type":"input_image","detail":"auto","image_url":"data:` + img.MIME + `;base64,` + img.Data + `"}]}`,
		`{"type":"function_call_output","call_id":"call_b","output":"Error: no clock\n\n[Context: 1%]"}`,
	} {
		if i >= len(sent.Input) || string(sent.Input[i]) != want {
			t.Errorf("item %d is %s, want %s", i, sent.Input[i], want)
		}
	}
	if len(sent.Input) != 8 {
		t.Errorf("%d items were sent, want 8", len(sent.Input))
	}
}

// Reasoning that nothing follows, that is another API's or not encrypted is not
// sent, and without it nothing has an id.
func TestResponsesReasoningLeftOut(t *testing.T) {
	for _, th := range []llm.Thinking{
		{Text: "hm", Signature: "ErUBCkYIBxgCIkD"},
		{Signature: "xx", Redacted: true},
		{Text: "hm", Signature: `{"id":"rs_1","type":"reasoning","summary":[]}`},
		{Text: "hm", Signature: `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`},
		{Text: "hm", Signature: `{"type":"reasoning.encrypted","data":"gAAA"}`},
	} {
		req := llm.Request{Model: "gpt-5", Messages: []llm.Message{llm.UserText("q"), {Role: llm.Assistant, Blocks: []llm.Block{
			th, llm.Text{Text: "a", Signature: `{"v":1,"id":"msg_1","phase":"commentary"}`}, llm.Text{Text: "b", Signature: "msg_2"},
			llm.Thinking{Signature: sig("rs_9", "gAAA")},
		}}, llm.UserText("go on")}}
		body, err := NewResponses(Config{}).Body(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := wiretest.Responses(body); err != nil {
			t.Error(err)
		}
		if s := string(body); strings.Contains(s, `"type":"reasoning"`) || strings.Contains(s, "msg_") || !strings.Contains(s, `"role":"assistant","phase":"commentary","content":"a"`) {
			t.Errorf("%+v: sent %s", th, s)
		}
	}
	// A server whose models are open takes their thoughts as they are.
	body, err := NewResponses(Config{BaseURL: "http://localhost:8000"}).Body(llm.Request{Model: "gpt-oss-20b", Messages: []llm.Message{llm.UserText("q"), {Role: llm.Assistant, Blocks: []llm.Block{
		llm.Thinking{Text: "hm", Signature: `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`}, llm.Text{Text: "a"}}}, llm.UserText("go on")}})
	if err != nil || !strings.Contains(string(body), `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`) {
		t.Errorf("sent %s, %v", body, err)
	}
}

// Refusals are text; an item that comes whole is as one in pieces; items of
// unknown kinds are kept.
func TestResponsesItems(t *testing.T) {
	whole := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"No."},{"type":"output_text","text":" Never."}]}`
	refusal := `{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"No!"}]}`
	srv := wiretest.Serve(t, wiretest.SSE(created,
		item(0, `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`, `{"id":"ws_1","type":"web_search_call","status":"completed"}`),
		event("response.output_item.done", `{"output_index":1,"item":`+whole+`}`),
		item(2, refusal, refusal, delta("refusal", 2, "No!")),
		event("response.output_item.done", `{"output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"functions.read:0","name":"read","arguments":"{broken"}}`),
		completed))
	p, _ := responses(srv.URL)
	got := wiretest.Collect(t, p.Stream(t.Context(), ask))
	want := []llm.Block{llm.Other{Raw: json.RawMessage(`{"id":"ws_1","type":"web_search_call","status":"completed"}`)},
		llm.Text{Text: "No. Never.", Signature: `{"v":1,"id":"msg_1"}`}, llm.Text{Text: "No!", Signature: `{"v":1,"id":"msg_2"}`},
		llm.ToolCall{ID: llm.CallID("functions.read:0"), Name: "read", Args: json.RawMessage(`{"_raw":"{broken"}`), Signature: "fc_1"}}
	if got.Err != nil || cmp.Diff(want, got.End.Message.Blocks) != "" {
		t.Errorf("%v -want +got\n%s", got.Err, cmp.Diff(want, got.End.Message.Blocks))
	}
}

// An answer that was cut keeps what there is of it, a call included.
func TestResponsesIncomplete(t *testing.T) {
	srv := wiretest.Serve(t,
		wiretest.SSE(created, thinks(0, "rs_1", "gAAA"), event("response.output_item.added", `{"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"write_file","arguments":""}}`),
			delta("function_call_arguments", 1, `{"path":"long.txt","content":"Once`), ended("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":10,"output_tokens":16}`)),
		wiretest.SSE(created, event("response.output_item.added", `{"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}`),
			ended("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":10,"output_tokens":16}`)),
		wiretest.SSE(created, says(0, "msg_1", "null", "So"), ended("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`)))
	p, _ := responses(srv.URL)
	got := wiretest.Collect(t, p.Stream(t.Context(), ask))
	if got.Err != nil || got.End.Stop != llm.StopLength || len(got.Calls) != 1 || got.End.Usage.Output != 16 ||
		string(got.Calls[0].Args) != `{"_raw":"{\"path\":\"long.txt\",\"content\":\"Once"}` {
		t.Errorf("got %+v, %v", got.End, got.Err)
	}
	got = wiretest.Collect(t, p.Stream(t.Context(), ask))
	if got.Err != nil || got.End.Stop != llm.StopLength || len(got.End.Message.Blocks) != 0 {
		t.Errorf("got %+v, %v", got.End, got.Err)
	}
	got = wiretest.Collect(t, p.Stream(t.Context(), ask))
	if !errors.Is(got.Err, llm.ErrRefused) || got.Text != "So" {
		t.Errorf("got %q, %v", got.Text, got.Err)
	}
}

// What ends a stream before its answer: retried if nothing came of it yet.
func TestResponsesErrors(t *testing.T) {
	ok := wiretest.SSE(created, says(0, "msg_1", "null", "ok"), completed)
	failed := func(code, msg string) string {
		return ended("response.failed", fmt.Sprintf(`"status":"failed","error":{"code":%q,"message":%q},"usage":null`, code, msg))
	}
	for name, c := range map[string]struct {
		first http.HandlerFunc
		kind  error // nil: it is asked again
		text  string
	}{
		"failed":            {wiretest.SSE(created, failed("server_error", "An error occurred.")), nil, "ok"},
		"overloaded":        {wiretest.SSE(created, failed("server_is_overloaded", "Our servers are currently overloaded.")), nil, "ok"},
		"limited":           {wiretest.SSE(created, failed("rate_limit_exceeded", "Rate limit reached for gpt-5. Please try again in 1.2s.")), nil, "ok"},
		"limited, 429":      {wiretest.Status(429, `{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, "Retry-After: 2"), nil, "ok"},
		"500":               {wiretest.Status(500, `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`), nil, "ok"},
		"error event":       {wiretest.SSE(created, event("error", `{"code":"server_error","message":"Try again.","param":null}`)), nil, "ok"},
		"cut":               {wiretest.Cut(created), nil, "ok"},
		"no end":            {wiretest.SSE(created), nil, "ok"},
		"failed late":       {wiretest.SSE(created, delta("output_text", 0, "So"), failed("server_error", "An error occurred.")), llm.ErrBusy, "So"},
		"cut late":          {wiretest.Cut(created, delta("output_text", 0, "So")), llm.ErrNetwork, "So"},
		"too long":          {wiretest.SSE(created, failed("context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.")), llm.ErrOverflow, ""},
		"too long, event":   {wiretest.SSE(created, event("error", `{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model.","param":"input"}`)), llm.ErrOverflow, ""},
		"too long, 400":     {wiretest.Status(400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`), llm.ErrOverflow, ""},
		"too much asked":    {wiretest.Status(400, `{"error":{"message":"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.","type":"invalid_request_error","param":"max_output_tokens","code":"integer_above_max_value"}}`), llm.ErrOverflow, ""},
		"quota":             {wiretest.SSE(created, failed("insufficient_quota", "You exceeded your current quota.")), llm.ErrRefused, ""},
		"policy":            {wiretest.SSE(created, failed("invalid_prompt", "Invalid prompt: your prompt was flagged.")), llm.ErrRefused, ""},
		"unknown model":     {wiretest.Status(400, `{"error":{"message":"The requested model 'gpt-55' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`), llm.ErrModel, ""},
		"no Responses API":  {wiretest.Status(404, `404 page not found`, "Content-Type: text/plain"), llm.ErrRefused, ""},
		"failed, no reason": {wiretest.SSE(created, ended("response.failed", `"status":"failed","error":null`)), llm.ErrNetwork, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answers := []http.HandlerFunc{c.first}
			if c.kind == nil {
				answers = append(answers, ok)
			}
			srv := wiretest.Serve(t, answers...)
			p, waits := responses(srv.URL)
			got := wiretest.Collect(t, p.Stream(t.Context(), ask))
			if got.Text != c.text || !errors.Is(got.Err, c.kind) || c.kind == nil && len(*waits) != 1 {
				t.Errorf("got %q, %v after %d waits", got.Text, got.Err, len(*waits))
			}
		})
	}
}

// What a model or an account does not have is left out, and remembered.
func TestResponsesLess(t *testing.T) {
	refuse := func(param, msg string) http.HandlerFunc {
		return wiretest.Status(400, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":%q,"code":"unsupported_value"}}`, msg, param))
	}
	ok := wiretest.SSE(created, says(0, "msg_1", "null", "ok"), completed)
	srv := wiretest.Serve(t,
		refuse("reasoning.summary", "Your organization must be verified to generate reasoning summaries."),
		refuse("reasoning.effort", "Unsupported value: 'minimal' is not supported with the 'gpt-5' model."),
		refuse("include", "Encrypted content is not supported with this model."), ok, ok)
	p, _ := responses(srv.URL)
	req := ask
	req.Thinking = "minimal"
	for range 2 {
		if got := wiretest.Collect(t, p.Stream(t.Context(), req)); got.Text != "ok" {
			t.Fatalf("got %+v", got)
		}
	}
	var sent []string
	for _, r := range srv.Requests() {
		m := r.JSON(t)
		b, _ := json.Marshal([]any{m["reasoning"], m["include"]})
		sent = append(sent, string(b))
	}
	want := []string{`[{"effort":"minimal","summary":"auto"},["reasoning.encrypted_content"]]`, `[{"effort":"minimal"},["reasoning.encrypted_content"]]`,
		`[null,["reasoning.encrypted_content"]]`, `[null,null]`, `[null,null]`}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// Levels become the nearest that there is; models that do not reason are asked
	// for no reasoning.
	for _, c := range [][3]string{
		{"gpt-5", "max", `{"effort":"high","summary":"auto"}`}, {"gpt-5", "off", `{"effort":"minimal","summary":"auto"}`}, {"gpt-5.2", "off", `{"effort":"none"}`},
		{"gpt-5.2", "max", `{"effort":"xhigh","summary":"auto"}`}, {"gpt-6.1-sol", "max", `{"effort":"max","summary":"auto"}`}, {"gpt-6-sol", "", `{"summary":"auto"}`},
		{"o3", "minimal", `{"effort":"low","summary":"auto"}`}, {"gpt-4o", "high", "null"}, {"gpt-5-chat-latest", "high", "null"}, {"grok-4", "", "null"}, {"grok-4", "high", `{"effort":"high","summary":"auto"}`},
	} {
		body, err := NewResponses(Config{}).Body(llm.Request{Model: c[0], Thinking: c[1], Messages: ask.Messages, Tools: []llm.ToolSpec{{Name: "read"}}})
		var m struct {
			Reasoning json.RawMessage
			Include   []string
		}
		if err != nil || json.Unmarshal(body, &m) != nil {
			t.Fatal(err)
		}
		if m.Reasoning == nil {
			m.Reasoning = json.RawMessage("null")
		}
		if string(m.Reasoning) != c[2] || (len(m.Include) == 0) != (c[0] == "gpt-4o" || c[0] == "gpt-5-chat-latest") {
			t.Errorf("%s at %q: %s, %v", c[0], c[1], m.Reasoning, m.Include)
		}
	}
}

// Reasoning that the API does not accept is left out, and not sent again; what
// the model thinks afterwards is.
func TestResponsesForeignReasoning(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"The encrypted content gAAA...DQ== could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`,
		`{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","param":"input","code":null}}`,
		`{"error":{"message":"Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_0'.","type":"invalid_request_error","param":"input","code":null}}`,
	} {
		srv := wiretest.Serve(t, wiretest.Status(400, body),
			wiretest.SSE(created, thinks(0, "rs_2", "gAAA2"), says(1, "msg_2", "null", "ok"), completed),
			wiretest.SSE(created, says(0, "msg_3", "null", "ok"), completed))
		p, _ := responses(srv.URL)
		req := llm.Request{Model: "gpt-5", Messages: []llm.Message{llm.UserText("q"),
			{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Signature: sig("rs_1", "gAAA1")}, llm.Text{Text: "a", Signature: "msg_1"}}}, llm.UserText("go on")}}
		got := wiretest.Collect(t, p.Stream(t.Context(), req))
		if got.Text != "ok" {
			t.Fatalf("%s: %+v", body, got)
		}
		req.Messages = append(req.Messages, got.End.Message, llm.UserText("and on"))
		if got := wiretest.Collect(t, p.Stream(t.Context(), req)); got.Text != "ok" {
			t.Fatalf("%s: %+v", body, got)
		}
		for i, want := range []string{"rs_1 msg_1", "", "rs_2 msg_2"} {
			sent := string(srv.Requests()[i].Body)
			var ids []string
			for _, id := range []string{"rs_1", "msg_1", "rs_2", "msg_2"} {
				if strings.Contains(sent, `"id":"`+id+`"`) {
					ids = append(ids, id)
				}
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("request %d has %q, want %q", i+1, got, want)
			}
		}
	}
	// If it is refused without any, that is the answer.
	srv := wiretest.Serve(t, wiretest.Status(404, `{"error":{"message":"Item with id 'rs_9' not found.","type":"invalid_request_error","param":"input","code":null}}`))
	p, _ := responses(srv.URL)
	if got := wiretest.Collect(t, p.Stream(t.Context(), ask)); !errors.Is(got.Err, llm.ErrRefused) {
		t.Errorf("got %v", got.Err)
	}
}

// A 400 that names an item is mapped to the block of the request that it means.
func TestResponsesRefusedBlockIsFound(t *testing.T) {
	one := llm.ToolCall{ID: "c1", Name: "shoot", Args: json.RawMessage(`{}`)}
	two := llm.ToolCall{ID: "c2", Name: "list", Args: json.RawMessage(`{}`)}
	shown := llm.Result(one, "a picture")
	shown.Blocks = append(shown.Blocks, llmtest.Images[0])
	req := llm.Request{Model: "gpt-5", System: "Be brief.", Tail: "[Context: 1%]", Messages: []llm.Message{
		llm.UserText("q"), // 0 on the wire
		{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "hm"}, llm.Thinking{Signature: sig("rs_1", "gAAA")}, llm.Text{Text: "I shall look"}, one, two}}, // 1 to 4
		{Role: llm.User, Blocks: []llm.Block{shown, llm.Result(two, "a.txt"), llm.Text{Text: "and this"}, llmtest.Images[1]}},                                        // 5, 6, 7
	}}
	for _, c := range []struct {
		msg, param     string
		message, block int
	}{
		{"Invalid 'input[0].content[0].text': string too long.", "input[0].content[0].text", 0, 0},
		{"Invalid value.", "input[1].encrypted", 1, 1},
		{"Invalid 'input[2].content[0].text'", "input[2].content[0].text", 1, 2},
		{"Invalid 'input[4].name': string does not match pattern.", "input[4].name", 1, 4},
		{"Invalid 'input[5].output[1].image_url'", "input[5].output[1].image_url", 2, 0},
		{"Invalid image.", "input[7].content[1].image_url", 2, 3},
		{"You uploaded an unsupported image. Please make sure your image is valid.", "", -1, -1},
		{"Invalid value.", "input[7].content[2].text", 2, -1}, // the tail
		{"Invalid value.", "input", nowhere, 0},
		{"Invalid 'input[9]'", "input[9]", nowhere, 0},
	} {
		srv := wiretest.Serve(t, refuses(c.msg, c.param))
		p, _ := responses(srv.URL)
		refusedAt(t, p, req, c.msg, c.message, c.block)
	}
}

// An image that is refused in the middle of a stream is a refused image.
func TestResponsesRefusedImage(t *testing.T) {
	srv := wiretest.Serve(t, wiretest.SSE(created, ended("response.failed", `"status":"failed","error":{"code":"image_parse_error","message":"The image could not be parsed: not a valid image."}`)))
	p, _ := responses(srv.URL)
	got := wiretest.Collect(t, p.Stream(t.Context(), ask))
	var e *llm.RefusedError
	if !errors.As(got.Err, &e) || !e.Image {
		t.Errorf("got %v", got.Err)
	}
}

func TestResponsesEndless(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4<<10) // 64 KiB
	for name, more := range map[string]func(i int) string{
		"text":      func(int) string { return delta("output_text", 0, long) },
		"calls":     func(i int) string { return calls(i, "fc_1", fmt.Sprint("c", i), "read", "{}") },
		"reasoning": func(i int) string { return thinks(i, fmt.Sprint("rs_", i), long+long+long+long) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Serve(t, endless(created, more))
			p, _ := responses(srv.URL)
			cut(t, p)
		})
	}
}

// Whatever llmtest.Validate accepts arrives, in order.
func TestResponsesLossless(t *testing.T) {
	p := NewResponses(Config{})
	rapid.Check(t, func(t *rapid.T) {
		req := wiretest.Conversation(t)
		body, err := p.Body(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := wiretest.Responses(body); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		var wire struct {
			Instructions string
			Input        []struct {
				Type, Name, Arguments string
				Role                  string
				CallID                string `json:"call_id"`
				Content, Output       json.RawMessage
			}
		}
		if err := json.Unmarshal(body, &wire); err != nil {
			t.Fatal(err)
		}
		msgs := []message{{Role: "system", Content: quoted(wire.Instructions)}}
		for _, it := range wire.Input {
			m := message{Role: it.Role, Content: chatParts(it.Content)}
			switch it.Type {
			case "function_call":
				if n := len(msgs) - 1; msgs[n].Role == "assistant" {
					m = msgs[n]
					msgs = msgs[:n]
				}
				m.Role = "assistant"
				m.Calls = append(m.Calls, struct {
					ID       string
					Function struct{ Name, Arguments string }
				}{it.CallID, struct{ Name, Arguments string }{it.Name, it.Arguments}})
			case "function_call_output":
				m = message{Role: "tool", CallID: it.CallID, Content: chatParts(it.Output)}
			}
			msgs = append(msgs, m)
		}
		check(t, req, msgs)
	})
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

// chatParts returns the content of an item as chat completions write it.
func chatParts(raw json.RawMessage) json.RawMessage {
	var parts []struct {
		Type, Text string
		URL        string `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return raw
	}
	var out []any
	for _, p := range parts {
		if p.URL != "" {
			out = append(out, map[string]any{"type": "image_url", "image_url": map[string]string{"url": p.URL}})
		} else {
			out = append(out, map[string]string{"type": "text", "text": p.Text})
		}
	}
	b, _ := json.Marshal(out)
	return b
}

// A longer conversation begins with the bytes of the shorter one.
func TestResponsesStablePrefix(t *testing.T) {
	p := NewResponses(Config{})
	rapid.Check(t, func(t *rapid.T) {
		req := wiretest.Conversation(t)
		req.Tail = ""
		whole := string(p.items(nil, req).B)
		for n := 1; n < len(req.Messages); n += 2 {
			short := req
			short.Messages = req.Messages[:n]
			if begin := string(p.items(nil, short).B); !strings.HasPrefix(whole, begin) {
				t.Fatalf("%s\ndoes not begin with\n%s", whole, begin)
			}
		}
	})
}
