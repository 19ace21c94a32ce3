package models

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/internal/local"
	"goclaw/internal/spending"
	"goclaw/llm"
	"goclaw/provider/anthropic"
	"goclaw/provider/offline"
	"goclaw/provider/openai"
	"goclaw/session"
	"goclaw/window"
	"goclaw/window/bpe"
)

// Model is a model that can be asked, and what is known of it.
type Model struct {
	llm.Provider
	ProviderName, ModelName string
	API                     string // as the log names it
	Budget                  window.Budget
	maxTokens               int
	noImages                bool
	Thinks                  bool     // false: it is known not to think before it answers
	Levels                  []string // the levels of thinking that it has; none: not known
	Tokens                  window.Tokenizer
	Price                   catalogue.Model
	At                      local.Address // where it is asked
	fixed                   bool          // the window is configured
	accepted, noted         int           // tokens of the longest prompt it took; as far as that is written down
	Note                    string        // what the user should know about the choice
}

// Name is provider/model, as it is written in logs and settings.
func (m *Model) Name() string {
	return session.ModelChange{Provider: m.ProviderName, Model: m.ModelName}.Name()
}

// tell adds to what the user should know.
func (m *Model) tell(what string) {
	if m.Note != "" {
		what += "; " + m.Note
	}
	m.Note = what
}

// Models that are asked when there is a key and nothing else is configured.
const (
	DefaultAnthropic = "claude-sonnet-4-5"
	DefaultOpenAI    = "gpt-5"
)

// Bases are the servers that speak OpenAI's language, by provider.
var Bases = map[string]string{
	"openai":     openai.DefaultBaseURL,
	"openrouter": "https://openrouter.ai/api/v1",
	"ollama":     local.OllamaURL + "/v1",
	"lmstudio":   local.LMStudioURL + "/v1",
	"llamacpp":   local.LlamaCppURL + "/v1",
	"vllm":       "http://127.0.0.1:8000/v1",
}

// Providers are the names of the providers whose address is known.
func Providers() []string { return append([]string{"anthropic"}, slices.Sorted(maps.Keys(Bases))...) }

// NewModel returns the model of a spec such as anthropic/claude-sonnet-4-5.
func NewModel(c *config.Loaded, spec string, getenv func(string) string) (*Model, error) {
	if spec == offline.Name {
		m := &Model{ProviderName: offline.Name, ModelName: offline.Name, API: offline.Name, Budget: window.Budget{Window: offline.DefaultWindow}, noImages: true}
		m.settle(c)
		m.Provider = offline.New(offline.Config{Window: m.Budget.Window})
		return m, nil
	}
	prov, name, ok := strings.Cut(spec, "/")
	if !ok || prov == "" || name == "" {
		return nil, wrong("model %q must be provider/model, such as anthropic/%s or ollama/llama3.2, or offline", spec, DefaultAnthropic)
	}
	p := c.Providers[prov]
	m := &Model{ProviderName: prov, ModelName: name}
	needsKey := p.BaseURL == "" && (prov == "anthropic" || prov == "openai" || prov == "openrouter")
	if prov == "anthropic" {
		m.Provider = anthropic.New(anthropic.Config{BaseURL: p.BaseURL, APIKey: p.APIKey, Idle: 5 * time.Minute})
		m.API = "anthropic-messages"
		m.At = local.Address{Name: prov, Base: strings.TrimSuffix(strings.TrimSuffix(cmp.Or(p.BaseURL, anthropic.DefaultBaseURL), "/"), "/v1") + "/v1", Key: p.APIKey}
	} else {
		base := cmp.Or(p.BaseURL, Bases[prov])
		if base == "" {
			return nil, fmt.Errorf("the provider %q of model %s is not known: set its address as providers.%s.baseUrl in %s (known: %s)", prov, spec, prov, c.File, strings.Join(Providers(), ", "))
		}
		key := cmp.Or(p.APIKey, getenv(KeyVariable(prov)))
		server := openai.Config{Name: prov, BaseURL: base, APIKey: key, Idle: 5 * time.Minute}
		if responses(c, spec, base) {
			m.Provider, m.API = openai.NewResponses(server), "openai-responses"
		} else {
			m.Provider, m.API = openai.New(server), "openai-completions"
		}
		m.At = local.Address{Name: prov, Base: openai.Base(base), Key: key}
	}
	m.settle(c)
	if needsKey && m.At.Key == "" {
		return nil, &keyError{m, fmt.Sprintf("model %s needs a key: set %s_API_KEY, or providers.%s.apiKey in %s", spec, strings.ToUpper(prov), prov, c.File)}
	}
	return m, nil
}

// cost returns the price of one call; zero if that is not known.
func (m *Model) cost(u llm.Usage) llm.Cost {
	usd, _ := m.Price.Cost(u)
	return usd
}

// KeyVariable is the environment variable with the key of a provider.
func KeyVariable(provider string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(provider)) + "_API_KEY"
}

