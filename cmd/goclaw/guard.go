package main

import (
	"context"
	"errors"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/config"
	"goclaw/provider/catalogue"
	"goclaw/provider/offline"
	"goclaw/session"
	"goclaw/window"
)

// guard fills in what keeps a session inside the window of v: notices,
// folding, checkpoints, and who summarises.
func (a *app) guard(env *agent.Env, v *voice) {
	c := a.conf.Session
	env.NoLine = !c.MemoryFlush.ShowInSystemPrompt
	env.Flush = thresholds(c.MemoryFlush)
	o := compactOptions(c)
	env.Compact = &o
	env.Summarizer = a.summarizer(v)
}

func thresholds(c config.MemoryFlush) []window.Threshold {
	if !c.Enabled {
		return nil
	}
	var out []window.Threshold
	for _, t := range c.Thresholds {
		out = append(out, window.Threshold{Percent: t.Percent, Text: t.Prompt, As: t.InjectAs})
	}
	return out
}

func compactOptions(c config.Session) compact.Options {
	o := compact.Options{NoCheckpoints: !c.Compaction.PreferCheckpoint}
	if c.Checkpoint.Enabled {
		o.Percents, o.Turns, o.MinTokens = c.Checkpoint.TokenPercents, c.Checkpoint.TurnThreshold, c.Checkpoint.MinTokens
	}
	return o
}

// summarizer returns who summarises for v: the model that the configuration
// names for it, or else the small one of v's vendor; then v itself. The built-in
// model cannot.
func (a *app) summarizer(v *voice) compact.Summarizer {
	c := a.conf.Session.Checkpoint
	var chain compact.Chain
	add := func(v *voice) {
		if v.provider != offline.Name {
			chain = append(chain, compact.Model{Provider: v.Provider, Name: v.model, Window: v.budget.Window, Output: v.maxTokens, Tokens: v.tokens, Price: v.cost})
		}
	}
	cheap := c.Model
	if m, ok := catalogue.Small(v.name()); cheap == "" && ok && c.FallbackToMain {
		cheap = m.ID
	}
	if cheap != "" && cheap != v.name() {
		// One that cannot be asked (no key) leaves the others.
		if small, err := a.named(cheap); err == nil {
			add(small)
		}
	}
	if len(chain) == 0 || c.FallbackToMain {
		add(v)
	}
	if len(chain) == 0 {
		return compact.Extractor{}
	}
	return chain
}

// contextVoice is the model that s is shown for: the one that is asked, even if
// its key is missing, or for a file, whose model may be out of reach, the one
// that the file names.
func (a *app) contextVoice(ctx context.Context, s *session.Session, file bool) (*voice, error) {
	var key *keyError
	if !file {
		v, _, err := a.decide(ctx, s)
		if errors.As(err, &key) {
			return key.voice, nil
		}
		return v, err
	}
	v, err := a.choose(ctx)
	if errors.As(err, &key) {
		v, err = key.voice, nil
	}
	if err != nil || a.model != "" || s.Model == "" {
		return v, err
	}
	own := &voice{provider: s.Provider, model: s.Model}
	own.settle(a.conf)
	if own.budget.Window == 0 {
		own.budget = v.budget
	}
	return own, nil
}
