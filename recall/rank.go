package recall

import (
	"container/heap"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

// weights are what the ranking is made of. They were chosen by measuring;
// docs/recall.md says what the parts give.
type weights struct {
	k1, b   float64    // of BM25
	near    [5]float64 // of the words of a message itself (2), and of those two before it and two behind it
	cover   float64    // of the share of the question that the message itself holds
	user    float64    // factor of what a person said, where it is not a name that tells
	tool    float64    // factor of what a tool said
	name    float64    // the speaker is whom the question names
	mention float64    // of such a name as a word: it is said by the other one
	date    float64    // it was said when the question says
	ask     float64    // it only asks
	length  float64    // of the capped logarithm of its length
	when    float64    // it tells a time, and the question asks for one
	count   float64    // it tells a number, and the question asks for one
	cosine  float64    // of the vectors' cosine beside lexical/max
	side    float64    // of the neighbours' cosines beside that
	center  float64    // of what all candidates have in common, which tells nothing
}

var (
	chat = weights{
		k1: 0.53, b: 0.375, near: [5]float64{0.3, 0.59, 1, 0.25, 0.11}, cover: 0.1, user: 1.3, tool: 0.5,
		name: 4.7, mention: 0.1, date: 8, ask: -3.5, length: 0.375, when: 1.2, count: 0.1, cosine: 0.65, side: 0.28,
	}
	// notes are the weights for memory files: sentences that stand alone.
	notes = weights{
		k1: 0.53, b: 0.375, near: [5]float64{0.17, 0.25, 1, 0.25, 0.2}, cover: 0.13, user: 1, tool: 0.5,
		name: 4.7, mention: 0.1, date: 4.5, ask: -1.5, length: 0.28, when: 0.9, count: 0.1, cosine: 1.95, center: 0.6,
	}
	// bare are those for memory files without vectors.
	bare = weights{
		k1: 0.7, b: 0.5, near: [5]float64{0.2, 0.3, 1, 0.22, 0.15}, cover: 1, user: 1, tool: 0.5,
		name: 4.7, mention: 0.1, date: 5, ask: -0.9, length: 0.5, when: 1, count: 0.1,
	}
)

// onlyAsks reports whether a text ends in a question.
func onlyAsks(text string) bool {
	text = strings.TrimRight(text, " \n\"')*_")
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

func termSet(s string) map[string]bool {
	m := map[string]bool{}
	for w := range set(s) {
		if t := term(w); t != "" {
			m[t] = true
		}
	}
	return m
}

var timeWords = termSet(`yesterday today tomorrow tonight week weeks weekend month months year years ago last next day days morning evening night
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december
summer winter spring autumn fall recently soon since date birthday anniversary`)

var numberWords = termSet(`one two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand first second third once twice
several couple few dozen many`)

// candidate is a doc with its score.
type candidate struct {
	seg   int
	at    int // in the segment
	doc   doc
	score float64
	code  code
}

// corpus is what one search goes through.
type corpus struct {
	segs  []*segment
	n     int     // docs
	avg   float64 // words in one
	allow func(d doc) bool
}

func newCorpus(segs []*segment) *corpus {
	c := &corpus{segs: segs, avg: 1}
	total := 0
	for _, s := range segs {
		c.n += len(s.docs)
		total += s.words
	}
	if c.n > 0 {
		c.avg = max(1, float64(total)/float64(c.n))
	}
	return c
}

// rank returns the best k docs for q by their words, the best first.
func (c *corpus) rank(w *weights, q *question, k int) ([]candidate, error) {
	lists := make([][][]byte, len(q.terms)) // by term and segment
	var names [][][]byte
	for i := range q.terms {
		t := &q.terms[i]
		n := 0
		var err error
		if lists[i], n, err = c.lists(t.term); err != nil {
			return nil, err
		}
		t.idf = math.Log(1 + (float64(max(c.n-n, 0))+0.5)/(float64(n)+0.5))
		by, spoken, err := c.lists(nameMark + t.term)
		if err != nil {
			return nil, err
		}
		if spoken > 0 {
			names = append(names, by)
			t.weight = w.mention
		}
	}
	x := scratch{length: make([]float32, maxLength)}
	for n := range x.length {
		x.length[n] = float32(1 / (1 - w.b + w.b*float64(n)/c.avg))
	}
	best := top{k: k}
	for si, s := range c.segs {
		if err := c.score(w, q, si, s, lists, names, &x); err != nil {
			return nil, err
		}
		for _, at := range x.touched {
			if score := float64(x.score[at]); !best.full(score) && (c.allow == nil || c.allow(s.docs[at])) {
				best.offer(candidate{seg: si, at: int(at), doc: s.docs[at], score: score})
			}
			x.score[at], x.own[at] = 0, 0
		}
	}
	return best.sorted(), nil
}

// lists returns the postings of a term by segment, and how many docs have it.
func (c *corpus) lists(term string) ([][]byte, int, error) {
	out, n := make([][]byte, len(c.segs)), 0
	for i, s := range c.segs {
		data, err := s.postings(term)
		if err != nil {
			return nil, 0, err
		}
		if data == nil {
			continue
		}
		count, size := binary.Uvarint(data)
		if size <= 0 || count > uint64(len(s.docs)) {
			return nil, 0, &segmentError{s.seg, errPostings}
		}
		out[i] = data
		n += int(count)
	}
	return out, n, nil
}

// maxLength is the number of words from which on texts are equally long.
const maxLength = 4096

// scratch is what scoring a segment needs; all zero between segments.
type scratch struct {
	score, own, tf []float32
	named          []bool
	touched, hit   []int32
	ps             []posting
	length         []float32 // what a word counts in a text of so many
}

func (x *scratch) fit(n int) {
	if len(x.score) < n {
		x.score, x.own, x.tf, x.named = make([]float32, n), make([]float32, n), make([]float32, n), make([]bool, n)
	}
	x.touched = x.touched[:0]
}

// score leaves in x the scores of the docs of s that hold anything of q.
func (c *corpus) score(w *weights, q *question, si int, s *segment, lists, names [][][]byte, x *scratch) error {
	x.fit(len(s.docs))
	var near [5]float32
	for i, v := range w.near {
		near[i] = float32(v)
	}
	k1 := float32(w.k1)
	all := 0.0
	docs := s.docs
	tfs := x.tf[:len(docs)]
	var err error
	for i, t := range q.terms {
		all += t.weight * t.idf
		if lists[i][si] == nil {
			continue
		}
		value := float32(t.weight * t.idf)
		if x.ps, err = decode(lists[i][si], len(docs), x.ps[:0]); err != nil {
			return &segmentError{s.seg, err}
		}
		x.hit = x.hit[:0]
		for _, p := range x.ps {
			at := int(p.at)
			d := &docs[at]
			tf := float32(p.n) * x.length[min(d.words, maxLength-1)]
			// What is said here is context of the two before and behind.
			for j := max(at-2, 0); j <= min(at+2, len(docs)-1); j++ {
				if docs[j].group != d.group {
					continue
				}
				if tfs[j] == 0 {
					x.hit = append(x.hit, int32(j))
				}
				tfs[j] += near[at-j+2] * tf
			}
			x.own[at] += value
		}
		for _, j := range x.hit {
			tf := tfs[j]
			tfs[j] = 0
			if x.score[j] == 0 {
				x.touched = append(x.touched, j)
			}
			x.score[j] += value*tf*(k1+1)/(tf+k1) + math.SmallestNonzeroFloat32
		}
	}
	for _, by := range names {
		if by[si] == nil {
			continue
		}
		if x.ps, err = decode(by[si], len(docs), x.ps[:0]); err != nil {
			return &segmentError{s.seg, err}
		}
		for _, p := range x.ps {
			x.named[p.at] = true
		}
	}
	for _, j := range x.touched {
		own := 0.0
		if all > 0 {
			own = float64(x.own[j]) / all
		}
		x.score[j] = float32(w.weigh(q, &docs[j], float64(x.score[j]), own, x.named[j]))
	}
	if len(names) > 0 {
		clear(x.named)
	}
	return nil
}

// lengths are the capped logarithms of lengths.
var lengths = func() (l [31]float64) {
	for n := range l {
		l[n] = math.Log(1 + float64(n)/10)
	}
	return l
}()

// weigh adds to the score of the words what else speaks for d.
func (w *weights) weigh(q *question, d *doc, score, own float64, named bool) float64 {
	score += w.cover * own
	if named {
		score += w.name
	}
	for _, s := range q.spans {
		if d.time >= s.from.Unix() && d.time < s.to.Unix() {
			score += w.date
			break
		}
	}
	if d.flags&flagAsks != 0 {
		score += w.ask
	}
	score += w.length * lengths[min(d.words, uint32(len(lengths)-1))]
	if q.when && d.flags&flagTimes != 0 {
		score += w.when
	}
	if q.count && d.flags&flagNumbers != 0 {
		score += w.count
	}
	if score > 0 {
		if d.flags&flagTool != 0 {
			score *= w.tool
		} else if d.flags&(flagUser|flagNamed) == flagUser {
			score *= w.user
		}
	}
	return score
}

// fuse reorders cands, which are the best by their words, by their vectors as
// well. Where there is no vector, the cosine is what it is on average. near
// finds the vector of the message before or behind one; nil if there is none.
func (w *weights) fuse(q floats, cands []candidate, near func(c candidate, d int) code) {
	n := 0.0
	for _, c := range cands {
		if c.code != nil {
			n++
		}
	}
	if n == 0 || q == nil {
		return
	}
	center := w.common(cands)
	top := math.Max(cands[0].score, 1e-9)
	cos, mean := make([]float64, len(cands)), 0.0
	for i, c := range cands {
		if c.code == nil {
			continue
		}
		cos[i] = c.code.cosine(q) - w.center*c.code.cosine(center)
		if w.side != 0 {
			for _, d := range []int{-1, 1} {
				if o := near(c, d); o != nil {
					cos[i] += w.side * o.cosine(q)
				}
			}
		}
		mean += cos[i] / n
	}
	for i := range cands {
		if cands[i].code == nil {
			cos[i] = mean
		}
		cands[i].score = cands[i].score/top + w.cosine*cos[i]
	}
	slices.SortStableFunc(cands, byScore)
}

// common returns the mean of the candidates' vectors, where it counts.
func (w *weights) common(cands []candidate) floats {
	var mean floats
	n := float32(0)
	for _, c := range cands {
		v, ok := c.code.(floats)
		if w.center == 0 || !ok {
			continue
		}
		if mean == nil {
			mean = make(floats, len(v))
		}
		if len(v) == len(mean) {
			n++
			for i, x := range v {
				mean[i] += x
			}
		}
	}
	for i := range mean {
		mean[i] /= n
	}
	return mean
}

func byScore(a, b candidate) int {
	switch {
	case a.score != b.score:
		if a.score > b.score {
			return -1
		}
		return 1
	case a.doc.time != b.doc.time: // the newer one first
		if a.doc.time > b.doc.time {
			return -1
		}
		return 1
	case a.doc.group != b.doc.group:
		return int(b.doc.group) - int(a.doc.group)
	}
	return int(a.doc.seq) - int(b.doc.seq)
}

// top keeps the best k candidates.
type top struct {
	k    int
	heap []candidate // the worst first
}

func (t *top) Len() int           { return len(t.heap) }
func (t *top) Less(i, j int) bool { return byScore(t.heap[i], t.heap[j]) > 0 }
func (t *top) Swap(i, j int)      { t.heap[i], t.heap[j] = t.heap[j], t.heap[i] }
func (t *top) Push(x any)         { t.heap = append(t.heap, x.(candidate)) }
func (t *top) Pop() any {
	c := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	return c
}

// full reports whether nothing with this score gets in.
func (t *top) full(score float64) bool { return len(t.heap) == t.k && score < t.heap[0].score }

func (t *top) offer(c candidate) {
	switch {
	case len(t.heap) < t.k:
		heap.Push(t, c)
	case byScore(c, t.heap[0]) < 0:
		t.heap[0] = c
		heap.Fix(t, 0)
	}
}

func (t *top) sorted() []candidate {
	slices.SortFunc(t.heap, byScore)
	return t.heap
}

// question is a query as the ranking sees it.
type question struct {
	terms []asked
	spans []span
	when  bool // it asks for a time
	count bool // it asks for a number
}

type asked struct {
	term   string
	weight float64
	idf    float64
}

// span is a time that a question names: from, inclusive, to to, exclusive.
type span struct{ from, to time.Time }
