package embed

import (
	"math"
	"unsafe"
)

const (
	// maxRows is how many pieces, of one text or of many, are computed at once.
	// More read the weights less often, but no longer fit into the cache.
	maxRows = 192
	// Some rows more are computed, whether they are there or not.
	roomRows = maxRows + max(tileRows, timesCols)
)

// scratch is what is computed for some texts at once. The pieces of all of them
// are rows of the same matrices; only attention is within a text.
type scratch struct {
	ids   []int
	texts []part

	x, h, residual []float32 // Dim numbers in a row
	wide           []float32 // ffn numbers in a row
	bytes          []byte    // what a matrix is applied to, ffn in a row at most
	quanta         []quantum
	sums           []int32 // of a panel
	aligned        []byte  // weights of a panel

	keys, values, shares []float32   // of a head
	times                [][]float32 // what is added to a piece at a place
}

// part is where the rows of a text begin, and where its vector goes.
type part struct {
	first, n int
	to       []float32
}

func newScratch() *scratch {
	floats := func(n int) []float32 { return make([]float32, roomRows*n) }
	const perHead = Dim / heads
	return &scratch{
		x: floats(Dim), h: floats(Dim), residual: floats(Dim), wide: floats(ffn),
		bytes: make([]byte, roomRows*ffn), quanta: make([]quantum, roomRows), sums: make([]int32, roomRows*panel),
		aligned: align(make([]byte, panel*ffn+cacheLine)),
		keys:    make([]float32, perHead*maxTokens), values: make([]float32, perHead*maxTokens), shares: make([]float32, (maxTokens+timesRows)*maxTokens),
	}
}

// cacheLine is how many bytes a processor reads at once. Numbers that lie in
// two lines are read twice.
const cacheLine = 64

// align returns b from the first line on.
func align(b []byte) []byte {
	return b[-uintptr(unsafe.Pointer(&b[0]))%cacheLine:]
}

func (s *scratch) begin() { s.ids, s.texts = s.ids[:0], s.texts[:0] }

func (s *scratch) add(ids []int, to []float32) {
	s.texts = append(s.texts, part{len(s.ids), len(ids), to})
	s.ids = append(s.ids, ids...)
}

// timed returns what m adds to a piece at place t.
func (s *scratch) timed(m *Model, t int) []float32 {
	for at := len(s.times); at <= t; at++ {
		v := make([]float32, dimIn)
		for i, f := range m.timing {
			sin, cos := math.Sincos(float64(at) * float64(f))
			v[i], v[dimIn/2+i] = float32(sin), float32(cos)
		}
		s.times = append(s.times, v)
	}
	return s.times[t]
}

// encode computes what the graph of the original computes, for the texts that
// were added.
func (m *Model) encode(s *scratch) {
	n := len(s.ids)
	if n == 0 {
		return
	}
	for _, p := range s.texts {
		for t := range p.n {
			row, timed := s.x[(p.first+t)*dimIn:][:dimIn], s.timed(m, t)
			scale, numbers := m.table.row(s.ids[p.first+t])
			scale *= 2 // the graph adds it to itself
			for i, q := range numbers {
				row[i] = scale*float32(int8(q)) + timed[i]
			}
		}
	}
	s.quantise(s.x, n, dimIn, false)
	m.adjust.apply(s, s.residual, n)
	s.attend(&m.layers[0], n)
	s.ascend(&m.layers[0], n)
	s.quantise(s.wide, n, ffn, true)
	m.layers[0].down.apply(s, s.x, n)
	for i := range n {
		add(s.x[i*Dim:][:Dim], s.h[i*Dim:][:Dim], negative)
	}
	copy(s.residual, s.x[:n*Dim])
	s.attend(&m.layers[1], n)
	s.ascend(&m.layers[1], n)
	m.means(s)
}

