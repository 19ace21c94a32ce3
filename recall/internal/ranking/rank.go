// Package ranking says which messages and notes fit a question best: BM25 with
// the neighbouring messages as context, speakers and dates understood, and
// vectors added.
package ranking

import (
	"math"
	"slices"
	"sync"

	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/vectors"
)

// Candidate is a doc with its score.
type Candidate struct {
	Seg   int // in Corpus.Segs
	At    int // in the segment
	Doc   postings.Doc
	Score float64
	Own   bool // it holds a word of the question itself, or the question names its speaker
	Code  vectors.Code
	Meant bool // it is among the candidates for its vector, not for its words
	// Share is how much of the question's words it holds itself, by what they
	// count: 1 all, 0 none. Near is the cosine of its vector and the
	// question's, 0 where one has none; Fuse sets it.
	Share, Near float64

	w *weights
}

// Corpus is what one search goes through.
type Corpus struct {
	Segs  []*postings.Segment
	Allow func(d postings.Doc) bool // which docs may be found; nil: all
	Mute  *postings.Doc             // its group and place: what it says counts for nothing

	n     int     // docs
	avg   float64 // words in one
	kinds []*weights
	terms []found // set by Look
	// people are the groups in which people talk to each other, which have the
	// first of kinds; nil: all have.
	people map[uint32]bool
}

// Messages returns a corpus of messages. people are the groups in which people
// talk to each other.
func Messages(segs []*postings.Segment, people map[uint32]bool) *Corpus {
	return newCorpus(segs, people, messagesOfPeople, assistant)
}

// Notes returns a corpus of notes.
func Notes(segs []*postings.Segment) *Corpus { return newCorpus(segs, nil, notes) }

func newCorpus(segs []*postings.Segment, people map[uint32]bool, kinds ...weights) *Corpus {
	c := &Corpus{Segs: segs, avg: 1, people: people}
	for _, w := range kinds {
		c.kinds = append(c.kinds, w.used())
	}
	total := 0
	for _, s := range segs {
		c.n += len(s.Docs)
		total += s.Words
	}
	if c.n > 0 {
		c.avg = max(1, float64(total)/float64(c.n))
	}
	return c
}

// kind returns which of kinds a group is.
func (c *Corpus) kind(group uint32) int {
	if c.people == nil || c.people[group] {
		return 0
	}
	return 1
}

// Look finds the terms of q and whom it names. Rank needs it.
func (c *Corpus) Look(q *Question) (err error) {
	for i, w := range c.kinds {
		c.kinds[i] = w.of(q)
	}
	c.terms, err = c.look(q)
	return err
}

// Rank returns the best k docs for q by their words, the best first, and then
// those at the places near that are not among them.
func (c *Corpus) Rank(q *Question, k int, near []vectors.Place) ([]Candidate, error) {
	terms := c.terms
	var meant []Candidate
	x := scratches.Get().(*scratch)
	for i, w := range c.kinds {
		for n := range x.length[i] {
			x.length[i][n] = float32(1 / (1 - w.b + w.b*float64(n)/c.avg))
			x.flat[i][n] = float32(1 / (1 - w.flat + w.flat*float64(n)/c.avg))
		}
	}
	var all [2]float32
	for i := range c.kinds {
		all[i] = max(value(terms, i, math.MaxUint64), 1e-9)
	}
	var reach [2]float64 // what the messages around a doc give it at most, by kind
	for i, w := range c.kinds {
		reach[i] = w.wide * float64(value(terms, i, math.MaxUint64)) * max(w.user, w.ours, 1)
	}
	best := top{k: k}
	for si, s := range c.Segs {
		if err := c.score(si, s, terms, x); err != nil {
			return nil, err
		}
		for _, at := range x.touched {
			d := &s.Docs[at]
			kind, words, named := c.kind(d.Group), float64(x.score[at]), x.named[at]
			w := c.kinds[kind]
			if w.cover > 0 {
				words *= 1 - w.cover + w.cover*float64(value(terms, kind, x.holds[at])/all[kind])
			}
			score := w.weigh(q, d, words, named)
			if best.full(score + reach[kind]) {
				continue
			}
			if w.wide != 0 {
				score = w.weigh(q, d, words+w.wide*float64(value(terms, kind, around(s.Docs, x.holds, int(at)))), named)
			}
			if !best.full(score) && (c.Allow == nil || c.Allow(*d)) {
				best.offer(Candidate{Seg: si, At: int(at), Doc: *d, Score: score, Own: x.holds[at] != 0 || named, Share: share(terms, kind, x.holds[at]), w: w})
			}
		}
		for _, p := range near {
			if p.Seg == si {
				meant = append(meant, c.meant(q, p, terms, x))
			}
		}
		x.clear()
	}
	scratches.Put(x) // after an error it is dropped
	return merge(best.sorted(), meant), nil
}

