// Package ranking says which messages and notes fit a question best: BM25 with
// the neighbouring messages as context, speakers and dates understood, and
// vectors added.
package ranking

import (
	"math"
	"slices"
	"sync"

	"goclaw/recall/internal/cores"
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
	Dated bool // it was said when the question says
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
	r := c.ranking(q)
	parts := cores.Each(len(c.Segs), func(p *part, si int) {
		if p.scratch == nil {
			p.scratch, p.best.k = scratches.Get().(*scratch), k
		}
		if p.err == nil {
			p.err = p.rank(r, si, near)
		}
	})
	best := top{k: k}
	var meant []Candidate
	for _, p := range parts {
		if p.err != nil {
			return nil, p.err // its scratch is not clean
		}
		if p.scratch != nil {
			clear(p.lists) // they refer to what was read
			clear(p.speakers)
			scratches.Put(p.scratch)
		}
		for _, c := range p.best.heap {
			best.offer(c)
		}
		meant = append(meant, p.meant...)
	}
	return merge(best.sorted(), meant), nil
}

// ranking is what is the same for all segments while docs are ranked.
type ranking struct {
	*Corpus
	q      *Question
	only   int                            // the kind of all groups
	mixed  bool                           // there are two
	length [2][postings.MaxLength]float32 // what a word counts in a text of so many, by kind
	flat   [2][postings.MaxLength]float32 // what a name counts
	near   [2][2][5]float32               // the weights of what is around, by kind and by whether it asks
	all    [2]float32                     // what all terms count
	reach  [2]float64                     // what the messages around a doc give it at most
	// What a doc gets at most besides what its words count, and as a factor of
	// both.
	added, factor float64
}

// ranking makes it.
func (c *Corpus) ranking(q *Question) *ranking {
	r := &ranking{Corpus: c, q: q, mixed: len(c.people) > 0, near: c.near(), factor: 1}
	if c.people != nil {
		r.only = 1
	}
	named := slices.ContainsFunc(c.terms, func(t found) bool { return t.speakers != nil })
	for i, w := range c.kinds {
		for n := range r.length[i] {
			r.length[i][n] = float32(1 / (1 - w.b + w.b*float64(n)/c.avg))
			r.flat[i][n] = float32(1 / (1 - w.flat + w.flat*float64(n)/c.avg))
		}
		terms := value(c.terms, i, math.MaxUint64)
		r.all[i] = max(terms, 1e-9)
		r.reach[i] = w.wide * float64(terms) * max(w.user, w.ours, 1)
		if r.mixed || i == r.only {
			r.added = max(r.added, r.reach[i]+w.most(q, named))
			r.factor = max(r.factor, w.factor(q), w.tool)
		}
	}
	r.factor *= 1 + 1e-6 // nothing is lost by rounding
	return r
}

// kindOf returns which of kinds a doc is.
func (r *ranking) kindOf(d *postings.Doc) int {
	if r.mixed {
		return r.kind(d.Group)
	}
	return r.only
}

// part is what one core ranks.
type part struct {
	*scratch
	best  top
	meant []Candidate
	err   error
}

// pieceSize is how many docs are scored at once, and the rest of their group:
// what is known of them stays in the processor's cache.
var pieceSize = 8 << 10 // a test sets it

// rank adds the best docs of segment si, and those of near that are in it.
func (p *part) rank(r *ranking, si int, near []vectors.Place) error {
	s := r.Segs[si]
	if err := p.open(r, si); err != nil {
		return err
	}
	briefs := s.Briefs()
	for from, to := 0, 0; from < len(briefs); from = to {
		to = min(from+pieceSize, len(briefs))
		for to < len(briefs) && !briefs[to].First() {
			to++
		}
		of := piece{si, from, s.Docs[from:to], briefs[from:to]}
		if err := r.score(of, p.scratch); err != nil {
			return err
		}
		p.choose(r, of, near)
		p.clear()
	}
	return nil
}

// piece is docs of a segment, whole groups.
type piece struct {
	seg, first int
	docs       []postings.Doc
	briefs     []postings.Brief
}

