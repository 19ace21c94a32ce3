package tui

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/repl"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/call"
	"goclaw/internal/tui/look"
)

// calls are the tool calls of the session, as far as they happened here.
type calls struct {
	open []repl.Call // under way
	past []repl.Call // the last ones that ended, for the viewer
	size int         // bytes of their results
}

// How much of the calls that ended can be looked at while a turn runs. Between
// turns, /show reads the session.
const (
	keptCalls = 200
	keptBytes = 16 << 20
)

// update keeps up with a call, and reports whether it has ended.
func (cs *calls) update(c repl.Call) (ended bool) {
	i := slices.IndexFunc(cs.open, func(o repl.Call) bool { return o.ID == c.ID })
	switch {
	case c.State != repl.CallRecorded && i < 0:
		cs.open = append(cs.open, c)
		return false
	case c.State != repl.CallRecorded:
		cs.open[i] = c
		return false
	case i >= 0:
		cs.open = slices.Delete(cs.open, i, i+1)
	}
	cs.past = append(cs.past, c)
	cs.size += len(c.Result.Text())
	for len(cs.past) > keptCalls || cs.size > keptBytes && len(cs.past) > 1 {
		cs.size -= len(cs.past[0].Result.Text())
		cs.past = slices.Delete(cs.past, 0, 1)
	}
	return true
}

// drawn returns the lines of the calls under way.
func (cs *calls) drawn(beat, width int, st transcript.Style) (out []string) {
	for _, c := range cs.open {
		out = append(out, call.Live(drawing(c), time.Now(), beat, width, st)...)
	}
	return out
}

func drawing(c repl.Call) call.Call {
	return call.Call{ToolCall: c.ToolCall, Title: c.Title, Began: c.Began, Tail: c.Tail, Result: c.Result, Took: c.Took}
}

// call keeps up with a tool call: it is drawn until its result is recorded, and
// printed then.
func (v *live) call(c repl.Call) {
	v.finish()
	if v.calls.update(c) {
		for _, line := range call.Ended(drawing(c), v.width, v.style) {
			v.print(line)
		}
	}
}

// abandon prints the calls that will not end.
func (v *live) abandon() {
	for _, c := range v.calls.open {
		v.print(v.paint(v.style.Yellow("– ") + v.style.Bold(transcript.OneLine(c.Title, max(v.width-16, 1))) + v.style.Dim("  not finished")))
	}
	v.calls.open = nil
}

// viewer returns an Overlay of calls that begins with the one at i.
func viewer(st transcript.Style, calls []repl.Call, i int) *look.Viewer {
	return look.New(st, len(calls), i, func(i int) look.Doc { return call.Doc(calls[i].ToolCall, calls[i].Result) })
}

// lastOutput opens the newest output. While a turn runs, only the outputs that
// were shown here can be opened.
func lastOutput(m *model) (bool, tea.Cmd) {
	if m.command("/show") {
		return true, nil
	}
	past := slices.Clone(m.calls.past)
	if len(past) == 0 {
		m.hint = "no tool has finished yet"
		return true, nil
	}
	m.open(viewer(m.style, past, len(past)-1), false, nil)
	return true, nil
}

// ShowCalls opens calls in a viewer, beginning with the one at i.
func (u *UI) ShowCalls(ctx context.Context, calls []repl.Call, i int) error {
	return u.Open(ctx, viewer(u.model.style, calls, i))
}
