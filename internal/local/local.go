// Package local finds a model server on this machine: Ollama or LM Studio on its
// standard port, or one at a given address. It also asks a server, here or elsewhere, how
// many tokens one of its models takes.
//
// All servers are asked at once, and only for a moment, because a user waits for
// the first prompt. They are asked for their models; none is loaded.
package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Server is a model server that answered.
type Server struct {
	Name    string // "ollama", "lmstudio" or "llamacpp"
	BaseURL string // of its OpenAI-compatible API, with /v1
	Models  []Model
}

// Model is a model that a server has.
type Model struct {
	Name    string
	Window  int  // tokens that the server gives it; 0 if it does not say
	Trained int  // tokens that it was made for, usually more; 0 likewise
	Answer  int  // tokens of its longest answer; 0 likewise
	Loaded  bool // in memory: it answers at once
	Images  bool
	Tools   bool // false also where the server does not say
}

// Usable is the window to plan with: the one that the server gives the model
// or, where that is not known, the 4096 tokens that Ollama and LM Studio give
// one if nothing was chosen. They silently cut longer requests.
func (m Model) Usable() int {
	const unchosen = 4096
	switch {
	case m.Window > 0:
		return m.Window
	case m.Trained > 0:
		return min(m.Trained, unchosen)
	}
	return unchosen
}

// Where the servers listen unless told otherwise, and how long Find takes at
// most. They are strings because the linker sets others in the program that
// tests run.
var (
	OllamaURL   = "http://127.0.0.1:11434"
	LMStudioURL = "http://127.0.0.1:1234"
	LlamaCppURL = "http://127.0.0.1:8080"
	Patience    = "150ms"
)

func timeout() time.Duration {
	d, err := time.ParseDuration(Patience)
	if err != nil {
		panic(err) // it was set to something else
	}
	return d
}

// Addresses are where to look. An empty one is not asked.
type Addresses struct{ Ollama, LMStudio, LlamaCpp string }

// Standard returns the addresses where a server is looked for without being
// told: those that only a model server uses. Anything may listen on llama.cpp's.
func Standard() Addresses { return Addresses{Ollama: OllamaURL, LMStudio: LMStudioURL} }

// Find returns the servers that have a model, within Patience: those with a model
// in memory before those without, and then Ollama before LM Studio before
// llama.cpp. The first of a server's models is the one to use: one in memory, or
// the one that was used last. The servers learn nothing but that they are asked:
// no key is sent.
func (a Addresses) Find(ctx context.Context, client *http.Client) []Server {
	ctx, cancel := context.WithTimeout(ctx, timeout())
	defer cancel()
	if client == nil {
		client = own()
	}
	probes := []struct {
		base string
		ask  func(context.Context, asker) ([]Model, error)
		name string
	}{
		{a.Ollama, ollama, "ollama"},
		{a.LMStudio, lmStudio, "lmstudio"},
		{a.LlamaCpp, llamaCpp, "llamacpp"},
	}
	answers := make([]Server, len(probes))
	var asked sync.WaitGroup
	for i, p := range probes {
		base := strings.TrimSuffix(p.base, "/")
		if base == "" {
			continue
		}
		asked.Go(func() {
			if models, err := p.ask(ctx, asker{client: client, base: base}); err == nil {
				answers[i] = Server{Name: p.name, BaseURL: base + "/v1", Models: models}
			}
		})
	}
	asked.Wait() // every probe ends with ctx, so this takes no longer than that
	found := slices.DeleteFunc(answers, func(s Server) bool { return len(s.Models) == 0 })
	sort.SliceStable(found, func(i, j int) bool { return found[i].Models[0].Loaded && !found[j].Models[0].Loaded })
	return found
}

// own returns a client for this machine: it uses no proxy, keeps no connections
// to servers that may go away, and is not sent elsewhere by what answers.
func own() *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: stay}
}

// asker asks one server.
type asker struct {
	client *http.Client
	base   string
	key    string // "": none
}

// get decodes what the server answers at path; with a body it posts.
func (a asker) get(ctx context.Context, path string, body, to any) error {
	method, send := http.MethodGet, io.Reader(nil)
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		method, send = http.MethodPost, bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, send)
	if err != nil {
		return err
	}
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
		req.Header.Set("X-Api-Key", a.key) // Anthropic's
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: HTTP %d", path, res.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(res.Body, 8<<20)).Decode(to)
}

// byUse puts models in memory first and keeps the order of the rest.
func byUse(models []Model) []Model {
	sort.SliceStable(models, func(i, j int) bool { return models[i].Loaded && !models[j].Loaded })
	return models
}

