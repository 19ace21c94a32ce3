package local

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What each server tells of a model, in the form of its own API document.
func TestAsk(t *testing.T) {
	ps := `{"models":[{"name":"qwen3:14b","model":"qwen3:14b","context_length":16384}]}`
	chosen := `{"parameters":"stop \"x\"","model_info":{"qwen3.context_length":40960},"capabilities":["completion"]}`
	vllm := `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","created":1,"owned_by":"vllm","root":"Qwen/Qwen3-8B","parent":null,"max_model_len":24576,"permission":[]},{"id":"lora","object":"model","max_model_len":24576}]}`
	openRouter := `{"data":[{"id":"z-ai/glm-9","name":"GLM 9","context_length":202752,"pricing":{"prompt":"0.0000004"},"top_provider":{"context_length":131072,"max_completion_tokens":16384,"is_moderated":false}},{"id":"other/one","context_length":8192}]}`
	groq := `{"object":"list","data":[{"id":"llama-9-8b-instant","object":"model","created":1693721698,"owned_by":"Meta","active":true,"context_window":131072,"public_apps":null,"max_completion_tokens":8192},{"id":"whisper","context_window":448}]}`
	mistral := `{"object":"list","data":[{"id":"mistral-nine","object":"model","capabilities":{"vision":true},"max_context_length":131072,"aliases":[]},{"id":"x"}]}`
	together := `[{"id":"org/model","object":"model","type":"chat","context_length":32768,"config":{}},{"id":"org/other"}]`
	tabby := `{"object":"list","data":[{"id":"exl3","object":"model","parameters":{"max_seq_len":49152,"cache_size":49152}}]}`
	llama := `{"models":[{"name":"x"}],"object":"list","data":[{"id":"x.gguf","object":"model","meta":{"vocab_type":2,"n_vocab":128256,"n_ctx_train":131072,"n_embd":4096}}]}`
	anthropic := `{"data":[{"type":"model","id":"in-house","display_name":"In House","max_input_tokens":64000,"max_tokens":8000}],"has_more":false}`
	none := `{"object":"list","data":[{"id":"gpt-nine","object":"model","created":1686935002,"owned_by":"openai"},{"id":"b"}]}`
	for _, c := range []struct {
		name    string
		server  string
		model   string
		answers map[string]string
		want    Model
		usable  int
	}{
		{"Ollama, in memory", "ollama", "qwen3:14b", map[string]string{"GET /api/ps": ps, "POST /api/show": ollamaShow}, Model{Name: "qwen3:14b", Window: 16384, Trained: 40960, Loaded: true, Tools: true}, 16384},
		{"Ollama, by its Modelfile", "ollama", "qwen3:14b", map[string]string{"POST /api/show": ollamaShow}, Model{Name: "qwen3:14b", Window: 8192, Trained: 40960, Tools: true}, 8192},
		{"Ollama, nobody chose", "ollama", "qwen3:14b", map[string]string{"POST /api/show": chosen}, Model{Name: "qwen3:14b", Trained: 40960}, 4096},
		{"Ollama by another name", "home", "qwen3:14b", map[string]string{"GET /v1/models": none, "GET /api/ps": ps, "POST /api/show": chosen}, Model{Name: "qwen3:14b", Window: 16384, Trained: 40960, Loaded: true}, 16384},
		{"LM Studio", "lmstudio", "meta-llama-3.1-8b-instruct", map[string]string{"GET /api/v0/models": studioOwn}, Model{Name: "meta-llama-3.1-8b-instruct", Window: 8192, Trained: 131072, Loaded: true, Tools: true}, 8192},
		{"LM Studio, not loaded", "lmstudio", "qwen2-vl-7b-instruct", map[string]string{"GET /api/v0/models": studioOwn}, Model{Name: "qwen2-vl-7b-instruct", Trained: 32768, Images: true}, 4096},
		{"llama.cpp", "llamacpp", "whatever", map[string]string{"GET /props": props, "GET /v1/models": llama}, Model{Name: "unsloth/Qwen3.6-35B-A3B-GGUF", Window: 65536, Loaded: true, Images: true, Tools: true}, 65536},
		{"llama.cpp without /props", "llamacpp", "whatever", map[string]string{"GET /v1/models": llama}, Model{Name: "x.gguf", Trained: 131072}, 4096},
		{"vLLM", "vllm", "Qwen/Qwen3-8B", map[string]string{"GET /v1/models": vllm}, Model{Name: "Qwen/Qwen3-8B", Window: 24576}, 24576},
		{"OpenRouter", "router", "z-ai/glm-9", map[string]string{"GET /v1/models": openRouter}, Model{Name: "z-ai/glm-9", Window: 131072, Answer: 16384}, 131072},
		{"Groq", "groq", "llama-9-8b-instant", map[string]string{"GET /v1/models": groq}, Model{Name: "llama-9-8b-instant", Window: 131072, Answer: 8192}, 131072},
		{"Mistral", "mistral", "mistral-nine", map[string]string{"GET /v1/models": mistral}, Model{Name: "mistral-nine", Window: 131072}, 131072},
		{"Together", "together", "org/model", map[string]string{"GET /v1/models": together}, Model{Name: "org/model", Window: 32768}, 32768},
		{"TabbyAPI", "tabby", "exl3", map[string]string{"GET /v1/models": tabby}, Model{Name: "exl3", Window: 49152}, 49152},
		{"Anthropic", "anthropic", "in-house", map[string]string{"GET /v1/models": anthropic}, Model{Name: "in-house", Window: 64000, Answer: 8000}, 64000},
		{"one that does not tell", "openai", "gpt-nine", map[string]string{"GET /v1/models": none}, Model{}, 0},
		{"one that does not have it", "openai", "gpt-ten", map[string]string{"GET /v1/models": groq}, Model{}, 0},
		{"a web server", "openai", "gpt-ten", map[string]string{"GET /v1/models": "<html>", "GET /props": `{"a":1}`, "POST /api/show": `{"error":"Unexpected endpoint"}`}, Model{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := "http://127.0.0.1:1"
			if c.usable == 0 {
				// What is posted to them is not looked at.
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if body := c.answers[r.Method+" "+r.URL.Path]; body != "" {
						w.Write([]byte(body))
						return
					}
					http.NotFound(w, r)
				}))
				t.Cleanup(srv.Close)
				url = srv.URL
			} else {
				url = serve(t, c.answers)
			}
			got, err := Address{Name: c.server, Base: url + "/v1/"}.Ask(t.Context(), nil, c.model)
			if (err == nil) != (c.usable > 0) {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if c.usable > 0 && got.Usable() != c.usable {
				t.Errorf("%d tokens are usable, want %d", got.Usable(), c.usable)
			}
		})
	}
}

