package recall

import (
	"context"
	"math"
	"math/bits"

	"goclaw/recall/embed"
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Name says which model it is. Vectors of another model are not compared.
	Name() string
	// Vectors returns one vector for each text, all of one length.
	Vectors(ctx context.Context, texts []string) ([][]float32, error)
}

// Local is the model that is part of the program.
type Local struct{}

func (Local) Name() string { return "use-lite" }

func (Local) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = embed.Load().Vector(t)
	}
	return out, nil
}

// code is a vector as it is compared: the signs of a message's, one bit each,
// and the numbers of a question's or a note's.
type code interface {
	dot(o code) float64
	dotFloat(v []float64) float64
	addTo(sum []float64) []float64
}

// codeBits is how many bits a message's vector takes. It is what keeps the
// index of a million short messages small.
const codeBits = 256

// signs are the signs of a vector that was folded to codeBits numbers.
type signs [codeBits / 64]uint64

// floats is a vector of length 1.
type floats []float32

// fold adds up v to codeBits numbers, with signs that differ from part to
// part, and to length 1.
func fold(v []float32) floats {
	out := make(floats, codeBits)
	for i, x := range v {
		// A fixed pattern that is different in each part.
		if bits.OnesCount32(uint32(i)*0x9e3779b1>>7)&1 == 1 && i >= codeBits {
			x = -x
		}
		out[i%codeBits] += x
	}
	return unit(out)
}

func unit(v []float32) floats {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return nil
	}
	f := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= f
	}
	return v
}

func signsOf(v floats) signs {
	var s signs
	for i, x := range v {
		if x > 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

func (s signs) dot(code) float64              { return 0 }
func (s signs) dotFloat([]float64) float64    { return 0 }
func (s signs) addTo(sum []float64) []float64 { return sum }

func (v floats) dot(o code) float64 {
	switch o := o.(type) {
	case floats:
		if len(o) != len(v) {
			return 0
		}
		sum := float32(0)
		for i, x := range v {
			sum += x * o[i]
		}
		return float64(sum)
	case signs:
		if len(v) != codeBits {
			return 0
		}
		sum := float32(0)
		for i, x := range v {
			if o[i/64]>>(i%64)&1 == 1 {
				sum += x
			} else {
				sum -= x
			}
		}
		return float64(sum) / math.Sqrt(codeBits)
	}
	return 0
}

func (v floats) dotFloat(o []float64) float64 {
	sum := 0.0
	for i, x := range v {
		sum += float64(x) * o[i]
	}
	return sum
}

func (v floats) addTo(sum []float64) []float64 {
	if sum == nil {
		sum = make([]float64, len(v))
	}
	for i := range min(len(sum), len(v)) {
		sum[i] += float64(v[i])
	}
	return sum
}
