package window

import (
	"fmt"

	"goclaw/llm"
	"goclaw/session"
)

// Tokenizer counts tokens of a text.
type Tokenizer interface{ Count(text string) int }

// Budget is how much of a window is used.
type Budget struct {
	Window  int // what the model takes
	Reserve int // what is kept free for the answer
	Used    int // what the context holds
}

// Percent is how full the window is.
func (b Budget) Percent() int {
	if b.Window <= 0 {
		return 0
	}
	return b.Used * 100 / b.Window
}

// Full reports whether nothing more fits beside the reserve.
func (b Budget) Full() bool { return b.Window > 0 && b.Used >= b.Window-b.Reserve }

// String is the line that tells the model: "[Context: 156k/200k tokens (78%)]".
func (b Budget) String() string {
	return fmt.Sprintf("[Context: %s/%s tokens (%d%%)]", Short(b.Used), Short(b.Window), b.Percent())
}

// Short writes a number of tokens as people do: 950, 1.5k, 156k, 1M.
func Short(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000 && n%1000 >= 100:
		return fmt.Sprintf("%d.%dk", n/1000, n%1000/100)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	case n%1_000_000 >= 100_000:
		return fmt.Sprintf("%d.%dM", n/1_000_000, n%1_000_000/100_000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}

// Measure returns b with Used set: the usage that the model reported last,
// plus a count of what came after it. Usage from before a fold is of another
// context and is not used; neither is one that exceeds the window.
func Measure(s *session.Session, p Prompt, tok Tokenizer, b Budget) Budget {
	_, recs := Sent(s)
	used, from := 0, -1
	for i := len(recs) - 1; i >= 0; i-- {
		m, ok := recs[i].Body.(session.Message)
		if !ok || m.Role != llm.Assistant || m.Stop == llm.StopError || m.Stop == llm.StopAborted {
			continue
		}
		u := m.Usage.Total()
		if u == 0 || b.Window > 0 && u > b.Window || foldedSince(s, recs[i].Seq) {
			continue
		}
		used, from = u, i
		break
	}
	if from < 0 {
		b.Used = CountRequest(Build(s, p, Loose), tok)
		return b
	}
	for _, r := range recs[from+1:] {
		used += CountBody(r.Body, tok)
	}
	b.Used = used
	return b
}

// foldedSince reports whether the fold in effect is younger than seq.
func foldedSince(s *session.Session, seq session.Seq) bool {
	at, _, ok := s.Fold()
	return ok && s.Branch[at].Seq > seq
}

// overhead is what a message costs beside its text.
const overhead = 4

// imageTokens is what a picture costs when its size is not known.
const imageTokens = 1500

// CountRequest counts everything that req sends.
func CountRequest(req llm.Request, tok Tokenizer) int {
	n := tok.Count(req.System) + tok.Count(req.Tail)
	for _, t := range req.Tools {
		n += tok.Count(t.Name) + tok.Count(t.Description) + tok.Count(string(t.Schema)) + overhead
	}
	for _, m := range req.Messages {
		n += overhead + CountBlocks(m.Blocks, tok)
	}
	return n
}

// CountBody counts what a record adds to the context.
func CountBody(b session.Body, tok Tokenizer) int {
	switch b := b.(type) {
	case session.Message:
		if b.Excluded || b.Stop == llm.StopError || injected(b) {
			return 0
		}
		return overhead + CountBlocks(b.Blocks, tok)
	case session.CustomMessage:
		return overhead + CountBlocks(b.Blocks, tok)
	case session.Shell:
		if b.Excluded {
			return 0
		}
		return overhead + tok.Count(shellText(b))
	case session.BranchSummary:
		return overhead + tok.Count(b.Summary)
	case session.Notice:
		return overhead + tok.Count(b.Text)
	}
	return 0
}

// CountBlocks counts the tokens of blocks.
func CountBlocks(blocks []llm.Block, tok Tokenizer) int {
	n := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case llm.Text:
			n += tok.Count(b.Text)
		case llm.Thinking:
			n += tok.Count(b.Text)
		case llm.ToolCall:
			n += overhead + tok.Count(b.Name) + tok.Count(string(b.Args))
		case llm.ToolResult:
			n += overhead + CountBlocks(b.Blocks, tok)
		case llm.Image:
			n += imageTokens
		}
	}
	return n
}
