package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The images that stay are within the limits and the newest; more of them are
// left out only when a step is full, so that most requests begin as the one
// before.
func TestImagesStayWithinLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Images{Count: rapid.SampledFrom([]int{0, 5, 100}).Draw(t, "count"), Bytes: rapid.SampledFrom([]int{0, 50, 1000}).Draw(t, "bytes")}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 20), 0, 300).Draw(t, "sizes")
		changes, last := 0, 0
		for n := range len(sizes) + 1 {
			drop := l.excess(sizes[:n])
			sum := 0
			for _, s := range sizes[drop:n] {
				sum += s
			}
			if l.Count > 0 && n-drop > l.Count || l.Bytes > 0 && sum > l.Bytes {
				t.Fatalf("%d of %d images with %d bytes stay, the limits are %+v", n-drop, n, sum, l)
			}
			if drop < last {
				t.Fatalf("%d images are left out of %d, and %d of %d", drop, n, last, n-1)
			}
			if drop > last {
				changes++
			}
			last = drop
		}
		if l.Count == 100 && l.Bytes == 0 && changes > max(0, len(sizes)-100)/20+1 {
			t.Fatalf("%d changes for %d images", changes, len(sizes))
		}
	})
	if got := (Images{Count: 100}).excess(slices.Repeat([]int{1}, 130)); got != 40 {
		t.Errorf("of 130 images %d are left out, want 40", got)
	}
}
