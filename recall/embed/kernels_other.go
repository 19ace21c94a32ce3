//go:build !amd64

package embed

func products(acc []int32, a []byte, k int, w []byte, n int) { productsGo(acc, a, k, w, n) }

func finish(y []float32, stride int, acc []int32, n int, q []quantum, scale, sum, bias []float32) {
	finishGo(y, stride, acc, n, q, scale, sum, bias)
}

func span(x []float32) (low, high float32)               { return spanGo(x) }
func round(to []byte, x []float32, low, inverse float32) { roundGo(to, x, low, inverse) }
func normalise(to, x, scale, add []float32)              { normaliseGo(to, x, scale, add) }
func add(y, x []float32, least float32)                  { addGo(y, x, least) }
func softmax(x []float32)                                { softmaxGo(x) }

func times(y []float32, yStride int, a []float32, aStride int, b []float32, bStride int, k int) {
	timesGo(y, yStride, a, aStride, b, bStride, k)
}

func turn(to []float32, toStride int, x []float32, xStride int) { turnGo(to, toStride, x, xStride) }
