package models

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"goclaw/internal/catalogue"
	"goclaw/internal/local"
	"goclaw/provider/offline"
	"goclaw/provider/openai"
)

// Choice is a model that can be used now.
type Choice struct {
	Name     string   `json:"name"`
	Current  bool     `json:"current,omitempty"`
	From     string   `json:"from"`               // what makes it usable: key, server, openclaw or built-in
	Window   int      `json:"window,omitempty"`   // 0: not known
	Output   int      `json:"output,omitempty"`   // likewise
	In       *float64 `json:"input,omitempty"`    // dollars for a million tokens; nil: not known
	Out      *float64 `json:"answer,omitempty"`   // likewise
	Thinking []string `json:"thinking,omitempty"` // levels
	Older    bool     `json:"-"`
}

// Choices are the models that can be used now, and how many cannot, with what
// they need.
type Choices struct {
	Models  []Choice `json:"models"`
	Without int      `json:"unavailable"`
	Needs   []string `json:"needs,omitempty"`
	Any     []string `json:"any,omitempty"` // providers that are not listed: they have hundreds
}

// newest is how many models of a vendor are listed unless all are wanted.
const newest = 10

// Choices finds out which models can be used now. Servers are asked for a moment.
func (ms *Models) Choices(ctx context.Context) Choices { return lister{ms}.choices(ctx) }

// lister finds out which models can be used.
type lister struct{ *Models }

// choices finds out which models can be used: those of a vendor for which there
// is a key, those that a server lists, those that the configuration names, and
// the built-in one. Servers are asked for a moment.
func (ms lister) choices(ctx context.Context) Choices {
	var out Choices
	c := ms.conf()
	add := func(name, from string, lm local.Model) {
		if !slices.ContainsFunc(out.Models, func(ch Choice) bool { return ch.Name == name }) {
			out.Models = append(out.Models, ms.choice(name, from, lm))
		}
	}
	ms.looked = false // a server may have come or gone
	servers := ms.listed(ctx)
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if prov, _, _ := strings.Cut(name, "/"); ms.hasKey(prov) || servers[prov] != nil {
			add(name, "key", local.Model{})
		}
	}
	offers := ms.lender.offers()
	for _, name := range slices.Sorted(maps.Keys(offers)) {
		add(name, "openclaw", local.Model{Window: offers[name]})
	}
	for _, prov := range slices.Sorted(maps.Keys(servers)) {
		for _, m := range servers[prov] {
			add(prov+"/"+m.Name, "server", m)
		}
	}
	count := map[string]int{}
	missing := map[string]int{}
	for _, m := range catalogue.Models() {
		prov, _, _ := strings.Cut(m.ID, "/")
		switch {
		case !slices.Contains(Providers(), prov) || strings.Contains(m.ID, "gpt-oss"): // others serve it
		case !ms.hasKey(prov) && c.Providers[prov].BaseURL == "":
			missing[prov]++
		case c.Providers[prov].BaseURL == "" || openai.Own(c.Providers[prov].BaseURL):
			add(m.ID, "key", local.Model{})
			count[prov]++
			last := &out.Models[len(out.Models)-1]
			last.Older = last.Name == m.ID && count[prov] > newest
		}
	}
	if ms.Now != nil && ms.Now.ProviderName != offline.Name { // its server may list none
		from := "server"
		if ms.hasKey(ms.Now.ProviderName) {
			from = "key"
		}
		add(ms.Now.Name(), from, local.Model{})
	}
	add(offline.Name, "built-in", local.Model{})
	if ms.hasKey("openrouter") && servers["openrouter"] == nil {
		out.Any = append(out.Any, "openrouter")
	}
	for _, prov := range slices.Sorted(maps.Keys(missing)) {
		out.Without += missing[prov]
		out.Needs = append(out.Needs, fmt.Sprintf("%d of %s (%s)", missing[prov], prov, KeyVariable(prov)))
	}
	for _, prov := range slices.Sorted(maps.Keys(c.Providers)) {
		if base := c.Providers[prov].BaseURL; base != "" && !openai.Own(base) && servers[prov] == nil {
			out.Without++
			out.Needs = append(out.Needs, fmt.Sprintf("those of %s, which lists none at %s", prov, base))
		}
	}
	return out
}

// hasKey reports whether there is a key for a provider that needs one.
func (ms lister) hasKey(prov string) bool {
	return ms.conf().Providers[prov].APIKey != "" || prov == "openrouter" && ms.o.Getenv(KeyVariable(prov)) != ""
}

// listed returns what servers list, by provider: those found on this machine, and
// those whose address is configured.
func (ms lister) listed(ctx context.Context) map[string][]local.Model {
	out := map[string][]local.Model{}
	for _, s := range ms.LocalServers(ctx) {
		out[s.Name] = s.Models
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for prov, p := range ms.conf().Providers {
		if p.BaseURL == "" || out[prov] != nil || openai.Own(p.BaseURL) {
			continue
		}
		base := openai.Base(p.BaseURL)
		if prov == "anthropic" {
			base = strings.TrimSuffix(strings.TrimSuffix(p.BaseURL, "/"), "/v1") + "/v1"
		}
		asked.Go(func() {
			names := local.Address{Name: prov, Base: base, Key: p.APIKey}.List(ctx)
			mu.Lock()
			defer mu.Unlock()
			for _, n := range names {
				out[prov] = append(out[prov], local.Model{Name: n})
			}
		})
	}
	asked.Wait()
	return out
}

// choice says what is known of a model without asking it.
func (ms lister) choice(name, from string, lm local.Model) Choice {
	ch := Choice{Name: name, From: from, Current: ms.Now != nil && ms.Now.Name() == name}
	m := cmp.Or(ms.byName[name], ms.byName[lentName(name)])
	if m == nil {
		prov, short, _ := strings.Cut(name, "/")
		m = &Model{ProviderName: prov, ModelName: short}
		m.settle(ms.conf())
	}
	ch.Window, ch.Output, ch.Thinking = m.Budget.Window, m.maxTokens, m.Levels
	if name == offline.Name && ch.Window == 0 {
		ch.Window = offline.DefaultWindow
	}
	if lm.Window+lm.Trained > 0 && !m.fixed {
		ch.Window = lm.Usable()
	}
	if p := m.Price.Prices; p != nil {
		ch.In, ch.Out = &p.In, &p.Out
	}
	return ch
}
