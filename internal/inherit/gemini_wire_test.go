package inherit_test

import (
	"slices"
	"strings"
	"testing"
)

func init() {
	differences["a result twice"] = difference{theirs: func(items []string) (out []string) {
		for _, it := range items {
			if !strings.HasPrefix(it, "result ") || !slices.Contains(out, it) {
				out = append(out, it)
			}
		}
		return out
	}}
}

func TestGeminiSends(t *testing.T) {
	heldToWire(t, "gemini-cli/0.61.0", wired{session: "25307b51-c6f1-42c2-a35d-b8140f2f6b5d", line: 9, differs: []string{"a result twice"}})
}
