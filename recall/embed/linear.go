package embed

// apply returns the n rows of x times the matrix. It takes four rows at a
// time: the matrix, which is larger than any cache near the processor, is
// then read a quarter as often.
func (l *linear) apply(x []float32, n int) []float32 {
	in, out := l.cols, len(l.scale)
	y := make([]float32, n*out)
	row := func(t int) []float32 { return x[t*in:][:in] }
	for t := 0; t < n; t += 4 {
		// Where there are fewer than four, the last one counts for the rest.
		t1, t2, t3 := min(t+1, n-1), min(t+2, n-1), min(t+3, n-1)
		x0, x1, x2, x3 := row(t), row(t1), row(t2), row(t3)
		for o, scale := range l.scale {
			s0, s1, s2, s3 := dot4(l.row(o), x0, x1, x2, x3)
			b := l.bias[o]
			y[t*out+o], y[t1*out+o], y[t2*out+o], y[t3*out+o] = s0*scale+b, s1*scale+b, s2*scale+b, s3*scale+b
		}
	}
	return y
}

// dotGo is dot in plain Go. The lengths are equal, and multiples of four.
func dotGo(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	for i := 0; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	return s0 + s1 + s2 + s3
}

// dot4Go is dot4 in plain Go: w, which are signed bytes, times each of four
// rows of its length.
func dot4Go(w []byte, a, b, c, d []float32) (s0, s1, s2, s3 float32) {
	a, b, c, d = a[:len(w)], b[:len(w)], c[:len(w)], d[:len(w)]
	for i, q := range w {
		v := float32(int8(q))
		s0 += v * a[i]
		s1 += v * b[i]
		s2 += v * c[i]
		s3 += v * d[i]
	}
	return s0, s1, s2, s3
}
