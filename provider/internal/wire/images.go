package wire

import (
	"fmt"

	"goclaw/llm"
)

// Images is what an API takes of images in one request. Zero is no limit.
type Images struct {
	Count int // how many
	Bytes int // of base64, in all
	Many  int // with more than so many,
	Side  int // each may have so many pixels a side
}

// ClaudeImages is what Claude takes of images. Anthropic's API takes 32 MB in a
// request; the rest is for everything else.
var ClaudeImages = Images{Count: 100, Bytes: 24 << 20, Many: 20, Side: 2000}

// steps is in how many parts of the limit images are left out. Leaving them out
// one by one would change the beginning of every request, and no prompt cache
// would hold it.
const steps = 5

// Limit puts a text in the place of each image that is too much: the oldest
// first, and those that are too large next to so many. Messages must have passed
// llm.Sendable, and are changed.
func (l Images) Limit(messages []llm.Message) {
	var sizes []int
	eachImage(messages, func(img llm.Image) llm.Block {
		sizes = append(sizes, len(img.Data))
		return img
	})
	drop := l.excess(sizes)
	many := l.Many > 0 && len(sizes)-drop > l.Many
	if drop == 0 && !many {
		return
	}
	n := 0
	eachImage(messages, func(img llm.Image) llm.Block {
		n++
		w, h := img.Size()
		switch {
		case n <= drop:
			return llm.Text{Text: fmt.Sprintf("[image left out: a request takes no more than the %d newer ones]", len(sizes)-drop)}
		case many && max(w, h) > l.Side:
			return llm.Text{Text: fmt.Sprintf("[image left out: %d x %d pixels are too many in a request with more than %d images]", w, h, l.Many)}
		}
		return img
	})
}

// excess returns how many of the oldest images are left out, by their sizes.
func (l Images) excess(sizes []int) int {
	total := 0
	for _, n := range sizes {
		total += n
	}
	over := func(count, bytes int) bool { return l.Count > 0 && count > l.Count || l.Bytes > 0 && bytes > l.Bytes }
	step := func(n, limit int) int { return n / max(1, limit/steps) }
	drop, left, before := 0, total, 0
	for over(len(sizes)-drop, left) {
		// To the end of the step that the image is in.
		count, bytes := step(drop, l.Count), step(before, l.Bytes)
		byCount, byBytes := l.Count > 0 && len(sizes)-drop > l.Count, l.Bytes > 0 && left > l.Bytes
		for drop < len(sizes) && (byCount && step(drop, l.Count) == count || byBytes && step(before, l.Bytes) == bytes) {
			left, before = left-sizes[drop], before+sizes[drop]
			drop++
		}
	}
	return drop
}

// eachImage replaces every image of the messages with what change makes of it.
func eachImage(messages []llm.Message, change func(llm.Image) llm.Block) {
	for _, m := range messages {
		for i, b := range m.Blocks {
			switch b := b.(type) {
			case llm.Image:
				m.Blocks[i] = change(b)
			case llm.ToolResult:
				for j, in := range b.Blocks {
					if img, ok := in.(llm.Image); ok {
						b.Blocks[j] = change(img)
					}
				}
			}
		}
	}
}
