// Package parts names the parts of the search, so that a benchmark can leave
// out one at a time. Outside a benchmark all of them are on.
package parts

import "sync/atomic"

// Kind says what it takes to leave a part out.
type Kind int

const (
	Search  Kind = iota // nothing else
	Index               // the index has to be built again
	Meaning             // nothing else; without a model the part is not used
)

// Part is a part of the search.
type Part struct {
	Name string
	Kind Kind
	off  atomic.Bool
}

var all []*Part

// New names a part. Packages call it for their variables, before main.
func New(name string, kind Kind) *Part {
	p := &Part{Name: name, Kind: kind}
	all = append(all, p)
	return p
}

// All returns the parts that the program has.
func All() []*Part { return all }

// On reports whether p is used.
func (p *Part) On() bool { return !p.off.Load() }

// Leave leaves p out of whatever begins from now on, or takes it in again.
func (p *Part) Leave(out bool) {
	p.off.Store(out)
	changes.Add(1)
}

var changes atomic.Int64

// Changes says how often parts were left out or taken in: what was remembered
// before the last time may be wrong.
func Changes() int64 { return changes.Load() }
