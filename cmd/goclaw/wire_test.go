package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakewire anthropic|openai|responses [status BODYFILE] starts a server that
// speaks the provider's wire format, and points the environment at it; responses
// is OpenAI's other API. It answers "echo:
// " and the last words of the user; asked to "list", or to "call NAME
// ARGUMENTS", it calls the tool first. Asked to "overdo" something it reaches
// the limit on the answer's length, and asked to "overwrite" in the middle of a
// call, and asked to "be silent" it answers NO_REPLY. What it was sent is
// appended to the file wire.log, a request a line; asked for its models it
// lists them. With a status it fails that way. With "refuse" and a word it
// refuses each request with the word in it, and names the place. With "limit" and a
// number, responses takes requests of so many bytes.
func fakeWire(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fakewire anthropic|openai|responses [status bodyfile]")
	}
	var mu sync.Mutex
	var reasons reasoner
	log := ts.MkAbs("wire.log")
	status, body := 0, ""
	word := ""
	switch {
	case len(args) == 3 && args[1] == "refuse":
		word = args[2]
	case len(args) == 3 && args[1] == "limit":
		fmt.Sscan(args[2], &reasons.limit)
	case len(args) == 3:
		fmt.Sscan(args[1], &status)
		body = ts.ReadFile(args[2])
	}
	h := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet && status == 0 {
			listModels(w, r)
			return
		}
		raw, _ := io.ReadAll(r.Body)
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintf(f, "%s\n", raw)
			f.Close()
		}
		if status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
			return
		}
		if at := placeOf(raw, word); at != "" {
			w.WriteHeader(http.StatusBadRequest)
			if args[0] != "anthropic" {
				fmt.Fprintf(w, `{"error":{"message":"Invalid value.","type":"invalid_request_error","param":"%s","code":"invalid_value"}}`, at)
				return
			}
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":"%s: not today"}}`, at)
			return
		}
		if args[0] == "responses" {
			if !strings.HasSuffix(r.URL.Path, "/v1/responses") {
				http.NotFound(w, r)
				return
			}
			reasons.answer(w, raw)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		if args[0] == "anthropic" {
			anthropicAnswer(w, text, results)
		} else {
			openaiAnswer(w, text, results)
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(h))
	ts.Defer(srv.Close)
	up := strings.ToUpper(args[0])
	if args[0] == "responses" {
		up = "OPENAI"
	}
	ts.Setenv(up+"_BASE_URL", srv.URL)
	ts.Setenv(up+"_API_KEY", "sk-test-0123456789")
}

// placeOf returns where a request has the word, as an API names the place; "" if
// it does not have it.
func placeOf(raw []byte, word string) string {
	var req struct {
		Messages []struct{ Content json.RawMessage }
		Input    []json.RawMessage
	}
	if json.Unmarshal(raw, &req); word == "" {
		return ""
	}
	for i, item := range req.Input {
		if strings.Contains(string(item), word) {
			return fmt.Sprintf("input[%d]", i)
		}
	}
	for i, m := range req.Messages {
		var parts []json.RawMessage
		if json.Unmarshal(m.Content, &parts) != nil && strings.Contains(string(m.Content), word) {
			return fmt.Sprintf("messages.[%d].content", i)
		}
		for j, p := range parts {
			if strings.Contains(string(p), word) {
				return fmt.Sprintf("messages.%d.content.%d.text", i, j)
			}
		}
	}
	return ""
}

// listModels answers as the providers do when they are asked for their models.
func listModels(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch id, one := strings.CutPrefix(r.URL.Path, "/v1/models/"); {
	case r.Header.Get("X-Api-Key") != "sk-test-0123456789" && r.Header.Get("Authorization") != "Bearer sk-test-0123456789":
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
	case one && strings.HasPrefix(id, "claude-"):
		fmt.Fprintf(w, `{"type":"model","id":%q,"display_name":"Claude","created_at":"2026-01-01T00:00:00Z"}`, id)
	case one:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"not_found_error","message":"model: %s"}}`, id)
	case r.URL.Path == "/v1/models":
		io.WriteString(w, `{"object":"list","data":[{"id":"gpt-5","object":"model"},{"id":"gpt-5-mini","object":"model"}]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// lastWords returns the last text of the user, and whether tool results came
// after it.
func lastWords(raw []byte) (text string, results bool) {
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	json.Unmarshal(raw, &req)
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := req.Messages[i]
		if m.Role == "tool" {
			results = true
			continue
		}
		if m.Role != "user" {
			continue
		}
		var s string
		if json.Unmarshal(m.Content, &s) == nil && s != "" {
			return s, results
		}
		var blocks []struct{ Type, Text string }
		json.Unmarshal(m.Content, &blocks)
		for j := len(blocks) - 1; j >= 0; j-- {
			b := blocks[j]
			if b.Type == "tool_result" {
				results = true
			}
			if b.Type == "text" && !strings.HasPrefix(b.Text, "[Context:") {
				return b.Text, results
			}
		}
	}
	return "", results
}

