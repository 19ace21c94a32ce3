// Package openai asks models over OpenAI's two APIs. New is for chat
// completions: OpenAI itself, OpenRouter, and local servers that speak the same
// API (Ollama, llama.cpp, LM Studio, vLLM). NewResponses is for the Responses
// API, which OpenAI's reasoning models need to think beside tools.
//
// Requests and chunks are plain structs of the used part of the API. The tests
// hold them against OpenAI's own SDK: the same bytes mean the same to both.
//
// The servers agree on the happy path and on little else. What differs is kept
// in two places: flavour, which says what a host understands, and the table of
// overflows, which says in what shape each of them complains.
//
// In chat completions, reasoning is read from reasoning_content and reasoning
// and yielded as thinking. It is never sent back: it carries no signature, and no
// field of that API takes it. In the Responses API reasoning is an item, and the
// signature of the thinking is that item, as pi keeps it: it goes back to where
// it was, encrypted.
//
// Arguments of a call that are not a JSON object, which small models write
// often, are yielded as {"_raw": "what the model wrote"}. Call ids are made
// unique and of the letters that every API accepts.
package openai

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
	"goclaw/provider/retry"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config names the server and its time limits. The zero value, with a key, asks
// OpenAI.
type Config struct {
	Name       string // in error messages; "" is "openai"
	BaseURL    string // "" is DefaultBaseURL; "/v1" is added to a bare host
	APIKey     string // may be empty for servers that want none
	HTTPClient *http.Client
	Idle       time.Duration // longest silence of the server; 0 is five minutes
	Retry      retry.Policy
	MaxTokens  int               // for requests that name no limit; 0 leaves it to the server
	Header     map[string]string // sent with every request, as OpenRouter's HTTP-Referer
}

// server is what is asked, whichever API it is asked with.
type server struct {
	api       wire.API
	flavour   flavour
	noKey     bool
	maxTokens int
	speaks    string // the API, in messages
}

// Provider is an llm.Provider for chat completions. It is safe for concurrent
// use.
type Provider struct {
	server

	// efforts holds what a model was found to accept instead of the
	// reasoning_effort that it was asked for, by model and by whether there
	// were tools.
	efforts sync.Map
}

var _ llm.Provider = (*Provider)(nil)

// flavour is what a host supports beyond the common API.
type flavour int

const (
	plain      flavour = iota // a local server or an unknown one
	own                       // OpenAI or Azure: max_completion_tokens, prompt_cache_key
	openRouter                // cache_control for Claude, reasoning_effort for all
)

// New returns a provider. It makes no request yet.
func New(c Config) *Provider { return &Provider{server: newServer(c, "chat completions")} }

func newServer(c Config, speaks string) server {
	base, f := resolve(c.BaseURL)
	header := http.Header{}
	if c.APIKey != "" {
		header.Set("Authorization", "Bearer "+c.APIKey)
	}
	for k, v := range c.Header {
		header.Set(k, v)
	}
	return server{
		api:       wire.API{Name: cmp.Or(c.Name, "openai"), Base: base, Header: header, Client: wire.NewClient(c.HTTPClient, c.Idle), Retry: c.Retry},
		flavour:   f,
		noKey:     c.APIKey == "" && base == DefaultBaseURL,
		maxTokens: c.MaxTokens,
		speaks:    speaks,
	}
}

// Own reports whether a Config with this BaseURL asks OpenAI itself, or Azure.
func Own(baseURL string) bool {
	_, f := resolve(baseURL)
	return f == own
}

// Base is the address that a Config with this BaseURL asks.
func Base(baseURL string) string {
	base, _ := resolve(baseURL)
	return base
}

func resolve(base string) (string, flavour) {
	base = strings.TrimSuffix(base, "/")
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil {
		return base, plain
	}
	if u.Path == "" {
		base += "/v1"
	}
	switch h := u.Hostname(); {
	case h == "api.openai.com", strings.HasSuffix(h, ".openai.azure.com"):
		return base, own
	case h == "openrouter.ai", strings.HasSuffix(h, ".openrouter.ai"):
		return base, openRouter
	}
	return base, plain
}

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return p.stream(ctx, req, p.ask)
}

// stream yields what ask puts, under the tools' own names.
func (p *server) stream(ctx context.Context, req llm.Request, ask func(context.Context, llm.Request, *wire.Sink) error) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var names map[string]string
		req.Tools, names = llm.SendableTools(req.Tools)
		out := wire.NewSink(wire.Renamed(names, yield))
		if p.noKey {
			out.End(p.api.Fail(llm.ErrAuth, "no_key", "no API key"))
			return
		}
		out.End(ask(ctx, req, out))
	}
}

// ask makes the call, and repeats it with another reasoning_effort if that
// is what the server refuses. Which values a model takes, and whether it takes
// any beside tools, changes from model to model without a way to ask.
func (p *Provider) ask(ctx context.Context, req llm.Request, out *wire.Sink) error {
	type key struct {
		model, level string
		tools        bool
	}
	k := key{req.Model, req.Thinking, len(req.Tools) > 0}
	e := effort(p.flavour, req)
	if found, ok := p.efforts.Load(k); ok {
		e = found.(string)
	}
	options := []string{"none", ""}
	for {
		body, err := p.build(req, e)
		if err != nil {
			return err
		}
		err = p.call(ctx, body, req, out)
		var effort *effortError
		if !errors.As(err, &effort) || len(options) == 0 {
			return err
		}
		for len(options) > 0 && options[0] == e {
			options = options[1:]
		}
		if len(options) == 0 {
			return err
		}
		e, options = options[0], options[1:]
		p.efforts.Store(k, e)
	}
}

func (p *Provider) call(ctx context.Context, body []byte, req llm.Request, out *wire.Sink) error {
	err := p.api.Do(ctx, out,
		func() error { return p.try(ctx, body, req, out) },
		func(err error) (error, bool) { return p.classify(err, req, out.Sent) })
	return wire.Refused(err, func(s wire.Spot) (message, block int) {
		w := p.writer(req)
		w.messages(req)
		return w.find(s)
	})
}
