package runner

import (
	"context"
	"iter"
	"strings"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
	"goclaw/window/bpe"
)

// Model is a model and what it is asked with.
type Model struct {
	Provider llm.Provider
	Name     string // "provider/model", such as "anthropic/claude-sonnet-4-5"
	Window   int    // in tokens; 0: 32,000
	Output   int    // tokens of its longest answer; 0: unknown
	System   string // the system prompt
	Tools    agent.Tools
}

// Simple returns a Runner that asks one model in every session, keeps each
// session inside the model's window, and makes checkpoints. New has more
// options.
func Simple(st session.Store, m Model) *Runner {
	provider, name, ok := strings.Cut(m.Name, "/")
	if !ok {
		provider, name = "", m.Name
	}
	if m.Window <= 0 {
		m.Window = 32_000
	}
	tokens := window.NewCounter(bpe.Lazy(bpe.O200K), 1.1) // a little more than most models count
	env := agent.Env{
		Provider: m.Provider,
		Prompt:   window.Prompt{Provider: provider, Model: name, System: m.System, MaxTokens: m.Output},
		Tools:    m.Tools,
		Budget:   window.Budget{Window: m.Window},
		Tokens:   tokens,
		Compact:  &compact.Options{Percents: []int{25, 50, 75}, Turns: 15, MinTokens: 10_000},
	}
	env.Summarizer = compact.Chain{{Provider: m.Provider, Name: name, Window: m.Window, Output: m.Output, Tokens: tokens}}
	return New(Options{Store: st, Env: func(context.Context, *session.Session) (agent.Env, error) { return env, nil }})
}

// Say runs a turn in which the user of key says text, and yields the text of
// the answer as it comes. The first error ends it.
func (r *Runner) Say(ctx context.Context, key session.Key, text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for ev, err := range r.Run(ctx, key, llm.UserText(text)) {
			if err != nil {
				yield("", err)
				return
			}
			if said, ok := ev.(agent.Said); ok && said.Text != "" && !yield(said.Text, nil) {
				return
			}
		}
	}
}
