// Package anthropic asks Claude over Anthropic's Messages API.
//
// Requests and events are plain structs of the used part of the API. The tests
// hold them against Anthropic's own SDK: the same bytes mean the same to both.
//
// What is sent is a pure function of the request: the same request makes the
// same bytes, and a longer conversation begins with the bytes of the shorter
// one, prompt-cache marks and Request.Tail aside.
//
// Arguments of a call that are not a JSON object, as when the answer was cut
// short, are yielded as {"_raw": "what the model wrote"}.
package anthropic

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
	"goclaw/provider/retry"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// Config says which server to ask and how patiently. The zero value, with a key, is
// useful.
type Config struct {
	BaseURL    string // without /v1; "" is DefaultBaseURL
	APIKey     string
	HTTPClient *http.Client  // nil: a new client
	Idle       time.Duration // longest silence of the server; 0 is five minutes
	Retry      retry.Policy
	MaxTokens  int // for requests that name no limit; 0 is 8192, with thinking 32000
}

// Provider is an llm.Provider. It is safe for concurrent use.
type Provider struct {
	api       wire.API
	noKey     bool
	maxTokens int
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider. It makes no request yet.
func New(c Config) *Provider {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(c.BaseURL, "/"), "/v1"), "/")
	if base == "" {
		base = DefaultBaseURL
	}
	header := http.Header{"Anthropic-Version": {"2023-06-01"}}
	if c.APIKey != "" {
		header.Set("X-Api-Key", c.APIKey)
	}
	return &Provider{
		api:       wire.API{Name: "anthropic", Base: base, Header: header, Client: wire.NewClient(c.HTTPClient, c.Idle), Retry: c.Retry},
		noKey:     c.APIKey == "" && base == DefaultBaseURL,
		maxTokens: c.MaxTokens,
	}
}

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var names map[string]string
		req.Tools, names = llm.SendableTools(req.Tools)
		out := wire.NewSink(wire.Renamed(names, yield))
		if p.noKey {
			out.End(p.api.Fail(llm.ErrAuth, "no_key", "no API key"))
			return
		}
		err := p.ask(ctx, req, out)
		if bound := (*boundError)(nil); errors.As(err, &bound) {
			// The signatures belong to a conversation that the API does not
			// recognise in this one. Without the old thinking it is accepted.
			err = p.ask(ctx, withoutThinking(req), out)
		}
		out.End(err)
	}
}

func (p *Provider) ask(ctx context.Context, req llm.Request, out *wire.Sink) error {
	body, header, err := build(req, p.maxTokens)
	if err != nil {
		return err
	}
	err = p.api.Do(ctx, out,
		func() error { return p.try(ctx, body, header, out) },
		func(err error) (error, bool) { return p.classify(err, req.Model, out.Sent) })
	return wire.Refused(err, func(s wire.Spot) (message, block int) { return find(req, s) })
}

// find returns the message of req and the block of it that are sent at s; -1 is
// neither, or no block in particular.
func find(req llm.Request, s wire.Spot) (message, block int) {
	n := 0
	for i, m := range req.Messages {
		blocks, from := llm.Trace(m)
		switch {
		case len(blocks) == 0:
			continue
		case n < s.Message:
			n++
			continue
		case s.Part >= len(from): // the tail
			return -1, -1
		case s.Part >= 0:
			return i, from[s.Part]
		}
		return i, -1
	}
	return -1, -1
}

// withoutThinking returns req without thinking. Every other block keeps its
// place.
func withoutThinking(req llm.Request) llm.Request {
	msgs := make([]llm.Message, 0, len(req.Messages))
	for _, m := range req.Messages {
		kept := llm.Message{Role: m.Role}
		for _, b := range m.Blocks {
			if _, ok := b.(llm.Thinking); ok {
				b = llm.Other{} // never sent
			}
			kept.Blocks = append(kept.Blocks, b)
		}
		msgs = append(msgs, kept)
	}
	req.Messages = msgs
	return req
}
