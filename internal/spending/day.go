package spending

import (
	"context"
	"time"

	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/session"
)

// Day adds up what was spent on a day, from the records of all sessions. It
// remembers how far it has read them: what other processes record is counted,
// too.
type Day struct {
	st   session.Store
	conf *config.Loaded

	day  time.Time
	bill *bill
	read map[session.ID]session.Seq
	once map[call]bool
}

// call identifies a request to a model. Forks and continuations hold copies of
// the records of other sessions, which were paid for once.
type call struct {
	at time.Time
	u  llm.Usage
}

// NewDay returns the spending of the sessions in st.
func NewDay(st session.Store, c *config.Loaded) *Day { return &Day{st: st, conf: c} }

// Sum returns the dollars spent on the day of now.
func (s *Day) Sum(ctx context.Context, now time.Time) (float64, error) {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	if !s.day.Equal(day) {
		*s = Day{st: s.st, conf: s.conf, day: day, bill: newBill(s.conf), read: map[session.ID]session.Seq{}, once: map[call]bool{}}
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
func (s *Day) add(ctx context.Context, in session.Info, paid bool) error {
	if s.read[in.ID] >= in.Last {
		return nil
	}
	for r, err := range session.Undamaged(s.st.Read(ctx, in.ID, s.read[in.ID]), func(*session.Damage) {}) {
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
