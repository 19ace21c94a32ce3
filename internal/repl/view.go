package repl

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/internal/secrets"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/window"
)

// view is everything that the chat shows. Its methods say what is shown; the
// style and the width of the terminal stay in here.
type view struct {
	screen      Display
	style       transcript.Style
	interactive bool
	terminal    func() int // its columns; nil: there is no terminal
	model       func() Model
	hint        func(error) string
	thinking    atomic.Bool      // is shown
	calls       map[string]*Call // that are not recorded, by their ids
	allowed     atomic.Bool      // the user has seen the diff of the call that runs, and allowed it
}

func newView(o Options) *view {
	v := &view{style: o.Style, interactive: o.Interactive, terminal: o.Width, model: o.Model, hint: o.Hint, calls: map[string]*Call{}}
	if v.screen = o.Display; v.screen != nil {
		return v
	}
	v.screen = &screen{out: terminal.NewWriter(o.Out), notes: terminal.NewWriter(o.Err), style: o.Style, columns: v.columns}
	return v
}

// columns is the width that lines are wrapped to; 0: they are not.
func (v *view) columns() int {
	if v.terminal == nil || !v.interactive {
		return 0
	}
	return v.terminal()
}

func (v *view) width() int {
	if v.terminal == nil {
		return 100
	}
	return v.terminal()
}

// note shows something that nobody asked for.
func (v *view) note(format string, args ...any) {
	v.tell(v.style.Dim(transcript.Printable(fmt.Sprintf(format, transcript.Fields(args)...))))
}

// tell is note for text that is printable and painted already.
func (v *view) tell(text string) { v.screen.Note(transcript.Wrap(text, v.columns())) }

// print shows what was asked for.
func (v *view) print(format string, args ...any) {
	v.screen.Print(transcript.Wrap(fmt.Sprintf(format, args...), v.columns()))
}

// problem shows an error in one line, and what can be done about it.
func (v *view) problem(err error) {
	text, _ := secrets.Redact(strings.ReplaceAll(err.Error(), "\n", "; "))
	v.tell(v.style.Red("error: " + cell(text, 1000)))
	if v.hint != nil {
		if h := v.hint(err); h != "" {
			v.note("  %s", h)
		}
	}
}

// stopped shows that the user stopped something.
func (v *view) stopped(text string) { v.tell(v.style.Red(text)) }

// busy shows a spinner until done is called, which also ends the line of an
// answer.
func (v *view) busy(label string) (done func()) { return v.screen.Busy(label) }

// awaitModel shows that the model's answer is awaited.
func (v *view) awaitModel() { v.screen.Wait("waiting for " + v.model().Name) }

// event shows one event of a turn.
func (v *view) event(ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Said:
		switch {
		case ev.Text != "":
			v.screen.Said(ev.Text)
			v.screen.Wait("answering")
		case ev.Thinking != "" && v.thinking.Load():
			v.screen.Thought(ev.Thinking)
		case ev.Thinking != "":
			v.screen.Wait("thinking")
		}
	case agent.Calling:
		v.allowed.Store(false)
		c := &Call{ToolCall: ev.Call, Title: transcript.CallLine(ev.Call), Began: time.Now()}
		v.calls[ev.Call.ID] = c
		v.screen.Call(*c)
	case agent.Called:
		c := v.calls[ev.Call.ID]
		if c == nil {
			c = &Call{Title: transcript.CallLine(ev.Call)}
			v.calls[ev.Call.ID] = c
		}
		c.ToolCall, c.State, c.Took, c.Tail = ev.Call, CallEnded, ev.Took, ""
		v.screen.Call(*c)
		v.awaitModel()
	case agent.Printed:
		if c := v.calls[ev.Call.ID]; c != nil && ev.Tail != "" {
			c.Tail = ev.Tail
			v.screen.Call(*c)
		}
	case agent.Silent:
		v.note("[%s]", transcript.Event(ev))
	case agent.Recorded:
		v.recorded(ev.Record)
	default:
		if text := transcript.Event(ev); text != "" {
			v.note("%s", text)
		}
		switch ev.(type) {
		case agent.Compacting:
			v.screen.Wait("compacting")
		case runner.Waiting:
			v.screen.Wait("waiting for the session")
		}
	}
}

// recorded says about a record what the answer itself did not show.
func (v *view) recorded(rec session.Record) {
	switch b := rec.Body.(type) {
	case session.Compaction:
		v.note("the earlier turns are now a summary; nothing was deleted, and /undo brings them back")
	case session.Message:
		v.results(rec.Seq, b)
		if b.Role != llm.Assistant {
			return
		}
		v.screen.Finish()
		switch {
		case b.Stop == llm.StopLength && len(b.Calls()) > 0:
			v.note("[the answer reached its length limit and was cut off; the model is told and continues]")
		case b.Stop == llm.StopLength:
			v.note("[the answer reached its length limit and was cut off; say \"continue\" for more]")
		case b.Stop == llm.StopEnd && b.Text() == "" && len(b.Calls()) == 0:
			v.note("[the model gave an empty answer]")
		}
	}
}

