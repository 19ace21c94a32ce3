package bpe

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

//go:embed cl100k_base.zst
var cl100kData []byte

//go:embed o200k_base.zst
var o200kData []byte

// A token is its rank. The single bytes are the tokens below 256, in an order
// of the vocabulary's own; every other token is the merge of two earlier ones.
const (
	bytesEnd = 256
	none     = 1<<32 - 1
)

// A vocabulary is a trie of the tokens' bytes, and for each token the two that
// it is merged from.
type vocabulary struct {
	// Node 0 is the root, nodes 1 to 256 are the bytes; the children of a node
	// lie side by side, sorted by label, from its first to the next node's.
	nodes  []node
	labels []byte   // and eight more: that many are read at once
	second []uint32 // the node of two bytes, or 0: most walks begin there

	lengths []uint8  // in bytes
	shorter []uint32 // the longest token that is a proper prefix, or none
	halves  [][2]uint32

	// pairs finds the merge of two halves: open addressing, a slot is a token
	// and some bits of the hash, or 0.
	pairs []uint32
	shift uint8
}

type node struct {
	first uint32 // the first child
	token uint32 // or none
}

// decodeVocabulary builds the tables from data as gen.go wrote it: compressed by
// zstd, the number of tokens and of nodes (32 bits, little endian), then in the
// order of the trie (breadth first) each node's number of children, label and
// whether it is a token (a bit), each longer token's length of the left half,
// and each token's rank, the low bytes of all of them first.
// The data is part of the binary: what is wrong with it is a panic.
func decodeVocabulary(data []byte) vocabulary {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(fmt.Sprintf("bpe: embedded vocabulary: %v", err))
	}
	defer d.Close()
	raw, err := d.DecodeAll(data, nil)
	if err != nil {
		panic(fmt.Sprintf("bpe: embedded vocabulary: %v", err))
	}
	take := func(n int) []byte {
		b := raw[:n:n]
		raw = raw[n:]
		return b
	}
	tokens := int(binary.LittleEndian.Uint32(take(4)))
	nodes := int(binary.LittleEndian.Uint32(take(4)))
	kids := take(nodes)
	labels := make([]byte, nodes+8) // a copy, for raw is garbage then
	copy(labels, take(nodes))
	terminal := take((nodes + 7) / 8)
	splits := take(tokens - bytesEnd)
	low, mid, high := take(tokens), take(tokens), take(tokens)

	v := vocabulary{
		nodes:   make([]node, nodes+1),
		labels:  labels,
		second:  make([]uint32, 1<<16),
		lengths: make([]uint8, tokens),
		shorter: make([]uint32, tokens),
		halves:  make([][2]uint32, tokens),
	}

	// Parents come before their children, so that one pass knows every node's
	// depth, text and longest token above.
	parents := make([]uint32, nodes)
	nearest := make([]uint32, nodes) // the longest token above
	depths := make([]uint8, nodes)
	ends := make([]uint32, 0, tokens) // the nodes that are tokens, in order
	child := uint32(1)
	for n := range uint32(nodes) {
		count := uint32(kids[n])
		token, prefix := uint32(none), nearest[n]
		if n == 0 {
			count, prefix = 256, none
		}
		if terminal[n/8]>>(n%8)&1 == 1 {
			i := len(ends)
			token = uint32(low[i]) | uint32(mid[i])<<8 | uint32(high[i])<<16
			ends = append(ends, n)
			v.lengths[token] = depths[n]
			v.shorter[token] = prefix
			prefix = token
		}
		v.nodes[n] = node{child, token}
		if 1 <= n && n <= 256 {
			for c := child; c < child+count; c++ {
				v.second[int(labels[n])<<8|int(labels[c])] = c
			}
		}
		for range count {
			parents[child], nearest[child], depths[child] = n, prefix, depths[n]+1
			child++
		}
	}
	v.nodes[nodes] = node{child, none}

	slots := bits.Len(uint(2 * tokens)) // as a power of two: at most half are taken
	v.pairs = make([]uint32, 1<<slots)
	v.shift = uint8(64 - slots)
	var text [256]byte
	for i, n := range ends[bytesEnd:] {
		token := v.nodes[n].token
		length, left := int(depths[n]), int(splits[i])
		at := n
		for d := length; d > left; d-- {
			text[d-1] = labels[at]
			at = parents[at]
		}
		a := v.nodes[at].token
		b, _ := v.longest(string(text[left:length]))
		v.halves[token] = [2]uint32{a, b}
		v.addPair(a, b, token)
	}
	return v
}

// longest returns the longest token that s begins with, and its length. s is not
// empty; the single bytes are tokens, so there always is one.
func (v *vocabulary) longest(s string) (token uint32, length int) {
	token = v.nodes[1+int(s[0])].token
	if len(s) == 1 {
		return token, 1
	}
	n := v.second[int(s[0])<<8|int(s[1])]
	if n == 0 {
		return token, 1
	}
	length = 1
	for i := 2; ; i++ {
		lo, hi := v.nodes[n].first, v.nodes[n+1].first
		if t := v.nodes[n].token; t != none {
			token, length = t, i
		}
		if i >= len(s) {
			return token, length
		}
		// Halve the children down to eight, then compare eight labels at once:
		// which child it is cannot be predicted, so that branches cost more.
		c, count := s[i], hi-lo
		for count > 8 {
			half := count / 2
			if v.labels[lo+half] <= c {
				lo += half
			}
			count -= half
		}
		x := binary.LittleEndian.Uint64(v.labels[lo:]) ^ uint64(c)*ones
		at := uint32(bits.TrailingZeros64((x-ones)&^x&(ones<<7))) / 8 // the first zero byte
		if at >= count {
			return token, length
		}
		n = lo + at
	}
}

const ones = 0x0101010101010101

const (
	tokenBits = 18
	tokenMask = 1<<tokenBits - 1
)

// slot is where the search for a pair begins, and the bits of the hash that a
// slot repeats next to its token.
func (v *vocabulary) slot(a, b uint32) (at, tag uint32) {
	h := (uint64(a)<<32 | uint64(b)) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return uint32(h >> v.shift), uint32(h) &^ tokenMask
}

func (v *vocabulary) addPair(a, b, token uint32) {
	at, tag := v.slot(a, b)
	for v.pairs[at] != 0 {
		at = (at + 1) & uint32(len(v.pairs)-1)
	}
	v.pairs[at] = token | tag
}

// pair returns the token that a and b merge to, or none.
func (v *vocabulary) pair(a, b uint32) uint32 {
	at, tag := v.slot(a, b)
	for {
		s := v.pairs[at]
		if s == 0 {
			return none
		}
		if s&^tokenMask == tag {
			if t := s & tokenMask; v.halves[t] == [2]uint32{a, b} {
				return t
			}
		}
		at = (at + 1) & uint32(len(v.pairs)-1)
	}
}