// choose adds the best docs of a piece that was scored, and those of near that
// are in it.
func (p *part) choose(r *ranking, of piece, near []vectors.Place) {
	x := p.scratch
	for b, touched := range x.blocks {
		if !touched {
			continue
		}
		for at := b * blockSize; at < min((b+1)*blockSize, len(of.docs)); at++ {
			if x.score[at] != 0 && !p.best.full((float64(x.score[at])+r.added)*r.factor) {
				p.offer(r, of, at)
			}
		}
	}
	for _, place := range near {
		if at := place.At - of.first; place.Seg == of.seg && at >= 0 && at < len(of.docs) {
			p.meant = append(p.meant, r.meant(of, at, x))
		}
	}
}

// offer adds a doc that was scored if it is among the best.
func (p *part) offer(r *ranking, of piece, at int) {
	x, d := p.scratch, &of.docs[at]
	kind, words, named := r.kindOf(d), float64(x.score[at]), x.named[at]
	w := r.kinds[kind]
	if w.cover > 0 {
		words *= 1 - w.cover + w.cover*float64(value(r.terms, kind, x.holds[at])/r.all[kind])
	}
	score := w.weigh(r.q, of.docs, at, words, named)
	if p.best.full(score + r.reach[kind]) {
		return
	}
	if w.wide != 0 {
		score = w.weigh(r.q, of.docs, at, words+w.wide*float64(value(r.terms, kind, around(of.docs, x.holds, at))), named)
	}
	if !p.best.full(score) && (r.Allow == nil || r.Allow(*d)) {
		p.best.offer(Candidate{Seg: of.seg, At: of.first + at, Doc: *d, Score: score, Own: x.holds[at] != 0 || named, Dated: r.q.said(d.Time()) > 0,
			Share: share(r.terms, kind, x.holds[at]), w: w})
	}
}