// found is where a term of a question is.
type found struct {
	by       [][]variant // by segment
	speakers [][]byte    // what those with this name say, by segment; nil: it is no name
	value    [2]float32  // what it counts, by kind
	code     bool        // a name in a program, or a hash
}

// value returns what terms count together; bit i of which is for term i.
func value(terms []found, kind int, which uint64) (sum float32) {
	for i := range terms {
		if which>>i&1 == 1 {
			sum += terms[i].value[kind]
		}
	}
	return sum
}

// wideSpan is how far around a doc the words of a question count.
const wideSpan = 6

// around returns which terms the docs around the one at hold.
func around(docs []postings.Doc, holds []uint64, at int) (terms uint64) {
	for j := max(at-wideSpan, 0); j <= min(at+wideSpan, len(docs)-1); j++ {
		if docs[j].Group == docs[at].Group {
			terms |= holds[j]
		}
	}
	return terms
}

// look finds the terms of q.
func (c *Corpus) look(q *Question) ([]found, error) {
	var terms []found
	ask := slices.Clone(q.terms)
	for i := 0; i < len(ask); i++ {
		t := ask[i]
		if t.inDate && !c.kinds[0].dateWords {
			continue
		}
		v, err := c.variants(t)
		if err != nil {
			return nil, err
		}
		if v.n == 0 {
			for _, p := range t.parts {
				ask = append(ask, asked{term: p, weight: t.weight, fixed: true})
			}
			if t.fixed {
				continue
			}
		}
		f := found{by: v.by, code: t.code}
		idf := c.idf(v.n)
		if f.speakers, err = c.speakers(t.term); err != nil {
			return nil, err
		}
		if f.speakers != nil {
			q.names = append(q.names, t.term)
		}
		for k, w := range c.kinds {
			f.value[k] = float32(t.weight * idf)
			if f.speakers != nil {
				f.value[k] = float32(w.mention * idf)
			}
		}
		terms = append(terms, f)
	}
	return terms, nil
}

// idf returns how much a term says that n docs have.
func (c *Corpus) idf(n int) float64 {
	return math.Log(1 + (float64(max(c.n-n, 0))+0.5)/(float64(n)+0.5))
}

// speakers returns by segment what is said by those whose name term is, nil if
// it is nobody's.
func (c *Corpus) speakers(term string) ([][]byte, error) {
	by, n, err := c.lists(postings.SpeakerTerm(term))
	if err != nil || n == 0 {
		return nil, err
	}
	for i, list := range by {
		if list == nil {
			continue
		}
		ps, err := c.Segs[i].Decode(list, nil)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ps, func(p postings.Posting) bool { return c.kind(c.Segs[i].Docs[p.At].Group) == 0 }) {
			return by, nil
		}
	}
	return nil, nil
}

// lists returns the lists of a term by segment, and how many docs have it.
func (c *Corpus) lists(term string) (lists [][]byte, n int, err error) {
	lists = make([][]byte, len(c.Segs))
	for i, s := range c.Segs {
		list, docs, err := s.List(term)
		if err != nil {
			return nil, 0, err
		}
		lists[i] = list
		n += docs
	}
	return lists, n, nil
}

// maxLength is the number of words from which on texts are equally long.
const maxLength = 4096

// scratch is what scoring a segment needs; all zero between segments.
type scratch struct {
	score, tf    []float32
	holds        []uint64 // which terms a doc holds itself, one bit each
	named        []bool   // the question names a doc's speaker
	touched, hit []int32
	ps           []postings.Posting
	length       [2][maxLength]float32 // what a word counts in a text of so many, by kind
	flat         [2][maxLength]float32 // what a name counts
}

// scratches are those that no search uses.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (x *scratch) fit(n int) {
	if len(x.score) < n {
		x.score, x.tf, x.holds, x.named = make([]float32, n), make([]float32, n), make([]uint64, n), make([]bool, n)
	}
	x.touched = x.touched[:0]
}

func (x *scratch) clear() {
	for _, at := range x.touched {
		x.score[at], x.holds[at] = 0, 0
	}
	clear(x.named)
}

