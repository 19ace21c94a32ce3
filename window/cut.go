package window

import (
	"fmt"
	"unicode/utf8"

	"goclaw/llm"
)

// spared is how many of the newest turns keep their tool results whole.
const spared = 2

// cutOver is the length in bytes above which a tool result is cut; cutHead
// and cutTail are what stays of it.
const (
	cutOver = 4000
	cutHead = 2400
	cutTail = 1200
)

// cut returns r with each long text cut in the middle, saying how much.
func cut(r llm.ToolResult) llm.ToolResult {
	blocks := make([]llm.Block, len(r.Blocks))
	for i, b := range r.Blocks {
		if t, ok := b.(llm.Text); ok {
			b = llm.Text{Text: cutText(t.Text)}
		}
		blocks[i] = b
	}
	r.Blocks = blocks
	return r
}

func cutText(s string) string {
	if len(s) <= cutOver {
		return s
	}
	head, tail := cutHead, len(s)-cutTail
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[... %d of %d bytes cut ...]\n%s", s[:head], tail-head, len(s), s[tail:])
}
