package main

import (
	"context"
	"fmt"
	"strings"

	"goclaw/internal/models"
	"goclaw/provider/offline"
	"goclaw/session"
)

// guide returns what somebody can do who starts goclaw for the first time and
// has neither a key nor a model; nothing for anybody else.
func (a *app) guide(ctx context.Context) []string {
	m := a.models.Now
	if m == nil || m.ProviderName != offline.Name || a.models.Flag != "" || a.conf.Model != "" {
		return nil
	}
	for _, p := range models.Providers() {
		if (&setup{app: a}).keySource(p) != "" { // why it is not used was said
			return nil
		}
	}
	agents := map[string]int{}
	for in, err := range a.stores.Store.List(ctx, session.Query{}) {
		switch {
		case err != nil, !in.Mirror() && in.Turns > 0: // not the first time
			return nil
		case in.Mirror():
			agents[in.Origin.Program]++
		}
	}
	lines := []string{
		"No key yet: the built-in offline model answers (it is not a language model).",
		"For a language model: goclaw setup, or set ANTHROPIC_API_KEY or OPENAI_API_KEY.",
	}
	if a.greeted { // what was found was said
		return lines[:1]
	}
	var found []string
	for _, s := range a.models.Found {
		found = append(found, fmt.Sprintf("%s with %s (goclaw --model %s/%s)", models.ServerNames[s.Name], firstModels(s.Models), s.Name, models.Shown(s.Models[0].Name)))
	}
	if counts := agentCounts(agents); counts != "" {
		found = append(found, counts+", imported (/sessions)")
	}
	if len(found) == 0 {
		found = []string{"no model server, and no sessions of other agents"}
	}
	return append(lines, "Found here: "+strings.Join(found, "; ")+".")
}
