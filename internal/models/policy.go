package models

import (
	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/config"
	"goclaw/window"
)

// Env returns what a turn with m needs of it: how it is asked, and what keeps a
// session inside its window, which are notices, compaction, checkpoints, and what
// summarises.
func (ms *Models) Env(m *Model) agent.Env {
	env := agent.Env{
		Provider: m.Provider, Budget: m.Budget, Tokens: m.Tokens, API: m.API, Price: m.cost,
		Accepted: m.accepted, Fixed: m.fixed, Took: func(prompt int) { ms.took(m, prompt) },
	}
	c := ms.conf().Session
	env.NoLine = !c.MemoryFlush.ShowInSystemPrompt
	env.Flush = thresholds(c.MemoryFlush)
	o := CompactOptions(c)
	env.Compact = &o
	env.Summarizer = ms.summarizer(m)
	return env
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

// CompactOptions are when and how sessions are compacted.
func CompactOptions(c config.Session) compact.Options {
	o := compact.Options{NoCheckpoints: !c.Compaction.PreferCheckpoint}
	if c.Checkpoint.Enabled {
		o.Percents, o.Turns, o.MinTokens = c.Checkpoint.TokenPercents, c.Checkpoint.TurnThreshold, c.Checkpoint.MinTokens
	}
	return o
}
