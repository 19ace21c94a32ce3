package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/transcript"
	"goclaw/provider/local"
	"goclaw/provider/offline"
	"goclaw/session"
)

// decide makes the model that s is asked with the one that is asked now. It is
// the one rule, for every turn and every command. The first of these that there
// is counts:
//
//  1. --model
//  2. what the user chose in s with /model
//  3. "model" in the configuration
//  4. the model that s names last, whoever wrote that, if it can be asked here
//  5. whichever key or local server there is; else the built-in model
//
// problem says that a choice cannot be had, and why.
func (a *app) decide(ctx context.Context, s *session.Session) (v *voice, problem string, err error) {
	c, err := a.config()
	if err != nil {
		return nil, "", err
	}
	before := a.voice
	a.voice = nil
	if chosen, ok := s.Chosen(); ok && a.model == "" {
		name := chosen.Body.(session.ModelChange).Name()
		if a.voice, err = a.named(name); err != nil {
			problem = fmt.Sprintf("%s, which was chosen for this session, cannot be had (%s)", name, oneLine(err))
		}
	}
	if last, ok := s.LastModel(); ok && a.voice == nil && a.model == "" && c.Model == "" {
		a.voice = a.usable(ctx, last)
	}
	if v, err = a.choose(ctx); err != nil {
		a.voice = before
	}
	return v, problem, err
}

// decideAloud is decide for a command that answers once: it says the problem.
func (a *app) decideAloud(ctx context.Context, s *session.Session) (*voice, error) {
	v, problem, err := a.decide(ctx, s)
	if problem != "" {
		fmt.Fprintln(a.err, a.style().Dim(transcript.Printable(problem)))
	}
	return v, err
}

// usable returns the model c if it can be asked here, as far as that is known
// without asking it: there is a key for it, or a server on this machine has it.
// The built-in model is not returned: it answers where nothing else can.
func (a *app) usable(ctx context.Context, c session.ModelChange) *voice {
	if c.Provider == offline.Name {
		return nil
	}
	if isLocal(bases[c.Provider]) && a.conf.Providers[c.Provider].BaseURL == "" {
		s, ok := a.localServer(ctx)
		i := slices.IndexFunc(s.Models, func(m local.Model) bool { return m.Name == c.Model })
		if !ok || s.Name != c.Provider || i < 0 {
			return nil
		}
		v, err := a.localVoice(s, s.Models[i])
		if err != nil {
			return nil
		}
		return v
	}
	v, err := a.named(c.Name())
	if err != nil {
		return nil
	}
	return v
}

func isLocal(base string) bool { return strings.HasPrefix(base, "http://127.0.0.1:") }

// named returns the model of a spec such as anthropic/claude-sonnet-4-5, the
// same one each time: what is learnt about it holds for the whole run.
func (a *app) named(spec string) (*voice, error) { return a.namedAs(spec, local.Model{}) }

// namedAs is named for a model of which its server has told m already.
func (a *app) namedAs(spec string, m local.Model) (*voice, error) {
	if v := a.voices[spec]; v != nil {
		return v, nil
	}
	v, err := named(a.conf, spec, a.getenv)
	if err != nil {
		return nil, err
	}
	v.sizeUp(a.conf, m)
	if a.voices == nil {
		a.voices = map[string]*voice{}
	}
	a.voices[spec] = v
	return v, nil
}
