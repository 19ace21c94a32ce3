package local

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// askTimeout is how long Ask takes at most. A server that is not there refuses
// at once; one that is elsewhere needs more than timeout. Tests set another.
var askTimeout = time.Second

// Address is a server with an API like OpenAI's or Anthropic's.
type Address struct {
	Name string // "ollama", "lmstudio", "llamacpp" or "vllm"; with another name it may be any of them
	Base string // of its API, with /v1 or its equivalent
	Key  string // "": none
}

// ErrUnknown: the server does not say how many tokens the model takes.
var ErrUnknown = errors.New("local: the server does not tell the model's window")

// Ask returns what the server at a says of a model, within askTimeout. It asks
// the server's own API where there is one, because that knows what is in
// effect, and the list of models where not. The error is ErrUnknown if there
// was an answer, and no window in it. client is for servers elsewhere; nil is
// its own.
func (a Address) Ask(ctx context.Context, client *http.Client, model string) (Model, error) {
	u, err := url.Parse(a.Base)
	if err != nil {
		return Model{}, err
	}
	if ip := net.ParseIP(u.Hostname()); client == nil || ip.IsLoopback() || u.Hostname() == "localhost" {
		client = own()
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list := asker{client, strings.TrimSuffix(a.Base, "/"), a.Key}
	root := list
	root.base = u.Scheme + "://" + u.Host
	ways := a.ways(list, root, model)
	type answer struct {
		Model
		err error
	}
	answers := make([]chan answer, len(ways))
	for i, way := range ways {
		answers[i] = make(chan answer, 1)
		go func() {
			m, err := way(ctx)
			answers[i] <- answer{m, err}
		}()
	}
	// Every way ends with ctx, so this waits no longer than the limit.
	err = nil
	for _, ch := range answers {
		got := <-ch
		switch {
		case got.err == nil && got.Window+got.Trained > 0:
			return got.Model, nil
		case got.err == nil:
			err = ErrUnknown
		case err == nil:
			err = got.err
		}
	}
	return Model{}, err
}

// ways are how to ask, the best first. What the name or the host of the server
// excludes is not tried.
func (a Address) ways(list, root asker, model string) []func(context.Context) (Model, error) {
	entry := func(ctx context.Context) (Model, error) { return listed(ctx, list, model) }
	ollama := func(ctx context.Context) (Model, error) { return ollamaModel(ctx, root, model) }
	studio := func(ctx context.Context) (Model, error) {
		models, err := lmStudio(ctx, root)
		return pick(models, model), err
	}
	llama := func(ctx context.Context) (Model, error) {
		models, err := llamaCpp(ctx, root) // it has one, whatever it is called by
		if err != nil {
			return Model{}, err
		}
		return models[0], nil
	}
	switch a.Name {
	case "ollama":
		return []func(context.Context) (Model, error){ollama}
	case "lmstudio":
		return []func(context.Context) (Model, error){studio, entry}
	case "llamacpp":
		return []func(context.Context) (Model, error){llama, entry}
	case "vllm":
		return []func(context.Context) (Model, error){entry}
	}
	switch strings.TrimPrefix(root.base, "https://") {
	case "api.openai.com", "api.anthropic.com", "openrouter.ai":
		return []func(context.Context) (Model, error){entry}
	}
	return []func(context.Context) (Model, error){llama, ollama, studio, entry}
}

func pick(models []Model, name string) Model {
	for _, m := range models {
		if strings.EqualFold(m.Name, name) {
			return m
		}
	}
	return Model{}
}

// ollamaModel asks Ollama for one model: what it has in memory is in effect.
func ollamaModel(ctx context.Context, a asker, name string) (Model, error) {
	m := Model{Name: name}
	loaded := inMemory(ctx, a)
	for _, n := range []string{name, name + ":latest"} {
		if w, ok := loaded[n]; ok {
			m.Window, m.Loaded = w, true
		}
	}
	err := m.show(ctx, a)
	return m, err
}

// listed looks a model up in the list that every server has, at /models. The
// fields are those of vLLM and SGLang, of OpenRouter, Together and Moonshot, of
// Groq, of Mistral, of Anthropic, of TabbyAPI and of llama.cpp.
func listed(ctx context.Context, a asker, model string) (Model, error) {
	var raw json.RawMessage
	if err := a.get(ctx, "/models", nil, &raw); err != nil {
		return Model{}, err
	}
	type entry struct {
		ID, Name, Slug string
		MaxModelLen    int `json:"max_model_len"`
		Length         int `json:"context_length"`
		Window         int `json:"context_window"`
		MaxLength      int `json:"max_context_length"`
		MaxInput       int `json:"max_input_tokens"`
		MaxCompletion  int `json:"max_completion_tokens"`
		MaxOutput      int `json:"max_output_tokens"`
		MaxTokens      int `json:"max_tokens"`
		Top            struct {
			Length        int `json:"context_length"`
			MaxCompletion int `json:"max_completion_tokens"`
		} `json:"top_provider"`
		Parameters struct {
			MaxSeqLen int `json:"max_seq_len"`
		}
		Meta struct {
			Window  int `json:"n_ctx"`
			Trained int `json:"n_ctx_train"`
		}
	}
	var list struct{ Data []json.RawMessage }
	if json.Unmarshal(raw, &list) != nil || list.Data == nil {
		json.Unmarshal(raw, &list.Data) // Together's list is bare
	}
	var found Model
	for _, data := range list.Data {
		var e entry
		json.Unmarshal(data, &e) // a field of another kind stays unknown
		if !strings.EqualFold(e.ID, model) && len(list.Data) > 1 {
			continue
		}
		found = Model{
			Name:    e.ID,
			Window:  least(e.MaxModelLen, e.Length, e.Window, e.MaxLength, e.MaxInput, e.Top.Length, e.Parameters.MaxSeqLen, e.Meta.Window),
			Trained: e.Meta.Trained,
			Answer:  least(e.MaxCompletion, e.MaxOutput, e.MaxTokens, e.Top.MaxCompletion),
		}
		if strings.EqualFold(e.ID, model) {
			break
		}
	}
	return found, nil
}

// least returns the least of ns that says something.
func least(ns ...int) int {
	out := 0
	for _, n := range ns {
		if n > 0 && (out == 0 || n < out) {
			out = n
		}
	}
	return out
}

// List returns the names of the models that the server at a lists, within
// askTimeout; none if it does not.
func (a Address) List(ctx context.Context) []string {
	client := http.DefaultClient
	if u, err := url.Parse(a.Base); err == nil && (net.ParseIP(u.Hostname()).IsLoopback() || u.Hostname() == "localhost") {
		client = own()
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var list struct{ Data []struct{ ID string } }
	if err := (asker{client, strings.TrimSuffix(a.Base, "/"), a.Key}).get(ctx, "/models", nil, &list); err != nil {
		return nil
	}
	var out []string
	for _, m := range list.Data {
		if m.ID != "" && !isEmbedding(m.ID) {
			out = append(out, m.ID)
		}
	}
	return out
}
