// Package models knows which model a session is asked with, and what is known of it:
// it chooses among flags, settings, keys and servers on this machine, asks the user
// before a conversation goes to a server or a vendor that nobody named, borrows the
// keys of OpenClaw's agents, and remembers what refusals teach about windows and
// answers.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goclaw/compact"
	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/local"
	"goclaw/internal/transcript"
	"goclaw/provider/offline"
	"goclaw/session"
)

// Models chooses the model that a session is asked with.
type Models struct {
	o      Options
	Flag   string            // --model
	Think  string            // --think
	Now    *Model            // the model that is asked now; nil until one is chosen
	byName map[string]*Model // those that were asked for so far
	permit permissions
	// Ask asks a yes-or-no question; Enter means no. nil: nobody can be asked.
	Ask    func(ctx context.Context, question string) (yes bool, err error)
	Found  []local.Server // on this machine
	looked bool           // for them
	How    string         // why no server here is asked, and how to allow it
	lender *lender        // the agent of OpenClaw that the session decided on last belongs to; nil: it belongs to none
}

// Options are what a choice depends on.
type Options struct {
	// Config loads the configuration, once.
	Config     func() (*config.Loaded, error)
	Getenv     func(string) string
	Note, Warn func(format string, args ...any) // tell the user
	// Agent returns the agent of OpenClaw that a session belongs to, and the key by
	// which OpenClaw knows the session.
	Agent func(session.Info) (a openclaw.Agent, key session.Key, ok bool)
}

// New returns what chooses models by o.
func New(o Options) *Models {
	ms := &Models{o: o}
	ms.permit.ms = ms
	return ms
}

// conf is the configuration, once it was loaded.
func (ms *Models) conf() *config.Loaded {
	c, _ := ms.o.Config()
	return c
}

