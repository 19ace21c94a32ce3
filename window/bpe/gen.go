//go:build ignore

// Gen writes the embedded vocabularies from the ones that
// github.com/tiktoken-go/tokenizer carries as Go code. The layout is described
// at decodeVocabulary, which reads it.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/tiktoken-go/tokenizer/codec"
)

func main() {
	log.SetFlags(0)
	for _, c := range []*codec.Codec{codec.NewCl100kBase(), codec.NewO200kBase()} {
		name := c.GetName() + ".zst"
		data := compress(encode(ranks(c)))
		if err := os.WriteFile(name, data, 0o644); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d bytes\n", name, len(data))
	}
}

// ranks lists the vocabulary: the index is the rank. The ranks are dense and
// the single bytes come first; the tables built at run time rely on both.
func ranks(c *codec.Codec) []string {
	var tokens []string
	for {
		t, err := c.Decode([]uint{uint(len(tokens))})
		if err != nil {
			break
		}
		if (len(t) == 1) != (len(tokens) < 256) {
			log.Fatalf("%s: token %d is %q: the first 256 must be the bytes", c.GetName(), len(tokens), t)
		}
		tokens = append(tokens, t)
	}
	return tokens
}

func encode(tokens []string) []byte {
	rank := make(map[string]int, len(tokens))
	for r, t := range tokens {
		rank[t] = r
	}
	sorted := slices.Clone(tokens)
	slices.Sort(sorted)

	// Breadth first, so that the children of a node are neighbours and their
	// places follow from the counts alone.
	type span struct{ lo, hi, depth int } // sorted[lo:hi] share their first depth bytes
	var kids, labels, terminal, splits []byte
	var order []int
	queue := []span{{0, len(sorted), 0}}
	for n := 0; n < len(queue); n++ {
		s := queue[n]
		label := byte(0)
		if s.depth > 0 {
			label = sorted[s.lo][s.depth-1]
		}
		labels = append(labels, label)
		if n%8 == 0 {
			terminal = append(terminal, 0)
		}
		if t := sorted[s.lo]; s.depth > 0 && len(t) == s.depth {
			terminal[n/8] |= 1 << (n % 8)
			order = append(order, rank[t])
			if len(t) > 1 {
				splits = append(splits, byte(split(rank, t)))
			}
			s.lo++
		}
		count := 0
		for lo := s.lo; lo < s.hi; count++ {
			hi := lo + 1
			for hi < s.hi && sorted[hi][s.depth] == sorted[lo][s.depth] {
				hi++
			}
			queue = append(queue, span{lo, hi, s.depth + 1})
			lo = hi
		}
		kids = append(kids, byte(count)) // the root's 256 is known and wraps to 0
	}

	var out []byte
	out = binary.LittleEndian.AppendUint32(out, uint32(len(tokens)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(queue)))
	out = append(out, kids...)
	out = append(out, labels...)
	out = append(out, terminal...)
	out = append(out, splits...)
	for shift := 0; shift < 24; shift += 8 {
		for _, r := range order {
			out = append(out, byte(r>>shift))
		}
	}
	return out
}

// split is the length of the left half in the last merge that makes t out of
// its bytes. A token that its own merges do not lead to could never be found by
// merging, and the run-time algorithm would be wrong about it: that is fatal.
func split(rank map[string]int, t string) int {
	ends := make([]int, 0, len(t))
	for i := range len(t) {
		ends = append(ends, i+1)
	}
	for len(ends) > 2 {
		best, at, start := len(rank), -1, 0
		for i := 0; i+1 < len(ends); i++ {
			if r, ok := rank[t[start:ends[i+1]]]; ok && r < best {
				best, at = r, i
			}
			start = ends[i]
		}
		if at < 0 {
			log.Fatalf("token %q is not reached by merges", t)
		}
		ends = slices.Delete(ends, at, at+1)
	}
	return ends[0]
}

func compress(data []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		log.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}
