package words

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"strings"
)

// memory is the words that a Lexer has seen, with what it found out about
// them. Reading a text is mostly looking words up, and waiting for memory. So
// this is a table in which most words fit into their slots: finding one touches
// nothing else.
type memory struct {
	slots []slot // a power of two of them, at most half in use
	n     int    // in use
	more  []more // of the words that a slot has no room for; the first is of none
}

// slot is a word in the table.
type slot struct {
	key  uint64 // a short word's bytes, a longer one's hash; 0: the slot is free
	id   int32  // of its term, or stopWord
	more int32  // where the rest is, negative for a long word; 0: there is none
}

// more is what a slot has no room for.
type more struct {
	word  string // "": it is short
	parts []part
}

// shortWord is how many bytes fit into a slot. No word has a byte of 0, so that
// those of a short one tell its length.
const shortWord = 8

// maxSeen is how many words are remembered.
const maxSeen = 1 << 16

// The order of the slots differs from process to process: no text can be made
// to crowd the table.
var (
	wordSeed = maphash.MakeSeed()
	slotSeed = rand.Uint64()
)

// find returns the slot of w, whose key is key, or the free one that it would
// have. There must be one.
func (m *memory) find(key uint64, w string) *slot {
	hi, lo := bits.Mul64(key^slotSeed, 0x9e3779b97f4a7c15)
	mask := uint64(len(m.slots) - 1)
	for i := hi ^ lo; ; i++ {
		s := &m.slots[i&mask]
		switch {
		case s.key == 0:
			return s
		case s.key != key:
		case len(w) <= shortWord:
			if s.more >= 0 {
				return s
			}
		case s.more < 0 && m.more[-s.more].word == w:
			return s
		}
	}
}

// keyOf returns the key of w's slot.
func keyOf(w string) uint64 {
	switch n := len(w); {
	case n > shortWord:
		return max(maphash.String(wordSeed, w), 1)
	case n >= 4: // the two halves may have bytes in common
		return uint64(four(w)) | uint64(four(w[n-4:]))<<(8*(n-4))
	case n == 3:
		return uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16
	case n == 2:
		return uint64(w[0]) | uint64(w[1])<<8
	}
	return uint64(w[0])
}

// four returns the first four bytes of w.
func four(w string) uint32 {
	_ = w[3]
	return uint32(w[0]) | uint32(w[1])<<8 | uint32(w[2])<<16 | uint32(w[3])<<24
}

// get returns what is remembered of w, which is not empty, if anything is.
func (m *memory) get(w string) (id int, parts []part, ok bool) {
	if m.n == 0 {
		return 0, nil, false
	}
	s := m.find(keyOf(w), w)
	if s.more != 0 {
		parts = m.more[max(s.more, -s.more)].parts
	}
	return int(s.id), parts, s.key != 0
}

// put remembers w, which is not empty and not there yet. If there are too many
// words, it forgets the others.
func (m *memory) put(w string, id int, parts []part) {
	switch {
	case m.slots == nil || m.n == maxSeen:
		*m = memory{slots: make([]slot, 1024), more: make([]more, 1)}
	case 2*m.n == len(m.slots):
		m.grow()
	}
	m.add(keyOf(w), w, id, parts)
}

// add adds w, whose key is key.
func (m *memory) add(key uint64, w string, id int, parts []part) {
	s := m.find(key, w)
	*s = slot{key: key, id: int32(id)}
	at := int32(len(m.more))
	switch {
	case len(w) > shortWord:
		s.more = -at
		m.more = append(m.more, more{strings.Clone(w), parts})
	case len(parts) > 0:
		s.more = at
		m.more = append(m.more, more{parts: parts})
	}
	m.n++
}

// grow doubles the table.
func (m *memory) grow() {
	old := m.slots
	m.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.key != 0 {
			*m.find(s.key, m.more[max(s.more, -s.more)].word) = s
		}
	}
}
