package bpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// BenchmarkCount reports, beside MB/s, the library's MB/s on the same text in
// the same run, and how many times as fast Count is.
func BenchmarkCount(b *testing.B) {
	texts := corpus(b)
	for _, name := range []string{"english", "code", "json", "chinese"} {
		text := shuffled(texts[name], 1<<19)
		for _, o := range oracles() {
			b.Run(name+"/"+o.encoding.String(), func(b *testing.B) {
				start := time.Now()
				want, err := o.library.Count(text)
				if err != nil {
					b.Fatal(err)
				}
				library := time.Since(start).Seconds()
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if got := o.encoding.Count(text); got != want {
						b.Fatalf("got %d, want %d", got, want)
					}
				}
				b.ReportMetric(float64(len(text))/1e6/library, "library-MB/s")
				b.ReportMetric(library*float64(b.N)/b.Elapsed().Seconds(), "x-library")
			})
		}
	}
}

// shuffled makes about n bytes of the lines of text in random order, lest the
// processor learn the text by heart.
func shuffled(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(lines[r.IntN(len(lines))])
	}
	return b.String()
}

// BenchmarkLong counts texts without a place to cut and reports how much longer
// twice the text takes: 2 where the time is linear, 4 where it is quadratic.
func BenchmarkLong(b *testing.B) {
	texts, doubles := long(1<<19), long(1<<20)
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			e, double := O200K(), doubles[name]
			var once, twice time.Duration
			b.SetBytes(int64(len(text) + len(double)))
			for b.Loop() {
				t0 := time.Now()
				e.Count(text)
				t1 := time.Now()
				e.Count(double)
				once, twice = once+t1.Sub(t0), twice+time.Since(t1)
			}
			b.ReportMetric(twice.Seconds()/once.Seconds(), "x-for-double")
		})
	}
}

// BenchmarkBuild is what the first call of CL100K or O200K takes.
func BenchmarkBuild(b *testing.B) {
	for name, data := range map[string][]byte{"cl100k_base": cl100kData, "o200k_base": o200kData} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decodeVocabulary(data)
			}
		})
	}
}
