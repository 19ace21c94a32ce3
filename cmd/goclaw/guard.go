package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/config"
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
		out = append(out, window.Threshold{Percent: t.Percent, Text: t.Prompt, As: window.Delivery(t.InjectAs)})
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
// names for it, then v itself. The built-in model cannot.
func (a *app) summarizer(v *voice) compact.Summarizer {
	c := a.conf.Session.Checkpoint
	var chain compact.Chain
	add := func(v *voice) {
		if v.provider != offline.Name {
			chain = append(chain, compact.Model{Provider: v.Provider, Name: v.model, Window: v.budget.Window, Output: v.maxTokens, Tokens: v.tokens, Price: v.cost})
		}
	}
	if c.Model != "" && c.Model != v.name() {
		// One that cannot be asked (no key) leaves the others.
		if cheap, err := a.named(c.Model); err == nil {
			add(cheap)
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

// learn remembers a model's window, for this run and those to come.
func (a *app) learn(l agent.Learnt) {
	v := a.voice
	if v.provider != l.Provider || v.model != l.Model {
		return
	}
	v.budget.Window = l.Window
	v.reserve(a.conf)
	if err := rememberWindow(a.conf.Home, v.name(), l.Window); err != nil {
		// It is learnt again from the next refusal.
		return
	}
}

var windowsMu sync.Mutex

func windowsFile(home string) string { return filepath.Join(home, "windows.json") }

// learntWindows are the windows that refusals have taught, by model.
func learntWindows(home string) (map[string]int, error) {
	data, err := os.ReadFile(windowsFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, err
	}
	m := map[string]int{}
	if err := json.Unmarshal(data, &m); err != nil {
		return map[string]int{}, nil // a torn file: it is learnt anew
	}
	return m, nil
}

func learntWindow(home, model string) int {
	if home == "" {
		return 0
	}
	windowsMu.Lock()
	defer windowsMu.Unlock()
	m, err := learntWindows(home)
	if err != nil {
		return 0
	}
	return m[model]
}

func rememberWindow(home, model string, n int) error {
	windowsMu.Lock()
	defer windowsMu.Unlock()
	m, err := learntWindows(home)
	if err != nil {
		return err
	}
	m[model] = n
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(home, "windows-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(data, '\n'))
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), windowsFile(home))
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// contextVoice is the model that s is shown for: the one that is asked, or for
// a file, whose model may be out of reach, the one that the file names.
func (a *app) contextVoice(ctx context.Context, s *session.Session, file bool) (*voice, error) {
	if !file {
		v, _, err := a.decide(ctx, s)
		return v, err
	}
	v, err := a.choose(ctx)
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
