package session

import "goclaw/llm"

// bodySize is a lower bound of the bytes that b takes in a line.
func bodySize(b Body) int {
	switch b := b.(type) {
	case Message:
		return blocksSize(b.Blocks) + len(b.Details)
	case CustomMessage:
		return blocksSize(b.Blocks) + len(b.Details)
	case Shell:
		return len(b.Command) + len(b.Output)
	case Compaction:
		return len(b.Summary) + len(b.Details)
	case Checkpoint:
		return len(b.Summary)
	case BranchSummary:
		return len(b.Summary) + len(b.Details)
	case Custom:
		return len(b.Data)
	case Notice:
		return len(b.Text)
	case Title:
		return len(b.Title)
	}
	return 0
}

func blocksSize(blocks []llm.Block) int {
	n := llm.SizeOf(blocks)
	return n.Text + n.Thinking + n.Data
}
