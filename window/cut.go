package window

import (
	"goclaw/internal/text"
	"goclaw/llm"
)

// spared is how many of the newest turns keep their tool results whole.
const spared = 2

// measure is the length in bytes above which a tool result is cut, and how much
// of its head and tail stays.
type measure struct{ over, head, tail int }

var (
	usual = measure{over: 4000, head: 2400, tail: 1200}
	tight = measure{over: 1000, head: 600, tail: 300} // if the window has no room otherwise
)

// cut returns r with each long text cut in the middle; the text says how much
// was cut.
func (m measure) cut(r llm.ToolResult) llm.ToolResult {
	blocks := make([]llm.Block, len(r.Blocks))
	for i, b := range r.Blocks {
		if t, ok := b.(llm.Text); ok {
			b = llm.Text{Text: m.cutText(t.Text)}
		}
		blocks[i] = b
	}
	r.Blocks = blocks
	return r
}

func (m measure) cutText(s string) string {
	if len(s) <= m.over {
		return s
	}
	return text.Middle(s, m.head, m.tail)
}
