package window

import (
	"sync"

	"goclaw/llm"
	"goclaw/session"
)

// Tokenizer counts tokens of a text.
type Tokenizer interface{ Count(text string) int }

// Counter is a Tokenizer that counts each record once, so that a turn costs
// only its new text. It is safe for concurrent use.
type Counter struct {
	tok   Tokenizer
	ratio float64 // tokens of the model for one of tok, before a session shows it

	mu   sync.Mutex
	recs map[countKey]counted
	text map[string]int // long texts that seldom change: system prompt, tools, summaries
}

// countKey identifies what is sent of a record.
type countKey struct {
	id     session.ID
	seq    session.Seq
	record string
	change session.Seq // the last record that changes it
	same   bool        // the model that is asked wrote it
	plain  bool        // without images
}

// counted is how many tokens of the vocabulary a record has. The tokens of
// images do not depend on the vocabulary.
type counted struct {
	text, thinking, images int
	calls                  int // how many tool calls
}

// maxCached is how many counts a Counter keeps; beyond it, it starts over.
const maxCached = 1 << 17

// NewCounter returns a Counter. A ratio of 0 is 1.
func NewCounter(tok Tokenizer, ratio float64) *Counter {
	if ratio <= 0 {
		ratio = 1
	}
	return &Counter{tok: tok, ratio: ratio, recs: map[countKey]counted{}, text: map[string]int{}}
}

// Count implements Tokenizer.
func (c *Counter) Count(text string) int { return c.tok.Count(text) }

// Ratio is how many tokens of the model one token of the vocabulary is expected
// to be, as given to NewCounter.
func (c *Counter) Ratio() float64 { return c.ratio }

// counter returns tok as a Counter, a new one if it is not a Counter.
func counter(tok Tokenizer) *Counter {
	if c, ok := tok.(*Counter); ok {
		return c
	}
	return NewCounter(tok, 1)
}

// stable counts a text that is likely to be counted again.
func (c *Counter) stable(text string) int {
	if len(text) < 256 {
		return c.tok.Count(text)
	}
	c.mu.Lock()
	n, ok := c.text[text]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.tok.Count(text)
	c.mu.Lock()
	if len(c.text) > 256 {
		clear(c.text)
	}
	c.text[text] = n
	c.mu.Unlock()
	return n
}

// record counts what is sent of r.
func (c *Counter) record(id session.ID, r session.Record, p Prompt, ch change) counted {
	k := countKey{id: id, seq: r.Seq, record: r.ID, change: ch.seq, plain: p.NoImages}
	if m, ok := r.Body.(session.Message); ok && m.Role == llm.Assistant {
		k.same = m.Provider == p.Provider && m.Model == p.Model
	}
	c.mu.Lock()
	n, ok := c.recs[k]
	c.mu.Unlock()
	if ok {
		return n
	}
	_, blocks, _ := send(r, ch, p)
	n = c.blocks(blocks)
	c.mu.Lock()
	if len(c.recs) > maxCached {
		clear(c.recs)
	}
	c.recs[k] = n
	c.mu.Unlock()
	return n
}

func (c *Counter) blocks(blocks []llm.Block) counted {
	var n counted
	if len(blocks) > 0 {
		n.text = overhead
	}
	c.add(&n, blocks)
	return n
}

func (c *Counter) add(n *counted, blocks []llm.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case llm.Text:
			n.text += c.tok.Count(b.Text)
		case llm.Thinking:
			n.thinking += c.tok.Count(b.Text)
		case llm.ToolCall:
			n.text += overhead + c.tok.Count(b.Name) + c.tok.Count(string(b.Args))
			n.calls++
		case llm.ToolResult:
			n.text += overhead
			c.add(n, b.Blocks)
		case llm.Image:
			n.images += imageCost(b)
		}
	}
}

// overhead is how many tokens a message, a call, a result and a tool cost
// besides their text.
const overhead = 4

// CountRequest counts everything that req sends.
func CountRequest(req llm.Request, tok Tokenizer) int {
	c := counter(tok)
	n := c.stable(req.System) + c.tok.Count(req.Tail) + c.tools(req.Tools)
	for _, m := range req.Messages {
		n += overhead + countBlocks(m.Blocks, tok)
	}
	return n
}

func (c *Counter) tools(tools []llm.ToolSpec) int {
	n := 0
	for _, t := range tools {
		n += c.tok.Count(t.Name) + c.stable(t.Description) + c.stable(string(t.Schema)) + overhead
	}
	return n
}

// countBlocks counts the tokens of blocks.
func countBlocks(blocks []llm.Block, tok Tokenizer) int {
	var n counted
	counter(tok).add(&n, blocks)
	return n.text + n.thinking + n.images
}
