// Package embed turns sentences into vectors, with a model that is part of
// the program: Universal Sentence Encoder Lite, a transformer of two layers
// with a vocabulary of 8,000 pieces, whose weights are in model.bin in int8.
// It knows English; NOTICE says where it comes from.
//
// It needs no network, no file and no other program. The vectors agree with
// those of the original to a cosine of at least 0.99: embed_test.go compares
// them with vectors that the original computed.
package embed

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"
)

//go:embed model.bin
var weights []byte

// Dim is the length of a vector.
const Dim = 512

// maxTokens is how many pieces of a text count: as many as the model was made
// for.
const maxTokens = 128

const (
	dimIn = 256
	ffn   = 1536
	heads = 4
)

// Model computes vectors. It may be used by many goroutines.
type Model struct {
	pieces *trie
	table  matrix
	timing []float32
	adjust linear
	layers [2]layer
	out    linear
}

// matrix is the rows of a matrix as they are in the file, so that they take no
// extra memory: a scale, and a signed byte for each number.
type matrix struct {
	cols  int
	data  []byte
	scale []float32 // of the rows
}

func (m *matrix) row(i int) []byte { return m.data[i*(m.cols+4)+4:][:m.cols] }

// linear is a matrix by its outputs, and what is added to each.
type linear struct {
	matrix
	bias []float32
}

type layer struct {
	dim                int // of its input
	normScale, normAdd []float32
	qkv, join          linear
	ffnScale, ffnAdd   []float32
	up, down           linear
}

// idle is how long an unused model stays in memory.
const idle = 5 * time.Second

var held struct {
	sync.Mutex
	model *Model
	drop  *time.Timer
}

// Load returns the model. It takes some milliseconds and 7 MB of memory, which
// are released when the model has not been used for a while: a program that
// waits for its user should be small.
func Load() *Model {
	held.Lock()
	defer held.Unlock()
	if held.model == nil {
		m, err := parse(weights)
		if err != nil {
			panic(err) // the program was built wrong
		}
		held.model = m
	}
	if held.drop == nil {
		held.drop = time.AfterFunc(idle, unload)
	} else {
		held.drop.Reset(idle)
	}
	return held.model
}

func unload() {
	held.Lock()
	held.model = nil
	held.Unlock()
	debug.FreeOSMemory()
}

func parse(data []byte) (m *Model, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("embed: the model is incomplete: %v", r)
		}
	}()
	const magic = "USElite1"
	if string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("embed: this is not a model: it begins with %q", data[:len(magic)])
	}
	r := &reader{data[len(magic):]}
	m = &Model{pieces: &trie{}}
	n := int(r.uint32())
	for i := range n {
		size := int(r.take(1)[0])
		piece := string(r.take(size))
		score := r.float()
		if i >= reserved {
			m.pieces.insert(piece, score, i)
		}
	}
	// The table has two rows more than there are pieces.
	m.table = r.matrix(dimIn, rows)
	m.timing = r.vector(dimIn / 2)
	m.adjust = r.linear(dimIn, Dim)
	for i, dim := range []int{dimIn, Dim} {
		m.layers[i] = layer{
			dim: dim, normScale: r.vector(dim), normAdd: r.vector(dim), qkv: r.linear(dim, 3*dim), join: r.linear(dim, Dim),
			ffnScale: r.vector(Dim), ffnAdd: r.vector(Dim), up: r.linear(Dim, ffn), down: r.linear(ffn, Dim),
		}
	}
	m.out = r.linear(Dim, Dim)
	if len(r.b) != 0 {
		return nil, fmt.Errorf("embed: the model has %d bytes too many", len(r.b))
	}
	return m, nil
}

// rows of the table of embeddings.
const rows = 8002

type reader struct{ b []byte }

func (r *reader) take(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) float() float32 { return math.Float32frombits(r.uint32()) }

func (r *reader) vector(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = r.float()
	}
	return v
}

