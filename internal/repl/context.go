package repl

import (
	"context"
	"fmt"
	"strings"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// share is a part of what would be sent.
type share struct {
	name   string
	tokens int
}

// context shows how full the window is, and of what.
func (r *REPL) context(ctx context.Context, _ string) error {
	s, err := session.Open(ctx, r.Store, r.cur.ID)
	if err != nil {
		return err
	}
	m := r.Model()
	b := window.Measure(s, m.Prompt, m.Tokens, m.Budget)
	parts := shares(window.Build(s, m.Prompt, window.Loose), m.Tokens)
	if b.Window > 0 {
		r.print("%s %s", bar(b, 40), b)
	} else {
		r.print("%s tokens; how many %s takes is not known", window.Short(b.Used), m.Name)
	}
	total := 0
	for _, p := range parts {
		total += p.tokens
	}
	var rows [][]string
	for _, p := range parts {
		if p.tokens > 0 {
			rows = append(rows, []string{"  " + p.name, fmt.Sprintf("%6s", window.Short(p.tokens)), fmt.Sprintf("%3d%%", p.tokens*100/max(total, 1))})
		}
	}
	for _, line := range table(rows) {
		r.print("%s", line)
	}
	if at, _, ok := s.Fold(); ok {
		r.note("  the past before record %d is folded into a summary", s.Branch[at].Seq)
	}
	if b.Reserve > 0 {
		r.note("  %s tokens are kept free for the answer", window.Short(b.Reserve))
	}
	r.note("  parts are counted here; the line above uses what %s reported last", m.Name)
	return nil
}

// shares counts the parts of a request.
func shares(req llm.Request, tok window.Tokenizer) []share {
	one := func(b llm.Block) int { return window.CountBlocks([]llm.Block{b}, tok) }
	var user, answers, thinking, calls, results, images int
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			n := one(b)
			switch b.(type) {
			case llm.Thinking:
				thinking += n
			case llm.ToolCall:
				calls += n
			case llm.ToolResult:
				results += n
			case llm.Image:
				images += n
			default:
				if m.Role == llm.User {
					user += n
				} else {
					answers += n
				}
			}
		}
	}
	tools := window.CountRequest(llm.Request{Tools: req.Tools}, tok)
	return []share{
		{"system prompt", tok.Count(req.System)}, {"tools", tools}, {"you", user}, {"answers", answers},
		{"thinking", thinking}, {"tool calls", calls}, {"tool results", results}, {"images", images},
	}
}

// bar draws how full a window is: used, free, and what is kept free.
func bar(b window.Budget, width int) string {
	part := func(n int) int { return min(max(n*width/b.Window, 0), width) }
	used := part(b.Used)
	if b.Used > 0 && used == 0 {
		used = 1
	}
	kept := min(part(b.Reserve), width-used)
	return "[" + strings.Repeat("█", used) + strings.Repeat("·", width-used-kept) + strings.Repeat("░", kept) + "]"
}
