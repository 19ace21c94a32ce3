package embed

import "math"

// linear is a matrix with int8 weights by its outputs, and what is added to
// each.
type linear struct {
	in, out int
	scale   []float32 // of each output's weights
	sum     []float32 // of each output's weights
	bias    []float32
	weights []byte // panels
}

// quantum says what the bytes of a row stand for: low, and a step for each.
type quantum struct{ step, low float32 }

// quantise writes n rows of k numbers as bytes of 0 to 127, for apply. If
// positive, numbers below 0 become 0.
func (s *scratch) quantise(x []float32, n, k int, positive bool) {
	for r := range n {
		row := x[r*k:][:k]
		low, high := span(row)
		if positive {
			low, high = 0, max(high, 0)
		}
		q, inverse := quantum{step: (high - low) / 127, low: low}, float32(0)
		if high-low > 1e-30 {
			inverse = 127 / (high - low)
		}
		s.quanta[r] = q
		round(s.bytes[r*k:][:k], row, low, inverse)
	}
}

// shrink multiplies the first n outputs by f.
func (l *linear) shrink(n int, f float32) {
	for i := range n {
		l.scale[i], l.sum[i], l.bias[i] = l.scale[i]*f, l.sum[i]*f, l.bias[i]*f
	}
}

// apply writes the n rows that were quantised last, times the matrix, to y.
// All rows of a panel are computed before the next one, so the weights are
// read once.
func (l *linear) apply(s *scratch, y []float32, n int) {
	for o := 0; o < l.out; o += panel {
		w := l.weights[o*l.in:][:panel*l.in]
		if n > 4*tileRows { // worth the copy
			w = s.aligned[:copy(s.aligned, w)]
		}
		products(s.sums, s.bytes, l.in, w, n)
		finish(y[o:], l.out, s.sums, n, s.quanta, l.scale[o:], l.sum[o:], l.bias[o:])
	}
}

// negative is below all numbers.
var negative = float32(math.Inf(-1))
