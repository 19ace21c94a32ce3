package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goclaw/compact"
	"goclaw/internal/catalogue"
	"goclaw/internal/local"
	"goclaw/internal/transcript"
	"goclaw/provider/offline"
	"goclaw/session"
)

// models chooses the model that a session is asked with.
type models struct {
	*env
	flag   string            // --model
	think  string            // --think
	now    *model            // the model that is asked now; nil until one is chosen
	byName map[string]*model // those that were asked for so far
	permit permissions
	brief  briefing
	found  []local.Server // on this machine
	looked bool           // for them
	how    string         // why no server here is asked, and how to allow it
	lender *lender        // the agent of OpenClaw that the session decided on last belongs to; nil: it belongs to none
}

// decide chooses the model that s is asked with. It is the one rule, for every
// turn and every command. The first of these that exists is taken:
//
//  1. --model
//  2. what the user chose in s with /model
//  3. "model" in the configuration
//  4. the model that s names last, whoever wrote that, if it can be asked here;
//     for a session of an agent of OpenClaw, that agent's model
//  5. whichever key or local server there is; else the built-in model
//
// A server here is asked only if the user has named it or agreed to it, and
// another vendor than the one of s only if the user has named or agreed to that. A
// key of OpenClaw's is used only if the user has agreed to that.
// problem says which choice is not available, and why.
func (ms *models) decide(ctx context.Context, s *session.Session) (m *model, problem string, err error) {
	c, err := ms.config()
	if err != nil {
		return nil, "", err
	}
	before := ms.now
	ms.now, ms.how, ms.lender = nil, "", lenderOf(ms, s)
	named := ms.flag != "" || c.Model != ""
	if chosen, ok := s.Chosen(); ok && ms.flag == "" {
		change := chosen.Body.(session.ModelChange)
		if ms.now, err = ms.chosen(ctx, s, change); err != nil {
			problem = fmt.Sprintf("%s, which was chosen for this session, is not available (%s)", change.Name(), transcript.Problem(err))
		}
		named = named || ms.now != nil
	}
	why := ""
	if ms.now == nil && !named {
		ms.now, why = usual(ctx, ms, s)
	}
	m, err = ms.choose(ctx)
	if err == nil && !named {
		var refused string
		m, refused, err = ms.move(ctx, s, m)
		ms.now, problem = m, sentences(problem, refused)
	}
	if err == nil && before == nil && ms.think != "" { // said for this model
		var note string
		if note, err = m.takes(ms.think); note != "" {
			m.tell(note)
		}
	}
	if err != nil {
		ms.now = before
		return nil, sentences(problem, why), err
	}
	if m.provider == offline.Name { // else another model does as well
		problem = sentences(problem, why)
	}
	return m, sentences(problem, ms.how), nil
}

