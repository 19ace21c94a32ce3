package local

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestMain gives servers more time than a busy machine needs to answer.
func TestMain(m *testing.M) {
	Patience, askTimeout = "1m", time.Minute
	goleak.VerifyTestMain(m)
}

// serve answers "METHOD /path" with a body; everything else is 404.
func serve(t *testing.T, answers map[string]string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if sent, _ := io.ReadAll(r.Body); r.Method == http.MethodPost && string(sent) != `{"model":"qwen3:14b"}` {
			t.Errorf("posted %s", sent)
		}
		io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// The bodies are those of the servers' own API documents, shortened.
var (
	ollamaTags = `{"models":[{"name":"nomic-embed-text:latest","model":"nomic-embed-text:latest"},{"name":"qwen3:14b","model":"qwen3:14b","modified_at":"2026-08-20T10:06:46Z","size":9276198565,"digest":"bdbd181c33f2","details":{"format":"gguf","family":"qwen3","parameter_size":"14.8B","quantization_level":"Q4_K_M"}},{"name":"gemma3:4b","model":"gemma3:4b"}]}`
	ollamaShow = `{"license":"Apache","parameters":"repeat_penalty                 1\nnum_ctx                        8192\nstop                           \"<|im_end|>\"","template":"{{ .Prompt }}","details":{"family":"qwen3"},"model_info":{"general.architecture":"qwen3","qwen3.attention.head_count":40,"qwen3.context_length":40960},"capabilities":["completion","tools","thinking"]}`
	ollamaPs   = `{"models":[{"name":"gemma3:4b","model":"gemma3:4b","size":6591830464,"expires_at":"2026-10-17T16:47:07Z","size_vram":5333539264,"context_length":4096}]}`
	studioOwn  = `{"object":"list","data":[
	 {"id":"qwen2-vl-7b-instruct","object":"model","type":"vlm","publisher":"mlx-community","arch":"qwen2_vl","compatibility_type":"mlx","quantization":"4bit","state":"not-loaded","max_context_length":32768},
	 {"id":"meta-llama-3.1-8b-instruct","object":"model","type":"llm","publisher":"lmstudio-community","arch":"llama","compatibility_type":"gguf","quantization":"Q4_K_M","state":"loaded","max_context_length":131072,"loaded_context_length":8192,"capabilities":["tool_use"]},
	 {"id":"text-embedding-nomic-embed-text-v1.5","object":"model","type":"embeddings","publisher":"nomic-ai","arch":"nomic-bert","state":"not-loaded","max_context_length":2048}]}`
	studioOld = `{"data":[{"id":"phi-2","object":"model","owned_by":"organization_owner"}],"object":"list"}`
	props     = `{"default_generation_settings":{"id":0,"id_task":-1,"n_ctx":65536,"speculative":false,"params":{"temperature":0.8}},"total_slots":4,"model_alias":"unsloth/Qwen3.6-35B-A3B-GGUF","model_path":"/models/qwen.gguf","modalities":{"vision":true,"audio":false},"chat_template":"...","chat_template_caps":{"supports_tools":true},"build_info":"b8681"}`
)

func TestFind(t *testing.T) {
	ollamaURL := serve(t, map[string]string{"GET /api/tags": ollamaTags, "POST /api/show": ollamaShow})
	ollamaBusy := serve(t, map[string]string{"GET /api/tags": ollamaTags, "GET /api/ps": ollamaPs})
	studio := serve(t, map[string]string{"GET /api/v0/models": studioOwn})
	older := serve(t, map[string]string{"GET /v1/models": studioOld})
	llama := serve(t, map[string]string{"GET /props": props})
	bare := serve(t, map[string]string{"GET /props": `{"default_generation_settings":{"n_ctx":2048},"model_path":"C:\\models\\tiny.Q4.gguf"}`})
	web := serve(t, map[string]string{"GET /props": `{"hello":"world"}`, "GET /api/tags": "<html>", "GET /v1/models": `{"data":[]}`})
	empty := serve(t, map[string]string{"GET /api/tags": `{"models":[]}`})

	qwen := Model{Name: "qwen3:14b", Window: 8192, Trained: 40960, Tools: true}
	meta := Model{Name: "meta-llama-3.1-8b-instruct", Window: 8192, Trained: 131072, Loaded: true, Tools: true}
	big := Model{Name: "unsloth/Qwen3.6-35B-A3B-GGUF", Window: 65536, Loaded: true, Images: true, Tools: true}
	for _, c := range []struct {
		name string
		at   Addresses
		want Server
		ok   bool
	}{
		{"Ollama", Addresses{Ollama: ollamaURL}, Server{"ollama", ollamaURL + "/v1", []Model{qwen, {Name: "gemma3:4b"}}}, true},
		{"Ollama with a model in memory", Addresses{Ollama: ollamaBusy + "/"}, Server{"ollama", ollamaBusy + "/v1", []Model{{Name: "gemma3:4b", Window: 4096, Loaded: true}, {Name: "qwen3:14b"}}}, true},
		{"LM Studio", Addresses{LMStudio: studio}, Server{"lmstudio", studio + "/v1", []Model{meta, {Name: "qwen2-vl-7b-instruct", Trained: 32768, Images: true}}}, true},
		{"LM Studio without its own API", Addresses{LMStudio: older}, Server{"lmstudio", older + "/v1", []Model{{Name: "phi-2"}}}, true},
		{"llama.cpp", Addresses{LlamaCpp: llama}, Server{"llamacpp", llama + "/v1", []Model{big}}, true},
		{"llama.cpp without an alias", Addresses{LlamaCpp: bare}, Server{"llamacpp", bare + "/v1", []Model{{Name: "tiny.Q4", Window: 2048, Loaded: true}}}, true},
		{"in memory before the rest", Addresses{Ollama: ollamaURL, LMStudio: older, LlamaCpp: llama}, Server{"llamacpp", llama + "/v1", []Model{big}}, true},
		{"in order", Addresses{Ollama: ollamaBusy, LMStudio: studio, LlamaCpp: llama}, Server{"ollama", ollamaBusy + "/v1", []Model{{Name: "gemma3:4b", Window: 4096, Loaded: true}, {Name: "qwen3:14b"}}}, true},
		{"without models", Addresses{Ollama: empty}, Server{}, false},
		{"other servers", Addresses{Ollama: web, LMStudio: web, LlamaCpp: web}, Server{}, false},
		{"nobody", Addresses{Ollama: "http://127.0.0.1:1", LMStudio: "http://127.0.0.1:1", LlamaCpp: "://"}, Server{}, false},
		{"nowhere", Addresses{}, Server{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := first(c.at.Find(t.Context(), nil))
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
				t.Errorf("found %v, -want +got\n%s", ok, diff)
			}
		})
	}
}

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that hangs costs the timeout and hides no other. Time is virtual: the
// other answers at once, however busy the machine is.
func TestHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "hangs" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			w := httptest.NewRecorder()
			io.WriteString(w, props)
			return w.Result(), nil
		})}
		start := time.Now()
		got, ok := first(Addresses{Ollama: "http://hangs", LMStudio: "http://hangs", LlamaCpp: "http://llama"}.Find(t.Context(), client))
		if took := time.Since(start); took != timeout() {
			t.Errorf("took %s", took)
		}
		if !ok || got.Name != "llamacpp" {
			t.Errorf("found %+v, %v", got, ok)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		if found := (Addresses{Ollama: "http://hangs"}).Find(ctx, client); len(found) > 0 || time.Since(start) > 0 {
			t.Errorf("found %v after %s with a context that had ended", found, time.Since(start))
		}
	})
}

