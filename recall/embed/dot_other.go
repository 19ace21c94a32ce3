//go:build !amd64

package embed

func dot(a, b []float32) float32 { return dotGo(a, b) }

func dot4(w []byte, a, b, c, d []float32) (s0, s1, s2, s3 float32) { return dot4Go(w, a, b, c, d) }
