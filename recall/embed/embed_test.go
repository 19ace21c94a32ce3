package embed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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
	m, n, least := Load(), 0, 1.0
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
		if d := cmp.Diff(e.Tokens[:min(len(e.Tokens), maxTokens)], m.words.tokens(e.Text, maxTokens)); d != "" {
			t.Errorf("tokens of %q (-want +got):\n%s", name, d)
		}
		vs, err := m.vectors(t.Context(), []string{e.Text}, maxTokens)
		if err != nil {
			t.Fatal(err)
		}
		got := cosine(vs[0], e.Vector)
		least = min(least, got)
		if got < 0.99 {
			t.Errorf("%q: the cosine with the original is %.4f, want 0.99", name, got)
		}
	}
	t.Logf("the least cosine with the original is %.4f", least)
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

func TestParseDamage(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("USElite2"), weights[:len(weights)/2], append([]byte("x"), weights...)} {
		if _, err := parse(data); err == nil {
			t.Errorf("%d bytes were taken for a model", len(data))
		}
	}
}

// TestTogether: a text has the same vector alone and among others, however many
// they are.
func TestTogether(t *testing.T) {
	m := Load()
	var texts []string
	for i := range 60 {
		texts = append(texts, strings.Repeat("the lighthouse was painted again. ", i%25)+strings.Repeat("x", i))
	}
	vs, err := m.Vectors(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if d := cmp.Diff(m.Vector(text), vs[i]); d != "" {
			t.Fatalf("text %d of %d bytes differs among others:\n%s", i, len(text), d)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Vectors(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// BenchmarkVectors prints how many messages a second one core embeds: as short
// as people write to each other, and as long as counts.
func BenchmarkVectors(b *testing.B) {
	words := strings.Fields("My grandfather repaired clocks in a small shop by the harbour and I still have his tools on Sundays I take one of them apart and try to remember how he did it")
	for _, bench := range []struct {
		name  string
		words int
	}{{"short", 25}, {"long", 300}} {
		var texts []string
		for i := range 64 {
			var text []string
			for j := range bench.words {
				text = append(text, words[(i*7+j*(i+1))%len(words)])
			}
			texts = append(texts, strings.Join(text, " "))
		}
		b.Run(bench.name, func(b *testing.B) {
			m := Load()
			for b.Loop() {
				if _, err := m.Vectors(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// TestCounted: what follows the first pieces of a text does not count.
func TestCounted(t *testing.T) {
	text := strings.Repeat("the boat is in the harbour and ", counted/4)
	m := Load()
	if got := cosine(m.Vector(text), m.Vector(text+strings.Repeat(" taxes are due", 50))); got < 0.9999 {
		t.Errorf("the cosine with a longer text is %.4f, want 1", got)
	}
	if got := cosine(m.Vector("taxes are due "+text), m.Vector(text)); got > 0.999 {
		t.Errorf("the cosine with a text that begins in another way is %.4f", got)
	}
}
