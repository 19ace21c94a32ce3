package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// refusals are the words of servers for a prompt and an answer that are too
// long together, with window, prompt and answer to be filled in.
var refusals = map[string]string{
	"anthropic": `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: %[2]d + %[3]d > %[1]d, decrease input length or ` + "`max_tokens`" + ` and try again"}}`,
	"openai":    `{"error":{"message":"This model's maximum context length is %[1]d tokens. However, you requested 99 tokens (%[2]d in the messages, %[3]d in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
	"vllm":      `{"error":{"message":"This model's maximum context length is %[1]d tokens. However, you requested %[3]d output tokens and your prompt contains at least %[2]d input tokens, for a total of at least 99 tokens. Please reduce the length of the input prompt or the number of requested output tokens.","type":"BadRequestError","param":"input_tokens","code":400}}`,
	"sglang":    `{"object":"error","message":"Requested token count exceeds the model's maximum context length of %[1]d tokens. You requested a total of 99 tokens: %[2]d tokens from the input messages and %[3]d tokens for the completion.","type":"BadRequest","param":null,"code":400}`,
	"groq":      `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
}

// mosts are the words for an answer that is longer than any the model gives.
var mosts = map[string]string{
	"anthropic": `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: %[2]d > %[1]d, which is the maximum allowed number of output tokens for claude-nine"}}`,
	"openai":    `{"error":{"message":"max_tokens is too large: %[2]d. This model supports at most %[1]d completion tokens, whereas you provided %[2]d.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}`,
	"groq":      "{\"error\":{\"message\":\"`max_tokens` must be less than or equal to `%[1]d`, the maximum value for `max_tokens` is less than the `context_window` for this model\",\"type\":\"invalid_request_error\",\"param\":\"max_tokens\"}}",
}

// limitwire SERVER WINDOW [MOST] starts a server that takes WINDOW tokens,
// prompt and answer together, and gives answers of at most MOST tokens. It
// refuses anything else in the words of SERVER, and echoes what fits. Other
// paths are answered with the file served/PATH.json, if there is one, and noted
// in asked.log.
func limitWire(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || refusals[args[0]] == "" {
		ts.Fatalf("usage: limitwire SERVER WINDOW [MOST]")
	}
	win, _ := strconv.Atoi(args[1])
	most := 0
	if len(args) > 2 {
		most, _ = strconv.Atoi(args[2])
	}
	var mu sync.Mutex
	log := ts.MkAbs("wire.log")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		note := func(file string, line []byte) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				fmt.Fprintf(f, "%s\n", line)
				f.Close()
			}
		}
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") && !strings.HasSuffix(r.URL.Path, "/messages") {
			note(ts.MkAbs("asked.log"), []byte(r.Method+" "+r.URL.Path))
			http.ServeFile(w, r, ts.MkAbs("served"+r.URL.Path+".json"))
			return
		}
		raw, _ := io.ReadAll(r.Body)
		note(log, raw)
		var req struct {
			Max           int `json:"max_tokens"`
			MaxCompletion int `json:"max_completion_tokens"`
		}
		json.Unmarshal(raw, &req)
		prompt, answer := len(raw)/4, req.Max+req.MaxCompletion
		refusal := ""
		switch {
		case most > 0 && answer > most:
			refusal = fmt.Sprintf(mosts[args[0]], most, answer)
		case prompt+answer > win:
			refusal = refusals[args[0]]
			if strings.Contains(refusal, "%[") {
				refusal = fmt.Sprintf(refusal, win, prompt, answer)
			}
		}
		if refusal != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, refusal)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		var out strings.Builder
		if args[0] == "anthropic" {
			anthropicAnswer(&out, text, results)
		} else {
			openaiAnswer(&out, text, results)
		}
		said := len(strings.Join(answerParts(text), ""))/4 + 1
		usage := strings.NewReplacer(`"prompt_tokens":120`, fmt.Sprintf(`"prompt_tokens":%d`, prompt), `"input_tokens":100`, fmt.Sprintf(`"input_tokens":%d`, prompt-23),
			`"completion_tokens":7`, fmt.Sprintf(`"completion_tokens":%d`, said), `"output_tokens":7`, fmt.Sprintf(`"output_tokens":%d`, said))
		io.WriteString(w, usage.Replace(out.String()))
	}))
	ts.Defer(srv.Close)
	name := "OPENAI"
	if args[0] == "anthropic" {
		name = "ANTHROPIC"
	}
	ts.Setenv(name+"_BASE_URL", srv.URL)
	ts.Setenv(name+"_API_KEY", "sk-test-0123456789")
}

// slipwire openai N BODYFILE starts a server that refuses the first N requests
// with status 400 and the body, and echoes the others.
func slipWire(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 || args[0] != "openai" {
		ts.Fatalf("usage: slipwire openai N BODYFILE")
	}
	var left atomic.Int64
	n, _ := strconv.Atoi(args[1])
	left.Store(int64(n))
	body := ts.ReadFile(args[2])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			listModels(w, r)
			return
		}
		raw, _ := io.ReadAll(r.Body)
		if left.Add(-1) >= 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		openaiAnswer(w, text, results)
	}))
	ts.Defer(srv.Close)
	ts.Setenv("OPENAI_BASE_URL", srv.URL)
	ts.Setenv("OPENAI_API_KEY", "sk-test-0123456789")
}
