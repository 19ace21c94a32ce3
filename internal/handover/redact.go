package handover

import (
	"encoding/json"

	"goclaw/internal/secrets"
	"goclaw/llm"
	"goclaw/session"
)

// redactor counts the secrets that it takes out.
type redactor struct{ n int }

func (r *redactor) text(s string) string {
	s, n := secrets.Redact(s)
	r.n += n
	return s
}

func (r *redactor) json(raw json.RawMessage) json.RawMessage {
	raw, n := secrets.JSON(raw)
	r.n += n
	return raw
}

func (r *redactor) blocks(blocks []llm.Block) []llm.Block {
	out := make([]llm.Block, len(blocks))
	for i, b := range blocks {
		switch x := b.(type) {
		case llm.Text:
			x.Text = r.text(x.Text)
			b = x
		case llm.Thinking:
			x.Text = r.text(x.Text)
			b = x
		case llm.ToolCall:
			x.Args = r.json(x.Args)
			b = x
		case llm.ToolResult:
			x.Blocks = r.blocks(x.Blocks)
			b = x
		case llm.Other:
			x.Raw = r.json(x.Raw)
			b = x
		}
		out[i] = b
	}
	return out
}

// session returns a copy of s without its secrets. It is for display only: its
// records no longer have their lines.
func (r *redactor) session(s *session.Session) *session.Session {
	branch := make([]session.Record, 0, len(s.Branch))
	for _, rec := range s.Branch {
		switch b := rec.Body.(type) {
		case session.Message:
			b.Blocks, b.Error, b.Details = r.blocks(b.Blocks), r.text(b.Error), nil
			rec.Body = b
		case session.CustomMessage:
			b.Blocks, b.Details = r.blocks(b.Blocks), nil
			rec.Body = b
		case session.Shell:
			b.Command, b.Output = r.text(b.Command), r.text(b.Output)
			rec.Body = b
		case session.Compaction:
			b.Summary, b.Details = r.text(b.Summary), nil
			rec.Body = b
		case session.Partial:
			b.Thinking, b.Text = r.text(b.Thinking), r.text(b.Text)
			rec.Body = b
		case session.BranchSummary:
			b.Summary, b.Details = r.text(b.Summary), nil
			rec.Body = b
		case session.Checkpoint:
			b.Summary = r.text(b.Summary)
			rec.Body = b
		}
		rec.Raw = nil
		branch = append(branch, rec)
	}
	out := s.WithBranch(branch)
	out.Title = r.text(s.Title)
	return out
}
