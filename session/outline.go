package session

import (
	"fmt"
	"slices"
)

// Outline is the shape of a log without its bodies: which record continues
// which, where the live branch ends, and the Info that follows from it.
//
// Logs written here are straight: each record continues the one before. Logs
// of other programs are trees with dead branches, absent and dangling
// parents, repeated ids and rewinds. Outline repairs them by the rules of
// OpenClaw 2026.9.6, one record at a time, so that a session loaded from a log
// equals the one that wrote it:
//
//   - a record without a parent, or with an unknown one, continues the leaf;
//     one whose parent is null begins a new root, except after a reset;
//   - of records with the same id the first counts; records without an id or
//     with a blank parent belong nowhere;
//   - records of unknown kinds join the branch but never end it;
//   - a leaf record moves the end of the branch; side records never do;
//   - after a reset, a record that does not descend from it continues the leaf.
type Outline struct {
	Info

	nodes  []node
	byID   map[string]int32
	alias  map[string]int32  // leaf records, by id: where they point
	leaf   int32             // -1: none
	append int32             // a record that a writer may name instead of the leaf; -1: none
	reset  int32             // the reset that the leaf descends from; -1: none
	undone map[int32][]int32 // compactions and resets, and the records that undo them
	steps  int               // from run to run; for tests
}

type node struct {
	up      int32 // -1: a root
	depth   int32 // how many records come before it on its branch
	ok      bool  // part of the tree
	seq     Seq
	id      string
	path    path
	compact int32 // the compaction or reset in effect here; -1: none
	undo    int32 // the compaction or reset that this record undoes; -1: none
	base    int32 // the latest reset at this record or before it on its branch; -1: none
	run     int32 // from here to this record, each record of the log continues the one before
}

// NewOutline returns the outline of the empty log id.
func NewOutline(id ID) *Outline {
	return &Outline{Info: Info{ID: id, KeepFrom: 1}, byID: map[string]int32{}, alias: map[string]int32{}, leaf: -1, append: -1, reset: -1}
}

// canonical reports whether records of b's kind can end the live branch.
func canonical(b Body) bool {
	switch b.(type) {
	case Unknown, Usage, Leaf, Header, nil:
		return false
	}
	return true
}

// Apply counts r, which must be the record after o.Last.
func (o *Outline) Apply(r Record) error {
	if r.Seq != o.Last+1 {
		return fmt.Errorf("session: record %d does not follow record %d: %w", r.Seq, o.Last, ErrConflict)
	}
	i := int32(len(o.nodes))
	o.nodes = append(o.nodes, node{up: -1, seq: r.Seq, id: r.ID, compact: -1, undo: -1, base: -1})
	before := o.leaf
	o.log(r)
	straight := o.place(i, r)
	// LastBend is about the whole log: a reader that begins after it sees each
	// record continue the one before.
	if !straight && (r.Seq > 1 || o.leaf != before) {
		o.LastBend = r.Seq
	}
	o.read()
	return nil
}

// read sets the part of Info that is of the live branch.
func (o *Outline) read() {
	p := path{}
	o.Leaf = ""
	if o.leaf >= 0 {
		p, o.Leaf = o.nodes[o.leaf].path, o.nodes[o.leaf].id
	}
	o.setPath(p)
}

// place puts node i into the tree and reports whether it simply continued
// the leaf.
func (o *Outline) place(i int32, r Record) bool {
	switch b := r.Body.(type) {
	case Header:
		return r.Seq == 1
	case Leaf:
		o.move(r, b)
		return false
	}
	if r.ID == "" || r.Link == Blank {
		return false
	}
	if _, again := o.byID[r.ID]; again {
		return false
	}
	if _, again := o.alias[r.ID]; again {
		return false
	}
	ends := canonical(r.Body)
	if !ends && r.Link == Absent {
		return false
	}
	up := o.parent(r)
	n := &o.nodes[i]
	n.up, n.ok, n.run = up, true, i
	var p path
	if up >= 0 {
		u := &o.nodes[up]
		p, n.depth, n.compact, n.base = u.path, u.depth+1, u.compact, u.base
		if up == i-1 {
			n.run = u.run
		}
	}
	if _, ok := r.Body.(Reset); ok {
		n.base = i
	}
	n.path = p.after(r)
	o.byID[r.ID] = i
	o.compact(i, r)
	if !ends || r.Side {
		return false
	}
	straight := up == o.leaf && r.Link == Given && (up >= 0 && r.Parent == o.nodes[up].id || up < 0 && r.Parent == "")
	o.leaf, o.append = i, i
	if _, ok := r.Body.(Reset); ok {
		o.reset = i
	}
	return straight
}

