package window

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// The words that pi puts around summaries. Logs are shared with pi, and so a
// model sees the same text from either program.
const (
	summaryOpen  = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
	summaryClose = "\n</summary>"
	branchOpen   = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	branchClose  = "</summary>"
)

// Sent returns the records of s that the context is made of, those kept by the
// compaction in effect and those after it, and that compaction, if any. They are
// the records that pi and OpenClaw send: of what is kept, older compactions send
// nothing, and a reset keeps messages only. Before the record at which a
// compaction of ours resumes, only the open question is kept.
func Sent(s *session.Session) (c *session.Compaction, recs []session.Record) {
	at, keep, ok := s.Compaction()
	if !ok {
		return nil, s.Branch
	}
	kept := s.Branch[keep:at]
	switch b := s.Branch[at].Body.(type) {
	case session.Compaction:
		c = &b
		kept = resumed(kept, b.Resume)
	case session.Reset:
		var said []session.Record
		for _, r := range kept {
			if m, ok := r.Body.(session.Message); ok && m.Role != llm.System {
				said = append(said, r)
			}
		}
		kept = said
	}
	return c, slices.Concat(kept, s.Branch[at+1:])
}

// resumed drops from kept, before the record with the id at, everything except
// the user's messages and edits of them.
func resumed(kept []session.Record, at string) []session.Record {
	i := slices.IndexFunc(kept, func(r session.Record) bool { return r.ID == at })
	if at == "" || i < 0 {
		return kept
	}
	var out []session.Record
	asked := map[string]bool{}
	for _, r := range kept[:i] {
		e, edits := r.Body.(session.Edit)
		if turn := session.IsTurn(r.Body); turn || edits && asked[e.Target] {
			asked[r.ID] = asked[r.ID] || turn
			out = append(out, r)
		}
	}
	return append(out, kept[i:]...)
}

// SummaryText is the text in which a compaction's summary is sent.
func SummaryText(summary string) string { return summaryOpen + summary + summaryClose }

// item is one message on its way into the request.
type item struct {
	llm.Message
	turn int // which turn it belongs to, counted from the first one sent
}

// emit turns the context of s into messages, record by record.
func emit(s *session.Session, p Prompt) []item {
	c, recs := Sent(s)
	out := make([]item, 0, len(recs)+1)
	if c != nil {
		out = append(out, item{Message: llm.UserText(SummaryText(c.Summary))})
	}
	edits, turn := editsOf(recs), 0
	for _, r := range recs {
		if session.IsTurn(r.Body) {
			turn++
		}
		if role, blocks := send(r, edits, p); len(blocks) > 0 {
			out = append(out, item{llm.Message{Role: role, Blocks: blocks}, turn})
		}
	}
	return out
}

// editsOf returns the latest edit of each record, by the record's id.
func editsOf(recs []session.Record) map[string]session.Record {
	var edits map[string]session.Record
	for _, r := range recs {
		if e, ok := r.Body.(session.Edit); ok {
			if edits == nil {
				edits = map[string]session.Record{}
			}
			edits[e.Target] = r
		}
	}
	return edits
}

// send decides what is sent of r, without looking at its neighbours: the blocks
// and their role. If there are no blocks, nothing is sent. Requests are built and
// tokens are counted by it.
func send(r session.Record, edits map[string]session.Record, p Prompt) (role llm.Role, blocks []llm.Block) {
	var e session.Edit
	edit, edited := edits[r.ID]
	if edited {
		e = edit.Body.(session.Edit)
	}
	if e.Drop {
		return "", nil
	}
	switch b := r.Body.(type) {
	case session.Message:
		if edited {
			b.Blocks = replace(b.Blocks, e.Blocks)
		}
		return b.Role, messageBlocks(b, p)
	case session.CustomMessage:
		if edited {
			b.Blocks = e.Blocks
		}
		return llm.User, plain(b.Blocks, p)
	case session.BranchSummary:
		if b.Summary != "" {
			return llm.User, []llm.Block{llm.Text{Text: branchOpen + b.Summary + branchClose}}
		}
	case session.Shell:
		if !b.Excluded {
			return llm.User, []llm.Block{llm.Text{Text: shellText(b)}}
		}
	case session.Notice:
		if b.As != AsSystem {
			return llm.User, plain([]llm.Block{llm.Text{Text: b.Text}}, p)
		}
	}
	return "", nil
}

// replace returns blocks in place of old. A result stays a result.
func replace(old, blocks []llm.Block) []llm.Block {
	if len(old) == 1 {
		if r, ok := old[0].(llm.ToolResult); ok {
			r.Blocks = blocks
			return []llm.Block{r}
		}
	}
	return blocks
}

// messageBlocks returns the blocks of m that are sent.
func messageBlocks(m session.Message, p Prompt) []llm.Block {
	switch {
	case m.Excluded, m.Role == llm.System, m.Stop == llm.StopError, m.Synthetic():
		return nil
	case m.Role != llm.Assistant:
		return plain(m.Blocks, p)
	}
	same := m.Provider == p.Provider && m.Model == p.Model
	var out []llm.Block
	leads := true // thinking may only come before everything else
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Thinking:
			switch {
			case m.Stop == llm.StopAborted || b.Redacted && (!same || b.Signature == ""):
			case !same && !llm.Blank(b.Text):
				out = append(out, llm.Text{Text: b.Text})
				leads = false
			case same && b.Signature != "" && leads:
				out = append(out, b)
			}
		case llm.Text:
			if !llm.Blank(b.Text) {
				if !same {
					b.Signature = ""
				}
				out = append(out, b)
				leads = false
			}
		case llm.ToolCall:
			if m.Stop != llm.StopAborted {
				if !same {
					b.Signature = ""
				}
				out = append(out, b)
				leads = false
			}
		}
	}
	if leads { // only thinking: not an answer
		return nil
	}
	return llm.Sendable(llm.Message{Role: llm.Assistant, Blocks: out})
}

const noImage = "(image left out: this model reads text only)"

// plain returns the blocks of a user message that are sent.
func plain(blocks []llm.Block, p Prompt) []llm.Block {
	if p.NoImages {
		blocks = withoutImages(blocks)
	}
	return llm.Sendable(llm.Message{Role: llm.User, Blocks: blocks})
}

// withoutImages replaces images with a text.
func withoutImages(blocks []llm.Block) []llm.Block {
	out := make([]llm.Block, 0, len(blocks))
	for _, b := range blocks {
		switch v := b.(type) {
		case llm.Image:
			if v.Data == "" {
				continue
			}
			b = llm.Text{Text: noImage}
		case llm.ToolResult:
			v.Blocks = withoutImages(v.Blocks)
			b = v
		}
		out = append(out, b)
	}
	return out
}

// shellText is the text by which pi tells the model of a command that the user
// ran.
func shellText(b session.Shell) string {
	var t strings.Builder
	fmt.Fprintf(&t, "Ran `%s`\n", b.Command)
	if b.Output != "" {
		fmt.Fprintf(&t, "```\n%s\n```", b.Output)
	} else {
		t.WriteString("(no output)")
	}
	if b.Cancelled {
		t.WriteString("\n\n(command cancelled)")
	} else if b.ExitCode != nil && *b.ExitCode != 0 {
		fmt.Fprintf(&t, "\n\nCommand exited with code %d", *b.ExitCode)
	}
	if b.Truncated && b.FullOutput != "" {
		fmt.Fprintf(&t, "\n\n[Output truncated. Full output: %s]", b.FullOutput)
	}
	return t.String()
}
