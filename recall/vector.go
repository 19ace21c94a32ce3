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

// code is a vector that a question's is compared with: the signs of a
// message's, one bit each, or the numbers of a note's.
type code interface{ cosine(question floats) float64 }

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

func (s signs) cosine(q floats) float64 {
	if len(q) != codeBits {
		return 0
	}
	sum := float32(0)
	for i, x := range q {
		if s[i/64]>>(i%64)&1 == 1 {
			sum += x
		} else {
			sum -= x
		}
	}
	return float64(sum) / math.Sqrt(codeBits)
}

func (v floats) cosine(q floats) float64 {
	if len(q) != len(v) {
		return 0
	}
	sum := float32(0)
	for i, x := range v {
		sum += x * q[i]
	}
	return float64(sum)
}
