package recall

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// weights are what the ranking is made of. They are round numbers from the
// middle of wide plateaus; docs/recall.md says how they were chosen and what
// the parts give.
type weights struct {
	k1, b   float64    // of BM25
	near    [5]float64 // of the words of a message itself (2), and of those two before it and two behind it
	user    float64    // factor of what a person said, where it is not a name that tells
	tool    float64    // factor of what a tool said
	name    float64    // it is said by whom the question names, or about that one
	mention float64    // of such a name as a word: it is said by the other one
	date    float64    // it was said when the question says
	ask     float64    // it ends in a question
	askOnly float64    // it is a question, most of it
	length  float64    // of the capped logarithm of its length
	cosine  float64    // of the vectors' cosine beside lexical/max
	center  float64    // of what all candidates have in common, which tells nothing
}

var (
	chat = weights{
		k1: 0.5, b: 0.5, near: [5]float64{0.25, 0.3, 1, 0.25, 0.15}, user: 1.3, tool: 0.5,
		name: 6, mention: 0.2, date: 6, ask: -1, askOnly: -3, length: 0.5, cosine: 0.6,
	}
	// notes are the weights for memory files: sentences that stand alone.
	notes = weights{
		k1: 0.7, b: 0.4, near: [5]float64{0.1, 0.3, 1, 0.25, 0.15}, user: 1, tool: 0.5,
		name: 3, mention: 1, date: 6, ask: -0.5, askOnly: -1, length: 0.5, cosine: 1.2, center: 0.5,
	}
)

// maxQuestion is how many bytes a question has at most.
const maxQuestion = 1000

// asking returns which flags of questions a text has.
func asking(text string) (flags uint8) {
	const blank = " \n\"')*_"
	text = strings.TrimRight(text, blank)
	// What was attached stands in brackets behind the words.
	if strings.HasSuffix(text, "]") {
		if i := strings.LastIndexByte(text, '['); i > 0 {
			text = strings.TrimRight(text[:i], blank)
		}
	}
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") {
		flags |= flagAsks
	}
	if len(text) > maxQuestion || flags == 0 && !strings.Contains(text, "?") && !strings.Contains(text, "？") {
		return flags
	}
	asked, from := 0, 0
	for i, r := range text {
		switch r {
		case '?', '？':
			asked += i - from
			fallthrough
		case '.', '!', '\n', '。', '！':
			from = i
		}
	}
	if 2*asked > len(text) {
		flags |= flagOnlyAsks
	}
	return flags
}

// candidate is a doc with its score.
type candidate struct {
	seg   int
	at    int // in the segment
	doc   doc
	score float64
	own   bool // it holds a word of the question itself, or is said by whom it names
	code  code
}

// corpus is what one search goes through.
type corpus struct {
	segs  []*segment
	n     int     // docs
	avg   float64 // words in one
	allow func(d doc) bool
	mute  *doc // its group and place: what it says counts for nobody
	// speaks reports whether the messages of a group begin with their
	// speakers' names; nil: all do.
	speaks func(group uint32) bool
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
	l, err := c.look(w, q)
	if err != nil {
		return nil, err
	}
	x := scratches.Get().(*scratch)
	for n := range x.length {
		x.length[n] = float32(1 / (1 - w.b + w.b*float64(n)/c.avg))
	}
	best := top{k: k}
	for si, s := range c.segs {
		if err := c.score(w, q, si, s, l, x); err != nil {
			return nil, err
		}
		for _, at := range x.touched {
			d := &s.docs[at]
			named := x.named[at]
			score := w.weigh(q, d, float64(x.score[at]), named, d.flags&flagNamed != 0 && c.spoken(d))
			if !best.full(score) && (c.allow == nil || c.allow(*d)) {
				best.offer(candidate{seg: si, at: int(at), doc: *d, score: score, own: x.holds[at] || named})
			}
		}
		x.clear()
	}
	scratches.Put(x) // one that an error leaves behind is dropped
	return best.sorted(), nil
}

// looked is where the words of a question are: by term and segment.
type looked struct {
	lists [][][]byte
	names [][][]byte // of speakers that it names
}

// look finds the words of q, and sets what each of them counts.
func (c *corpus) look(w *weights, q *question) (looked, error) {
	l := looked{lists: make([][][]byte, len(q.terms))}
	for i := range q.terms {
		t := &q.terms[i]
		n := 0
		var err error
		if l.lists[i], n, err = c.lists(t.term); err != nil {
			return l, err
		}
		idf := c.idf(n)
		t.value = t.weight * idf
		by, spoken, err := c.speakersNamed(t.term)
		if err != nil {
			return l, err
		}
		if spoken {
			l.names = append(l.names, by)
			t.mention = w.mention * idf
		}
	}
	return l, nil
}

// idf is what a word tells that n docs have.
func (c *corpus) idf(n int) float64 {
	return math.Log(1 + (float64(max(c.n-n, 0))+0.5)/(float64(n)+0.5))
}

// spoken reports whether the messages around d begin with their speakers'
// names.
func (c *corpus) spoken(d *doc) bool { return c.speaks == nil || c.speaks(d.group) }

// speakersNamed returns by segment the messages whose speaker has the name
// that term is, and whether there are any.
func (c *corpus) speakersNamed(term string) (by [][]byte, any bool, err error) {
	by, n, err := c.lists(nameMark + term)
	if err != nil || n == 0 || c.speaks == nil {
		return by, n > 0, err
	}
	for i, list := range by {
		if list == nil {
			continue
		}
		ps, err := decode(list, len(c.segs[i].docs), nil)
		if err != nil {
			return nil, false, &segmentError{c.segs[i].seg, err}
		}
		if slices.ContainsFunc(ps, func(p posting) bool { return c.spoken(&c.segs[i].docs[p.at]) }) {
			return by, true, nil
		}
	}
	return by, false, nil
}

