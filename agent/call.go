package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

func (t *turn) result(r llm.ToolResult) bool {
	return t.record(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{r}}, At: t.env.Clock.Now()})
}

// maxFutile is how many answers in a row may hold only calls that cannot be run.
// The model is told each time why; one that has not understood it by then will
// not.
const maxFutile = 5

// futile says why none of calls can be run; "" if one can.
func futile(calls []llm.ToolCall, env Env) string {
	check, ok := env.Tools.(Checker)
	why := ""
	for _, c := range calls {
		switch why = ""; {
		case strings.TrimSpace(c.Name) == "":
			why = "a call has no name"
		case !slices.ContainsFunc(env.Prompt.Tools, func(t llm.ToolSpec) bool { return t.Name == c.Name }):
			why = fmt.Sprintf("there is no tool %.80q", c.Name)
		case ok:
			if problem := check.Check(c); problem != "" {
				why = fmt.Sprintf("%s does not take such arguments", c.Name)
			}
		}
		if why == "" {
			return ""
		}
	}
	return why
}

// call runs calls in order, but neighbours that change nothing in parallel.
// Results are recorded in the order of the calls, each as soon as it and those
// before it are known.
func (t *turn) call(calls []llm.ToolCall) bool {
	ctx, cancel := context.WithCancel(t.ctx)
	var running sync.WaitGroup
	defer running.Wait() // no tool outlives its turn
	defer cancel()
	cut, why := cutCall(t.s)
	limit := min(t.env.maxCalls(), len(calls))
	calls, rest := calls[:limit], calls[limit:]
	var failed error
	printed := make(chan Printed)
	for len(calls) > 0 {
		n := parallel(t.env.Tools, calls)
		now := calls[:n]
		calls = calls[n:]
		over := cmp.Or(failed, ctx.Err())
		outs := make([]chan outcome, n)
		for i, c := range now {
			outs[i] = make(chan outcome, 1)
			if over != nil { // calls that have not begun are not run
				outs[i] <- outcome{err: over}
				continue
			}
			if !t.yield(Calling{c}, nil) {
				return false
			}
			if why != "" && c.ID == cut {
				outs[i] <- outcome{ToolResult: llm.Failed(c, why)}
				continue
			}
			running.Go(func() { outs[i] <- t.run(ctx, c, printed) })
		}
		for i, c := range now {
			out, ok := await(outs[i], printed, t.yield)
			if !ok {
				return false
			}
			r := out.ToolResult
			if out.err != nil {
				if failed == nil {
					failed = out.err
				}
				why := "stopped: " + out.err.Error()
				if t.ctx.Err() != nil {
					why = "stopped by the user"
				}
				r = stopped(r, why)
				cancel()
			}
			r.CallID, r.Name = c.ID, c.Name
			if !t.yield(Called{c, r, out.took}, nil) || !t.result(r) {
				return false
			}
		}
	}
	for i, c := range rest { // the user sees the first
		r := llm.Failed(c, fmt.Sprintf("not run: too many calls in one answer. It has %d, and only the first %d were run. Look at their results, and call again for what is still needed.", limit+len(rest)+t.beyond, limit))
		if i == 0 && !t.yield(Called{Call: c, Result: r}, nil) || !t.result(r) {
			return false
		}
	}
	if t.ctx.Err() != nil {
		failed = t.ctx.Err()
		if !t.answer(llm.Answer{Stop: llm.StopAborted}, t.env.Clock.Now(), "stopped by the user") {
			return false
		}
	}
	if failed != nil {
		return t.fail(failed)
	}
	return true
}

// outcome is what came of a call.
type outcome struct {
	llm.ToolResult
	err  error
	took time.Duration
}

// await shows what tools print until out is there. It returns false if nobody
// looks on.
func await(out <-chan outcome, printed <-chan Printed, yield func(Event, error) bool) (outcome, bool) {
	for {
		select {
		case o := <-out:
			return o, true
		case p := <-printed:
			if !yield(p, nil) {
				return outcome{}, false
			}
		}
	}
}

// parallel returns how many of the first calls run in parallel, at least 1: one
// that may change something runs alone.
func parallel(tools Tools, calls []llm.ToolCall) int {
	m, ok := tools.(Mutator)
	if !ok {
		return len(calls)
	}
	n := 0
	for n < len(calls) && !m.Mutates(calls[n]) {
		n++
	}
	return max(n, 1)
}

// stopped returns r, which may be incomplete, with a note why it was stopped.
func stopped(r llm.ToolResult, why string) llm.ToolResult {
	var blocks []llm.Block
	for _, b := range r.Blocks {
		if t, ok := b.(llm.Text); !ok || strings.TrimSpace(t.Text) != "" {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) > 0 { // the note follows what the tool said
		why = "(" + why + ")"
	}
	r.IsError, r.Blocks = true, append(blocks, llm.Text{Text: why})
	return r
}

// run runs one tool. A tool that panics has failed; the turn continues.
func (t *turn) run(ctx context.Context, c llm.ToolCall, printed chan<- Printed) (out outcome) {
	began := t.env.Clock.Now()
	defer func() {
		out.took = t.env.Clock.Now().Sub(began)
		if p := recover(); p != nil {
			out.ToolResult, out.err = llm.Failed(c, fmt.Sprintf("the tool %s panicked: %v\n%s", c.Name, p, debug.Stack())), nil
		}
	}()
	if t.env.Tools == nil {
		return outcome{ToolResult: llm.Failed(c, "there are no tools here")}
	}
	ctx = llm.WithProgress(ctx, llm.Progress{
		Begun: func() { began = t.env.Clock.Now() },
		Output: func(tail string, bytes int64) {
			select {
			case printed <- Printed{c, tail, bytes}:
			case <-ctx.Done():
			}
		},
	})
	out.ToolResult, out.err = t.env.Tools.Run(ctx, c)
	return out
}

// cutCall returns the call in which the newest answer reached the limit on its
// length, and what the model is told about it; "" if there is none. Arguments
// that are an object with something in it are complete; empty ones may have been
// cut.
func cutCall(s *session.Session) (id, why string) {
	var last session.Message
	for i := len(s.Branch) - 1; i >= 0 && last.Role != llm.Assistant; i-- {
		last, _ = s.Branch[i].Body.(session.Message)
	}
	calls := last.Calls()
	if last.Stop != llm.StopLength || len(calls) == 0 {
		return "", ""
	}
	c := calls[len(calls)-1]
	var args map[string]json.RawMessage
	err := json.Unmarshal(c.Args, &args)
	_, raw := args["_raw"] // what a provider hands on in place of an object
	if err == nil && len(args) > 0 && !(len(args) == 1 && raw) {
		return "", ""
	}
	limit := "the limit on its length (max_tokens)"
	if last.Usage.Output > 0 {
		limit += fmt.Sprintf(" after %d tokens", last.Usage.Output)
	}
	return c.ID, "not run: your answer reached " + limit + " in the middle of this call, so its arguments are incomplete. Call again with less in one answer: say less before the call, and split long content over several calls."
}
