package embed

import "golang.org/x/sys/cpu"

// What this processor has.
var (
	hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	hasVNNI = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI
)

// tileVNNI computes the products of 12 rows of a with 32 outputs.
//
//go:noescape
func tileVNNI(acc *int32, a *byte, k int, w *byte)

// tileAVX2 computes the products of 4 rows of a with the first 16 of 32
// outputs.
//
//go:noescape
func tileAVX2(acc *int32, a *byte, k int, w *byte)

//go:noescape
func finishAVX(y *float32, stride int, acc *int32, n int, q *quantum, scale, sum, bias *float32)

//go:noescape
func spanAVX(x *float32, n int) (low, high float32)

//go:noescape
func roundAVX(to *byte, x *float32, n int, low, inverse float32)

//go:noescape
func sumAVX(x *float32, n int) float32

//go:noescape
func squaresAVX(x *float32, n int, mean float32) float32

//go:noescape
func shiftAVX(to, x, scale, add *float32, n int, mean, factor float32)

//go:noescape
func addAVX(y, x *float32, n int, least float32)

//go:noescape
func scaleAVX(x *float32, n int, factor float32)

// timesAVX is times for 4 rows and 16 columns.
//
//go:noescape
func timesAVX(y *float32, yStride int, a *float32, aStride int, b *float32, bStride int, k int)

// times512 is times.
//
//go:noescape
func times512(y *float32, yStride int, a *float32, aStride int, b *float32, bStride int, k int)

//go:noescape
func turnAVX(to *float32, toStride int, x *float32, xStride int)

//go:noescape
func expAVX(x *float32, n int, top float32) float32

func products(acc []int32, a []byte, k int, w []byte, n int) {
	switch {
	case hasVNNI:
		for r := 0; r < n; r += tileRows {
			tileVNNI(&acc[r*panel], &a[r*k], k, &w[0])
		}
	case hasAVX2:
		for r := 0; r < n; r += 4 {
			tileAVX2(&acc[r*panel], &a[r*k], k, &w[0])
			tileAVX2(&acc[r*panel+panel/2], &a[r*k], k, &w[panel/2*group])
		}
	default:
		productsGo(acc, a, k, w, n)
	}
}

func finish(y []float32, stride int, acc []int32, n int, q []quantum, scale, sum, bias []float32) {
	if hasAVX2 {
		finishAVX(&y[0], stride, &acc[0], n, &q[0], &scale[0], &sum[0], &bias[0])
		return
	}
	finishGo(y, stride, acc, n, q, scale, sum, bias)
}

func span(x []float32) (low, high float32) {
	if hasAVX2 {
		return spanAVX(&x[0], len(x))
	}
	return spanGo(x)
}

func round(to []byte, x []float32, low, inverse float32) {
	if hasAVX2 {
		roundAVX(&to[0], &x[0], len(x), low, inverse)
		return
	}
	roundGo(to, x, low, inverse)
}

func normalise(to, x, scale, add []float32) {
	if !hasAVX2 {
		normaliseGo(to, x, scale, add)
		return
	}
	mean := sumAVX(&x[0], len(x)) / float32(len(x))
	shiftAVX(&to[0], &x[0], &scale[0], &add[0], len(x), mean, deviation(squaresAVX(&x[0], len(x), mean), len(x)))
}

func add(y, x []float32, least float32) {
	if hasAVX2 {
		addAVX(&y[0], &x[0], len(x), least)
		return
	}
	addGo(y, x, least)
}

func softmax(x []float32) {
	if !hasAVX2 {
		softmaxGo(x)
		return
	}
	_, top := spanAVX(&x[0], len(x))
	scaleAVX(&x[0], len(x), 1/expAVX(&x[0], len(x), top))
}

func times(y []float32, yStride int, a []float32, aStride int, b []float32, bStride int, k int) {
	switch {
	case hasVNNI:
		times512(&y[0], yStride, &a[0], aStride, &b[0], bStride, k)
	case hasAVX2:
		for r := 0; r < timesRows; r += 4 {
			for c := 0; c < timesCols; c += 16 {
				timesAVX(&y[r*yStride+c], yStride, &a[r*aStride], aStride, &b[c], bStride, k)
			}
		}
	default:
		timesGo(y, yStride, a, aStride, b, bStride, k)
	}
}

func turn(to []float32, toStride int, x []float32, xStride int) {
	if hasAVX2 {
		turnAVX(&to[0], toStride, &x[0], xStride)
		return
	}
	turnGo(to, toStride, x, xStride)
}
