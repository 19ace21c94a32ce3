// Package spending adds up what sessions have cost: one session, a day of all of
// them against a limit, and the lines of goclaw usage. It reads the records alone;
// what a record does not say is computed from the prices of its model.
package spending

import (
	"context"
	"math"

	"goclaw/compact"
	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/session"
)

// Prices returns what is known of the model provider/model: what the catalogue
// says, with the prices that the configuration sets.
func Prices(c *config.Loaded, name string) catalogue.Model {
	m, _ := catalogue.Lookup(name)
	if over := c.Models[name]; over.InputPrice > 0 || over.OutputPrice > 0 {
		// What is read from or written to a cache is paid for as input.
		m.Prices = &catalogue.Prices{In: over.InputPrice, Out: over.OutputPrice, CacheRead: over.InputPrice, CacheWrite: over.InputPrice}
		m.Above = nil
	}
	return m
}

// Of returns what the session id has cost in dollars.
func Of(ctx context.Context, st session.Store, c *config.Loaded, id session.ID) (float64, error) {
	bill := newBill(c)
	for r, err := range session.Undamaged(st.Read(ctx, id, 0), func(*session.Damage) {}) {
		if err != nil {
			return 0, err
		}
		bill.add(r.Body)
	}
	return bill.usd, nil
}

// On returns what records have cost in dollars.
func On(c *config.Loaded, recs []session.Record) float64 {
	bill := newBill(c)
	for _, r := range recs {
		bill.add(r.Body)
	}
	return bill.usd
}

// bill adds up what records cost: what they say themselves or, if they say
// nothing, what the model that they name costs.
type bill struct {
	conf  *config.Loaded
	known map[string]catalogue.Model
	usd   float64
}

func newBill(c *config.Loaded) *bill { return &bill{conf: c, known: map[string]catalogue.Model{}} }

func (l *bill) add(b session.Body) {
	u, by := usageOf(b)
	if !u.Within(math.MaxInt32) { // written by a program that believed everything
		return
	}
	if u.Cost.Total > 0 || u.Total() == 0 || by == "" {
		l.usd += max(u.Cost.Total, 0)
		return
	}
	m, ok := l.known[by]
	if !ok {
		m = Prices(l.conf, by)
		l.known[by] = m
	}
	usd, _ := m.Cost(u)
	l.usd += usd.Total
}

// usageOf returns the usage in a record, and the model that it was of.
func usageOf(b session.Body) (u llm.Usage, by string) {
	switch b := b.(type) {
	case session.Message:
		return b.Usage, session.ModelChange{Provider: b.Provider, Model: b.Model}.Name()
	case session.Compaction:
		return b.Usage, compact.DetailsOf(b).By
	case session.Checkpoint:
		return b.Usage, b.Model
	case session.Usage:
		return b.Usage, session.ModelChange{Provider: b.Provider, Model: b.Model}.Name()
	}
	return u, ""
}
