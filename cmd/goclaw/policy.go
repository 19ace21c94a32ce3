package main

import (
	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/config"
	"goclaw/window"
)

// policy fills in what keeps a session inside the window of m: notices,
// compaction, checkpoints, and what summarises.
func (ms *models) policy(env *agent.Env, m *model) {
	c := ms.conf.Session
	env.NoLine = !c.MemoryFlush.ShowInSystemPrompt
	env.Flush = thresholds(c.MemoryFlush)
	o := compactOptions(c)
	env.Compact = &o
	env.Summarizer = ms.summarizer(m)
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
