//go:build !race

package bpe

import "testing"

// The race detector makes the pool forget, hence the build tag.
func TestAllocs(t *testing.T) {
	for name, text := range corpus(t) {
		text := text[:min(len(text), 10_000)]
		text = valid(text)
		for _, e := range []*Encoding{CL100K(), O200K()} {
			if got := testing.AllocsPerRun(20, func() { e.Count(text) }); got != 0 {
				t.Errorf("%s, %s: got %g allocations, want 0", name, e, got)
			}
		}
	}
}
