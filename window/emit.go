package window

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// item is one message on its way into the request.
type item struct {
	llm.Message
	turn int // which turn it belongs to, counted from the first one sent
}

// The words that pi puts around what is not a message. Logs are shared with
// it, so that a model sees the same text from either program.
const (
	summaryOpen  = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
	summaryClose = "\n</summary>"
	branchOpen   = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	branchClose  = "</summary>"
)

// Sent returns the records of s that the context is made of, and the
// compaction in effect, if any: what it keeps and what came after it. They
// are those of pi and OpenClaw: older compactions among what is kept say
// nothing, and a reset keeps only what was said. Before the record at which our
// own compactions resume, only the question that was open is kept.
func Sent(s *session.Session) (fold *session.Compaction, recs []session.Record) {
	at, keep, ok := s.Compaction()
	if !ok {
		return nil, s.Branch
	}
	recs = s.Branch[at+1:]
	kept := s.Branch[keep:at]
	switch b := s.Branch[at].Body.(type) {
	case session.Compaction:
		fold = &b
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
	return fold, append(kept[:len(kept):len(kept)], recs...)
}

// resumed leaves of kept, before the record with the id at, only what the user
// said, and the edits of that.
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

// SummaryText is what is sent of a compaction's summary.
func SummaryText(summary string) string { return summaryOpen + summary + summaryClose }

// emit turns records into messages, one by one, without looking at their
// neighbours.
func emit(s *session.Session, p Prompt) []item {
	fold, recs := Sent(s)
	var out []item
	turn := 0
	add := func(role llm.Role, blocks ...llm.Block) {
		if len(blocks) > 0 {
			out = append(out, item{llm.Message{Role: role, Blocks: blocks}, turn})
		}
	}
	if fold != nil {
		add(llm.User, llm.Text{Text: SummaryText(fold.Summary)})
	}
	edits := editsOf(recs)
	for _, r := range recs {
		if session.IsTurn(r.Body) {
			turn++
		}
		e, edited := edits[r.ID]
		if edited && e.Drop {
			continue
		}
		switch b := r.Body.(type) {
		case session.Message:
			if edited {
				b.Blocks = edit(b.Blocks, e.Blocks)
			}
			add(b.Role, messageBlocks(b, p)...)
		case session.CustomMessage:
			if edited {
				b.Blocks = e.Blocks
			}
			add(llm.User, plain(b.Blocks, p)...)
		case session.BranchSummary:
			if b.Summary != "" {
				add(llm.User, llm.Text{Text: branchOpen + b.Summary + branchClose})
			}
		case session.Shell:
			if !b.Excluded {
				add(llm.User, llm.Text{Text: shellText(b)})
			}
		case session.Notice:
			if b.As != "system" {
				add(llm.User, plain([]llm.Block{llm.Text{Text: b.Text}}, p)...)
			}
		}
	}
	return out
}

// editsOf returns the latest edit of each record.
func editsOf(recs []session.Record) map[string]session.Edit {
	var edits map[string]session.Edit
	for _, r := range recs {
		if e, ok := r.Body.(session.Edit); ok {
			if edits == nil {
				edits = map[string]session.Edit{}
			}
			edits[e.Target] = e
		}
	}
	return edits
}

// edit puts new content in place of old. A result stays a result.
func edit(old, blocks []llm.Block) []llm.Block {
	if len(old) == 1 {
		if r, ok := old[0].(llm.ToolResult); ok {
			r.Blocks = blocks
			return []llm.Block{r}
		}
	}
	return blocks
}

// messageBlocks returns what of m is sent.
func messageBlocks(m session.Message, p Prompt) []llm.Block {
	switch {
	case m.Excluded, m.Role == llm.System, m.Stop == llm.StopError, injected(m):
		return nil
	case m.Role != llm.Assistant:
		return plain(m.Blocks, p)
	}
	same := m.Provider == p.Provider && m.Model == p.Model
	var out []llm.Block
	leads := true // thinking may only stand before everything else
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
	if leads { // thinking alone is no answer
		return nil
	}
	return llm.Sendable(llm.Message{Role: llm.Assistant, Blocks: out})
}

// injected reports whether a program wrote m in the model's name, for people
// only.
func injected(m session.Message) bool {
	return m.Provider == "openclaw" && (m.Model == "gateway-injected" || m.Model == "delivery-mirror")
}

const noImage = "(image left out: this model reads text only)"

// plain returns what of a user message is sent.
func plain(blocks []llm.Block, p Prompt) []llm.Block {
	if p.NoImages {
		blocks = withoutImages(blocks)
	}
	return llm.Sendable(llm.Message{Role: llm.User, Blocks: blocks})
}

// withoutImages puts words in the place of images.
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

// shellText is how pi tells the model of a command that the user ran.
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
