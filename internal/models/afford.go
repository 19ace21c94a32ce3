package models

import (
	"cmp"
	"context"
	"fmt"

	"goclaw/internal/config"
	"goclaw/internal/transcript"
	"goclaw/llm"
)

// leastAffordable is how many tokens of an answer must be affordable: with less,
// the model is not asked.
const leastAffordable = 1024

// Affordable returns how many tokens the answer to the next request to m may have
// so that neither the turn nor the day costs more than l says; 0 is any number. today
// returns what the day has cost.
// If the limits leave too little for an answer, the request is not sent.
func (m *Model) Affordable(ctx context.Context, l config.Limits, today func(context.Context) (float64, error), used, next llm.Usage) (answer int, err error) {
	check := func(key string, limit, spent float64, of string) {
		if err != nil || limit <= 0 {
			return
		}
		most, least := m.afford(next, limit-spent)
		switch {
		case least > limit-spent:
			err = tooDear(of, key, limit, spent, least)
		case most > 0 && (answer == 0 || most < answer):
			answer = most
		}
	}
	check("limits.perTurn", l.PerTurn, used.Cost.Total, "this turn")
	if l.PerDay <= 0 || err != nil {
		return answer, err
	}
	usd, err := today(ctx)
	if err != nil {
		return 0, fmt.Errorf("limits.perDay cannot be checked: %w", err)
	}
	check("limits.perDay", l.PerDay, usd, "today")
	return answer, err
}

// afford returns how many tokens the answer of next may have for that many
// dollars, 0 if it need not be shorter, and the least that next costs. A summary
// has its price already.
func (m *Model) afford(next llm.Usage, usd float64) (tokens int, least float64) {
	if next.Cost.Total > 0 {
		return 0, next.Cost.Total
	}
	prompt := func(output int) float64 {
		u := next.Tokens()
		u.Output = output
		kept := u // what the provider does not have in its cache may be written to it
		kept.CacheWrite, kept.Input = kept.CacheWrite+kept.Input, 0
		return max(m.cost(u).Total, m.cost(kept).Total)
	}
	const many = 1_000_000
	base := prompt(0)
	each := (prompt(many) - base) / many
	if each <= 0 { // it costs nothing, or nobody knows what
		return 0, base
	}
	shortest := leastAffordable
	if next.Output > 0 {
		shortest = min(shortest, next.Output)
	}
	tokens = int(min((usd-base)/each, many))
	if tokens >= cmp.Or(next.Output, ownChoice) {
		tokens = 0
	}
	return max(tokens, 0), base + float64(shortest)*each
}

func tooDear(of, key string, limit, spent, next float64) error {
	return fmt.Errorf("the next request may cost %s, %s has cost %s, and %s is $%g: raise it with goclaw config set %s, or $%s; goclaw ask --continue resumes the turn",
		transcript.Dollars(next), of, transcript.Dollars(spent), key, limit, key, config.EnvName(key))
}
