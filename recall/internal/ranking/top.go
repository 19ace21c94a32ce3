package ranking

import (
	"cmp"
	"container/heap"
	"slices"
)

// byScore orders candidates: best first; ties go to the newer one.
func byScore(a, b Candidate) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Doc.Time(), a.Doc.Time()),
		cmp.Compare(b.Doc.Group, a.Doc.Group), cmp.Compare(a.Doc.Seq, b.Doc.Seq))
}

// top keeps the best k candidates.
type top struct {
	k    int
	heap []Candidate // the worst first
}

func (t *top) Len() int           { return len(t.heap) }
func (t *top) Less(i, j int) bool { return byScore(t.heap[i], t.heap[j]) > 0 }
func (t *top) Swap(i, j int)      { t.heap[i], t.heap[j] = t.heap[j], t.heap[i] }
func (t *top) Push(x any)         { t.heap = append(t.heap, x.(Candidate)) }
func (t *top) Pop() any           { panic("nothing is taken out before the end") }

// full reports whether nothing with this score gets in.
func (t *top) full(score float64) bool { return len(t.heap) == t.k && score < t.heap[0].Score }

func (t *top) offer(c Candidate) {
	switch {
	case len(t.heap) < t.k:
		heap.Push(t, c)
	case byScore(c, t.heap[0]) < 0:
		t.heap[0] = c
		heap.Fix(t, 0)
	}
}

func (t *top) sorted() []Candidate {
	slices.SortFunc(t.heap, byScore)
	return t.heap
}
