// Package offline is a model that needs no network. It is not a language model,
// and says so. It finds and quotes what was said in the conversation and what
// memory files say, and carries out a few plain requests (search, remember, read,
// list, run) by calling the tools that it is offered, as any model would.
//
// It keeps nothing between calls. Each request is read from the beginning: the
// user's last message decides what to do, and a script runs over the tool results
// since then. If the script needs a result that is missing, that call is the
// answer; when the script ends, its text is. So the same request always gets the
// same answer, after at most maxCalls calls.
//
// What it reads is quoted, never obeyed.
package offline

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strings"

	"goclaw/internal/text"
	"goclaw/llm"
)

// Name is the name of the provider and of its only model.
const Name = "offline"

// DefaultWindow is the context window of a Config that names none.
const DefaultWindow = 32_000

// Config may be left empty.
type Config struct {
	Window int // tokens of the longest prompt; 0: DefaultWindow
}

// Provider is an llm.Provider. It is safe for concurrent use.
type Provider struct{ window int }

var _ llm.Provider = (*Provider)(nil)

// New returns the model.
func New(c Config) *Provider {
	if c.Window <= 0 {
		c.Window = DefaultWindow
	}
	return &Provider{window: c.Window}
}

// Stream implements llm.Provider. The answer is either text or tool calls.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(llm.Delta{}, err)
			return
		}
		prompt := promptTokens(req)
		if prompt > p.window {
			yield(llm.Delta{}, &llm.OverflowError{Tokens: prompt, Window: p.window})
			return
		}
		if len(req.Messages) == 0 || req.Messages[len(req.Messages)-1].Role != llm.User {
			yield(llm.Delta{}, &llm.APIError{Provider: Name, Message: "the last message must be the user's", Kind: llm.ErrRefused})
			return
		}
		end := answer(req)
		end.Usage = llm.Usage{Input: prompt, Output: max(1, size(end.Message.Blocks)/4)}
		for _, b := range end.Message.Blocks {
			switch b := b.(type) {
			case llm.Text:
				for w := range strings.SplitAfterSeq(b.Text, " ") {
					if err := ctx.Err(); err != nil {
						yield(llm.Delta{}, err)
						return
					}
					if w != "" && !yield(llm.Delta{Text: w}, nil) {
						return
					}
				}
			case llm.ToolCall:
				if !yield(llm.Delta{Call: &b}, nil) {
					return
				}
			}
		}
		yield(llm.Delta{End: &end}, nil)
	}
}

// answer is the whole model, a pure function of the request.
func answer(req llm.Request) llm.Answer {
	t := newTurn(req)
	said := t.reply()
	a := llm.Answer{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd, Model: Name}
	if len(t.open) > 0 {
		a.Stop = llm.StopTool
		mark := fingerprint(req)
		for i, c := range t.open {
			c.ID = fmt.Sprintf("offline_%d_%d_%x", len(req.Messages), i, mark)
			a.Message.Blocks = append(a.Message.Blocks, c)
		}
		return a
	}
	if limit := 4 * req.MaxTokens; limit > 0 && len(said) > limit {
		a.Stop = llm.StopLength
		said = text.Head(said, limit)
	}
	a.Message.Blocks = []llm.Block{llm.Text{Text: said}}
	return a
}

// fingerprint distinguishes conversations. The number of messages alone does not
// make an id unique: after a compaction it comes a second time, while calls from
// before are still kept.
func fingerprint(req llm.Request) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q", req.Messages)
	return h.Sum64()
}

// imageBytes is what a picture counts as, at four bytes per token.
const imageBytes = 6000

// promptTokens estimates the tokens of req: four bytes are a token, and each
// message and tool costs a little more.
func promptTokens(req llm.Request) int {
	n := len(req.System) + len(req.Tail)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema) + 16
	}
	for _, m := range req.Messages {
		n += size(m.Blocks) + 16
	}
	return max(1, n/4)
}

func size(blocks []llm.Block) int {
	n := llm.SizeOf(blocks)
	return n.Text + n.Thinking + imageBytes*n.Images
}
