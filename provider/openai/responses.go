package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// Responses is an llm.Provider for the Responses API. It is safe for concurrent
// use. Nothing is stored by the server: every request holds the conversation.
type Responses struct {
	server

	// variants holds what a model was found to take, by model and level of
	// thinking.
	variants sync.Map
	// foreign holds signatures that the API does not accept, as when another
	// account made them.
	foreign sync.Map
}

var _ llm.Provider = (*Responses)(nil)

// NewResponses returns a provider. It makes no request yet. A window.Prompt for it
// has ThinksAnywhere.
func NewResponses(c Config) *Responses { return &Responses{server: newServer(c, "Responses")} }

// Stream implements llm.Provider.
func (p *Responses) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return p.stream(ctx, req, p.ask)
}

// Body returns the body of the first request that Stream makes of req, byte
// for byte. It needs no key.
func (p *Responses) Body(req llm.Request) ([]byte, error) { return p.build(req, p.variant(req)) }

// variant is what a request asks for beyond the common API. Which of it a model
// takes cannot be asked for.
type variant struct {
	effort  string // reasoning.effort; "": the model's own
	summary bool   // of the reasoning, to be shown
	include bool   // the reasoning, encrypted
}

// wanted is the variant for a request to a model of which nothing was found out.
func (p *Responses) wanted(req llm.Request) variant {
	g := parse(base(req.Model))
	v := variant{effort: level(p.flavour, g, req.Thinking)}
	foreign := g == generation{} // the server's own: it may reason
	v.include = g.reasons() || foreign
	v.summary = g.reasons() && v.effort != "none" || foreign && v.effort != ""
	return v
}

// without returns v without what param names, and whether it had it. OpenAI
// refuses summaries to organisations that are not verified, the encrypted
// reasoning for models that do not reason, and levels that a model does not have.
func (v variant) without(param string) (variant, bool) {
	less := v
	switch {
	case param == "reasoning.effort":
		less.effort = ""
	case strings.HasPrefix(param, "reasoning.summary"), strings.HasPrefix(param, "reasoning.generate_summary"):
		less.summary = false
	case strings.HasPrefix(param, "reasoning"):
		less.effort, less.summary = "", false
	case strings.HasPrefix(param, "include"):
		less.include = false
	}
	return less, less != v
}

type variantKey struct{ model, level string }

func (p *Responses) variant(req llm.Request) variant {
	if found, ok := p.variants.Load(variantKey{req.Model, req.Thinking}); ok {
		return found.(variant)
	}
	return p.wanted(req)
}

// ask makes the call, and repeats it without what the server refuses of its
// settings, or without reasoning that it does not know as its own.
func (p *Responses) ask(ctx context.Context, req llm.Request, out *wire.Sink) error {
	for {
		v := p.variant(req)
		body, err := p.build(req, v)
		if err != nil {
			return err
		}
		err = p.call(ctx, body, req, out)
		var api *llm.APIError
		var foreign *foreignError
		switch {
		case errors.As(err, &foreign):
			if !p.disown(req) {
				return err
			}
		case errors.As(err, &api) && api.Status == http.StatusBadRequest:
			less, ok := v.without(api.Param)
			if !ok {
				return err
			}
			p.variants.Store(variantKey{req.Model, req.Thinking}, less)
		default:
			return err
		}
	}
}

func (p *Responses) call(ctx context.Context, body []byte, req llm.Request, out *wire.Sink) error {
	err := p.api.Do(ctx, out,
		func() error { return p.try(ctx, body, req, out) },
		func(err error) (error, bool) { return p.classify(err, req, out.Sent) })
	return wire.Refused(err, func(s wire.Spot) (message, block int) {
		return p.items(nil, req).find(s)
	})
}

// foreignError: the server does not accept reasoning that it was sent back. The
// rest of the request may be right.
type foreignError struct{ *llm.APIError }

func (e *foreignError) Unwrap() error { return e.APIError }

// disown forgets the reasoning of req, and reports whether there was any that was
// not forgotten yet.
func (p *Responses) disown(req llm.Request) (some bool) {
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if t, ok := b.(llm.Thinking); ok && t.Signature != "" {
				_, known := p.foreign.LoadOrStore(t.Signature, true)
				some = some || !known
			}
		}
	}
	return some
}

// aboutReasoning matches what OpenAI says, with no code or a general one, of
// reasoning that was sent back and that it cannot use.
var aboutReasoning = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`'rs_\w+|\bencrypted[_ ]content\b|'reasoning' item`)
})

// classify is server.classify for the errors of this API.
func (p *Responses) classify(err error, req llm.Request, sent bool) (_ error, again bool) {
	var status *wire.StatusError
	var inside *wire.StreamError
	var r reply
	switch {
	case errors.As(err, &status):
		r = read(status.Status, status.Header, status.Body)
	case errors.As(err, &inside):
		r = read(http.StatusOK, nil, inside.Data)
		if r.code == "invalid_prompt" || r.code == badReasoning || strings.Contains(r.code, "image") {
			r.status = http.StatusBadRequest // which it would have had
		}
	default:
		return p.server.classify(err, req, sent)
	}
	if r.status == http.StatusBadRequest || r.status == http.StatusNotFound {
		if param := strings.HasPrefix(r.param, "include"); !param && (r.code == badReasoning || aboutReasoning().MatchString(r.msg)) && !sent {
			api := p.api.Reply(r.status, r.header, r.code, r.msg)
			wire.Say(api, llm.ErrRefused, wire.RequestRefused)
			return &foreignError{api}, false
		}
	}
	return p.judge(r, req, sent)
}

// badReasoning is the code of an encrypted content that cannot be read.
const badReasoning = "invalid_encrypted_content"
