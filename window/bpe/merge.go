package bpe

import "sync"

// A merger finds the tokens of a piece. Byte pair encoding merges, again and
// again, the adjacent pair of lowest rank, the leftmost first. Doing just that
// takes a search for each merge; the merger finds the same result from the left:
//
// The encoding of a text is the one sequence of tokens in which every two
// neighbours stand next to each other in the encoding of the two alone (stands).
// So every prefix of the piece has one encoding, and the encoding of the piece
// passes through prefixes only. The merger lays down the longest token that may
// follow the last one, and takes a token back when nothing can follow it. A
// position that was given up is never entered again, which bounds the work by
// the length of the piece times the number of tokens that begin at one place.
type merger struct {
	tokens []uint32
	dead   []uint64 // a bit for each position that was given up
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// release gives the merger back, unless one huge piece has made it large.
func (m *merger) release() {
	if cap(m.tokens) <= 1<<16 && cap(m.dead) <= 1<<14 {
		mergers.Put(m)
	}
}

// merge returns the tokens of piece, which are overwritten by the next call.
// first is the longest token that piece begins with.
func (m *merger) merge(v *vocabulary, piece string, first uint32) []uint32 {
	words := len(piece)/64 + 1
	if cap(m.dead) < words {
		m.dead = make([]uint64, words+words/2)
	}
	dead := m.dead[:words]
	clear(dead)
	tokens := m.tokens[:0]
	last, t, pos := uint32(none), first, 0
	for {
		end := 0
		for t != none {
			end = pos + int(v.lengths[t])
			if dead[end/64]>>(end%64)&1 == 0 && (last == none || v.stands(last, t)) {
				break
			}
			t = v.shorter[t]
		}
		if t == none {
			// The bytes are tokens, so that the first position is never given up.
			dead[pos/64] |= 1 << (pos % 64)
			pos -= int(v.lengths[last])
			t = v.shorter[last]
			tokens = tokens[:len(tokens)-1]
			last = none
			if len(tokens) > 0 {
				last = tokens[len(tokens)-1]
			}
			continue
		}
		tokens = append(tokens, t)
		if end == len(piece) {
			m.tokens = tokens
			return tokens
		}
		last, pos = t, end
		t, _ = v.longest(piece[pos:])
	}
}

// stands reports whether the encoding of a's bytes followed by b's is a, b. It
// plays the merges backwards: the later of the two last merges at the
// border is undone, and at each step the pair at the border must not have been
// merged before that merge took place.
func (v *vocabulary) stands(a, b uint32) bool {
	before := uint32(none) // a merge over the border of a rank below this came first
	for {
		if v.pair(a, b) < before {
			return false
		}
		// Of equal ranks the left one is merged first, hence undone last. For the
		// same reason a merge over the border precedes an equal one on its right
		// and follows an equal one on its left.
		if a > b {
			if a < bytesEnd {
				return true
			}
			before = a
			a = v.halves[a][1]
		} else {
			if b < bytesEnd {
				return true
			}
			before = b + 1
			b = v.halves[b][0]
		}
	}
}
