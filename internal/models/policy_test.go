package models

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/config"
	"goclaw/window"
)

// What a refusal teaches about a window holds for this run and the next, for
// that model only, and a torn file is learnt anew.
func TestWindowsAreRemembered(t *testing.T) {
	home := t.TempDir()
	c := &config.Loaded{Config: config.Default(), Home: home}
	load := func(name string) *Model {
		v := &Model{ProviderName: "anthropic", ModelName: name}
		v.settle(c)
		return v
	}
	a := with(c)
	a.Now = load("claude-sonnet-4-5")
	a.Learn(agent.Learnt{Provider: "anthropic", Model: "another", Window: 9000})
	a.Learn(agent.Learnt{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 12_000})
	if got := a.Now.Budget; got.Window != 12_000 || got.Reserve != 3000 {
		t.Errorf("this run goes on with %+v", got)
	}
	if got := load("claude-sonnet-4-5").Budget.Window; got != 12_000 {
		t.Errorf("the next run has %d", got)
	}
	if got := load("claude-opus-4-5").Budget.Window; got == 12_000 || got == 0 {
		t.Errorf("another model has %d", got)
	}
	if err := os.WriteFile(filepath.Join(home, "windows.json"), []byte(`{"anthropic/`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := load("claude-sonnet-4-5").Budget.Window; got != 200_000 {
		t.Errorf("with a torn file it is %d", got)
	}
	a.Learn(agent.Learnt{Provider: "anthropic", Model: "claude-sonnet-4-5", Window: 10_000})
	if got := load("claude-sonnet-4-5").Budget.Window; got != 10_000 {
		t.Errorf("learnt anew it is %d", got)
	}
}

func TestPolicyIsConfigured(t *testing.T) {
	c := &config.Loaded{Config: config.Default(), Home: t.TempDir()}
	a := with(c)
	v := &Model{ProviderName: "anthropic", ModelName: "claude-sonnet-4-5"}
	v.settle(c)
	env := a.Env(v)
	var as []string
	for _, th := range env.Flush {
		as = append(as, th.As)
	}
	if d := cmp.Diff([]string{window.AsSystem, window.AsSystem, window.AsMarked}, as); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(compact.Options{Percents: []int{25, 50, 75}, Turns: 15, MinTokens: 10_000}, *env.Compact); d != "" {
		t.Error(d)
	}
	if chain := env.Summarizer.(compact.Chain); len(chain) != 1 || chain[0].Name != "claude-sonnet-4-5" {
		t.Errorf("without a key for the small model: %+v", chain)
	}
	c.Providers = map[string]config.Provider{"anthropic": {APIKey: "k"}}
	env = a.Env(v)
	if chain := env.Summarizer.(compact.Chain); len(chain) != 2 || chain[0].Name != "claude-haiku-5-5" || chain[1].Name != "claude-sonnet-4-5" {
		t.Errorf("by default: %+v", chain)
	}

	c.Session.Checkpoint.Model = "ollama/small"
	env = a.Env(v)
	if chain := env.Summarizer.(compact.Chain); len(chain) != 2 || chain[0].Name != "small" || chain[1].Name != "claude-sonnet-4-5" {
		t.Errorf("with a cheap model: %+v", chain)
	}
	c.Session.Checkpoint.FallbackToMain = false
	env = a.Env(v)
	if chain := env.Summarizer.(compact.Chain); len(chain) != 1 || chain[0].Name != "small" {
		t.Errorf("without fallback: %+v", chain)
	}
	c.Session.Checkpoint.Enabled, c.Session.MemoryFlush.Enabled, c.Session.Compaction.PreferCheckpoint = false, false, false
	env = a.Env(v)
	if len(env.Flush) != 0 || env.Compact.Percents != nil || env.Compact.Turns != 0 || !env.Compact.NoCheckpoints {
		t.Errorf("switched off: %+v %+v", env.Flush, env.Compact)
	}
}
