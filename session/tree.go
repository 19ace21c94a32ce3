package session

import (
	"iter"
	"slices"
)

// Tip is the end of a branch.
type Tip struct {
	ID   string // of its last record
	Seq  Seq
	Live bool
	// Own is where its own records begin: the first that the live branch does
	// not have. 0: it has none.
	Own Seq
}

// Tips returns the ends of all branches in the order of the log. The session
// must have been replayed from its first record.
func (s *Session) Tips() []Tip {
	o := s.outline
	inner, live := make([]bool, len(o.nodes)), make([]bool, len(o.nodes))
	ends := func(i int32) bool {
		return o.nodes[i].ok && int(i) < len(s.recs) && canonical(s.recs[i].Body) && !s.recs[i].Side
	}
	for i, n := range o.nodes {
		if n.up >= 0 && ends(int32(i)) {
			inner[n.up] = true
		}
	}
	for i := o.leaf; i >= 0; i = o.nodes[i].up {
		live[i] = true
	}
	var out []Tip
	for i, n := range o.nodes {
		at := int32(i)
		if !ends(at) || inner[i] && at != o.leaf {
			continue
		}
		tip := Tip{ID: n.id, Seq: n.seq, Live: at == o.leaf}
		for k := at; k >= 0 && !live[k]; k = o.nodes[k].up {
			tip.Own = o.nodes[k].seq
		}
		if tip.Live || tip.Own > 0 { // not a part of the live branch
			out = append(out, tip)
		}
	}
	return out
}

// Links yields every record that is part of a branch, in the order of the log,
// and the number of the record that it continues: 0 if it begins a branch. The
// session must be replayed from its first record.
func (s *Session) Links() iter.Seq2[Record, Seq] {
	return func(yield func(Record, Seq) bool) {
		o := s.outline
		for i, n := range o.nodes {
			if !n.ok || i >= len(s.recs) {
				continue
			}
			up := Seq(0)
			if n.up >= 0 {
				up = o.nodes[n.up].seq
			}
			if !yield(s.recs[i], up) {
				return
			}
		}
	}
}

// Path returns the records of the branch that ends with the record id; nil if
// there is none.
func (s *Session) Path(id string) []Record {
	at, ok := s.outline.byID[id]
	if !ok {
		return nil
	}
	var out []Record
	for i := at; i >= 0 && int(i) < len(s.recs); i = s.outline.nodes[i].up {
		out = append(out, s.recs[i])
	}
	slices.Reverse(out)
	return out
}
