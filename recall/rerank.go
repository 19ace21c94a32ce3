package recall

import (
	"context"

	"goclaw/recall/internal/ranking"
	"goclaw/session"
)

// literally reads the best of cands and orders them by how literally they hold
// the query, where that counts. What cannot be read keeps its place.
func (s *search) literally(ctx context.Context, asked *ranking.Question, cands []ranking.Candidate) error {
	l := asked.Literal(s.q.Text)
	if l == nil || len(cands) < 2 {
		return nil
	}
	fits := make([]float64, min(len(cands), ranking.ToRead))
	for i := range fits {
		d := cands[i].Doc
		rec, ok, err := recordAt(ctx, s.o.Store, s.messages.ids[d.Group], session.Seq(d.Seq))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !ok {
			continue
		}
		if text, says := speak(rec); says {
			fits[i] = l.Fit(text.text)
		}
	}
	ranking.Reorder(cands, fits)
	return nil
}
