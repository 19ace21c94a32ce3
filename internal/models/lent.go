package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/local"
	"goclaw/internal/transcript"
	"goclaw/provider/anthropic"
	"goclaw/session"
)

// lender is the agent of OpenClaw whose session is asked: it has models and keys
// that goclaw has not.
type lender struct {
	ms       *Models
	agent    openclaw.Agent
	key      session.Key // as OpenClaw knows it
	override string      // the model that was chosen for the session there
	known    map[string]*offer
}

// offer is what OpenClaw has for a provider.
type offer struct {
	openclaw.Provider
	err error
}

// lenderOf returns the agent that s belongs to, nil if it belongs to none.
func lenderOf(ms *Models, s *session.Session) *lender {
	a, key, ok := ms.o.Agent(s.Info)
	if !ok {
		return nil
	}
	if was := ms.lender; was != nil && was.agent.ID == a.ID && was.key == key {
		return was
	}
	return &lender{ms: ms, agent: a, key: key, override: a.Override(string(key)), known: map[string]*offer{}}
}

// usual returns the model that s is asked with if the user has named none: the one
// that it names last, or that of its agent. nil: none can be asked; why says what
// else could be done.
func usual(ctx context.Context, ms *Models, s *session.Session) (m *Model, why string) {
	var specs []string
	if ms.lender != nil {
		specs = append(specs, ms.lender.override)
	}
	if last, ok := lastAsked(s); ok {
		specs = append(specs, last.Name())
	}
	if ms.lender != nil {
		specs = append(specs, ms.lender.agent.Model)
	}
	for _, spec := range specs {
		provider, name, ok := strings.Cut(spec, "/")
		if !ok {
			continue
		}
		if m := ms.available(ctx, session.ModelChange{Provider: provider, Model: name}); m != nil {
			return m, ""
		}
		m, reason := ms.lender.lend(ctx, spec)
		if m != nil {
			return m, ""
		}
		why = cmp.Or(why, reason)
	}
	return nil, why
}

// lend returns the model of a spec, asked with the key that the session's agent has
// for it, if the user agrees. nil: it cannot be asked so; why says why not, if
// there is something to say.
func (l *lender) lend(ctx context.Context, spec string) (m *Model, why string) {
	provider, name, _ := strings.Cut(spec, "/")
	if l == nil || name == "" {
		return nil, ""
	}
	ms, o := l.ms, l.known[provider]
	if o == nil {
		o = &offer{}
		o.Provider, o.err = l.agent.Provider(provider, ms.o.Getenv)
		l.known[provider] = o
	}
	spoken, base := language(provider, o.Provider)
	switch {
	case o.err != nil:
		if text := strings.TrimPrefix(o.err.Error(), openclaw.ErrNoKey.Error()+": "); errors.Is(o.err, openclaw.ErrNoKey) && text != o.err.Error() {
			return nil, text
		}
		return nil, ""
	case spoken == "":
		return nil, fmt.Sprintf("OpenClaw asks %s through an API that goclaw does not speak (%s)", Shown(provider), Shown(cmp.Or(o.API, "no address")))
	}
	c := lending(provider, base)
	what := fmt.Sprintf("OpenClaw has a key for %s in %s.", Shown(provider), transcript.ShortPath(o.From, ms.o.Getenv("HOME")))
	if o.Key == "" {
		what = fmt.Sprintf("OpenClaw asks %s without a key.", Shown(provider))
	}
	allowed, asked := ms.permit.may(ctx, c, fmt.Sprintf("%s Use it to ask %s at %s?", what, Shown(spec), Shown(c.Address)))
	switch {
	case !allowed && asked:
		return nil, fmt.Sprintf("what OpenClaw has for %s is not used, because you said no: goclaw models forget openclaw:%s undoes that", Shown(provider), Shown(provider))
	case !allowed:
		return nil, fmt.Sprintf("%s It is used only if you agree: start goclaw in a terminal to be asked", what)
	}
	return borrowed(ms, spec, spoken, base, o.Provider), ""
}

