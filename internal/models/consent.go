package models

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/internal/config"
	"goclaw/internal/local"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/llm"
	"goclaw/provider/offline"
	"goclaw/session"
)

// consent is the user's answer to the question whether conversations may be sent
// to a model server on this machine (Address and Model), whether one session may be
// sent to another vendor (Session), or whether another program's key for a provider
// may be used (Keys and Address).
type consent struct {
	Provider string     `json:"provider"`
	Address  string     `json:"address,omitempty"` // host and port
	Model    string     `json:"model,omitempty"`
	Session  session.ID `json:"session,omitempty"`
	Keys     string     `json:"keys,omitempty"` // the program
	Allowed  bool       `json:"allowed"`
	At       time.Time  `json:"at"`
}

// same reports whether c and d answer the same question.
func (c consent) same(d consent) bool {
	return c.Provider == d.Provider && c.Address == d.Address && c.Model == d.Model && c.Session == d.Session && c.Keys == d.Keys
}

func consentFile(home string) string { return filepath.Join(home, "consent.json") }

// consents are the answers so far. What cannot be read was not answered.
func consents(home string) []consent {
	data, err := wholefile.Read(consentFile(home), wholefile.Small)
	if err != nil {
		return nil
	}
	return parseConsents(data)
}

func parseConsents(data []byte) []consent {
	var entries []json.RawMessage
	_ = json.Unmarshal(data, &entries)
	var out []consent
	for _, e := range entries {
		var c consent
		if json.Unmarshal(e, &c) == nil && c.Provider != "" {
			out = append(out, c)
		}
	}
	return out
}

// changeConsents changes the answers, for all processes.
func changeConsents(home string, change func([]consent) []consent) error {
	return wholefile.Update(consentFile(home), func(old []byte) ([]byte, error) {
		now := change(parseConsents(old))
		if now == nil {
			now = []consent{}
		}
		data, err := json.MarshalIndent(now, "", "  ")
		return append(data, '\n'), err
	})
}

// permissions are where conversations may go, as far as the user was asked.
type permissions struct {
	ms   *Models
	here []consent // answers that could not be remembered
}

// of returns the answer to the question that c is about. What another process
// makes forgotten counts at once.
func (p *permissions) of(c consent) (allowed, answered bool) { return answerTo(c, p.answers()) }

// answers are those of this run and those that are remembered.
func (p *permissions) answers() []consent {
	return append(slices.Clone(p.here), consents(p.ms.conf().Home)...)
}

func answerTo(c consent, answers []consent) (allowed, answered bool) {
	i := slices.IndexFunc(answers, c.same)
	return i >= 0 && answers[i].Allowed, i >= 0
}

// set remembers the answer to a question, or keeps it for this run if it cannot.
func (p *permissions) set(c consent, allowed bool) {
	if was, ok := p.of(c); ok && was == allowed {
		return
	}
	c.Allowed, c.At = allowed, time.Now().UTC().Truncate(time.Second)
	p.here = slices.DeleteFunc(p.here, c.same)
	err := changeConsents(p.ms.conf().Home, func(all []consent) []consent { return append(slices.DeleteFunc(all, c.same), c) })
	if err != nil {
		p.here = append(p.here, c)
		p.ms.o.Warn("your answer counts for this run only: %v", err)
	}
}

// may returns whether what c is about is allowed. If that was never answered, it
// asks; asked is false if nobody can be.
func (p *permissions) may(ctx context.Context, c consent, question string) (allowed, asked bool) {
	if allowed, ok := p.of(c); ok {
		return allowed, true
	}
	if p.ms.Ask == nil {
		return false, false
	}
	yes, err := p.ms.Ask(ctx, question)
	if err != nil { // Ctrl-C: it may be asked again another time
		p.here = append(p.here, c)
		return false, true
	}
	p.set(c, yes)
	return yes, true
}

// ServerNames are the servers as people call them.
var ServerNames = map[string]string{"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp"}

// unnamed reports whether a provider is on this machine and the configuration
// does not name its address: what listens there may be anything.
func unnamed(c *config.Loaded, provider string) bool {
	return strings.HasPrefix(Bases[provider], "http://127.0.0.1:") && c.Providers[provider].BaseURL == ""
}

// addresses are where servers are looked for: where the configuration says, or
// else on the ports that only a model server uses.
func addresses(c *config.Loaded) local.Addresses {
	at := local.Standard()
	for _, a := range consents(c.Home) {
		if a.Provider == "llamacpp" && a.Allowed && a.Session == "" && a.Keys == "" { // it was named once
			at.LlamaCpp = local.LlamaCppURL
		}
	}
	for provider, to := range map[string]*string{"ollama": &at.Ollama, "lmstudio": &at.LMStudio, "llamacpp": &at.LlamaCpp} {
		if base := c.Providers[provider].BaseURL; base != "" {
			*to = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
		}
	}
	return at
}

// about is the question whether conversations may be sent to a model of a server
// here.
func about(s local.Server, model string) consent {
	return consent{Provider: s.Name, Address: Host(s.BaseURL), Model: model}
}

// Host returns the host and port of an address.
func Host(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	return base
}

// Shown is a name that a server told, fit for a question.
func Shown(name string) string { return transcript.OneLine(transcript.Printable(name), 60) }

