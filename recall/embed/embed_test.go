package embed

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOriginal holds the vectors against those that the original computed:
// testdata/expected.jsonl was written by @energetic-ai/embeddings 0.2.0 in
// Node with the weights in float32.
func TestOriginal(t *testing.T) {
	f, err := os.Open("testdata/expected.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, n := Load(), 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var e struct {
			Text   string
			Tokens []int
			Vector []float32
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		name := e.Text[:min(len(e.Text), 30)]
		if d := cmp.Diff(e.Tokens[:min(len(e.Tokens), maxTokens)], m.tokens(e.Text)); d != "" {
			t.Errorf("tokens of %q (-want +got):\n%s", name, d)
		}
		if got := cosine(m.Vector(e.Text), e.Vector); got < 0.99 {
			t.Errorf("%q: the cosine with the original is %.4f, want 0.99", name, got)
		}
	}
	if n < 10 {
		t.Errorf("%d sentences were compared, want 10", n)
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestVector(t *testing.T) {
	m := Load()
	if got, want := cosine(m.Vector("my dog likes to run"), m.Vector("the puppy loves running")), cosine(m.Vector("my dog likes to run"), m.Vector("interest rates rose again")); got < want+0.2 {
		t.Errorf("a paraphrase is at %.2f, another subject at %.2f", got, want)
	}
	for _, text := range []string{"", "\xff\xfe", strings.Repeat("word ", 100_000)} {
		v := m.Vector(text)
		if len(v) != Dim {
			t.Fatalf("a vector of %d numbers", len(v))
		}
		for _, x := range v {
			if math.IsNaN(float64(x)) {
				t.Fatalf("%.20q has a vector with NaN", text)
			}
		}
	}
}

// TestDot holds the fast forms against the plain ones.
func TestDot(t *testing.T) {
	for _, n := range []int{4, 8, 16, 24, 256, 512, 1536} {
		v := make([][]float32, 5)
		for i := range v {
			v[i] = make([]float32, n)
			for j := range v[i] {
				v[i][j] = float32((i*7+j*3)%11)/11 - 0.4
			}
		}
		near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-3 }
		if got, want := dot(v[0], v[1]), dotGo(v[0], v[1]); !near(got, want) {
			t.Errorf("dot of %d: got %v, want %v", n, got, want)
		}
		w := make([]byte, n)
		for j := range w {
			w[j] = byte(j*37 - 128)
		}
		for i := range v {
			for j := range v[i] {
				v[i][j] /= 128
			}
		}
		a0, a1, a2, a3 := dot4(w, v[1], v[2], v[3], v[4])
		b0, b1, b2, b3 := dot4Go(w, v[1], v[2], v[3], v[4])
		if !near(a0, b0) || !near(a1, b1) || !near(a2, b2) || !near(a3, b3) {
			t.Errorf("dot4 of %d: got %v, want %v", n, []float32{a0, a1, a2, a3}, []float32{b0, b1, b2, b3})
		}
	}
}

func TestParseDamage(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("USElite1"), weights[:len(weights)/2], append([]byte("x"), weights...)} {
		if _, err := parse(data); err == nil {
			t.Errorf("%d bytes were taken for a model", len(data))
		}
	}
}

func BenchmarkVector(b *testing.B) {
	m := Load()
	for _, text := range []string{
		"When was the lighthouse painted?",
		"My grandfather repaired clocks in a small shop by the harbour, and I still have his tools; on Sundays I take one of them apart and try to remember how he did it.",
	} {
		b.Run(text[:5], func(b *testing.B) {
			for b.Loop() {
				m.Vector(text)
			}
		})
	}
}