// lending is the question whether OpenClaw's key for a provider may be used.
func lending(provider, base string) consent {
	return consent{Provider: provider, Address: Host(base), Keys: openclaw.Program}
}

// offers returns the models that can be asked with the agent's keys, as far as they
// were looked for and the user has agreed; with their windows.
func (l *lender) offers() map[string]int {
	out := map[string]int{}
	if l == nil {
		return out
	}
	for provider, o := range l.known {
		_, base := language(provider, o.Provider)
		if allowed, _ := l.ms.permit.of(lending(provider, base)); !allowed || o.err != nil {
			continue
		}
		if strings.HasPrefix(l.agent.Model, provider+"/") {
			out[l.agent.Model] = 0
		}
		for _, m := range o.Models {
			out[provider+"/"+m.ID] = m.ContextWindow
		}
	}
	return out
}

// NamedOrLent returns the model of a spec: as goclaw asks it, or else with the key
// of the session's agent.
func (ms *Models) NamedOrLent(ctx context.Context, spec string) (*Model, error) {
	m, err := ms.Named(spec)
	if err != nil {
		if lent, why := ms.lender.lend(ctx, spec); lent != nil {
			return lent, nil
		} else if why != "" {
			err = fmt.Errorf("%w (%s)", err, why)
		}
	}
	return m, err
}

// language returns which API a provider of OpenClaw's is asked with, and where. It
// is "" if goclaw does not know it.
func language(name string, p openclaw.Provider) (api, base string) {
	api = p.API
	switch {
	case api == "" && name == "anthropic":
		api = "anthropic-messages"
	case api == "":
		api = "openai-completions"
	}
	switch base = p.BaseURL; {
	case api == "anthropic-messages" && base == "" && name == "anthropic":
		base = anthropic.DefaultBaseURL
	case base == "":
		base = Bases[name]
	}
	known := api == "anthropic-messages" || api == "openai-completions" || api == "openai-responses"
	if !known || base == "" {
		return "", base
	}
	return api, base
}

// lentName is the name of a borrowed model in byName. Its own name is that of the
// model that goclaw asks with a key of its own.
func lentName(spec string) string { return "openclaw " + spec }

// borrowed returns a model that is asked as OpenClaw asks it.
func borrowed(ms *Models, spec, api, base string, p openclaw.Provider) *Model {
	name := lentName(spec)
	if m := ms.byName[name]; m != nil {
		return m
	}
	c := *ms.conf()
	c.Providers, c.Models = maps.Clone(c.Providers), maps.Clone(c.Models)
	if c.Providers == nil {
		c.Providers = map[string]config.Provider{}
	}
	if c.Models == nil {
		c.Models = map[string]config.Model{}
	}
	speaks := map[string]string{"openai-responses": catalogue.Responses, "openai-completions": "chat"}[p.API]
	c.Providers[p.Name] = config.Provider{BaseURL: base, APIKey: p.Key, API: speaks}
	for _, m := range p.Models {
		if m.ID == strings.TrimPrefix(spec, p.Name+"/") {
			limits := c.Models[spec]
			limits.ContextWindow, limits.MaxTokens = cmp.Or(limits.ContextWindow, m.ContextWindow), cmp.Or(limits.MaxTokens, m.MaxTokens)
			c.Models[spec] = limits
		}
	}
	m, err := NewModel(&c, spec, func(string) string { return "" })
	if err != nil {
		return nil
	}
	if api == "anthropic-messages" && m.API != api {
		m.Provider = anthropic.New(anthropic.Config{BaseURL: base, APIKey: p.Key, Idle: 5 * time.Minute})
		m.API, m.Tokens = api, counterOf("anthropic")
	}
	m.findWindow(&c, local.Model{})
	if ms.byName == nil {
		ms.byName = map[string]*Model{}
	}
	ms.byName[name] = m
	return m
}
