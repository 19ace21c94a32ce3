package recall

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"goclaw/internal/parts"
	"goclaw/recall/internal/ranking"
	"goclaw/recall/internal/vectors"
	"goclaw/recall/internal/words"
)

// The parts that a benchmark can leave out.
var (
	partMeant = parts.New("candidates by vectors", parts.Meaning)
	partFloor = parts.New("a cut-off for them", parts.Meaning)
)

// How many are candidates for their vectors, whatever their words are.
const (
	nearMessages = 100
	nearNotes    = 100
)

// A text that holds few of a question's words says what it asks for only if it
// means the same.
const (
	enoughWords = 0.3 // of what the words of the question count
	similarFrom = 0.4 // the cosine of texts that are about the same thing
	sameFrom    = 0.5 // of texts that say the same
)

// OnlyNear is what a user or a model is told of a result that is only near.
const OnlyNear = "nothing found says what was asked for: these are only near it"

// measured is an Embedder whose cosines are known: those of texts that have
// nothing to do with each other stay below similarFrom.
type measured interface{ Measured() }

// Measured says that the constants above are for this model.
func (Local) Measured() {}

// floor is the cosine from which on a text is found by its vector alone.
func (s *search) floor() float64 {
	if _, ok := s.vectors.model.(measured); ok {
		return similarFrom
	}
	return -1
}

// many is how many texts are candidates for their vectors, at most n. Of a
// model whose cosines are not known it is only the nearest.
func (s *search) many(n int) int {
	switch {
	case s.q.balance() == 0 || !partMeant.On(), s.res.Literal: // it is looked for as it stands
		return 0
	case s.floor() < 0:
		return defaultLimit
	}
	return n
}

// similar drops candidates that have no word of the question and are not
// similar enough to it.
func similar(cands []ranking.Candidate, floor float64) []ranking.Candidate {
	return slices.DeleteFunc(cands, func(c ranking.Candidate) bool {
		return c.Meant && !c.Own && c.Near < floor && partFloor.On()
	})
}

// own drops candidates that hold no word of the query, if that is few words and
// another candidate holds all of them: then what is only near is noise. If the
// query says when, what was said then is not.
func (s *search) own(cands []ranking.Candidate) []ranking.Candidate {
	if !fewWords(s.q.Text) || math.IsInf(s.q.balance(), 1) || len(words.Dates(s.q.Text, s.q.Now)) > 0 {
		return cands
	}
	s.whole = s.whole || slices.ContainsFunc(cands, func(c ranking.Candidate) bool { return c.Share > 0.99 })
	return slices.DeleteFunc(cands, func(c ranking.Candidate) bool { return s.whole && !c.Own })
}

// judge notes whether c, which is a hit, says what is asked for. The vector of
// a single word is too near to that of any short text to tell.
func (s *search) judge(c ranking.Candidate) {
	same := sameFrom
	if _, ok := c.Code.(vectors.Signs); ok {
		same *= vectors.OfSigns
	}
	means := s.floor() > 0 && c.Near >= same && len(strings.Fields(s.q.Text)) > 1
	s.clear = s.clear || c.Share >= enoughWords || c.Dated || means
}

// rank orders the best k messages by their words and those that are near by
// their vectors, and drops those that do not fit.
func (s *search) rank(ctx context.Context, asked *ranking.Question, c *ranking.Corpus, k int) ([]ranking.Candidate, error) {
	s.meaning.compare(&s.res)
	var query vectors.Vector
	var near []vectors.Place
	if s.meaning.v != nil {
		if err := s.codes.Refresh(s.table()); err != nil {
			return nil, err
		}
		query = vectors.Reduce(s.meaning.v)
		near = s.codes.Nearest(query, c.Segs, c.Allow, s.many(nearMessages))
	}
	cands, err := c.Rank(asked, k, near)
	if err != nil {
		return nil, err
	}
	if err := s.literally(ctx, asked, cands); err != nil {
		return nil, err
	}
	if query != nil {
		for i, c := range cands {
			cands[i].Code = s.codes.Code(c.Doc)
		}
		ranking.Fuse(query, cands, s.q.balance())
		cands = similar(cands, vectors.OfSigns*s.floor())
	}
	s.covered(cands)
	return s.own(ranking.Trim(cands)), nil
}

// nearNotes returns the notes nearest to the question by their vectors, of
// those that fit.
func (s *search) nearNotes(fits func(seg, at int) bool) ([]vectors.Place, error) {
	if s.meaning.v == nil {
		return nil, nil
	}
	if err := s.vectors.loadNotes(); err != nil {
		return nil, err
	}
	type near struct {
		vectors.Place
		cosine float64
	}
	var all []near
	query := vectors.Unit(s.meaning.v)
	for seg, f := range s.memory.All {
		for at, h := range f.Hashes {
			if v := s.vectors.notes[h]; v != nil && fits(seg, at) {
				all = append(all, near{vectors.Place{Seg: seg, At: at}, v.Cosine(query)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
	var out []vectors.Place
	for _, n := range all[:min(s.many(nearNotes), len(all))] {
		out = append(out, n.Place)
	}
	return out, nil
}