// speakers returns which groups begin their messages with names: three of four
// that people and models say. "Warning: ..." now and then is no name.
func speakers(segs []*segment) func(group uint32) bool {
	known := map[uint32]bool{}
	return func(group uint32) bool {
		speaks, ok := known[group]
		if !ok {
			var n talk
			for _, s := range segs {
				in := s.talkOf(group)
				n.named, n.said = n.named+in.named, n.said+in.said
			}
			speaks = n.named > 0 && 4*n.named >= 3*n.said
			known[group] = speaks
		}
		return speaks
	}
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
	score, tf    []float32
	holds        []bool // a doc holds a term itself
	named        []bool
	touched, hit []int32
	ps           []posting
	length       [maxLength]float32 // what a word counts in a text of so many
}

// scratches are those that no search uses.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (x *scratch) fit(n int) {
	if len(x.score) < n {
		x.score, x.tf, x.holds, x.named = make([]float32, n), make([]float32, n), make([]bool, n), make([]bool, n)
	}
	x.touched = x.touched[:0]
}

func (x *scratch) clear() {
	for _, at := range x.touched {
		x.score[at], x.holds[at] = 0, false
	}
	clear(x.named)
}

// score leaves in x the scores of the docs of s that hold anything of q.
func (c *corpus) score(w *weights, q *question, si int, s *segment, l looked, x *scratch) error {
	x.fit(len(s.docs))
	var near [5]float32
	for i, v := range w.near {
		near[i] = float32(v)
	}
	k1 := float32(w.k1)
	docs := s.docs
	tfs := x.tf[:len(docs)]
	mute, muted := 0, false
	if c.mute != nil {
		mute, muted = slices.BinarySearchFunc(docs, *c.mute, byPlace)
	}
	var err error
	// spread counts a word for the docs that have it and those around them.
	spread := func(list []byte) error {
		if x.ps, err = decode(list, len(docs), x.ps[:0]); err != nil {
			return &segmentError{s.seg, err}
		}
		if muted {
			x.ps = slices.DeleteFunc(x.ps, func(p posting) bool { return int(p.at) == mute })
		}
		for _, p := range x.ps {
			at := int(p.at)
			d := &docs[at]
			tf := float32(p.n) * x.length[min(d.words, maxLength-1)]
			x.holds[at] = true
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
		}
		return nil
	}
	for i, t := range q.terms {
		x.hit = x.hit[:0]
		if list := l.lists[i][si]; list != nil {
			if err := spread(list); err != nil {
				return err
			}
		}
		value, mention := float32(t.value), float32(t.value)
		if t.mention != 0 {
			mention = float32(t.mention)
		}
		for _, j := range x.hit {
			tf := tfs[j]
			tfs[j] = 0
			if x.score[j] == 0 {
				x.touched = append(x.touched, j)
			}
			worth := value
			if mention != value && c.spoken(&docs[j]) {
				worth = mention
			}
			x.score[j] += worth*tf*(k1+1)/(tf+k1) + math.SmallestNonzeroFloat32
		}
	}
	for _, by := range l.names {
		if by[si] == nil {
			continue
		}
		if x.ps, err = decode(by[si], len(docs), x.ps[:0]); err != nil {
			return &segmentError{s.seg, err}
		}
		for _, p := range x.ps {
			x.named[p.at] = c.spoken(&docs[p.at])
		}
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

// weigh adds to the score of the words what else speaks for d: named says that
// its speaker is, spoken that speakers have names there.
func (w *weights) weigh(q *question, d *doc, score float64, named, spoken bool) float64 {
	if named {
		score += w.name
	}
	for _, s := range q.spans {
		if d.time >= s.from.Unix() && d.time < s.to.Unix() {
			score += w.date
			break
		}
	}
	switch {
	case d.flags&flagOnlyAsks != 0:
		score += w.askOnly
	case d.flags&flagAsks != 0:
		score += w.ask
	}
	score += w.length * lengths[min(d.words, uint32(len(lengths)-1))]
	if score > 0 {
		if d.flags&flagTool != 0 {
			score *= w.tool
		} else if d.flags&flagUser != 0 && !spoken {
			score *= w.user
		}
	}
	return score
}

// fuse reorders cands, which are the best by their words, by their vectors as
// well. Where there is no vector, the cosine is what it is on average.
func (w *weights) fuse(q floats, cands []candidate) {
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

// shortQuestion is how many words a question has at most that is asked for the
// words themselves.
const shortQuestion = 2

// ownFirst puts the candidates that hold a word of a short question before
// those that hold none, which only stand near one that does. Where the query
// is put as a question, the answer to it need not hold its words.
func ownFirst(cands []candidate, q *question) {
	if q.asks || len(q.terms) > shortQuestion {
		return
	}
	slices.SortStableFunc(cands, func(a, b candidate) int {
		switch {
		case a.own == b.own:
			return 0
		case a.own:
			return -1
		}
		return 1
	})
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

// byPlace orders docs as segments do.
func byPlace(a, b doc) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.seq, b.seq))
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
	asks  bool // it ends in a question mark
}

type asked struct {
	term   string
	weight float64
	value  float64 // the weight, times what the word tells; set by looking it up
	// mention is its value where it is a speaker's name; 0: it is no name.
	mention float64
}

// span is a time that a question names: from, inclusive, to to, exclusive.
type span struct{ from, to time.Time }
