package claude

import (
	"bufio"
	"bytes"
	"cmp"
	"slices"

	"goclaw/session"
)

// forkRef is the type of the line that begins the file of a subagent which knows
// what its session knew: it names the session and the last line of the past.
const forkRef = "fork-context-ref"

// maxPast bounds the memory that the past of a subagent takes. A longer one is
// left out.
const maxPast = 32 << 20

// fork adds the past of a subagent: the branch of its session that ends with the
// line that l names. The file of a session only grows, so that the past is the
// same whenever it is read. Without that file the subagent has only its own lines.
func (c *stream) fork(out []session.Record, l claudeLine) []session.Record {
	if c.past == nil || c.forked || l.ParentLast == "" {
		return out
	}
	f, err := c.past(l.ParentSession)
	if err != nil {
		return out
	}
	defer f.Close()
	of := newStream(false, nil)
	of.copied = true
	var recs []session.Record
	size := 0
	for r := bufio.NewReaderSize(f, 64<<10); !of.at[hash(l.ParentLast)]; {
		line, err := r.ReadBytes('\n')
		if size += len(line); size > maxPast {
			return out
		}
		if len(bytes.TrimSpace(line)) > 0 {
			recs, _ = of.Line(0, line, recs) // a damaged line is reported with its own session
		}
		if err != nil {
			break
		}
	}
	if !of.at[hash(l.ParentLast)] {
		return out
	}
	recs = of.End(recs)
	byID := map[string]int{}
	for i, r := range recs {
		if r.ID != "" && !r.Side {
			byID[r.ID] = i
		}
	}
	last := cmp.Or(of.merged[hash(l.ParentLast)], l.ParentLast)
	var branch []session.Record
	for id := last; ; {
		i, ok := byID[id]
		if !ok {
			break
		}
		delete(byID, id)
		branch, id = append(branch, recs[i]), recs[i].Parent
	}
	slices.Reverse(branch)
	c.forked, c.leaf, c.at, c.merged, c.calls = len(branch) > 0, last, of.at, of.merged, of.calls
	return append(out, branch...)
}