// may reports whether conversations may be sent to a model of a server here, and
// asks if need be. how says how to allow it if not.
func (ms *Models) may(ctx context.Context, s local.Server, model string) (allowed bool, how string) {
	if !unnamed(ms.conf(), s.Name) {
		return true, ""
	}
	c := about(s, model)
	what := fmt.Sprintf("at %s (%s, %s)", c.Address, ServerNames[s.Name], Shown(model))
	name := s.Name + "/" + Shown(model)
	allowed, asked := ms.permit.may(ctx, c, "A model server answers "+what+". Send conversations to it?")
	switch {
	case allowed:
		return true, ""
	case asked:
		return false, fmt.Sprintf("the model server %s is not used, because you said no: goclaw models forget %s undoes that", what, name)
	}
	return false, fmt.Sprintf("a model server answers %s, but nothing is sent to it unless you say so: --model %s, \"model\": %q in %s, or goclaw in a terminal, which asks", what, name, name, ms.conf().File)
}

// allowedHere returns the server and the model on this machine to ask. how says
// why there is none although a server answers.
func (ms *Models) allowedHere(ctx context.Context) (s local.Server, m local.Model, how string, ok bool) {
	servers, answers := ms.LocalServers(ctx), ms.permit.answers()
	for _, s := range servers {
		for _, m := range s.Models {
			if yes, _ := answerTo(about(s, m.Name), answers); yes || !unnamed(ms.conf(), s.Name) {
				return s, m, "", true
			}
		}
	}
	for _, s := range servers {
		yes, why := ms.may(ctx, s, s.Models[0].Name)
		if yes {
			return s, s.Models[0], "", true
		}
		how = cmp.Or(how, why)
	}
	return local.Server{}, local.Model{}, how, false
}

// AllowNamed remembers that the user named a model on this machine, which is a
// yes to sending conversations to it.
func (ms *Models) AllowNamed(m *Model) {
	if unnamed(ms.conf(), m.ProviderName) {
		ms.permit.set(consent{Provider: m.ProviderName, Address: Host(m.At.Base), Model: m.ModelName}, true)
	}
}

// moveError says that a session was not sent to another vendor's model.
type moveError struct {
	model *Model
	text  string
}

func (e *moveError) Error() string { return e.text }

// move returns the model that s is asked with, which is m if the user agrees:
// nobody named m, and s may be another vendor's so far. If the user said no, it
// is the built-in model, and problem says so. The error is a *moveError if nobody
// could be asked.
func (ms *Models) move(ctx context.Context, s *session.Session, m *Model) (to *Model, problem string, err error) {
	from, known := lastAsked(s)
	here := unnamed(ms.conf(), m.ProviderName)
	was := "was answered by " + Shown(from.Name()) + " so far"
	switch {
	case m.ProviderName == offline.Name || known && recipient(ms.conf(), from.Provider) == recipient(ms.conf(), m.ProviderName):
		return m, "", nil
	case !known && here && answeredByOthers(s):
		was = "was answered by a model that is not known"
	case !known:
		return m, "", nil
	}
	c := consent{Provider: m.ProviderName, Session: s.ID}
	if up := (consent{Provider: m.ProviderName, Session: s.Origin.ID}); up.Session != "" && !ms.permit.answered(c) && ms.permit.answered(up) {
		c = up // the session that s continues was asked about
	}
	name, where := Shown(m.Name()), ""
	if here {
		where = " at " + Host(m.At.Base)
	}
	allowed, asked := ms.permit.may(ctx, c, fmt.Sprintf("This session %s. Send it to %s%s?", was, name, where))
	switch {
	case allowed:
		return m, "", nil
	case !asked:
		return nil, "", &moveError{m, fmt.Sprintf("%s %s, and is not sent to another vendor unless you say so: --model %s sends it there, --model offline answers without sending anything", s.Key, was, name)}
	}
	to, err = ms.Named(offline.Name)
	return to, fmt.Sprintf("this session is not sent to %s, because you said no: the built-in offline model answers; --model %s, or /model in the chat, sends it there", name, name), err
}

func (p *permissions) answered(c consent) bool {
	_, ok := p.of(c)
	return ok
}

// recipient returns who gets what is sent to a provider.
func recipient(c *config.Loaded, provider string) string {
	if unnamed(c, provider) {
		return "this machine"
	}
	name, _, _ := strings.Cut(provider, "-") // openai-codex
	return name
}

// answeredByOthers reports whether s has answers of which nobody knows who gave
// them: another program did not write it down.
func answeredByOthers(s *session.Session) bool {
	return slices.ContainsFunc(s.Branch, func(r session.Record) bool {
		m, ok := r.Body.(session.Message)
		return ok && m.Role == llm.Assistant && m.Provider == ""
	})
}

// lastAsked is s.LastModel without the built-in model, which sends nothing
// anywhere.
func lastAsked(s *session.Session) (session.ModelChange, bool) {
	for _, r := range slices.Backward(s.Branch) {
		switch b := r.Body.(type) {
		case session.ModelChange:
			if !b.Chosen && b.Provider != offline.Name {
				return b, true
			}
		case session.Message:
			if b.Role == llm.Assistant && b.Provider != "" && b.Provider != offline.Name && !b.Synthetic() {
				return session.ModelChange{Provider: b.Provider, Model: b.Model}, true
			}
		}
	}
	_, _, compacted := s.Compaction() // then who answered may be known to Info alone
	return session.ModelChange{Provider: s.Provider, Model: s.Model}, compacted && s.Provider != "" && s.Provider != offline.Name
}