func (r *reader) matrix(cols, rows int) matrix {
	m := matrix{cols: cols, data: r.b, scale: make([]float32, rows)}
	for i := range m.scale {
		m.scale[i] = r.float()
		r.take(cols)
	}
	return m
}

func (r *reader) linear(in, out int) linear {
	return linear{r.matrix(in, out), r.vector(out)}
}

// Vector returns the vector of text, of length 1. A text without any piece has
// the zero vector.
func (m *Model) Vector(text string) []float32 {
	ids := m.tokens(text)
	if len(ids) == 0 {
		return make([]float32, Dim)
	}
	return m.encode(ids)
}

// encode computes what the graph of the original computes for one sentence.
func (m *Model) encode(ids []int) []float32 {
	n := len(ids)
	x := make([]float32, n*dimIn)
	for t, id := range ids {
		scale := m.table.scale[id]
		for i, q := range m.table.row(id) {
			x[t*dimIn+i] = 2 * scale * float32(int8(q)) // the graph adds it to itself
		}
		for i, f := range m.timing {
			s, c := math.Sincos(float64(t) * float64(f))
			x[t*dimIn+i] += float32(s)
			x[t*dimIn+dimIn/2+i] += float32(c)
		}
	}
	residual := m.adjust.apply(x, n)
	for i := range m.layers {
		l := &m.layers[i]
		h := layerNorm(x, n, l.normScale, l.normAdd)
		h = l.join.apply(attend(l.qkv.apply(h, n), n, l.dim), n)
		for j := range h {
			h[j] += residual[j]
		}
		u := l.up.apply(layerNorm(h, n, l.ffnScale, l.ffnAdd), n)
		for j, v := range u {
			u[j] = max(v, 0)
		}
		x = l.down.apply(u, n)
		for j := range x {
			x[j] += h[j]
		}
		residual = x
	}
	mean := make([]float32, Dim)
	for t := range n {
		for i := range Dim {
			mean[i] += x[t*Dim+i]
		}
	}
	for i := range mean {
		mean[i] /= float32(n)
	}
	v := m.out.apply(mean, 1)
	sum := 0.0
	for i := range v {
		v[i] = float32(math.Tanh(float64(v[i])))
		sum += float64(v[i]) * float64(v[i])
	}
	scale := float32(1 / math.Sqrt(max(sum, 1e-12)))
	for i := range v {
		v[i] *= scale
	}
	return v
}

// layerNorm returns x with each of its n rows at mean 0 and variance 1, then
// scaled and shifted.
func layerNorm(x []float32, n int, scale, add []float32) []float32 {
	d := len(scale)
	out := make([]float32, len(x))
	for t := range n {
		row, to := x[t*d:(t+1)*d], out[t*d:(t+1)*d]
		var sum, square float64
		for _, v := range row {
			sum += float64(v)
		}
		mean := float32(sum / float64(d))
		for _, v := range row {
			square += float64(v-mean) * float64(v-mean)
		}
		f := float32(1 / math.Sqrt(square/float64(d)+1e-6))
		for i, v := range row {
			to[i] = (v-mean)*f*scale[i] + add[i]
		}
	}
	return out
}

// attend computes the attention of n tokens to each other. A row of qkv holds
// query, key and value of a token, d numbers each.
func attend(qkv []float32, n, d int) []float32 {
	size := d / heads
	scale := float32(1 / math.Sqrt(float64(size)))
	out := make([]float32, n*d)
	p := make([]float32, n)
	for h := range heads {
		for t := range n {
			q := qkv[t*3*d+h*size:][:size]
			top := float32(math.Inf(-1))
			for s := range n {
				p[s] = dot(q, qkv[s*3*d+d+h*size:][:size]) * scale
				top = max(top, p[s])
			}
			sum := float32(0)
			for s := range n {
				p[s] = float32(math.Exp(float64(p[s] - top)))
				sum += p[s]
			}
			to := out[t*d+h*size:][:size]
			for s := range n {
				w := p[s] / sum
				for i, v := range qkv[s*3*d+2*d+h*size:][:size] {
					to[i] += w * v
				}
			}
		}
	}
	return out
}
