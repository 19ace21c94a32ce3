package embed

import "golang.org/x/sys/cpu"

var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// dotAVX is dot for a length that is a multiple of 16 and not 0.
//
//go:noescape
func dotAVX(a, b *float32, n int) float32

// dot4AVX is dot4 for a length that is a multiple of 16 and not 0.
//
//go:noescape
func dot4AVX(w *byte, a, b, c, d *float32, n int) (s0, s1, s2, s3 float32)

func dot(a, b []float32) float32 {
	if fast && len(a) > 0 && len(a)%16 == 0 && len(a) == len(b) {
		return dotAVX(&a[0], &b[0], len(a))
	}
	return dotGo(a, b)
}

func dot4(w []byte, a, b, c, d []float32) (s0, s1, s2, s3 float32) {
	n := len(w)
	if fast && n > 0 && n%16 == 0 && len(a) == n && len(b) == n && len(c) == n && len(d) == n {
		return dot4AVX(&w[0], &a[0], &b[0], &c[0], &d[0], n)
	}
	return dot4Go(w, a, b, c, d)
}
