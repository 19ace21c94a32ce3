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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"goclaw/agent"
	"goclaw/internal/config"
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

// What refusals teach is kept by model, and the forms of older files are read.
func TestLimitsAreKept(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(limitsFile(home), []byte(`{"openai/old": 8192, "openai/older": {"window": 9000, "answer": 512}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(limitsFile(home))
	if err != nil {
		t.Fatal(err)
	}
	then := lesson{At: fi.ModTime()}
	now := lesson{time.Now().UTC().Truncate(time.Second), "too long"}
	for model, l := range map[string]limits{
		"openai/old": {Answer: 1024, AnswerFrom: now}, "openai/new": {Window: 4097, WindowFrom: now}, "openai/short": {Answer: 16_384, AnswerFrom: now},
	} {
		if err := rememberLimits(home, model, l); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]limits{
		"openai/old":   {Window: 8192, WindowFrom: then, Answer: 1024, AnswerFrom: now},
		"openai/older": {Window: 9000, WindowFrom: then, Answer: 512, AnswerFrom: then},
		"openai/new":   {Window: 4097, WindowFrom: now},
		"openai/short": {Answer: 16_384, AnswerFrom: now},
	}
	if d := cmp.Diff(want, learntLimits(home)); d != "" {
		t.Error(d)
	}
}

// What is in windows.json counts only if it is recent, plausible and not
// disproved; whatever else is there costs nothing.
func TestLimitsInEffect(t *testing.T) {
	day := func(n int) string { return time.Now().AddDate(0, 0, n).UTC().Format(time.RFC3339) }
	window := func(n int, at string) string { return fmt.Sprintf(`{"window": %d, "windowFrom": {"at": %q}}`, n, at) }
	for _, c := range []struct {
		name, entry string
		want        int
	}{
		{"recent", window(8192, day(-6)), 8192},
		{"expired", window(8192, day(-8)), 0},
		{"from the future", window(8192, day(3)), 0},
		{"too small", window(1000, day(0)), 0},
		{"negative", window(-1, day(0)), 0},
		{"too large", `{"window": 9000000000000000000}`, 0},
		{"disproved", `{"window": 8192, "accepted": 9000}`, 0},
		{"not disproved", `{"window": 8192, "accepted": 8000}`, 8192},
		{"an absurd prompt", `{"window": 8192, "accepted": 90000000000}`, 8192},
		{"a text", `"8192"`, 0},
		{"nothing", `null`, 0},
		{"a list", `[8192]`, 0},
		{"a time that is none", `{"window": 8192, "windowFrom": {"at": "monday"}}`, 0},
	} {
		home := t.TempDir()
		if err := os.WriteFile(limitsFile(home), []byte(`{"a/other": 4096, "a/b": `+c.entry+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		got := learntLimits(home)
		if got["a/b"].Window != c.want || got["a/other"].Window != 4096 {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
		// The configuration always wins.
		conf := &config.Loaded{Config: config.Default(), Home: home}
		conf.Models = map[string]config.Model{"a/b": {ContextWindow: 100_000}}
		m := &model{provider: "a", model: "b"}
		if m.settle(conf); m.budget.Window != 100_000 || !m.fixed {
			t.Errorf("%s: with a configured window it is %d", c.name, m.budget.Window)
		}
	}
	for _, damage := range []string{"", "{", "[]", "null", "\x00\x01", `{"a/b": {"window": 1e999}}`, strings.Repeat("[", 100_000)} {
		home := t.TempDir()
		if err := os.WriteFile(limitsFile(home), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := learntLimits(home); len(got) != 0 {
			t.Errorf("%.20q: %+v", damage, got)
		}
		if err := rememberLimits(home, "a/b", limits{Accepted: 5000}); err != nil || learntLimits(home)["a/b"].Accepted != 5000 {
			t.Errorf("%.20q: it cannot be replaced: %v", damage, err)
		}
	}
}

// The longest prompt that a model took is written when it has grown by a tenth,
// and is the least that a refusal can shrink the window to.
func TestAcceptedPromptsAreRemembered(t *testing.T) {
	home := t.TempDir()
	c := &config.Loaded{Config: config.Default(), Home: home}
	load := func() *models {
		m := &model{provider: "anthropic", model: "claude-sonnet-4-5"}
		m.settle(c)
		return &models{env: &env{conf: c}, now: m}
	}
	a := load()
	for _, n := range []int{100, 20_000, 21_000, 30_000, 30_500} {
		a.took(a.now, n)
	}
	if got := learntLimits(home)["anthropic/claude-sonnet-4-5"].Accepted; got != 30_000 || a.now.accepted != 30_500 {
		t.Errorf("%d are written and %d known, want 30000 and 30500", got, a.now.accepted)
	}
	a.learn(agent.Learnt{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 12_000})
	if got := load().now; got.budget.Window != 200_000 || got.accepted != 30_000 {
		t.Errorf("a window of 12000 is believed: %+v, accepted %d", got.budget, got.accepted)
	}
	a.learn(agent.Learnt{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 40_000, Once: "not for long"})
	if got := load().now.budget.Window; got != 200_000 {
		t.Errorf("what counts once is remembered: %d", got)
	}
}
