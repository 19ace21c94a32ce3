package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
)

// Modes is what is done without asking; a tool.Set has it.
type Modes interface {
	Mode() tool.Mode
	SetMode(m tool.Mode)
	Confinement() tool.Confinement
}

// toolCommands are the commands about what tools do and did.
type toolCommands struct {
	o    *Options
	cur  *current
	view *view
}

var modeNames = []string{"ask", "edits", "plan", "all"}

// unasked says what is done without asking now, and what commands cannot do.
func unasked(m Modes) string {
	if limits := m.Confinement().String(); limits != "" {
		return doesUnasked(m.Mode()) + "; " + limits
	}
	return doesUnasked(m.Mode())
}

func doesUnasked(m tool.Mode) string {
	switch m {
	case tool.ModeEdits:
		return "changes files unasked, and asks before it runs commands"
	case tool.ModePlan:
		return "only reads, and neither changes files nor runs commands"
	case tool.ModeAll:
		return "changes files and runs commands unasked"
	}
	return "asks before it runs commands or changes files"
}

// mode shows or changes what is done without asking.
func (t *toolCommands) mode(_ context.Context, arg string) error {
	if t.o.Modes == nil {
		return errors.New("there are no tools here")
	}
	if arg != "" {
		m, err := tool.ParseMode(arg)
		if err != nil {
			return err
		}
		t.o.Modes.SetMode(m)
	}
	t.view.print("%v: %s", t.o.Modes.Mode(), unasked(t.o.Modes))
	return nil
}

// shower is a Display that can open the outputs of tools, beginning with the one
// at i.
type shower interface {
	ShowCalls(ctx context.Context, calls []Call, i int) error
}

// show shows the whole of a record: what a tool returned, or a message. Without
// a number it is what a tool returned last.
func (t *toolCommands) show(ctx context.Context, arg string) error {
	n, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
	if arg != "" && (err != nil || n < 1) {
		return fmt.Errorf("/show takes the number of a record, not %q", arg)
	}
	s, err := t.cur.whole(ctx)
	if err != nil {
		return err
	}
	calls := callsOf(s)
	i := len(calls) - 1
	switch {
	case arg != "":
		i = slices.IndexFunc(calls, func(c Call) bool { return c.Record == session.Seq(n) })
	case i < 0:
		return errors.New("no tool was called in this session")
	}
	if v, ok := t.view.screen.(shower); ok && i >= 0 {
		return v.ShowCalls(ctx, calls, i)
	}
	if arg == "" {
		n = int64(calls[i].Record)
	}
	return t.print(s, session.Seq(n))
}

// callsOf returns the tool calls of s that have results.
func callsOf(s *session.Session) (out []Call) {
	made := map[string]llm.ToolCall{}
	for _, rec := range s.Branch {
		m, ok := rec.Body.(session.Message)
		if !ok {
			continue
		}
		for _, c := range m.Calls() {
			made[c.ID] = c
		}
		for _, r := range m.Results() {
			c, ok := made[r.CallID]
			if !ok {
				c = llm.ToolCall{ID: r.CallID, Name: r.Name}
			}
			out = append(out, Call{ToolCall: c, Title: transcript.CallLine(c), State: CallRecorded, Result: r, Record: rec.Seq})
		}
	}
	return out
}

// print shows the record with that number.
func (t *toolCommands) print(s *session.Session, n session.Seq) error {
	for _, rec := range s.Branch {
		if rec.Seq != n {
			continue
		}
		m, ok := rec.Body.(session.Message)
		if !ok {
			break
		}
		for _, r := range m.Results() {
			t.view.print("%s", transcript.Printable(strings.TrimRight(r.Text(), "\n")))
		}
		if text := strings.TrimSpace(m.Text()); text != "" {
			t.view.print("%s", transcript.Printable(text))
		}
		return nil
	}
	return fmt.Errorf("record %d is not a message of this session: /history shows the numbers", n)
}