// sentences joins what there is of two.
func sentences(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// chosen returns the model that was chosen in s. In a session that came from
// elsewhere, somebody else may have chosen a server on this machine.
func (ms *models) chosen(ctx context.Context, s *session.Session, c session.ModelChange) (*model, error) {
	if !unnamed(ms.conf, c.Provider) || !s.Mirror() && s.Origin.ID == "" {
		return namedOrLent(ctx, ms, c.Name())
	}
	if m := ms.available(ctx, c); m != nil {
		return m, nil
	}
	return nil, errors.New(cmp.Or(ms.how, "no server here has it"))
}

// decideOnce is decide for a command that answers once: it shows the problem.
func (ms *models) decideOnce(ctx context.Context, s *session.Session) (*model, error) {
	m, problem, err := ms.decide(ctx, s)
	if problem != "" {
		ms.note("%s", problem)
	}
	return m, err
}

// choose returns the model that is asked now. If decide has found none, that is
// the one of --model, then of the configuration, then of whichever key or local
// server there is, then the built-in one.
func (ms *models) choose(ctx context.Context) (*model, error) {
	if ms.now != nil {
		return ms.now, nil
	}
	c, err := ms.config()
	if err != nil {
		return nil, err
	}
	switch spec := cmp.Or(ms.flag, c.Model); {
	case spec != "":
		ms.now, err = ms.named(spec)
	case c.Providers["anthropic"].APIKey != "":
		ms.now, err = ms.named("anthropic/" + defaultAnthropic)
	case c.Providers["openai"].APIKey != "":
		ms.now, err = ms.named("openai/" + defaultOpenAI)
	default:
		ms.now, err = ms.keyless(ctx)
	}
	return ms.now, err
}

// keyless returns the model that is asked where there is no key: one of a
// server on this machine, if the user agrees, or the built-in one.
func (ms *models) keyless(ctx context.Context) (*model, error) {
	s, lm, how, ok := ms.allowedHere(ctx)
	if ok {
		return ms.local(s, lm)
	}
	ms.how = how
	m, err := ms.named(offline.Name)
	switch {
	case err != nil || m.note != "":
	case how != "":
		m.tell("the built-in offline model answers (it is not a language model)")
	default:
		m.tell("no API key and no local model server found: the built-in offline model answers (it is not a language model)")
	}
	return m, err
}

// available returns the model c if it can be asked here, as far as that is
// known without asking it: there is a key for it, or a server on this machine
// has it and the user agrees. The built-in model is not returned: it answers
// where nothing else can.
func (ms *models) available(ctx context.Context, c session.ModelChange) *model {
	if c.Provider == offline.Name {
		return nil
	}
	var m *model
	var err error
	if unnamed(ms.conf, c.Provider) {
		servers := ms.localServers(ctx)
		at := slices.IndexFunc(servers, func(s local.Server) bool { return s.Name == c.Provider })
		if at < 0 {
			return nil
		}
		s := servers[at]
		i := slices.IndexFunc(s.Models, func(m local.Model) bool { return m.Name == c.Model })
		if i < 0 {
			return nil
		}
		var ok bool
		if ok, ms.how = ms.may(ctx, s, c.Model); !ok {
			return nil
		}
		m, err = ms.local(s, s.Models[i])
	} else {
		m, err = ms.named(c.Name())
	}
	if err != nil {
		return nil
	}
	return m
}

// localServers looks once for servers on this machine that have a model.
func (ms *models) localServers(ctx context.Context) []local.Server {
	if ms.getenv("GOCLAW_NO_LOCAL") != "" {
		return nil
	}
	if !ms.looked {
		ms.found, ms.looked = addresses(ms.conf).Find(ctx, nil), true
	}
	return ms.found
}

// local returns the model lm of the server s.
func (ms *models) local(s local.Server, lm local.Model) (*model, error) {
	spec := s.Name + "/" + lm.Name
	known := ms.byName[spec] != nil
	m, err := ms.sized(spec, lm)
	if err != nil || known {
		return m, err
	}
	m.noImages = !lm.Images
	if !m.fixed && lm.Window+lm.Trained > 0 {
		m.budget.Window = lm.Usable()
		m.note = m.reserve(ms.conf)
	}
	m.tell(fmt.Sprintf("using %s of %s on this machine", m.model, s.Name))
	return m, nil
}

// named returns the model of a spec such as anthropic/claude-sonnet-4-5, the
// same one each time: what is learnt about it holds for the whole run.
func (ms *models) named(spec string) (*model, error) { return ms.sized(spec, local.Model{}) }

// sized is named for a model of which its server has already told lm.
func (ms *models) sized(spec string, lm local.Model) (*model, error) {
	if m := ms.byName[spec]; m != nil {
		return m, nil
	}
	m, err := newModel(ms.conf, spec, ms.getenv)
	if err != nil {
		return nil, err
	}
	m.findWindow(ms.conf, lm)
	if ms.byName == nil {
		ms.byName = map[string]*model{}
	}
	ms.byName[spec] = m
	return m, nil
}

// forContext returns the model that s is shown for: the one that is asked, even
// if its key is missing. For a file, whose model may be out of reach, it is the
// one that the file names.
func (ms *models) forContext(ctx context.Context, s *session.Session, file bool) (m *model, err error) {
	if file {
		m, err = ms.choose(ctx)
	} else {
		m, _, err = ms.decide(ctx, s)
	}
	var key *keyError
	var move *moveError
	switch {
	case errors.As(err, &key):
		m, err = key.model, nil
	case errors.As(err, &move):
		m, err = move.model, nil
	}
	if err != nil || !file || ms.flag != "" || s.Model == "" {
		return m, err
	}
	own := &model{provider: s.Provider, model: s.Model}
	own.settle(ms.conf)
	if own.budget.Window == 0 {
		own.budget = m.budget
	}
	return own, nil
}

// summarizer returns what summarises for m: the model that the configuration
// names for it, or else the small one of m's vendor; then m itself. The built-in
// model cannot summarise.
func (ms *models) summarizer(m *model) compact.Summarizer {
	c := ms.conf.Session.Checkpoint
	var chain compact.Chain
	add := func(m *model) {
		if m.provider != offline.Name {
			chain = append(chain, compact.Model{Provider: m.Provider, Name: m.model, Window: m.budget.Window, Output: m.maxTokens, Tokens: m.tokens, Price: m.cost})
		}
	}
	cheap := c.Model
	if small, ok := catalogue.Small(m.name()); cheap == "" && ok && c.FallbackToMain {
		cheap = small.ID
	}
	if cheap != "" && cheap != m.name() {
		// Without a key for it, the others remain.
		if small, err := ms.named(cheap); err == nil {
			add(small)
		}
	}
	if len(chain) == 0 || c.FallbackToMain {
		add(m)
	}
	if len(chain) == 0 {
		return compact.Extractor{}
	}
	return chain
}

// names are what a model can be called: what the configuration names, what the
// catalogue knows of the providers that can be asked, and the beginnings of the
// rest.
func (ms *models) names() []string {
	out := []string{offline.Name}
	for name := range ms.conf.Models {
		out = append(out, name)
	}
	if ms.conf.Model != "" {
		out = append(out, ms.conf.Model)
	}
	known := providers()
	for _, m := range catalogue.Models() {
		if vendor, _, _ := strings.Cut(m.ID, "/"); slices.Contains(known, vendor) {
			out = append(out, m.ID)
		}
	}
	for _, p := range known {
		out = append(out, p+"/")
	}
	return out
}
