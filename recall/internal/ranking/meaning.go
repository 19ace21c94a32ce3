package ranking

import (
	"math"
	"slices"

	"goclaw/recall/internal/vectors"
)

// meant returns the doc at a place of a piece that was scored, whose vector is
// near the question's, with the score of its words.
func (r *ranking) meant(of piece, at int, x *scratch) Candidate {
	d := &of.docs[at]
	kind := r.kindOf(d)
	w, named := r.kinds[kind], x.named[at]
	words := float64(x.score[at])
	if w.wide != 0 {
		words += w.wide * float64(value(r.terms, kind, around(of.docs, x.holds, at)))
	}
	return Candidate{Seg: of.seg, At: of.first + at, Doc: *d, Score: w.weigh(r.q, of.docs, at, words, named), Own: x.holds[at] != 0 || named, Dated: r.q.said(d.Time()) > 0,
		Share: share(r.terms, kind, x.holds[at]), Meant: true, w: w}
}

// share returns how much of what terms count those of holds do. Where other
// words may have been found in place of a term, it is not held.
func share(terms []found, kind int, holds uint64) float64 {
	for i, t := range terms {
		if t.loose {
			holds &^= 1 << i
		}
	}
	if all := value(terms, kind, math.MaxUint64); all > 0 {
		return float64(value(terms, kind, holds) / all)
	}
	return 0
}

// merge appends to best those of meant that are not in it.
func merge(best, meant []Candidate) []Candidate {
	if len(meant) == 0 {
		return best
	}
	have := make(map[vectors.Place]bool, len(best))
	for _, c := range best {
		have[vectors.Place{Seg: c.Seg, At: c.At}] = true
	}
	for _, c := range meant {
		if !have[vectors.Place{Seg: c.Seg, At: c.At}] {
			best = append(best, c)
		}
	}
	return best
}

// Fuse reorders cands by their vectors as well; query is the question's. Where
// there is no vector, the cosine is the average one of those found by words.
// balance is what cosines count, compared with their usual weight; infinity:
// they alone count.
func Fuse(query vectors.Vector, cands []Candidate, balance float64) {
	have := 0
	for _, c := range cands {
		if c.Code != nil {
			have++
		}
	}
	if have == 0 || query == nil {
		return
	}
	center := mean(cands)
	best := 1e-9
	cosines, average, n := make([]float64, len(cands)), 0.0, 0.0
	for i, c := range cands {
		best = math.Max(best, c.Score)
		if c.Code == nil {
			continue
		}
		cands[i].Near = c.Code.Cosine(query)
		cosines[i] = cands[i].Near - c.w.center*c.Code.Cosine(center)
		if !c.Meant {
			n++
			average += (cosines[i] - average) / n
		}
	}
	for i := range cands {
		c := &cands[i]
		if c.Code == nil {
			cosines[i] = average
		}
		if c.Score /= best; math.IsInf(balance, 1) {
			c.Score = cosines[i]
		} else {
			c.Score += balance * c.w.cosine * cosines[i]
		}
	}
	slices.SortStableFunc(cands, byScore)
}

// mean returns the mean of the candidates' vectors, where it counts.
func mean(cands []Candidate) vectors.Vector {
	var sum vectors.Vector
	n := float32(0)
	for _, c := range cands {
		v, ok := c.Code.(vectors.Vector)
		if c.w.center == 0 || !ok {
			continue
		}
		if sum == nil {
			sum = make(vectors.Vector, len(v))
		}
		if len(v) == len(sum) {
			n++
			for i, x := range v {
				sum[i] += x
			}
		}
	}
	for i := range sum {
		sum[i] /= n
	}
	return sum
}