// score leaves in x the scores of the docs of s that hold any of the terms.
func (c *Corpus) score(si int, s *postings.Segment, terms []found, x *scratch) (err error) {
	x.fit(len(s.Docs))
	mute, muted := 0, false
	if c.Mute != nil {
		mute, muted = slices.BinarySearchFunc(s.Docs, *c.Mute, postings.ByPlace)
	}
	for i, t := range terms {
		x.hit = x.hit[:0]
		for _, v := range t.by[si] {
			if x.ps, err = s.Decode(v.list, x.ps[:0]); err != nil {
				return err
			}
			if muted {
				x.ps = slices.DeleteFunc(x.ps, func(p postings.Posting) bool { return int(p.At) == mute })
			}
			c.spread(s.Docs, t.code, v.factor, x)
			for _, p := range x.ps {
				x.holds[p.At] |= 1 << i
			}
		}
		c.sum(s.Docs, t, x)
	}
	for _, t := range terms {
		if t.speakers == nil || t.speakers[si] == nil {
			continue
		}
		if x.ps, err = s.Decode(t.speakers[si], x.ps[:0]); err != nil {
			return err
		}
		for _, p := range x.ps {
			x.named[p.At] = c.kind(s.Docs[p.At].Group) == 0
		}
	}
	return nil
}

// spread counts the postings of a term for the docs that have it and for those
// around them; factor is what the term counts.
func (c *Corpus) spread(docs []postings.Doc, code bool, factor float32, x *scratch) {
	length := &x.length
	if code {
		length = &x.flat
	}
	tfs := x.tf[:len(docs)]
	group, kind := uint32(0), c.kind(0)
	near := c.near()
	for _, p := range x.ps {
		at := int(p.At)
		d := &docs[at]
		if d.Group != group {
			group, kind = d.Group, c.kind(d.Group)
		}
		tf := factor * float32(p.Count) * length[kind][min(d.Words, maxLength-1)]
		weights := &near[kind][d.Flags&postings.Asks]
		// What is said here is context of the two before and the two after.
		for j := max(at-2, 0); j <= min(at+2, len(docs)-1); j++ {
			if docs[j].Group != d.Group || weights[at-j+2] == 0 {
				continue
			}
			if tfs[j] == 0 {
				x.hit = append(x.hit, int32(j))
			}
			tfs[j] += weights[at-j+2] * tf
		}
	}
}

// near returns the weights of what is around, by kind and by whether it asks.
func (c *Corpus) near() (near [2][2][5]float32) {
	for k, w := range c.kinds {
		for i, v := range w.near {
			near[k][0][i], near[k][1][i] = float32(v), float32(v)
		}
		near[k][1][1] += float32(w.answer)
	}
	return near
}

// sum adds what a term counts to the scores of the docs that were hit.
func (c *Corpus) sum(docs []postings.Doc, t found, x *scratch) {
	tfs := x.tf[:len(docs)]
	group, kind := uint32(0), c.kind(0)
	for _, j := range x.hit {
		tf := tfs[j]
		tfs[j] = 0
		if g := docs[j].Group; g != group {
			group, kind = g, c.kind(g)
		}
		if x.score[j] == 0 {
			x.touched = append(x.touched, j)
		}
		k1 := float32(c.kinds[kind].k1)
		x.score[j] += t.value[kind]*tf*(k1+1)/(tf+k1) + math.SmallestNonzeroFloat32
	}
}

// shortQuestion is how many words a question has at most that is asked for the
// words themselves.
const shortQuestion = 2

// OwnFirst puts the candidates that hold a word of a short question before
// those that hold none, which only stand near one that does. Where the query
// is put as a question, the answer to it need not hold its words.
func OwnFirst(cands []Candidate, q *Question) {
	if q.asks || len(q.terms) > shortQuestion || !partOwnFirst.On() {
		return
	}
	slices.SortStableFunc(cands, func(a, b Candidate) int {
		switch {
		case a.Own == b.Own:
			return 0
		case a.Own:
			return -1
		}
		return 1
	})
}

// Trim drops candidates that hold no word of the question and have more
// against them than for them, unless there is nothing else.
func Trim(cands []Candidate) []Candidate {
	for i, c := range cands {
		if c.Score <= 0 && i > 0 {
			return slices.DeleteFunc(cands, func(c Candidate) bool { return c.Score <= 0 && !c.Own })
		}
	}
	return cands
}
