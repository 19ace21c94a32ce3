package embed

import "math"

// What is computed most, in plain Go. An amd64 processor with AVX2, or with
// VNNI, has its own form of each (kernels_amd64.s), which gives the same
// integers, and numbers that differ by their rounding at most.

// The weights of a matrix are kept in the order in which the products need
// them: panels of 32 outputs, in each of them four inputs of the first output,
// four of the second, and so on.
const (
	panel = 32
	group = 4
)

// tileRows is how many rows the products compute at once at most, whether they
// are there or not.
const tileRows = 12

// productsGo computes the products of n rows of a, of k numbers of 0 to 127
// each, with the weights of a panel, and leaves panel sums for each row in acc.
func productsGo(acc []int32, a []byte, k int, w []byte, n int) {
	// Two rows are in the halves of one number, whose product with a weight
	// holds two products.
	var x, y [ffn]int64
	for r := 0; r < n; r += 4 {
		for i := range k {
			x[i] = int64(a[r*k+i]) | int64(a[(r+1)*k+i])<<32
			y[i] = int64(a[(r+2)*k+i]) | int64(a[(r+3)*k+i])<<32
		}
		for o := range panel {
			var s, t int64
			for i := 0; i < k; i += group {
				w, x, y := w[i*panel+o*group:][:group], x[i:][:group], y[i:][:group]
				w0, w1, w2, w3 := int64(int8(w[0])), int64(int8(w[1])), int64(int8(w[2])), int64(int8(w[3]))
				s += x[0]*w0 + x[1]*w1 + x[2]*w2 + x[3]*w3
				t += y[0]*w0 + y[1]*w1 + y[2]*w2 + y[3]*w3
			}
			to := acc[r*panel+o:]
			to[0], to[panel] = halves(s)
			to[2*panel], to[3*panel] = halves(t)
		}
	}
}

// halves returns the two sums in the halves of s.
func halves(s int64) (low, high int32) {
	low = int32(s)
	return low, int32((s - int64(low)) >> 32)
}

// finishGo turns the sums of a panel into numbers: y has stride numbers in a
// row.
func finishGo(y []float32, stride int, acc []int32, n int, q []quantum, scale, sum, bias []float32) {
	for r := range n {
		to, from, q := y[r*stride:][:panel], acc[r*panel:][:panel], q[r]
		for i, v := range from {
			to[i] = float32(v)*q.step*scale[i] + q.low*sum[i] + bias[i]
		}
	}
}

// spanGo returns the least and the greatest of x.
func spanGo(x []float32) (low, high float32) {
	low, high = x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// roundGo writes how many steps above low each number of x is: 0 to 127.
func roundGo(to []byte, x []float32, low, inverse float32) {
	for i, v := range x {
		to[i] = byte(max(math.RoundToEven(float64((v-low)*inverse)), 0))
	}
}

// normaliseGo writes x at mean 0 and variance 1, then scaled and shifted.
func normaliseGo(to, x, scale, add []float32) {
	var sum, squares float32
	for _, v := range x {
		sum += v
	}
	mean := sum / float32(len(x))
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	f := deviation(squares, len(x))
	for i, v := range x {
		to[i] = (v-mean)*f*scale[i] + add[i]
	}
}

// deviation is what n numbers are multiplied by to have variance 1.
func deviation(squares float32, n int) float32 {
	return float32(1 / math.Sqrt(float64(squares)/float64(n)+1e-6))
}

// addGo adds x, or least where x is less, to y.
func addGo(y, x []float32, least float32) {
	for i, v := range x {
		y[i] += max(v, least)
	}
}

// softmaxGo makes x shares of 1.
func softmaxGo(x []float32) {
	_, top := spanGo(x)
	sum := float32(0)
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v - top)))
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// How much times computes at once.
const (
	timesRows = 8
	timesCols = 32
)

// timesGo computes y = a b for 8 rows and 32 columns of y. The strides say how
// many numbers a row has.
func timesGo(y []float32, yStride int, a []float32, aStride int, b []float32, bStride int, k int) {
	for r := range timesRows {
		var sum [timesCols]float32
		for i, f := range a[r*aStride:][:k] {
			for j, v := range b[i*bStride:][:timesCols] {
				sum[j] += f * v
			}
		}
		copy(y[r*yStride:], sum[:])
	}
}

// turnSize is how much turn turns at once.
const turnSize = 8

// turnGo writes 8 columns of 8 numbers of x as rows.
func turnGo(to []float32, toStride int, x []float32, xStride int) {
	for r := range turnSize {
		for i, v := range x[r*xStride:][:turnSize] {
			to[i*toStride+r] = v
		}
	}
}