// parent returns the node that r continues.
func (o *Outline) parent(r Record) int32 {
	if r.Link == Absent {
		return o.leaf
	}
	if r.Parent == "" {
		if o.reset >= 0 {
			return o.leaf
		}
		return -1
	}
	up, ok := o.byID[r.Parent]
	if !ok {
		if up, ok = o.alias[r.Parent]; !ok {
			return o.leaf
		}
	}
	if up == o.append && up != o.leaf {
		return o.leaf
	}
	if !o.inside(up) {
		return o.leaf
	}
	return up
}

// move moves the leaf, as the leaf record r says.
func (o *Outline) move(r Record, b Leaf) {
	to, ok := o.byID[b.Target]
	if !ok {
		if to, ok = o.alias[b.Target]; !ok {
			return
		}
	}
	if !o.inside(to) {
		return
	}
	if r.ID != "" {
		if _, again := o.byID[r.ID]; !again {
			o.alias[r.ID] = to
		}
	}
	o.leaf, o.append = to, to
	if a, ok := o.byID[b.AppendParent]; ok && b.AppendParent != "" {
		o.append = a
	}
}

// compact sets what is in effect and what is kept at node i.
func (o *Outline) compact(i int32, r Record) {
	n := &o.nodes[i]
	switch b := r.Body.(type) {
	case Compaction, Reset:
		n.compact = i
		n.path.keep = n.seq
		if at := o.ancestor(i, firstKept(b)); at >= 0 {
			n.path.keep = o.nodes[at].seq
		}
	case Undo:
		if n.undo = o.ancestor(i, b.Target); n.undo < 0 {
			return
		}
		if o.undone == nil {
			o.undone = map[int32][]int32{}
		}
		o.undone[n.undo] = append(o.undone[n.undo], i)
		n.compact = o.unlessUndone(n.compact, i)
		if n.path.keep = 0; n.compact >= 0 {
			n.path.keep = o.nodes[n.compact].path.keep
		}
	}
}

// unlessUndone returns the compaction or reset k, or the latest one before it
// that no record undoes on the branch up to node i; -1 if there is none.
func (o *Outline) unlessUndone(k, i int32) int32 {
	for k >= 0 {
		if !slices.ContainsFunc(o.undone[k], func(u int32) bool { return o.descends(i, u) }) {
			return k
		}
		if k = o.nodes[k].up; k >= 0 {
			k = o.nodes[k].compact
		}
	}
	return -1
}

// inEffect returns the compaction or reset in effect at the leaf.
func (o *Outline) inEffect() effect {
	if o.leaf < 0 || o.nodes[o.leaf].compact < 0 {
		return effect{}
	}
	leaf := &o.nodes[o.leaf]
	kept := leaf.path.keep - o.nodes[0].seq // every record has a node
	return effect{at: int(o.nodes[leaf.compact].depth), keep: int(o.nodes[kept].depth), ok: true}
}

// inside reports whether node i descends from the reset that the leaf
// descends from, or there is no such reset. Only side resets lie between, so
// that it takes few steps however long the log is.
func (o *Outline) inside(i int32) bool {
	for o.reset >= 0 {
		if i < 0 || o.nodes[i].base <= o.reset {
			return i >= 0 && o.nodes[i].base == o.reset
		}
		i = o.nodes[o.nodes[i].base].up
	}
	return true
}

// ancestor returns the node with id at i or before it on its branch, or -1.
func (o *Outline) ancestor(i int32, id string) int32 {
	at, ok := o.byID[id]
	if !ok || id == "" || !o.descends(i, at) {
		return -1
	}
	return at
}

// descends reports whether node i is a or comes after it on its branch. A
// parent always has a lower number than its child, so the walk ends. It takes
// whole runs at a time: a log that was written in a straight line is one.
func (o *Outline) descends(i, a int32) bool {
	for i > a && o.nodes[i].run > a {
		i = o.nodes[o.nodes[i].run].up
		o.steps++
	}
	return i >= a
}