// ollama lists models, the one used last first, and looks the first one up.
//
// The window of a model is what it is loaded with, which /api/ps says, or what
// its Modelfile sets. Without either Ollama chooses by the memory there is, and
// silently cuts what is longer; then Window is 0 and only Trained is known.
func ollama(ctx context.Context, a asker) ([]Model, error) {
	var tags struct {
		Models []struct{ Name string }
	}
	if err := a.get(ctx, "/api/tags", nil, &tags); err != nil {
		return nil, err
	}
	loaded := inMemory(ctx, a)
	var models []Model
	for _, m := range tags.Models {
		if isEmbedding(m.Name) {
			continue
		}
		window, ok := loaded[m.Name]
		models = append(models, Model{Name: m.Name, Window: window, Loaded: ok})
	}
	models = byUse(models)
	if len(models) == 0 {
		return nil, nil
	}
	_ = models[0].show(ctx, a) // without it only the name is known
	return models, nil
}

// inMemory returns the windows of the models that Ollama has in memory. Older
// servers do not tell; then nothing is known to be there.
func inMemory(ctx context.Context, a asker) map[string]int {
	var ps struct {
		Models []struct {
			Name   string
			Window int `json:"context_length"`
		}
	}
	_ = a.get(ctx, "/api/ps", nil, &ps)
	loaded := map[string]int{}
	for _, m := range ps.Models {
		loaded[m.Name] = m.Window
	}
	return loaded
}

// show fills in what Ollama's /api/show tells of m. The window of a model in
// memory stays what it is there.
func (m *Model) show(ctx context.Context, a asker) error {
	var show struct {
		Parameters   string
		Capabilities []string
		Info         map[string]json.RawMessage `json:"model_info"`
	}
	if err := a.get(ctx, "/api/show", map[string]string{"model": m.Name}, &show); err != nil {
		return err
	}
	m.Images = slices.Contains(show.Capabilities, "vision")
	m.Tools = slices.Contains(show.Capabilities, "tools")
	for key, v := range show.Info {
		if strings.HasSuffix(key, ".context_length") {
			json.Unmarshal(v, &m.Trained) // a number, or it stays unknown
		}
	}
	if m.Window == 0 {
		for line := range strings.Lines(show.Parameters) {
			var n int
			if _, err := fmt.Sscanf(line, "num_ctx %d", &n); err == nil {
				m.Window = n
			}
		}
	}
	return nil
}

func isEmbedding(name string) bool {
	return strings.Contains(name, "embed") || strings.Contains(name, "minilm") || strings.HasPrefix(name, "bge-")
}

// lmStudio lists models with what its own API knows of them, or by name alone
// where the server is older than that API.
func lmStudio(ctx context.Context, a asker) ([]Model, error) {
	var list struct {
		Data []struct {
			ID           string
			Type         string
			State        string
			Max          int `json:"max_context_length"`
			Loaded       int `json:"loaded_context_length"`
			Capabilities []string
		}
	}
	own := a.get(ctx, "/api/v0/models", nil, &list)
	if own != nil || len(list.Data) == 0 {
		if err := a.get(ctx, "/v1/models", nil, &list); err != nil {
			return nil, err
		}
	}
	var models []Model
	for _, m := range list.Data {
		if m.ID == "" || m.Type == "embeddings" || isEmbedding(m.ID) {
			continue
		}
		models = append(models, Model{
			Name: m.ID, Trained: m.Max, Window: m.Loaded, Loaded: m.State == "loaded",
			Images: m.Type == "vlm", Tools: slices.Contains(m.Capabilities, "tool_use"),
		})
	}
	return byUse(models), nil
}

// llamaCpp asks /props, which no other server on that port answers in this
// form. The server has the one model that it was started with.
func llamaCpp(ctx context.Context, a asker) ([]Model, error) {
	var props struct {
		Alias    string `json:"model_alias"`
		Path     string `json:"model_path"`
		Settings *struct {
			Window int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities struct{ Vision bool }
		Caps       struct {
			Tools bool `json:"supports_tools"`
		} `json:"chat_template_caps"`
	}
	if err := a.get(ctx, "/props", nil, &props); err != nil {
		return nil, err
	}
	if props.Settings == nil {
		return nil, fmt.Errorf("/props: not a llama.cpp server")
	}
	name := props.Alias
	if name == "" {
		name = strings.TrimSuffix(path.Base(strings.ReplaceAll(props.Path, `\`, "/")), ".gguf")
	}
	if name == "" || name == "." || name == "/" {
		name = "default"
	}
	return []Model{{Name: name, Window: props.Settings.Window, Loaded: true, Images: props.Modalities.Vision, Tools: props.Caps.Tools}}, nil
}