// responses reports whether a model is asked with the Responses API: if the
// configuration says so, or else if the catalogue does and its vendor is asked.
// Other servers have the models of OpenAI too, and often only the older API.
func responses(c *config.Loaded, spec, base string) bool {
	prov, _, _ := strings.Cut(spec, "/")
	if api := cmp.Or(c.Models[spec].API, c.Providers[prov].API); api != "" {
		return api == catalogue.Responses
	}
	known, _ := catalogue.Lookup(spec)
	return known.API == catalogue.Responses && openai.Own(base)
}

// NameError is a name of a model, or a level of thinking, that means nothing.
type NameError struct{ error }

func wrong(format string, args ...any) error { return &NameError{fmt.Errorf(format, args...)} }

// keyError says that a model cannot be asked without a key. model holds what is
// known of it without one.
type keyError struct {
	model *Model
	text  string
}

func (e *keyError) Error() string { return e.text }

// settle fills in the window, the output limit and the prices: from the
// configuration, or else from the catalogue and what refusals have taught. For
// the answer, only the setting of the very model goes before what was learnt.
func (m *Model) settle(c *config.Loaded) {
	m.Tokens, m.Thinks = counterOf(m.ProviderName), m.ProviderName != offline.Name
	name := m.ProviderName + "/" + m.ModelName
	if known, ok := catalogue.Lookup(name); ok {
		m.noImages = !known.Images
		m.Thinks, m.Levels = known.Reasoning || known.Guess, known.Think
		m.Budget.Window, m.maxTokens = known.Prompt(), known.Output
	}
	m.Price = spending.Prices(c, name)
	over, learnt := c.Models[name], learntLimits(c.Home)[m.Name()]
	configured := cmp.Or(over.ContextWindow, c.ContextWindow)
	m.fixed, m.accepted, m.noted = configured > 0, learnt.Accepted, learnt.Accepted
	m.Budget.Window = cmp.Or(configured, leastSet(m.Budget.Window, learnt.Window))
	m.maxTokens = cmp.Or(over.MaxTokens, leastSet(cmp.Or(c.MaxTokens, m.maxTokens), learnt.Answer))
	problem := m.reserve(c)
	if m.Budget.Window != c.ContextWindow { // else config has warned of it
		m.Note = problem
	}
}

// reserve fills in how much of the window is kept free for the answer, and
// returns what is wrong with the configuration of it.
func (m *Model) reserve(c *config.Loaded) (problem string) {
	least, problem := c.Reserve(m.Budget.Window)
	m.Budget.Reserve = window.Reserve(m.Budget.Window, m.maxTokens, least)
	return problem
}

// counterOf counts for the models of a provider. Anthropic's vocabulary is not
// public: one token of cl100k_base is about 1.25 of its own, until a session
// shows it more exactly. Those of other servers differ by less.
func counterOf(provider string) *window.Counter {
	switch provider {
	case "anthropic":
		return window.NewCounter(bpe.Lazy(bpe.CL100K), 1.25)
	case "openai", offline.Name:
		return window.NewCounter(bpe.Lazy(bpe.O200K), 1)
	}
	return window.NewCounter(bpe.Lazy(bpe.O200K), 1.1)
}

// leastSet returns the smaller of a and b, where 0 means not set.
func leastSet(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Prompt returns what every request to m begins with, wherever it is asked.
func (m *Model) Prompt(c *config.Loaded) window.Prompt {
	return window.Prompt{Provider: m.ProviderName, Model: m.ModelName, System: systemPrompt(c.Workspace), MaxTokens: m.maxTokens, NoImages: m.noImages, ThinksAnywhere: m.API == "openai-responses"}
}

// systemPrompt changes with nothing but the workspace, so that prompt caches
// keep working from turn to turn and from day to day.
func systemPrompt(workspace string) string {
	return `You are goclaw, a helpful agent that talks with its user in a terminal. Be direct and brief; use Markdown where it helps.

Your tools work in the folder ` + workspace + `. Read before you write, and say what you changed.
What must outlive this conversation belongs in memory/YYYY-MM-DD.md (today's date; get_current_time tells it), lasting facts about the user and the work in MEMORY.md. Look there when the user refers to something that you cannot see.
Everything that was ever said is kept word for word, including what a summary stands for: session_search finds it and session_read reads it; memory_search and memory_get do the same for the memory files.
A line such as [Context: 156k/200k tokens (78%)] at the end of a message tells how full your window is; it is not from the user.`
}

// Hint says what to do when a model cannot be asked.
func Hint(err error) string {
	switch {
	case errors.Is(err, llm.ErrAuth):
		return "check the API key: goclaw config shows where it comes from"
	case errors.Is(err, llm.ErrModel):
		return `choose another with --model provider/model, or "model" in the configuration`
	case errors.Is(err, llm.ErrNetwork):
		return "your message is kept: goclaw ask --continue asks again"
	case errors.Is(err, llm.ErrOverflow):
		return "start a new session with goclaw sessions new, or ask a model with a larger window"
	}
	return ""
}