// results shows what the calls did whose results are in m, record seq.
func (v *view) results(seq session.Seq, m session.Message) {
	for _, r := range m.Results() {
		c := v.calls[r.CallID]
		if c == nil {
			continue
		}
		delete(v.calls, r.CallID)
		c.State, c.Result, c.Record, c.Seen = CallRecorded, r, seq, v.allowed.Swap(false) && !r.IsError
		if c.Seen {
			c.Lines = []string{transcript.Changed(r, v.style)}
		} else {
			c.Lines = transcript.Result(c.ToolCall, r, c.Took, fmt.Sprintf(": /show %d", seq), v.style)
		}
		v.screen.Call(*c)
	}
}

// preview shows the last exchange of a session, a line each.
func (v *view) preview(s *session.Session) {
	user, answer := "", ""
	for _, rec := range s.Branch {
		m, ok := rec.Body.(session.Message)
		if !ok || strings.TrimSpace(m.Text()) == "" || m.Excluded || window.Silent(m.Message) {
			continue
		}
		if session.IsTurn(m) {
			user, answer = m.Text(), ""
		} else if m.Role == llm.Assistant {
			answer = m.Text()
		}
	}
	n := max(v.width()-6, 20)
	if user != "" {
		v.note("  > %s", cell(user, n))
	}
	if answer != "" {
		v.note("    %s", cell(answer, n))
	}
}

// history shows records as a conversation; before is how many turns precede them.
func (v *view) history(recs []session.Record, before int) {
	if before > 0 {
		v.print("%s", v.style.Dim("… "+transcript.Count(before, "earlier turn")+": /history all"))
	}
	var b strings.Builder
	transcript.Plain(&b, recs, v.style, false, v.columns())
	v.screen.Print(strings.TrimRight(b.String(), "\n"))
}

// table shows rows, of which the first is the head.
func (v *view) table(rows [][]string) {
	for _, line := range transcript.Table(rows, v.style, v.columns()) {
		v.print("%s", line)
	}
}

// terms shows names, each with its explanation.
func (v *view) terms(rows [][2]string) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		about := r[1]
		if room := v.columns() - width - 4; room >= 20 { // else there is no room for a column
			about = strings.ReplaceAll(transcript.Wrap(about, room), "\n", "\n"+strings.Repeat(" ", width+4))
		}
		v.print("  %s%s  %s", v.style.Bold(r[0]), strings.Repeat(" ", width-len(r[0])), about)
	}
}

// pictures is a Display that can draw.
type pictures interface {
	// DrawWindow shows what fills the window of model.
	DrawWindow(x window.Breakdown, model string)
	// DrawCompaction shows what a compaction would do.
	DrawCompaction(r compact.Report, b window.Budget)
}

// compaction shows what a compaction would do, and reports whether that was a
// picture. Plain lines are shown only if they were asked for.
func (v *view) compaction(r compact.Report, b window.Budget, asked bool) (pictured bool) {
	if p, ok := v.screen.(pictures); ok {
		p.DrawCompaction(r, b)
		return true
	}
	for _, line := range transcript.WouldCompact(r) {
		if asked {
			v.print("%s", line)
		}
	}
	return false
}

// window shows what fills the window of model.
func (v *view) window(x window.Breakdown, model string) {
	if p, ok := v.screen.(pictures); ok {
		p.DrawWindow(x, model)
		return
	}
	bar := 40
	if c := v.columns(); c > 0 {
		bar = min(bar, c-2)
	}
	for i, line := range transcript.Window(x, bar) {
		if i > 0 {
			line = v.style.Dim(line)
		}
		v.print("%s", line)
	}
}

// checkpoints lists the checkpoints of a session.
func (v *view) checkpoints(s *session.Session) {
	for _, line := range transcript.Checkpoints(s, v.style) {
		v.print("%s", line)
	}
}

// hits shows what a search for query found.
func (v *view) hits(hits []recall.Hit, query string) {
	for i, h := range hits {
		v.screen.Print(transcript.Hit(i+1, h, query, v.style, v.columns()))
	}
}

// groups shows what a search for query found, by session.
func (v *view) groups(groups []recall.Group, query string) {
	for i, g := range groups {
		v.screen.Print(transcript.Group(i+1, g, query, v.style, v.columns(), time.Now()))
	}
}

// passage is one line or message around a hit.
type passage struct {
	number int
	role   string // "" for a line of a file
	text   string
	hit    bool
}

// around shows what surrounds h, a hit of a search for query. Other messages are
// cut, and of a long hit the lines are shown that match.
func (v *view) around(lines []passage, h recall.Hit, query string) {
	for _, l := range lines {
		mark, text := " ", transcript.Printable(l.text)
		switch {
		case l.hit && l.role != "":
			mark, text = ">", transcript.Opened(h, query, v.style, v.columns())
			if strings.Contains(text, "\n") {
				text = "\n" + text
			}
		case l.hit:
			mark, text = ">", transcript.Marked(h, l.text, query, v.style)
		case l.role != "":
			text = transcript.OneLine(text, 2*v.width())
		}
		if l.role != "" {
			text = v.style.Green(l.role) + "  " + text
		}
		v.print("%s %s %s", mark, v.style.Dim(fmt.Sprintf("%4d", l.number)), text)
	}
}

// cell is text from a log in one line of at most n columns.
func cell(s string, n int) string { return transcript.OneLine(transcript.Printable(s), n) }
