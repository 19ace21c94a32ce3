package recall

import (
	"math"

	"goclaw/recall/internal/ranking"
	"goclaw/recall/internal/vectors"
	"goclaw/recall/internal/words"
)

// The balance of meaning and words that stands for our own: OpenClaw's default.
const (
	ownVectorWeight = 0.7
	ownTextWeight   = 0.3
)

// weights returns how meaning and words are weighed; they add up to 1.
func (q *Query) weights() (vector, text float64) {
	vector, text = max(q.VectorWeight, 0), max(q.TextWeight, 0)
	if vector+text == 0 {
		return ownVectorWeight, ownTextWeight
	}
	return vector / (vector + text), text / (vector + text)
}

// balance returns what the meaning counts beside the words, compared with what
// the ranking gives it: 1 is the same, 0 nothing, infinity everything.
func (q *Query) balance() float64 {
	vector, text := q.weights()
	if text == 0 {
		return math.Inf(1)
	}
	return vector / text * ownTextWeight / ownVectorWeight
}

// grader says how well texts fit a query, from 0 to 1, whatever else is found:
// the weighed mean of the share of the query's words that a text holds, and the
// cosine. Where there is no vector, the words alone count.
type grader struct {
	terms        map[string]bool
	stand        map[string]string
	meaning      vectors.Vector // nil: there is none
	vector, text float64
}

func (s *search) grader(asked *ranking.Question, meaning vectors.Vector) grader {
	g := grader{terms: asked.Terms(), stand: asked.Stand(), meaning: meaning}
	g.vector, g.text = s.q.weights()
	return g
}

// grade returns how well c, whose text is given, fits.
func (g grader) grade(c ranking.Candidate, text string) float64 {
	held := 0
	for t := range words.Set(text) {
		if g.terms[t] {
			held++
		}
	}
	if held == 0 && c.Own { // it holds one in another form
		held = 1
	}
	share := 0.0
	if len(g.terms) > 0 {
		share = float64(held) / float64(len(g.terms))
	}
	if g.meaning == nil || c.Code == nil {
		return share
	}
	return min(1, g.text*share+g.vector*max(0, c.Code.Cosine(g.meaning)))
}

// level makes scores fall with the rank: a hit has at least that of those after
// it. It drops the hits below least.
func level(hits []Hit, least float64) []Hit {
	for i := len(hits) - 2; i >= 0; i-- {
		hits[i].Score = max(hits[i].Score, hits[i+1].Score)
	}
	for i, h := range hits {
		if h.Score < least {
			return hits[:i]
		}
	}
	return hits
}
