package window

import (
	"goclaw/llm"
	"goclaw/session"
)

// Place is where a block of a request is in the log: the id of the record, and
// the index among its blocks. Record is "" if no record holds the block: the
// summary of a compaction, or what was added to make the request valid.
type Place struct {
	Record string
	Block  int
}

// Refused returns the places of the blocks that e names in the request that
// Build makes of s, p and q. They are to be left out of the next one. There are
// none if e names nothing that can be left out: the user's last words are what
// is asked, and a summary stands for much else.
//
// If e names no message, but says that an image is bad, these are the images
// that no answer has accepted yet, and all images if there are none of those.
func Refused(s *session.Session, p Prompt, q Squeeze, e *llm.RefusedError) []Place {
	messages, places := build(s, p, q)
	question := ""
	if i := lastTurn(s.Branch); i >= 0 {
		question = s.Branch[i].ID
	}
	var out []Place
	seen := map[Place]bool{}
	take := func(m, b int) {
		at := places[m][b]
		_, text := messages[m].Blocks[b].(llm.Text)
		if at.Record != "" && !seen[at] && !(text && at.Record == question) {
			seen[at] = true
			out = append(out, at)
		}
	}
	images := func(from, to int) {
		for i := from; i < to; i++ {
			for j, b := range messages[i].Blocks {
				if llm.SizeOf([]llm.Block{b}).Images > 0 {
					take(i, j)
				}
			}
		}
	}
	switch m := e.Message; {
	case m >= len(messages):
	case m < 0 && e.Image:
		if images(len(messages)-1, len(messages)); len(out) == 0 {
			images(0, len(messages)-1)
		}
	case m < 0:
	case e.Block >= 0:
		if e.Block < len(messages[m].Blocks) {
			take(m, e.Block)
		}
	default: // the message, and nothing more: its images are the likeliest
		if images(m, m+1); len(out) == 0 {
			for j := range messages[m].Blocks {
				take(m, j)
			}
		}
	}
	return out
}
