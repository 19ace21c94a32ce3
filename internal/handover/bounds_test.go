package handover

import (
	"strings"
	"testing"
)

// Text that is made to keep the renderer busy is shown as it is; what people
// write is rendered.
func TestHTMLBounds(t *testing.T) {
	const size = 100 << 10
	for _, mark := range []string{"> ", "*", "**a", "*a_ ", "[", "![", "[a](", "[ ](<", "- ", "1. ", "1) ", "[a]:b\n", "a|b\n-|-\n", "~~a", "<a ", "<b>", "](", "`a``", "![[]()"} {
		text := strings.Repeat(mark, size/len(mark))
		if got := HTML(text); len(got) > 20*size {
			t.Errorf("%q: %d bytes become %d", mark, size, len(got))
		}
	}
	wide := "|" + strings.Repeat("a|", 1000) + "\n|" + strings.Repeat("-|", 1000) + "\n" + strings.Repeat("a\n", size/2)
	for name, text := range map[string]string{"a table": wide, "brackets": strings.Repeat("[", size/2) + strings.Repeat("]", size/2)} {
		if got := HTML(text); !strings.HasPrefix(got, "<pre>") || len(got) > 20*size {
			t.Errorf("%s of %d bytes becomes %d bytes", name, len(text), len(got))
		}
	}
	text := "# Title\n\n" + strings.Repeat("Some *words* with `code` and a [link](https://example.com).\n\n- one\n  - two\n    1. three\n\n", 200) +
		"| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 500) + "\n```go\n" + strings.Repeat("x := map[string][]*T{\"a\": {(*T)(nil)}}\n", 1000) + "```\n"
	if got := HTML(text); strings.HasPrefix(got, "<pre>") || strings.Count(got, "<tr>") != 501 {
		t.Errorf("a long answer is not rendered: %.200s", got)
	}
}
