package embed

import (
	"slices"
	"testing"

	"golang.org/x/sys/cpu"
)

// limit makes a test use less than the processor has.
func limit(t *testing.T, avx2, vnni bool) {
	a, v := hasAVX2, hasVNNI
	t.Cleanup(func() { hasAVX2, hasVNNI = a, v })
	hasAVX2, hasVNNI = avx2, vnni
}

// ways are the kinds of processors that this one can stand for.
func ways() map[string][2]bool {
	out := map[string][2]bool{"plain": {false, false}}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out["AVX2"] = [2]bool{true, false}
	}
	if hasVNNI {
		out["VNNI"] = [2]bool{true, true}
	}
	return out
}

// TestProducts: all ways give the same integers, those of a simple sum, also
// for the greatest numbers that there can be.
func TestProducts(t *testing.T) {
	for name, has := range ways() {
		t.Run(name, func(t *testing.T) {
			limit(t, has[0], has[1])
			for _, k := range []int{256, 512, 1536} {
				for _, n := range []int{1, 7, 12, 25} {
					testProducts(t, k, n, func(i int) byte { return byte(i * 37 % 128) }, func(i int) int8 { return int8(i*91%255 - 127) })
					testProducts(t, k, n, func(int) byte { return 127 }, func(int) int8 { return 127 })
					testProducts(t, k, n, func(int) byte { return 127 }, func(int) int8 { return -127 })
				}
			}
		})
	}
}

func testProducts(t *testing.T, k, n int, number func(i int) byte, weight func(i int) int8) {
	t.Helper()
	a, w := make([]byte, (n+tileRows)*k), make([]byte, panel*k)
	for i := range n * k {
		a[i] = number(i)
	}
	for i := range w {
		w[i] = byte(weight(i))
	}
	var want []int32
	for r := range n {
		for o := range panel {
			sum := int32(0)
			for i := range k {
				sum += int32(a[r*k+i]) * int32(int8(w[i/group*panel*group+o*group+i%group]))
			}
			want = append(want, sum)
		}
	}
	got := make([]int32, (n+tileRows)*panel)
	products(got, a, k, w, n)
	if !slices.Equal(got[:n*panel], want) {
		t.Errorf("%d rows of %d numbers: other products than one after the other", n, k)
	}
}

// TestRound: all ways make the same bytes of numbers.
func TestRound(t *testing.T) {
	x := make([]float32, 512)
	for i := range x {
		x[i] = float32(i*i%977)/31 - 9
	}
	want := make([]byte, len(x))
	low, high := spanGo(x)
	roundGo(want, x, low, 127/(high-low))
	if slices.Max(want) != 127 || slices.Min(want) != 0 {
		t.Errorf("from %d to %d", slices.Min(want), slices.Max(want))
	}
	got := make([]byte, len(x))
	l, h := span(x)
	if round(got, x, l, 127/(h-l)); l != low || h != high || !slices.Equal(got, want) {
		t.Errorf("from %v to %v, want %v to %v; or other bytes", l, h, low, high)
	}
	roundGo(want, x, 0, 127/high)
	if round(got, x, 0, 127/high); !slices.Equal(got, want) || slices.Min(got) != 0 {
		t.Error("numbers below 0: other bytes")
	}
}

// TestWays: the vectors of all ways are the same but for rounding.
func TestWays(t *testing.T) {
	text := "My grandfather repaired clocks in a small shop by the harbour, and I still have his tools."
	want := Load().Vector(text)
	for name, has := range ways() {
		t.Run(name, func(t *testing.T) {
			limit(t, has[0], has[1])
			if got := cosine(Load().Vector(text), want); got < 0.9999 {
				t.Errorf("the cosine is %.5f", got)
			}
		})
	}
}