// A real server that hangs is given up.
func TestHangingServer(t *testing.T) {
	defer func(was string) { Patience = was }(Patience)
	Patience = "50ms"
	hang := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	if found := (Addresses{Ollama: hang.URL, LMStudio: hang.URL}).Find(t.Context(), nil); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		m    Model
		want int
	}{
		{Model{Window: 65536, Trained: 131072}, 65536},
		{Model{Trained: 131072}, 4096},
		{Model{Trained: 2048}, 2048},
		{Model{}, 4096},
	} {
		if got := c.m.Usable(); got != c.want {
			t.Errorf("%+v: %d is usable, want %d", c.m, got, c.want)
		}
	}
}

// Port 8080 is anybody's: nobody is asked there unless the user names it.
func TestStandard(t *testing.T) {
	want := Addresses{Ollama: "http://127.0.0.1:11434", LMStudio: "http://127.0.0.1:1234"}
	if got := Standard(); got != want {
		t.Errorf("standard addresses are %+v, want %+v", got, want)
	}
}

// All servers are returned, in their order.
func TestFindAll(t *testing.T) {
	at := Addresses{
		Ollama:   serve(t, map[string]string{"GET /api/tags": ollamaTags, "POST /api/show": ollamaShow}),
		LMStudio: serve(t, map[string]string{"GET /v1/models": studioOld}),
		LlamaCpp: serve(t, map[string]string{"GET /props": props}),
	}
	var got []string
	for _, s := range at.Find(t.Context(), nil) {
		got = append(got, s.Name)
	}
	if d := cmp.Diff([]string{"llamacpp", "ollama", "lmstudio"}, got); d != "" {
		t.Error(d)
	}
}

// Whatever answers on a port does not send the probe elsewhere.
func TestProbeIsNotRedirected(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was asked", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	if found := (Addresses{Ollama: srv.URL, LMStudio: srv.URL, LlamaCpp: srv.URL}).Find(t.Context(), nil); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

func first(found []Server) (Server, bool) {
	if len(found) == 0 {
		return Server{}, false
	}
	return found[0], true
}

func BenchmarkNobody(b *testing.B) {
	for b.Loop() {
		Standard().Find(b.Context(), nil)
	}
}
