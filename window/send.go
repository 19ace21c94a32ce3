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
			m, ok := r.Body.(session.Message)
			if _, refused := r.Body.(session.Refused); ok && m.Role != llm.System || refused {
				said = append(said, r)
			}
		}
		kept = said
	}
	return c, slices.Concat(kept, s.Branch[at+1:])
}

// resumed drops from kept, before the record with the id at, everything except
// the user's messages and what changes them.
func resumed(kept []session.Record, at string) []session.Record {
	i := slices.IndexFunc(kept, func(r session.Record) bool { return r.ID == at })
	if at == "" || i < 0 {
		return kept
	}
	var out []session.Record
	asked := map[string]bool{}
	for _, r := range kept[:i] {
		if turn := session.IsTurn(r.Body); turn || asked[changed(r.Body)] {
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
	turn   int     // which turn it belongs to, counted from the first one sent
	record string  // the id of its record, the last one of an answer in parts; "" for a summary
	from   []Place // the block in the log that each block was made of
}

func (it item) place(block int) Place { return it.from[block] }

// emit turns the context of s into messages, record by record.
func emit(s *session.Session, p Prompt) []item {
	c, recs := Sent(s)
	out := make([]item, 0, len(recs)+1)
	if c != nil {
		out = append(out, item{Message: llm.UserText(SummaryText(c.Summary)), from: []Place{{}}})
	}
	changes, turn := changesOf(recs), 0
	for _, r := range recs {
		if session.IsTurn(r.Body) {
			turn++
		}
		if role, blocks, from := send(r, changes[r.ID], p); len(blocks) > 0 {
			it := item{Message: llm.Message{Role: role, Blocks: blocks}, turn: turn, record: r.ID, from: make([]Place, len(from))}
			for i, block := range from {
				it.from[i] = Place{r.ID, block}
			}
			if !goesOn(out, it, r) {
				out = append(out, it)
			}
		}
	}
	return out
}

// goesOn adds it to the answer in out that its record continues, and reports
// whether there is one: only results may lie between.
func goesOn(out []item, it item, r session.Record) bool {
	m, ok := r.Body.(session.Message)
	if !ok || m.Continues == "" {
		return false
	}
	for i := len(out) - 1; i >= 0; i-- {
		switch {
		case out[i].record == m.Continues && out[i].Role == llm.Assistant:
			a := &out[i]
			a.Blocks, a.from = slices.Concat(a.Blocks, it.Blocks), slices.Concat(a.from, it.from)
			a.record = it.record
			return true
		case len(out[i].Results()) < len(out[i].Blocks):
			return false
		}
	}
	return false
}

// change is what later records change in what is sent of a record.
type change struct {
	seq     session.Seq // of the last of them; 0: there are none
	edit    *session.Edit
	refused []session.Refused // since the edit
}

// changed returns the id of the record that b changes, or "".
func changed(b session.Body) string {
	switch b := b.(type) {
	case session.Edit:
		return b.Target
	case session.Refused:
		return b.Target
	}
	return ""
}

// changesOf returns what changes each record, by the record's id. The latest
// edit counts, and what was refused of it.
func changesOf(recs []session.Record) map[string]change {
	var changes map[string]change
	for _, r := range recs {
		target := changed(r.Body)
		if target == "" {
			continue
		}
		if changes == nil {
			changes = map[string]change{}
		}
		c := changes[target]
		switch b := r.Body.(type) {
		case session.Edit:
			c = change{edit: &b}
		case session.Refused:
			c.refused = append(c.refused[:len(c.refused):len(c.refused)], b)
		}
		c.seq = r.Seq
		changes[target] = c
	}
	return changes
}

// apply returns what is sent in place of blocks.
func (c change) apply(blocks []llm.Block) []llm.Block {
	if c.edit != nil {
		blocks = replace(blocks, c.edit.Blocks)
	}
	for i, r := range c.refused {
		if i == 0 {
			blocks = slices.Clone(blocks)
		}
		if r.Block >= 0 && r.Block < len(blocks) {
			blocks[r.Block] = leftOut(blocks[r.Block], r.Why)
		}
	}
	return blocks
}

// leftOut returns what is sent in place of a block that an API refuses. The
// result of a call that is left out has no call, and is left out with it.
func leftOut(b llm.Block, why string) llm.Block {
	say := func(what string) llm.Text {
		return llm.Text{Text: fmt.Sprintf("[%s left out: the API refused it: %s]", what, why)}
	}
	switch b := b.(type) {
	case llm.ToolResult:
		b.Blocks = []llm.Block{say("result")}
		return b
	case llm.ToolCall:
		return say("a call of " + b.Name)
	case llm.Thinking:
		return llm.Other{}
	case llm.Image:
		return say("image")
	}
	return say("text")
}

// send decides what is sent of r, without looking at its neighbours: the blocks,
// their role, and which block of r each was made of. If there are no blocks,
// nothing is sent. Requests are built and tokens are counted by it.
func send(r session.Record, c change, p Prompt) (role llm.Role, blocks []llm.Block, from []int) {
	if c.edit != nil && c.edit.Drop {
		return "", nil, nil
	}
	role = llm.User
	switch b := r.Body.(type) {
	case session.Message:
		role, b.Blocks = b.Role, c.apply(b.Blocks)
		blocks, from = messageBlocks(b, p)
	case session.CustomMessage:
		if c.edit != nil {
			b.Blocks = c.edit.Blocks
			c.edit = nil
		}
		blocks, from = plain(c.apply(b.Blocks), p)
	case session.BranchSummary:
		if b.Summary != "" {
			blocks, from = plain(c.words(branchOpen+b.Summary+branchClose), p)
		}
	case session.Shell:
		if !b.Excluded {
			blocks, from = plain(c.words(shellText(b)), p)
		}
	case session.Notice:
		if b.As != AsSystem {
			blocks, from = plain(c.words(b.Text), p)
		}
	}
	return role, blocks, from
}

// words returns what is sent of a record that is one text, which no edit
// changes.
func (c change) words(text string) []llm.Block {
	c.edit = nil
	return c.apply([]llm.Block{llm.Text{Text: text}})
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

// messageBlocks returns the blocks of m that are sent, and the block of m that
// each was made of.
func messageBlocks(m session.Message, p Prompt) (blocks []llm.Block, from []int) {
	switch {
	case m.Excluded, m.Role == llm.System, m.Stop == llm.StopError, m.Synthetic():
		return nil, nil
	case m.Role != llm.Assistant:
		return plain(m.Blocks, p)
	}
	same := m.Provider == p.Provider && m.Model == p.Model
	out := make([]llm.Block, len(m.Blocks)) // nil: not sent
	leads := true                           // nothing but thinking came so far
	for i, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Thinking:
			switch {
			case m.Stop == llm.StopAborted || b.Redacted && (!same || b.Signature == ""):
			case !same && !llm.Blank(b.Text):
				out[i] = llm.Text{Text: b.Text}
				leads = false
			case same && b.Signature != "" && (leads || p.ThinksAnywhere):
				out[i] = b
			}
		case llm.Text:
			if !llm.Blank(b.Text) {
				if !same {
					b.Signature = ""
				}
				out[i] = b
				leads = false
			}
		case llm.ToolCall:
			if m.Stop != llm.StopAborted {
				if !same {
					b.Signature = ""
				}
				out[i] = b
				leads = false
			}
		}
	}
	if leads { // only thinking: not an answer
		return nil, nil
	}
	return llm.Trace(llm.Message{Role: llm.Assistant, Blocks: out})
}

const noImage = "(image left out: this model reads text only)"

// plain returns the blocks of a user message that are sent, and the block that
// each was made of.
func plain(blocks []llm.Block, p Prompt) (sent []llm.Block, from []int) {
	if p.NoImages {
		blocks = withoutImages(blocks)
	}
	return llm.Trace(llm.Message{Role: llm.User, Blocks: blocks})
}

// withoutImages replaces images with a text.
func withoutImages(blocks []llm.Block) []llm.Block {
	out := make([]llm.Block, 0, len(blocks))
	for _, b := range blocks {
		switch v := b.(type) {
		case llm.Image:
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
