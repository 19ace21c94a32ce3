package spending

import (
	"cmp"
	"context"
	"sort"
	"time"

	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/session"
)

// Line is a line of goclaw usage.
type Line struct {
	Day        string      `json:"day,omitempty"`
	Model      string      `json:"model,omitempty"`
	Session    session.Key `json:"session,omitempty"`
	Calls      int         `json:"calls"`
	Input      int         `json:"input"`
	Output     int         `json:"output"`
	CacheRead  int         `json:"cacheRead"`
	CacheWrite int         `json:"cacheWrite"`
	Cost       float64     `json:"cost"`
}

func (u *Line) add(x llm.Usage, usd float64) {
	u.Calls++
	u.Input, u.Output = u.Input+x.Input, u.Output+x.Output
	u.CacheRead, u.CacheWrite = u.CacheRead+x.CacheRead, u.CacheWrite+x.CacheWrite
	u.Cost += usd
}

// Since adds up the records of all sessions since a time.
func Since(ctx context.Context, st session.Store, c *config.Loaded, by string, from time.Time, imported bool) ([]Line, error) {
	bill := newBill(c)
	var infos []session.Info
	for _, trash := range []bool{false, true} {
		for in, err := range st.List(ctx, session.Query{Trash: trash}) {
			if err != nil {
				return nil, err
			}
			if !in.Updated.Before(from) {
				infos = append(infos, in)
			}
		}
	}
	// What other programs paid for is known first.
	sort.SliceStable(infos, func(i, j int) bool {
		a, b := &infos[i], &infos[j]
		if a.Mirror() != b.Mirror() {
			return a.Mirror()
		}
		return a.Created.Before(b.Created)
	})
	sums, once := map[Line]*Line{}, map[call]bool{}
	for _, in := range infos {
		for r, err := range session.Undamaged(st.Read(ctx, in.ID, 0), func(*session.Damage) {}) {
			if err != nil {
				return nil, err
			}
			c, model := callOf(r)
			if c.u.Total() == 0 || c.at.Before(from) || once[c] {
				continue
			}
			once[c] = true
			if in.Mirror() && !imported {
				continue
			}
			key := Line{Day: c.at.Local().Format(time.DateOnly), Model: model}
			switch by {
			case "day":
				key.Model = ""
			case "model":
				key.Day = ""
			case "session":
				key = Line{Session: in.Key}
			}
			if sums[key] == nil {
				line := key
				sums[key] = &line
			}
			before := bill.usd
			bill.add(r.Body)
			sums[key].add(c.u, bill.usd-before)
		}
	}
	out := []Line{}
	for _, u := range sums {
		out = append(out, *u)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Session, b.Session)) < 0
	})
	return out, nil
}

// callOf returns the request to a model that a record is about, and the model.
func callOf(r session.Record) (call, string) {
	c := call{at: r.Time.Round(0).UTC()}
	if m, ok := r.Body.(session.Message); ok && !m.At.IsZero() {
		c.at = m.At.Round(0).UTC()
	}
	var model string
	c.u, model = usageOf(r.Body)
	return c, model
}