// found is where a term of a question is.
type found struct {
	by       [][]variant // by segment
	speakers [][]byte    // what those with this name say, by segment; nil: it is no name
	value    [2]float32  // what it counts, by kind
	code     bool        // a name in a program, or a hash
	loose    bool        // what was found may be other words
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
	q.stand = map[string]string{}
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
		byParts, weight := v.n == 0, t.weight
		if v.near { // or it is right, but inside of a longer name
			weight *= besideFactor
			if byParts, err = c.haveAll(t.parts); err != nil {
				return nil, err
			}
		}
		if byParts {
			for _, p := range t.parts {
				ask = append(ask, asked{term: p, weight: weight, fixed: true})
			}
		}
		if v.n == 0 && t.fixed {
			continue
		}
		for _, other := range v.terms {
			q.stand[other] = t.term
		}
		if t.fixed {
			q.stand[t.term] = t.term
		}
		f := found{by: v.by, code: t.code, loose: v.loose}
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

// haveAll reports whether there is a doc of each term.
func (c *Corpus) haveAll(terms []string) (bool, error) {
	for _, t := range terms {
		if _, n, err := c.lists(t); err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
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

// blockSize is how many docs are looked at together if any of them was hit.
const blockSize = 64

// scratch is what scoring a piece needs; all zero between pieces.
type scratch struct {
	score, tf []float32
	holds     []uint64   // which terms a doc holds itself, one bit each
	named     []bool     // the question names a doc's speaker
	blocks    []bool     // where docs were hit
	hit       [2][]int32 // by the term that is being scored, by kind
	ps        []postings.Posting

	// Where the lists of the segment are read: those of all variants of all
	// terms, and those of speakers.
	lists, speakers []postings.Cursor
	mute            int // a doc of the segment that counts for nothing; -1: none
}

// scratches are those that no search uses.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (x *scratch) fit(n int) {
	if len(x.score) < n {
		x.score, x.tf, x.holds, x.named = make([]float32, n), make([]float32, n), make([]uint64, n), make([]bool, n)
		x.blocks = make([]bool, n/blockSize+1)
	}
}

func (x *scratch) clear() {
	for b, touched := range x.blocks {
		if touched {
			end := min((b+1)*blockSize, len(x.score))
			clear(x.score[b*blockSize : end])
			clear(x.holds[b*blockSize : end])
			x.blocks[b] = false
		}
	}
	if len(x.speakers) > 0 {
		clear(x.named)
	}
}

// open begins to read the lists of segment si.
func (x *scratch) open(r *ranking, si int) error {
	s := r.Segs[si]
	x.lists, x.speakers, x.mute = x.lists[:0], x.speakers[:0], -1
	if r.Mute != nil {
		if at, ok := slices.BinarySearchFunc(s.Docs, *r.Mute, postings.ByPlace); ok {
			x.mute = at
		}
	}
	for i := range r.terms {
		t := &r.terms[i]
		for _, v := range t.by[si] {
			c, err := s.Cursor(v.list)
			if err != nil {
				return err
			}
			x.lists = append(x.lists, c)
		}
		if t.speakers != nil && t.speakers[si] != nil {
			c, err := s.Cursor(t.speakers[si])
			if err != nil {
				return err
			}
			x.speakers = append(x.speakers, c)
		}
	}
	return nil
}

// read reads the postings of a list that are in a piece.
func (x *scratch) read(list *postings.Cursor, of piece) (err error) {
	x.ps, err = list.Upto(of.first, of.first+len(of.docs), x.ps[:0])
	return err
}

// score leaves in x the scores of the docs of a piece that hold any of the
// terms.
func (r *ranking) score(of piece, x *scratch) error {
	x.fit(len(of.docs))
	n := 0 // lists read
	for i := range r.terms {
		t := &r.terms[i]
		for _, v := range t.by[of.seg] {
			if err := x.read(&x.lists[n], of); err != nil {
				return err
			}
			n++
			if at := x.mute - of.first; x.mute >= 0 {
				x.ps = slices.DeleteFunc(x.ps, func(p postings.Posting) bool { return int(p.At) == at })
			}
			r.spread(of, t.code, v.factor, x)
			for _, p := range x.ps {
				x.holds[p.At] |= 1 << i
			}
		}
		r.sum(t, x)
	}
	for i := range x.speakers {
		if err := x.read(&x.speakers[i], of); err != nil {
			return err
		}
		for _, p := range x.ps {
			x.named[p.At] = r.kindOf(&of.docs[p.At]) == 0
		}
	}
	return nil
}

// spread counts the postings of a term for the docs that have it and for those
// around them; factor is what the term counts.
func (r *ranking) spread(of piece, code bool, factor float32, x *scratch) {
	length := &r.length
	if code {
		length = &r.flat
	}
	briefs := of.briefs
	tfs := x.tf[:len(briefs)]
	kind, group := r.only, ^uint32(0)
	hit := x.hit[kind]
	for _, p := range x.ps {
		at := int(p.At)
		b := briefs[at]
		if r.mixed {
			if g := of.docs[at].Group; g != group {
				x.hit[kind] = hit
				group, kind = g, r.kind(g)
				hit = x.hit[kind]
			}
		}
		tf := factor * float32(p.Count) * length[kind][b.Length()]
		weights := &r.near[kind][b.Asks()]
		// What is said here is context of the two before and the two after.
		from, to := at, at
		for from > at-2 && !briefs[from].First() {
			from--
		}
		for to < at+2 && to+1 < len(briefs) && !briefs[to+1].First() {
			to++
		}
		x.blocks[from/blockSize], x.blocks[to/blockSize] = true, true
		for j := from; j <= to; j++ {
			w := weights[at-j+2]
			if w == 0 {
				continue
			}
			if tfs[j] == 0 {
				hit = append(hit, int32(j))
			}
			tfs[j] += w * tf
		}
	}
	x.hit[kind] = hit
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
func (r *ranking) sum(t *found, x *scratch) {
	for kind, w := range r.kinds {
		value, k1 := t.value[kind], float32(w.k1)
		for _, j := range x.hit[kind] {
			tf := x.tf[j]
			x.tf[j] = 0
			x.score[j] += value*tf*(k1+1)/(tf+k1) + math.SmallestNonzeroFloat32
		}
		x.hit[kind] = x.hit[kind][:0]
	}
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