// attend computes the first half of a layer: from x and residual to h.
func (s *scratch) attend(l *layer, n int) {
	s.normalise(s.x, n, l.normScale, l.normAdd)
	l.qkv.apply(s, s.wide, n)
	for _, p := range s.texts {
		for h := range heads {
			s.head(p, h, l.dim)
		}
	}
	s.quantise(s.h, n, l.dim, false)
	l.join.apply(s, s.h, n)
	for i := range n {
		add(s.h[i*Dim:][:Dim], s.residual[i*Dim:][:Dim], negative)
	}
}

// ascend computes the first part of the second half: from h to wide.
func (s *scratch) ascend(l *layer, n int) {
	s.normalise(s.h, n, l.ffnScale, l.ffnAdd)
	l.up.apply(s, s.wide, n)
}

// normalise quantises n rows of x, each at mean 0 and variance 1, scaled and
// shifted.
func (s *scratch) normalise(x []float32, n int, scale, add []float32) {
	d := len(scale)
	for i := range n {
		normalise(s.wide[i*d:][:d], x[i*d:][:d], scale, add)
	}
	s.quantise(s.wide, n, d, false)
}

// head computes the attention of the pieces of a text to each other in one of
// the heads. A row of wide holds query, key and value of a piece, d numbers
// each; what the head gives goes to h.
func (s *scratch) head(p part, head, d int) {
	size := d / heads
	padded := (p.n + timesCols - 1) / timesCols * timesCols
	for t := 0; t < padded; t += turnSize {
		for i := 0; i < size; i += turnSize {
			turn(s.keys[i*padded+t:], padded, s.wide[(p.first+t)*3*d+d+head*size+i:], 3*d)
		}
	}
	for t := range p.n {
		copy(s.values[t*size:], s.wide[(p.first+t)*3*d+2*d+head*size:][:size])
	}
	for j := 0; j < padded; j += timesCols {
		for t := 0; t < p.n; t += timesRows {
			times(s.shares[t*padded+j:], padded, s.wide[(p.first+t)*3*d+head*size:], 3*d, s.keys[j:], padded, size)
		}
	}
	for t := range p.n {
		row := s.shares[t*padded:][:padded]
		for i := p.n; i < padded; i++ {
			row[i] = negative
		}
		softmax(row)
	}
	for j := 0; j < size; j += timesCols {
		for t := 0; t < p.n; t += timesRows {
			times(s.h[(p.first+t)*d+head*size+j:], d, s.shares[t*padded:], padded, s.values[j:], size, p.n)
		}
	}
}

// means computes the rest, for one row for each text: the second half of the
// last layer is linear, so the mean of its outputs is its output for the mean.
func (m *Model) means(s *scratch) {
	n := len(s.texts)
	for i, p := range s.texts {
		wide, h := s.mean(p, s.wide, ffn, 0), s.mean(p, s.h, Dim, negative)
		copy(s.wide[i*ffn:], wide)
		copy(s.h[i*Dim:], h)
	}
	s.quantise(s.wide, n, ffn, true)
	m.layers[1].down.apply(s, s.x, n)
	for i := range n {
		add(s.x[i*Dim:][:Dim], s.h[i*Dim:][:Dim], negative)
	}
	s.quantise(s.x, n, Dim, false)
	m.out.apply(s, s.h, n)
	for i, p := range s.texts {
		sum := 0.0
		for j, v := range s.h[i*Dim:][:Dim] {
			t := math.Tanh(float64(v))
			p.to[j] = float32(t)
			sum += t * t
		}
		f := float32(1 / math.Sqrt(max(sum, 1e-12)))
		for j := range p.to {
			p.to[j] *= f
		}
	}
}

// mean returns the mean of the rows of a text, in x, whose numbers are least at
// least.
func (s *scratch) mean(p part, x []float32, d int, least float32) []float32 {
	mean := make([]float32, d)
	for t := range p.n {
		add(mean, x[(p.first+t)*d:][:d], least)
	}
	for i := range mean {
		mean[i] /= float32(p.n)
	}
	return mean
}
