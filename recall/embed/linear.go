package embed

// apply returns the n rows of x times the matrix. It takes four rows at a
// time: the matrix, which is larger than any cache near the processor, is
// then read a quarter as often.
func (l *linear) apply(x []float32, n int) []float32 {
	out := make([]float32, n*l.out)
	t := 0
	for ; t+4 <= n; t += 4 {
		x0, x1, x2, x3 := x[t*l.in:][:l.in], x[(t+1)*l.in:][:l.in], x[(t+2)*l.in:][:l.in], x[(t+3)*l.in:][:l.in]
		for o := range l.out {
			s0, s1, s2, s3 := dot4(l.w[o*l.in:][:l.in], x0, x1, x2, x3)
			b := l.bias[o]
			out[t*l.out+o], out[(t+1)*l.out+o], out[(t+2)*l.out+o], out[(t+3)*l.out+o] = s0+b, s1+b, s2+b, s3+b
		}
	}
	for ; t < n; t++ {
		row := x[t*l.in:][:l.in]
		for o := range l.out {
			out[t*l.out+o] = dot(l.w[o*l.in:][:l.in], row) + l.bias[o]
		}
	}
	return out
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

// dot4Go is dot4 in plain Go: w times each of four rows of its length.
func dot4Go(w, a, b, c, d []float32) (s0, s1, s2, s3 float32) {
	a, b, c, d = a[:len(w)], b[:len(w)], c[:len(w)], d[:len(w)]
	for i, v := range w {
		s0 += v * a[i]
		s1 += v * b[i]
		s2 += v * c[i]
		s3 += v * d[i]
	}
	return s0, s1, s2, s3
}