// Decide chooses the model that s is asked with. It is the one rule, for every
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
func (ms *Models) Decide(ctx context.Context, s *session.Session) (m *Model, problem string, err error) {
	c, err := ms.o.Config()
	if err != nil {
		return nil, "", err
	}
	before := ms.Now
	ms.Now, ms.How, ms.lender = nil, "", lenderOf(ms, s)
	named := ms.Flag != "" || c.Model != ""
	if chosen, ok := s.Chosen(); ok && ms.Flag == "" {
		change := chosen.Body.(session.ModelChange)
		if ms.Now, err = ms.chosen(ctx, s, change); err != nil {
			problem = fmt.Sprintf("%s, which was chosen for this session, is not available (%s)", change.Name(), transcript.Problem(err))
		}
		named = named || ms.Now != nil
	}
	why := ""
	if ms.Now == nil && !named {
		ms.Now, why = usual(ctx, ms, s)
	}
	m, err = ms.Choose(ctx)
	if err == nil && !named {
		var refused string
		m, refused, err = ms.move(ctx, s, m)
		ms.Now, problem = m, sentences(problem, refused)
	}
	if err == nil && before == nil && ms.Think != "" { // said for this model
		var note string
		if note, err = m.Takes(ms.Think); note != "" {
			m.tell(note)
		}
	}
	if err != nil {
		ms.Now = before
		return nil, sentences(problem, why), err
	}
	if m.ProviderName == offline.Name { // else another model does as well
		problem = sentences(problem, why)
	}
	return m, sentences(problem, ms.How), nil
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
func (ms *Models) chosen(ctx context.Context, s *session.Session, c session.ModelChange) (*Model, error) {
	if !unnamed(ms.conf(), c.Provider) || !s.Mirror() && s.Origin.ID == "" {
		return ms.NamedOrLent(ctx, c.Name())
	}
	if m := ms.available(ctx, c); m != nil {
		return m, nil
	}
	return nil, errors.New(cmp.Or(ms.How, "no server here has it"))
}

// DecideOnce is decide for a command that answers once: it shows the problem.
func (ms *Models) DecideOnce(ctx context.Context, s *session.Session) (*Model, error) {
	m, problem, err := ms.Decide(ctx, s)
	if problem != "" {
		ms.o.Note("%s", problem)
	}
	return m, err
}

// Choose returns the model that is asked now. If decide has found none, that is
// the one of --model, then of the configuration, then of whichever key or local
// server there is, then the built-in one.
func (ms *Models) Choose(ctx context.Context) (*Model, error) {
	if ms.Now != nil {
		return ms.Now, nil
	}
	c, err := ms.o.Config()
	if err != nil {
		return nil, err
	}
	switch spec := cmp.Or(ms.Flag, c.Model); {
	case spec != "":
		ms.Now, err = ms.Named(spec)
	case c.Providers["anthropic"].APIKey != "":
		ms.Now, err = ms.Named("anthropic/" + DefaultAnthropic)
	case c.Providers["openai"].APIKey != "":
		ms.Now, err = ms.Named("openai/" + DefaultOpenAI)
	default:
		ms.Now, err = ms.keyless(ctx)
	}
	return ms.Now, err
}

// keyless returns the model that is asked where there is no key: one of a
// server on this machine, if the user agrees, or the built-in one.
func (ms *Models) keyless(ctx context.Context) (*Model, error) {
	s, lm, how, ok := ms.allowedHere(ctx)
	if ok {
		return ms.local(s, lm)
	}
	ms.How = how
	m, err := ms.Named(offline.Name)
	switch {
	case err != nil || m.Note != "":
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
func (ms *Models) available(ctx context.Context, c session.ModelChange) *Model {
	if c.Provider == offline.Name {
		return nil
	}
	var m *Model
	var err error
	if unnamed(ms.conf(), c.Provider) {
		servers := ms.LocalServers(ctx)
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
		if ok, ms.How = ms.may(ctx, s, c.Model); !ok {
			return nil
		}
		m, err = ms.local(s, s.Models[i])
	} else {
		m, err = ms.Named(c.Name())
	}
	if err != nil {
		return nil
	}
	return m
}

// LocalServers looks once for servers on this machine that have a model.
func (ms *Models) LocalServers(ctx context.Context) []local.Server {
	if ms.o.Getenv("GOCLAW_NO_LOCAL") != "" {
		return nil
	}
	if !ms.looked {
		ms.Found, ms.looked = addresses(ms.conf()).Find(ctx, nil), true
	}
	return ms.Found
}

// local returns the model lm of the server s.
func (ms *Models) local(s local.Server, lm local.Model) (*Model, error) {
	spec := s.Name + "/" + lm.Name
	known := ms.byName[spec] != nil
	m, err := ms.sized(spec, lm)
	if err != nil || known {
		return m, err
	}
	m.noImages = !lm.Images
	if !m.fixed && lm.Window+lm.Trained > 0 {
		m.Budget.Window = lm.Usable()
		m.Note = m.reserve(ms.conf())
	}
	m.tell(fmt.Sprintf("using %s of %s on this machine", m.ModelName, s.Name))
	return m, nil
}

// Named returns the model of a spec such as anthropic/claude-sonnet-4-5, the
// same one each time: what is learnt about it holds for the whole run.
func (ms *Models) Named(spec string) (*Model, error) { return ms.sized(spec, local.Model{}) }

// sized is named for a model of which its server has already told lm.
func (ms *Models) sized(spec string, lm local.Model) (*Model, error) {
	if m := ms.byName[spec]; m != nil {
		return m, nil
	}
	m, err := NewModel(ms.conf(), spec, ms.o.Getenv)
	if err != nil {
		return nil, err
	}
	m.findWindow(ms.conf(), lm)
	if ms.byName == nil {
		ms.byName = map[string]*Model{}
	}
	ms.byName[spec] = m
	return m, nil
}

// ForContext returns the model that s is shown for: the one that is asked, even
// if its key is missing. For a file, whose model may be out of reach, it is the
// one that the file names.
func (ms *Models) ForContext(ctx context.Context, s *session.Session, file bool) (m *Model, err error) {
	if file {
		m, err = ms.Choose(ctx)
	} else {
		m, _, err = ms.Decide(ctx, s)
	}
	var key *keyError
	var move *moveError
	switch {
	case errors.As(err, &key):
		m, err = key.model, nil
	case errors.As(err, &move):
		m, err = move.model, nil
	}
	if err != nil || !file || ms.Flag != "" || s.Model == "" {
		return m, err
	}
	own := &Model{ProviderName: s.Provider, ModelName: s.Model}
	own.settle(ms.conf())
	if own.Budget.Window == 0 {
		own.Budget = m.Budget
	}
	return own, nil
}

// summarizer returns what summarises for m: the model that the configuration
// names for it, or else the small one of m's vendor; then m itself. The built-in
// model cannot summarise.
func (ms *Models) summarizer(m *Model) compact.Summarizer {
	c := ms.conf().Session.Checkpoint
	var chain compact.Chain
	add := func(m *Model) {
		if m.ProviderName != offline.Name {
			chain = append(chain, compact.Model{Provider: m.Provider, Name: m.ModelName, Window: m.Budget.Window, Output: m.maxTokens, Tokens: m.Tokens, Price: m.cost})
		}
	}
	cheap := c.Model
	if small, ok := catalogue.Small(m.Name()); cheap == "" && ok && c.FallbackToMain {
		cheap = small.ID
	}
	if cheap != "" && cheap != m.Name() {
		// Without a key for it, the others remain.
		if small, err := ms.Named(cheap); err == nil {
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

// Names are what a model can be called: what the configuration names, what the
// catalogue knows of the providers that can be asked, and the beginnings of the
// rest.
func (ms *Models) Names() []string {
	out := []string{offline.Name}
	for name := range ms.conf().Models {
		out = append(out, name)
	}
	if ms.conf().Model != "" {
		out = append(out, ms.conf().Model)
	}
	known := Providers()
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
