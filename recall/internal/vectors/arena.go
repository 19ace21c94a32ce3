package vectors

import "unsafe"

// arena is room for many codes in one piece. Where the system allows it, it is
// not part of the heap, which the garbage collector lets grow to twice its
// size. What is not used yet takes no memory.
type arena struct {
	mem   []byte
	seqs  []uint32
	signs []Signs
}

func newArena(n int) arena {
	const size = int(unsafe.Sizeof(Signs{})) + 4
	a := arena{mem: reserve(n * size)}
	if len(a.mem) < n*size || n == 0 {
		return arena{mem: a.mem} // everything is on the heap then
	}
	a.signs = unsafe.Slice((*Signs)(unsafe.Pointer(&a.mem[0])), n)[:0]
	a.seqs = unsafe.Slice((*uint32)(unsafe.Pointer(&a.mem[n*(size-4)])), n)[:0]
	return a
}

// free gives the room back. Nothing of it may be used any more.
func (a *arena) free() {
	if a.mem != nil {
		release(a.mem)
	}
	*a = arena{}
}

// part begins a part of a: what is appended to it is in a, up to end.
func (a *arena) part() *coded {
	from := len(a.seqs)
	return &coded{seqs: a.seqs[from:from:cap(a.seqs)], signs: a.signs[from:from:cap(a.signs)]}
}

// end ends the part c, which was begun last.
func (a *arena) end(c *coded) {
	n := len(c.seqs)
	if from := len(a.seqs); from+n <= cap(a.seqs) { // else it has moved to the heap
		a.seqs, a.signs = a.seqs[:from+n], a.signs[:from+n]
	}
	c.seqs, c.signs = c.seqs[:n:n], c.signs[:n:n]
}
