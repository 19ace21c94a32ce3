package models

import (
	"testing"

	"goclaw/internal/catalogue"
	"goclaw/llm"
)

// What is left of a limit pays for the prompt first, and the rest for the answer.
func TestAfford(t *testing.T) {
	m := &Model{Price: catalogue.Model{Prices: &catalogue.Prices{In: 3, Out: 15, CacheRead: 0.3, CacheWrite: 3.75}}}
	free := &Model{}
	for _, c := range []struct {
		name   string
		m      *Model
		next   llm.Usage
		usd    float64
		tokens int
		fits   bool
	}{
		{"plenty", m, llm.Usage{Input: 1000, Output: 8000}, 5, 0, true},
		{"a shorter answer", m, llm.Usage{Input: 100_000, Output: 64_000}, 0.675, 20_000, true}, // 0.375 for the prompt
		{"the least answer", m, llm.Usage{Input: 100_000, Output: 64_000}, 0.391, 1066, true},
		{"too little", m, llm.Usage{Input: 100_000, Output: 64_000}, 0.39, 1000, false},
		{"a short answer is enough", m, llm.Usage{Input: 100_000, Output: 500}, 0.39, 0, true},
		{"most is in the cache", m, llm.Usage{CacheRead: 100_000, Output: 64_000}, 0.33, 20_000, true},
		{"the provider's choice", m, llm.Usage{Input: 1000}, 1, 0, true},
		{"less than the provider would choose", m, llm.Usage{Input: 100_000}, 0.675, 20_000, true},
		{"nothing is left", m, llm.Usage{Input: 1000, Output: 8000}, -1, 0, false},
		{"no price", free, llm.Usage{Input: 1000, Output: 8000}, 0.0001, 0, true},
		{"a summary", m, llm.Usage{Input: 1000, Output: 8000, Cost: llm.Cost{Total: 0.2}}, 0.1, 0, false},
	} {
		tokens, least := c.m.afford(c.next, c.usd)
		if d := tokens - c.tokens; d < -1 || d > 1 || (least <= c.usd) != c.fits {
			t.Errorf("%s: %d tokens, at least $%g of $%g; want %d, %v", c.name, tokens, least, c.usd, c.tokens, c.fits)
		}
	}
}
