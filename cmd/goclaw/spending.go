package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/session"
)

// leastAffordable is how many tokens of an answer must be affordable: with less,
// the model is not asked.
const leastAffordable = 1024

// affordable returns how many tokens the answer to the next request to m may have
// so that neither the turn nor the day costs more than it may; 0 is any number.
// If the limits leave too little for an answer, the request is not sent.
func (a *app) affordable(ctx context.Context, m *model, used, next llm.Usage) (answer int, err error) {
	l := a.conf.Limits
	check := func(key string, limit, spent float64, of string) {
		if err != nil || limit <= 0 {
			return
		}
		most, least := m.afford(next, limit-spent)
		switch {
		case least > limit-spent:
			err = a.tooDear(of, key, limit, spent, least)
		case most > 0 && (answer == 0 || most < answer):
			answer = most
		}
	}
	check("limits.perTurn", l.PerTurn, used.Cost.Total, "this turn")
	if l.PerDay <= 0 || err != nil {
		return answer, err
	}
	if a.today == nil {
		a.today = &spending{st: a.stores.st, conf: a.conf}
	}
	usd, err := a.today.sum(ctx, time.Now())
	if err != nil {
		return 0, fmt.Errorf("limits.perDay cannot be checked: %w", err)
	}
	check("limits.perDay", l.PerDay, usd, "today")
	return answer, err
}

// afford returns how many tokens the answer of next may have for that many
// dollars, 0 if it need not be shorter, and the least that next costs. A summary
// has its price already.
func (m *model) afford(next llm.Usage, usd float64) (tokens int, least float64) {
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

func (a *app) tooDear(of, key string, limit, spent, next float64) error {
	return fmt.Errorf("the next request may cost $%.4f, %s has cost $%.4f, and %s is $%g: raise it with goclaw config set %s, or $%s; goclaw ask --continue resumes the turn",
		next, of, spent, key, limit, key, config.EnvName(key))
}

// spending adds up what was spent on a day, from the records of all sessions. It
// remembers how far it has read them: what other processes record is counted,
// too.
type spending struct {
	st   session.Store
	conf *config.Loaded

	day  time.Time
	bill bill
	read map[session.ID]session.Seq
	once map[call]bool
}

// call identifies a request to a model. Forks and continuations hold copies of
// the records of other sessions, which were paid for once.
type call struct {
	at time.Time
	u  llm.Usage
}

// sum returns the dollars spent on the day of now.
func (s *spending) sum(ctx context.Context, now time.Time) (float64, error) {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	if !s.day.Equal(day) {
		*s = spending{st: s.st, conf: s.conf, day: day, bill: bill{conf: s.conf, known: map[string]catalogue.Model{}}, read: map[session.ID]session.Seq{}, once: map[call]bool{}}
	}
	var mirrors, own []session.Info
	for _, trash := range []bool{false, true} {
		for in, err := range s.st.List(ctx, session.Query{Trash: trash}) {
			switch {
			case err != nil:
				return 0, err
			case in.Updated.Before(day):
			case in.Mirror():
				mirrors = append(mirrors, in)
			default:
				own = append(own, in)
			}
		}
	}
	for i, in := range append(mirrors, own...) { // what other programs paid for is known first
		if err := s.add(ctx, in, i >= len(mirrors)); err != nil {
			return 0, err
		}
	}
	return s.bill.usd, nil
}

// add reads what is new in a session. Only what is paid counts.
func (s *spending) add(ctx context.Context, in session.Info, paid bool) error {
	if s.read[in.ID] >= in.Last {
		return nil
	}
	for r, err := range undamaged(s.st.Read(ctx, in.ID, s.read[in.ID]), func(*session.Damage) {}) {
		if err != nil {
			return err
		}
		s.read[in.ID] = max(s.read[in.ID], r.Seq)
		c, _ := callOf(r)
		if c.u.Total() == 0 || c.at.Before(s.day) || s.once[c] {
			continue
		}
		s.once[c] = true
		if paid {
			s.bill.add(r.Body)
		}
	}
	return nil
}
