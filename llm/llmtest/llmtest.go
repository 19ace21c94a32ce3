// Package llmtest holds a scripted model and a strict check of requests.
//
// Model answers from a script, records the requests, and refuses every request
// that Validate refuses: a test that uses it shows that a real API would accept
// the requests.
package llmtest

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"

	"goclaw/llm"
)

// Step answers one request.
type Step func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error]

// Model is a scripted llm.Provider. Steps answer in order; after them Rest does,
// or Echo if Rest is nil.
type Model struct {
	Steps []Step
	Rest  Step

	mu   sync.Mutex
	next int
	reqs []llm.Request
}

// New returns a model that follows steps and then echoes.
func New(steps ...Step) *Model { return &Model{Steps: steps} }

// Requests returns the requests so far.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reqs)
}

// Stream implements llm.Provider.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if err := Validate(req); err != nil {
		return fail(&llm.APIError{Provider: "llmtest", Status: 400, Code: "invalid_request_error", Message: err.Error(), Kind: llm.ErrRefused})
	}
	m.mu.Lock()
	m.reqs = append(m.reqs, req)
	step := m.Rest
	if m.next < len(m.Steps) {
		step = m.Steps[m.next]
		m.next++
	}
	m.mu.Unlock()
	if step == nil {
		step = Echo
	}
	return step(ctx, req)
}

// Echo answers with the last user text.
func Echo(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	last := req.Messages[len(req.Messages)-1]
	return Say("echo: "+last.Text())(ctx, req)
}

// Say answers with text, a word at a time.
func Say(text string) Step { return Answer(llm.Text{Text: text}) }

// Call answers with one tool call; args is a JSON object.
func Call(id, name, args string) Step {
	return Answer(llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)})
}

// Answer answers with blocks.
func Answer(blocks ...llm.Block) Step {
	return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			ans := llm.Answer{Message: llm.Message{Role: llm.Assistant, Blocks: blocks}, Stop: llm.StopEnd, Model: req.Model}
			out := 0
			for _, b := range blocks {
				if ctx.Err() != nil {
					yield(llm.Delta{}, ctx.Err())
					return
				}
				switch b := b.(type) {
				case llm.Text:
					out += len(b.Text)
					for _, w := range strings.SplitAfter(b.Text, " ") {
						if ctx.Err() != nil {
							yield(llm.Delta{}, ctx.Err())
							return
						}
						if w != "" && !yield(llm.Delta{Text: w}, nil) {
							return
						}
					}
				case llm.Thinking:
					out += len(b.Text)
					if b.Text != "" && !yield(llm.Delta{Thinking: b.Text}, nil) {
						return
					}
				case llm.ToolCall:
					out += len(b.Args)
					ans.Stop = llm.StopTool
					if !yield(llm.Delta{Call: &b}, nil) {
						return
					}
				}
			}
			ans.Usage = llm.Usage{Input: Tokens(req), Output: out/4 + 1}
			yield(llm.Delta{End: &ans}, nil)
		}
	}
}

// Fail answers with an error before any delta.
func Fail(err error) Step {
	return func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] { return fail(err) }
}

// Break answers with text and then fails with err, without an End.
func Break(text string, err error) Step {
	return func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if yield(llm.Delta{Text: text}, nil) {
				yield(llm.Delta{}, err)
			}
		}
	}
}

// Within answers with step if the request has at most window tokens, and with
// an overflow error if it has more.
func Within(window int, step Step) Step {
	return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		if n := Tokens(req); n > window {
			return fail(&llm.OverflowError{Tokens: n, Window: window})
		}
		return step(ctx, req)
	}
}

// Tokens is the scripted model's count: four bytes are one token.
func Tokens(req llm.Request) int {
	n := len(req.System) + len(req.Tail)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		size := llm.SizeOf(m.Blocks)
		n += size.Text + size.Thinking + 4800*size.Images
	}
	return n/4 + 3*len(req.Messages) + 1
}

func fail(err error) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{}, err) }
}