// wanted returns the tool that text asks for, and its arguments as a JSON
// string.
func wanted(text string) (name, args string) {
	if rest, ok := strings.CutPrefix(text, "call "); ok {
		name, text, _ = strings.Cut(rest, " ")
	} else if strings.Contains(text, "list") {
		name, text = "list_directory", `{"path": "."}`
	}
	quoted, _ := json.Marshal(text)
	return name, string(quoted)
}

// answerParts is what is answered to text, in pieces.
func answerParts(text string) []string {
	if strings.Contains(text, "be silent") {
		return []string{"NO_", "REPLY"}
	}
	if strings.HasPrefix(text, "{") {
		return []string{text}
	}
	return []string{"echo: ", text}
}

func anthropicAnswer(w io.Writer, text string, results bool) {
	ev := func(name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }
	ev("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":3,"output_tokens":1}}}`)
	stop := "end_turn"
	if strings.Contains(text, "overdo") {
		stop = "max_tokens"
	}
	if name, args := wanted(text); name != "" && !results {
		stop = "tool_use"
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_01","name":"`+name+`","input":{}}}`)
		ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+args+`}}`)
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
	} else if strings.Contains(text, "overwrite") && !results {
		stop = "max_tokens"
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_02","name":"write_file","input":{}}}`)
		ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"long.txt\", \"content\": \"Once upon"}}`)
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
	} else {
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, part := range answerParts(text) {
			t, _ := json.Marshal(part)
			ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(t)+`}}`)
		}
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
	}
	ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":7}}`)
	ev("message_stop", `{"type":"message_stop"}`)
}

func openaiAnswer(w io.Writer, text string, results bool) {
	chunk := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-5\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	if name, args := wanted(text); name != "" && !results {
		chunk(`{"tool_calls":[{"index":0,"id":"call_01","type":"function","function":{"name":"`+name+`","arguments":""}}]}`, "null")
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+args+`}}]}`, "null")
		chunk(`{}`, `"tool_calls"`)
	} else if strings.Contains(text, "overwrite") && !results {
		chunk(`{"tool_calls":[{"index":0,"id":"call_02","type":"function","function":{"name":"write_file","arguments":""}}]}`, "null")
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"long.txt\",\"content\":\"Once upon"}}]}`, "null")
		chunk(`{}`, `"length"`)
	} else {
		for _, part := range answerParts(text) {
			t, _ := json.Marshal(part)
			chunk(`{"content":`+string(t)+`}`, "null")
		}
		finish := `"stop"`
		if strings.Contains(text, "overdo") {
			finish = `"length"`
		}
		chunk(`{}`, finish)
	}
	fmt.Fprint(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-5\",\"choices\":[],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":7,\"total_tokens\":127,\"prompt_tokens_details\":{\"cached_tokens\":20}}}\n\n")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// webserver starts a server of web pages, that is a proxy as well: WEB is its
// address and WEBHOST its host. It writes what it is asked for to web.log.
func webServer(ts *testscript.TestScript, neg bool, args []string) {
	log := ts.MkAbs("web.log")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintf(f, "%s %s %s\n", r.Method, r.URL, r.UserAgent())
			f.Close()
		}
		if r.URL.Path == "/out" {
			http.Redirect(w, r, "https://elsewhere.example/x", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, `<title>On tea</title><h1>Tea</h1><p>Green <b>tea</b> is <a href="/kinds">one</a>.</p>`)
	}))
	ts.Defer(srv.Close)
	ts.Setenv("WEB", srv.URL)
	ts.Setenv("WEBHOST", strings.TrimPrefix(srv.URL, "http://"))
}
