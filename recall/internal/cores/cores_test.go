package cores

import (
	"slices"
	"testing"
)

// TestEach: each number is given to one of the cores, once.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		var got, want []int
		for _, own := range Each(n, func(own *[]int, i int) { *own = append(*own, i) }) {
			got = append(got, own...)
		}
		for i := range n {
			want = append(want, i)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d: got %v", n, got)
		}
	}
}
