package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/provider/anthropic"
	"goclaw/provider/catalogue"
	"goclaw/provider/local"
	"goclaw/provider/offline"
	"goclaw/provider/openai"
	"goclaw/session"
	"goclaw/window"
	"goclaw/window/bpe"
)

// voice is the model that is asked, and what is known of it.
type voice struct {
	llm.Provider
	provider, model string
	api             string // how it is spoken to, for the log
	budget          window.Budget
	maxTokens       int
	noImages        bool
	tokens          window.Tokenizer
	price           catalogue.Model
	at              local.Address // where it is asked
	note            string        // what the user should know about the choice
}

func (v *voice) name() string {
	return session.ModelChange{Provider: v.provider, Model: v.model}.Name()
}

// tell adds to what the user should know.
func (v *voice) tell(what string) {
	if v.note != "" {
		what += "; " + v.note
	}
	v.note = what
}

// encoding is a tokenizer that is built when it is first used: a start that
// counts nothing does not wait for its vocabulary.
type encoding func() *bpe.Encoding

// Count implements window.Tokenizer.
func (e encoding) Count(text string) int { return e().Count(text) }

// Models that are asked when a key is there and nothing else is said.
const (
	defaultAnthropic = "claude-sonnet-4-5"
	defaultOpenAI    = "gpt-5"
)

// bases are the servers that speak OpenAI's language, by the name that a
// model is given with.
var bases = map[string]string{
	"openai":     openai.DefaultBaseURL,
	"openrouter": "https://openrouter.ai/api/v1",
	"ollama":     "http://127.0.0.1:11434/v1",
	"lmstudio":   "http://127.0.0.1:1234/v1",
	"llamacpp":   "http://127.0.0.1:8080/v1",
	"vllm":       "http://127.0.0.1:8000/v1",
}

// choose returns the model that is asked now. If decide has found none, it is
// the one of --model, then of the configuration, then of whichever key or local
// server there is, then the built-in one.
func (a *app) choose(ctx context.Context) (*voice, error) {
	if a.voice != nil {
		return a.voice, nil
	}
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	switch spec := cmp.Or(a.model, c.Model); {
	case spec != "":
		a.voice, err = a.named(spec)
	case c.Providers["anthropic"].APIKey != "":
		a.voice, err = a.named("anthropic/" + defaultAnthropic)
	case c.Providers["openai"].APIKey != "":
		a.voice, err = a.named("openai/" + defaultOpenAI)
	default:
		a.voice, err = a.fallback(ctx)
	}
	return a.voice, err
}

// fallback is the model that is asked where there is no key: one of a server
// on this machine, or the built-in one.
func (a *app) fallback(ctx context.Context) (*voice, error) {
	if s, ok := a.localServer(ctx); ok {
		return a.localVoice(s, s.Models[0])
	}
	v, err := a.named(offline.Name)
	if err == nil && v.note == "" {
		v.tell("no API key and no local model server found: the built-in offline model answers (it is not a language model)")
	}
	return v, err
}

// localServer looks once for a server on this machine that has a model.
func (a *app) localServer(ctx context.Context) (local.Server, bool) {
	if a.getenv("GOCLAW_NO_LOCAL") != "" {
		return local.Server{}, false
	}
	if a.server == nil {
		s, _ := local.Find(ctx, nil)
		a.server = &s
	}
	return *a.server, len(a.server.Models) > 0
}

// localVoice is the model m of the server s.
func (a *app) localVoice(s local.Server, m local.Model) (*voice, error) {
	spec := s.Name + "/" + m.Name
	known := a.voices[spec] != nil
	v, err := a.namedAs(spec, m)
	if err != nil || known {
		return v, err
	}
	v.noImages = !m.Images
	if a.conf.ContextWindow == 0 && m.Window+m.Trained > 0 {
		v.budget.Window = m.Usable()
		v.note = v.reserve(a.conf)
	}
	v.tell(fmt.Sprintf("using %s of %s on this machine", v.model, s.Name))
	return v, nil
}

// named returns the model of a spec such as anthropic/claude-sonnet-4-5.
func named(c *config.Loaded, spec string, getenv func(string) string) (*voice, error) {
	if spec == offline.Name {
		v := &voice{provider: offline.Name, model: offline.Name, api: offline.Name, budget: window.Budget{Window: offline.DefaultWindow}, noImages: true}
		v.settle(c)
		v.Provider = offline.New(offline.Config{Window: v.budget.Window})
		return v, nil
	}
	prov, model, ok := strings.Cut(spec, "/")
	if !ok || prov == "" || model == "" {
		return nil, usage("model %q must be provider/model, such as anthropic/%s or ollama/llama3.2, or offline", spec, defaultAnthropic)
	}
	p := c.Providers[prov]
	v := &voice{provider: prov, model: model}
	missing := false
	if prov == "anthropic" {
		missing = p.APIKey == "" && p.BaseURL == ""
		v.Provider = anthropic.New(anthropic.Config{BaseURL: p.BaseURL, APIKey: p.APIKey, Idle: 5 * time.Minute})
		v.api = "anthropic-messages"
		v.at = local.Address{Name: prov, Base: strings.TrimSuffix(strings.TrimSuffix(cmp.Or(p.BaseURL, anthropic.DefaultBaseURL), "/"), "/v1") + "/v1", Key: p.APIKey}
	} else {
		base := p.BaseURL
		if base == "" {
			base = bases[prov]
		}
		if base == "" {
			return nil, fmt.Errorf("provider %q of model %s is not known: name its address in providers.%s.baseUrl in %s (known: %s)", prov, spec, prov, c.File, strings.Join(providers(), ", "))
		}
		key := p.APIKey
		if key == "" {
			key = getenv(strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(prov)) + "_API_KEY")
		}
		missing = key == "" && (prov == "openai" || prov == "openrouter") && p.BaseURL == ""
		v.Provider = openai.New(openai.Config{Name: prov, BaseURL: base, APIKey: key, Idle: 5 * time.Minute})
		v.at = local.Address{Name: prov, Base: openai.Base(base), Key: key}
		v.api = "openai-completions"
	}
	v.settle(c)
	if missing {
		return nil, &keyError{v, fmt.Sprintf("model %s needs a key: set %s_API_KEY, or providers.%s.apiKey in %s", spec, strings.ToUpper(prov), prov, c.File)}
	}
	return v, nil
}

