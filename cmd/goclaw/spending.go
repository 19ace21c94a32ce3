package main

import (
	"context"
	"fmt"
	"time"

	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/session"
)

// affordable returns an error if the turn that has used that much, or all turns
// of the day, have reached a limit on what they cost. The request that reaches a
// limit is the last one: what it will cost is not known before.
func (a *app) affordable(ctx context.Context, used llm.Usage) error {
	l := a.conf.Limits
	if l.CostPerTurn > 0 && used.Cost.Total >= l.CostPerTurn {
		return a.tooDear("this turn has", used.Cost.Total, "limits.costPerTurn", l.CostPerTurn)
	}
	if l.CostPerDay <= 0 {
		return nil
	}
	if a.today == nil {
		a.today = &spending{st: a.stores.st, conf: a.conf}
	}
	usd, err := a.today.sum(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("limits.costPerDay cannot be checked: %w", err)
	}
	if usd >= l.CostPerDay {
		return a.tooDear("the sessions of today have", usd, "limits.costPerDay", l.CostPerDay)
	}
	return nil
}

func (a *app) tooDear(what string, usd float64, key string, limit float64) error {
	return fmt.Errorf("%s cost $%.4f and %s is $%g: raise it in %s or with $%s; goclaw ask --continue resumes the turn",
		what, usd, key, limit, a.conf.File, config.EnvName(key))
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
