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
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed model.bin
var weights []byte

// Dim is the length of a vector.
const Dim = 512

const (
	// maxTokens is how many pieces the model was made for.
	maxTokens = 128
	// counted is how many pieces of a text count. Twice as many take more than
	// twice the time, and find nothing more (docs/recall.md).
	counted = 64
)

const (
	dimIn = 256
	ffn   = 1536
	heads = 4
)

// Model computes vectors. It may be used by many goroutines.
type Model struct {
	words  vocabulary
	table  table
	timing []float32
	adjust linear
	layers [2]layer
	out    linear
	free   atomic.Pointer[scratch] // one that is not used; a pool would keep one for each core
}

// table is a vector for each piece of the vocabulary: a scale, and a signed
// byte for each number.
type table struct {
	scale []float32
	data  []byte
}

func (t *table) row(i int) (scale float32, row []byte) { return t.scale[i], t.data[i*dimIn:][:dimIn] }

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

// Load returns the model. It takes less than a millisecond: the weights stay
// where they are in the program. What else the model needs is released when it
// has not been used for a while: a program that waits for its user should be
// small.
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
	const magic = "USElite2"
	if string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("embed: this is not a model: it begins with %q", data[:len(magic)])
	}
	r := &reader{data[len(magic):]}
	m = &Model{}
	m.words.scores = r.vector(int(r.uint32()))
	m.words.places = make([]uint32, r.uint32())
	for i := range m.words.places {
		m.words.places[i] = r.uint32()
	}
	m.words.ids = make([]uint16, len(m.words.places))
	for i := range m.words.ids {
		m.words.ids[i] = binary.LittleEndian.Uint16(r.take(2))
	}
	m.table = table{r.vector(rows), r.take(rows * dimIn)}
	m.timing = r.vector(dimIn / 2)
	m.adjust = r.linear(dimIn, Dim)
	for i, dim := range []int{dimIn, Dim} {
		m.layers[i] = layer{
			dim: dim, normScale: r.vector(dim), normAdd: r.vector(dim), qkv: r.linear(dim, 3*dim), join: r.linear(dim, Dim),
			ffnScale: r.vector(Dim), ffnAdd: r.vector(Dim), up: r.linear(Dim, ffn), down: r.linear(ffn, Dim),
		}
		m.layers[i].qkv.shrink(dim, float32(1/math.Sqrt(float64(dim/heads)))) // the queries
	}
	m.out = r.linear(Dim, Dim)
	if len(r.b) != 0 {
		return nil, fmt.Errorf("embed: the model has %d bytes too many", len(r.b))
	}
	return m, nil
}

// rows of the table of embeddings: two more than there are pieces.
const rows = 8002

type reader struct{ b []byte }

func (r *reader) take(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

func (r *reader) vector(n int) []float32 {
	v, b := make([]float32, n), r.take(4*n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func (r *reader) linear(in, out int) linear {
	return linear{in: in, out: out, scale: r.vector(out), sum: r.vector(out), bias: r.vector(out), weights: r.take(in * out)}
}

// Vector returns the vector of text, of length 1. A text without any piece has
// the zero vector.
func (m *Model) Vector(text string) []float32 {
	vs, _ := m.Vectors(context.Background(), []string{text})
	return vs[0]
}

// Vectors returns the vectors of texts. Many at once take less time than one
// after the other: the weights are read once for all. It fails only if ctx is
// done.
func (m *Model) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	return m.vectors(ctx, texts, counted)
}

// vectors is Vectors, of at most so many pieces of each text.
func (m *Model) vectors(ctx context.Context, texts []string, most int) ([][]float32, error) {
	s := m.free.Swap(nil)
	if s == nil {
		s = newScratch()
	}
	defer m.free.Store(s)
	out := make([][]float32, len(texts))
	numbers := make([]float32, len(texts)*Dim)
	s.begin()
	for i, text := range texts {
		out[i] = numbers[i*Dim:][:Dim:Dim]
		ids := m.words.tokens(text, most)
		if len(s.ids)+len(ids) > maxRows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			m.encode(s)
			s.begin()
		}
		if len(ids) > 0 {
			s.add(ids, out[i])
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.encode(s)
	return out, nil
}
