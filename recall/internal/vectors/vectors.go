// Package vectors compares vectors, and keeps those of messages and notes
// small enough to be kept at all.
package vectors

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Code is a kept vector that a query's is compared with: the signs of a
// message's, one bit each, or the numbers of a note's.
type Code interface{ Cosine(query Vector) float64 }

// Vector is a vector of length 1.
type Vector []float32

// codeBits is how many bits a message's vector takes. It is what keeps the
// index of a million short messages small.
const codeBits = 256

// Signs are the signs of a reduced vector.
type Signs [codeBits / 64]uint64

// Reduce adds up v to codeBits numbers, with signs that differ from part to
// part, and to length 1.
func Reduce(v []float32) Vector {
	out := make(Vector, codeBits)
	for i, x := range v {
		// A fixed pattern that is different in each part.
		if bits.OnesCount32(uint32(i)*0x9e3779b1>>7)&1 == 1 && i >= codeBits {
			x = -x
		}
		out[i%codeBits] += x
	}
	return Unit(out)
}

// Unit returns v at length 1, nil if it has none.
func Unit(v []float32) Vector {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return nil
	}
	f := float32(1 / math.Sqrt(sum))
	out := make(Vector, len(v))
	for i, x := range v {
		out[i] = x * f
	}
	return out
}

// signsOf returns the signs of a reduced vector.
func signsOf(v Vector) Signs {
	var s Signs
	for i, x := range v {
		if x > 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// OfSigns is how much of a cosine is left, on average, where only the signs of
// one of the two vectors are known.
const OfSigns = 0.8

// Cosine is 0 for a query that was not reduced.
func (s Signs) Cosine(query Vector) float64 {
	if len(query) != codeBits {
		return 0
	}
	sum := float32(0)
	for i, x := range query {
		if s[i/64]>>(i%64)&1 == 1 {
			sum += x
		} else {
			sum -= x
		}
	}
	return float64(sum) / math.Sqrt(codeBits)
}

// Cosine is 0 for a query of another length.
func (v Vector) Cosine(query Vector) float64 {
	if len(query) != len(v) {
		return 0
	}
	sum := float32(0)
	for i, x := range v {
		sum += x * query[i]
	}
	return float64(sum)
}

// encode writes a vector with one byte for each number.
func encode(v Vector) []byte {
	top := float32(0)
	for _, x := range v {
		top = max(top, x, -x)
	}
	b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(top))
	for _, x := range v {
		if top > 0 {
			x = x / top * 127
		}
		b = append(b, byte(int8(math.Round(float64(x)))))
	}
	return b
}

func decode(b []byte) Vector {
	if len(b) < 4 {
		return nil
	}
	top := math.Float32frombits(binary.LittleEndian.Uint32(b))
	v := make([]float32, 0, len(b)-4)
	for _, x := range b[4:] {
		v = append(v, float32(int8(x))/127*top)
	}
	return Unit(v)
}
