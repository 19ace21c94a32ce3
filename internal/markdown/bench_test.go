package markdown

import (
	"strings"
	"testing"
)

// BenchmarkStream takes an answer of 1 MB in pieces of 4 bytes, and draws what
// is alive 2,500 times.
func BenchmarkStream(b *testing.B) {
	part := "## Heading\n\n" + strings.Repeat("Some words of a **paragraph** that goes on with `code`. ", 8) + "\n\n" +
		"- an item\n- another one\n\n```go\nfunc f() error {\n\treturn fmt.Errorf(\"no %d\", 1)\n}\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n"
	text := strings.Repeat(part, 1<<20/len(part))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := New(Style{Colour: true}, func() int { return 80 })
		for at, n := 0, 0; at < len(text); at, n = at+4, n+1 {
			s.Write(text[at:min(at+4, len(text))])
			s.Take()
			if n%100 == 0 {
				s.Live(80)
			}
		}
		s.Close()
	}
}
