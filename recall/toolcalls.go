package recall

import (
	"cmp"
	"context"
	"strings"

	"goclaw/session"
)

// shellTool is the tool that a command counts as which the user ran outside the
// conversation.
const shellTool = "bash"

// toolCalls are the names of the tools that a log calls, by the ids of the
// calls. Most programs do not write the name into the result.
type toolCalls map[string]string

// maxCalls is how many calls are remembered.
const maxCalls = 1 << 15

// of returns the tools that r calls or has the output of, and whether it
// answers a call that is not known. Records come in their order.
func (c toolCalls) of(r session.Record) (tools []string, unknown bool) {
	switch b := r.Body.(type) {
	case session.Shell:
		return []string{shellTool}, false
	case session.Message:
		for _, call := range b.Calls() {
			if len(c) >= maxCalls {
				clear(c)
			}
			// A record may share the memory of its line.
			c[strings.Clone(call.ID)] = strings.Clone(call.Name)
			tools = append(tools, call.Name)
		}
		for _, res := range b.Results() {
			name := cmp.Or(res.Name, c[res.CallID])
			if name == "" {
				unknown = true
				continue
			}
			tools = append(tools, name)
		}
	}
	return tools, unknown
}

// callSpan is how many records before the first one read a call may be.
const callSpan = 512

// callsBefore are the calls of a log that is read from the record from on. The
// calls before it are looked up when a result needs them.
type callsBefore struct {
	st     session.Store
	id     session.ID
	from   session.Seq
	calls  toolCalls
	looked bool
}

// of returns the tools that r calls or has the output of.
func (c *callsBefore) of(ctx context.Context, r session.Record) []string {
	if c.calls == nil {
		c.calls = toolCalls{}
	}
	tools, unknown := c.calls.of(r)
	if !unknown || c.looked || c.from <= 1 {
		return tools
	}
	c.looked = true
	for before, err := range c.st.Read(ctx, c.id, max(0, c.from-1-callSpan)) {
		if before.Seq >= c.from {
			break
		}
		if err == nil { // what cannot be read calls nothing
			c.calls.of(before)
		}
	}
	tools, _ = c.calls.of(r)
	return tools
}