// keyError says that a model cannot be asked without a key. What is known of
// it without one is in voice.
type keyError struct {
	voice *voice
	text  string
}

func (e *keyError) Error() string { return e.text }

func providers() []string {
	names := []string{"anthropic"}
	for n := range bases {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// settle fills in window, output limit and prices: from the catalogue, then
// from the configuration.
func (v *voice) settle(c *config.Loaded) {
	v.tokens = counterOf(v.provider)
	if m, ok := catalogue.Lookup(v.provider + "/" + v.model); ok {
		v.noImages = !m.Images
		v.budget.Window, v.maxTokens = m.Prompt(), m.Output
	}
	v.price = prices(c, v.provider+"/"+v.model)
	over := c.Models[v.provider+"/"+v.model]
	v.budget.Window = lastSet(v.budget.Window, c.ContextWindow, over.ContextWindow)
	v.maxTokens = lastSet(v.maxTokens, c.MaxTokens, over.MaxTokens)
	learnt := limitsOf(c.Home, v.name())
	v.budget.Window = leastSet(v.budget.Window, learnt.Window)
	v.maxTokens = leastSet(v.maxTokens, learnt.Answer)
	problem := v.reserve(c)
	if v.budget.Window != c.ContextWindow { // of which it was said already
		v.note = problem
	}
}

// reserve fills in what of the window is kept free for the answer, and returns
// what is wrong with the configuration of it.
func (v *voice) reserve(c *config.Loaded) (problem string) {
	least, problem := c.Reserve(v.budget.Window)
	v.budget.Reserve = window.Reserve(v.budget.Window, v.maxTokens, least)
	return problem
}

// counterOf counts for the models of a provider. Anthropic's vocabulary is not
// public: one token of cl100k_base is about 1.25 of its own, until a session
// shows it more exactly. Those of other servers differ by less.
func counterOf(provider string) *window.Counter {
	switch provider {
	case "anthropic":
		return window.NewCounter(encoding(bpe.CL100K), 1.25)
	case "openai", offline.Name:
		return window.NewCounter(encoding(bpe.O200K), 1)
	}
	return window.NewCounter(encoding(bpe.O200K), 1.1)
}

// lastSet returns the last of ns that is not zero.
func lastSet(ns ...int) int {
	out := 0
	for _, n := range ns {
		if n > 0 {
			out = n
		}
	}
	return out
}

// leastSet returns the least of ns that is not zero.
func leastSet(ns ...int) int {
	out := 0
	for _, n := range ns {
		if n > 0 && (out == 0 || n < out) {
			out = n
		}
	}
	return out
}

// prompt returns what every request of the voice begins with.
func (v *voice) prompt(c *config.Loaded) window.Prompt {
	return window.Prompt{Provider: v.provider, Model: v.model, System: systemPrompt(c.Workspace), MaxTokens: v.maxTokens, Thinking: c.Thinking, NoImages: v.noImages}
}

// systemPrompt changes with nothing but the workspace, so that prompt caches
// keep working from turn to turn and from day to day.
func systemPrompt(workspace string) string {
	return `You are goclaw, a helpful agent that talks with its user in a terminal. Be direct and brief; use Markdown where it helps.

Your tools work in the folder ` + workspace + `. Read before you write, and say what you changed.
What must outlive this conversation belongs into memory/YYYY-MM-DD.md (today's date; get_current_time tells it), lasting facts about the user and the work into MEMORY.md. Look there when the user refers to something that you cannot see.
Everything that was ever said stays word for word, also what a summary stands for: session_search finds it and session_read reads it, memory_search and memory_get do so for the memory files.
A line such as [Context: 156k/200k tokens (78%)] at the end of a message tells how full your window is; it is not from the user.`
}

// modelHint says what to do when a model cannot be asked.
func modelHint(err error) string {
	switch {
	case errors.Is(err, llm.ErrAuth):
		return "check the API key: goclaw config shows where it comes from"
	case errors.Is(err, llm.ErrModel):
		return "choose another with --model provider/model, or \"model\" in the configuration"
	case errors.Is(err, llm.ErrNetwork):
		return "your words are kept: goclaw ask --continue asks again"
	case errors.Is(err, llm.ErrOverflow):
		return "begin anew with goclaw sessions new, or ask a model with a larger window"
	}
	return ""
}