// The key goes to the server in the headers of both languages.
func TestAskWithAKey(t *testing.T) {
	var bearer, key atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			bearer.Store(r.Header.Get("Authorization"))
			key.Store(r.Header.Get("X-Api-Key"))
			w.Write([]byte(`{"data":[{"id":"m","context_length":9000}]}`))
		}
	}))
	defer srv.Close()
	m, err := Address{Name: "vllm", Base: srv.URL + "/v1", Key: "sk-1"}.Ask(t.Context(), nil, "m")
	if err != nil || m.Window != 9000 || bearer.Load() != "Bearer sk-1" || key.Load() != "sk-1" {
		t.Errorf("%+v, %v: sent %v and %v", m, err, bearer.Load(), key.Load())
	}
}

// A server that hangs, or is not there, holds nobody up for long.
func TestAskGivesUp(t *testing.T) {
	defer func(was time.Duration) { askTimeout = was }(askTimeout)
	askTimeout = 50 * time.Millisecond
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(hang)
	if _, err := (Address{Name: "any", Base: srv.URL + "/v1"}).Ask(t.Context(), nil, "m"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	for _, base := range []string{"http://127.0.0.1:1/v1", "://", ""} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := (Address{Base: base}).Ask(ctx, nil, "m"); err == nil {
			t.Errorf("%q: no error", base)
		}
		cancel()
	}
}
