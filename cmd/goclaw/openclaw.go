package main

import (
	"os"
	"slices"

	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/transcript"
	"goclaw/recall"
)

// adopt takes over what OpenClaw has, if its sessions are inherited: how memory
// files are searched, and where its own are.
func adopt(e *env, c *config.Loaded) {
	if !c.Session.Inherit.Enabled || !slices.Contains([]string{"auto", "openclaw", "jsonl"}, c.Session.Inherit.Format) {
		return
	}
	in, ok := openclaw.Installed(e.getenv("HOME"), e.getenv)
	if !ok {
		return
	}
	if in.Config != nil {
		c.Adopt(in.File, in.Config)
	}
	e.openclaw = in
}

// beside returns OpenClaw's workspaces, without our own.
func beside(e *env) (out []recall.Workspace) {
	own, _ := os.Stat(e.conf.Memory)
	for _, w := range e.openclaw.Workspaces {
		if in, err := os.Stat(w.Path); err != nil || own != nil && os.SameFile(own, in) {
			continue
		}
		out = append(out, recall.Workspace{Path: w.Path, Name: transcript.ShortPath(w.Path, e.getenv("HOME")), Memory: w.Extra})
	}
	return out
}

// memorySearch returns how memory_search works for an agent. "" is any: it is
// off if it is off for all.
func memorySearch(c *config.Loaded, agent string) recall.MemorySearch {
	s := c.MemorySearch(agent)
	if agent == "" {
		s.Enabled = s.Enabled || slices.ContainsFunc(c.Agents.List, func(a config.Agent) bool { return a.MemorySearch.Enabled })
	}
	h := s.Query.Hybrid
	m := recall.MemorySearch{
		Off: !s.Enabled, Limit: s.Query.MaxResults, MinScore: s.Query.MinScore,
		VectorWeight: h.VectorWeight, TextWeight: h.TextWeight, Candidates: min(h.CandidateMultiplier, 20),
	}
	if !h.Enabled {
		m.VectorWeight, m.TextWeight = 1, 0
	}
	return m
}
