package embed_test

import (
	"fmt"

	"goclaw/recall/embed"
)

// Vectors have length 1, so their product says how near two texts are.
func Example() {
	m := embed.Load()
	near := func(a, b string) (sum float32) {
		va, vb := m.Vector(a), m.Vector(b)
		for i := range va {
			sum += va[i] * vb[i]
		}
		return sum
	}
	question := "what may the cat not eat?"
	fmt.Println(near(question, "she feeds her cat only fish") > near(question, "the build takes three minutes"))
	// Output: true
}
