package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Turn records in and does whatever Next says until it says Rest. With an
// empty message it goes on with what the log left open: calls that were
// running when it broke off are answered as interrupted, never run again.
//
// If ctx is cancelled, what was said so far is recorded as stopped, and calls
// that did not finish as such. The error then is ctx's.
func Turn(ctx context.Context, s *session.Session, in llm.Message, env Env) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := turn{ctx: ctx, s: s, env: env, yield: yield}
		if t.begin(in) && t.loop() {
			yield(Done{Usage: t.usage}, nil)
		}
	}
}

// turn is one turn under way. Its methods return false when it is over, the
// error or the consumer's wish already passed on.
type turn struct {
	ctx   context.Context
	s     *session.Session
	env   Env
	yield func(Event, error) bool
	usage llm.Usage
}

func (t *turn) fail(err error) bool {
	t.yield(nil, err)
	return false
}

func (t *turn) record(b session.Body) bool {
	last := t.s.Last
	if !t.yield(Recorded{t.s.Next(b, t.env.Clock)}, nil) {
		return false
	}
	if t.s.Last == last {
		return t.fail(fmt.Errorf("agent: record %d was not applied", last+1))
	}
	return true
}

func (t *turn) begin(in llm.Message) bool {
	if len(in.Blocks) > 0 {
		return t.record(session.Message{Message: in, At: t.env.Clock.Now()})
	}
	for _, c := range t.s.Unanswered() {
		if !t.result(llm.Failed(c, window.Interrupted)) {
			return false
		}
	}
	return true
}

func (t *turn) result(r llm.ToolResult) bool {
	return t.record(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{r}}, At: t.env.Clock.Now()})
}

func (t *turn) loop() bool {
	limit := t.env.MaxSteps
	if limit == 0 {
		limit = 200
	}
	squeeze := window.Loose
	for asked := 0; ; {
		switch a := Next(t.s, squeeze).(type) {
		case Rest:
			return true
		case Call:
			if !t.call(a.Calls) {
				return false
			}
		case Ask:
			if asked++; asked > limit {
				return t.fail(fmt.Errorf("%w: the model was asked %d times", ErrSteps, limit))
			}
			err := t.ask(a.Squeeze)
			if errors.Is(err, llm.ErrOverflow) && a.Squeeze < window.Results {
				squeeze = a.Squeeze + 1
				if !t.yield(Squeezed{To: squeeze, Err: err}, nil) {
					return false
				}
				continue
			}
			if err != nil {
				if err != errOver {
					t.yield(nil, err)
				}
				return false
			}
		}
	}
}

// errOver: the consumer ended the turn.
var errOver = errors.New("agent: over")

// ask puts one question to the model and records the answer. An answer that
// was stopped or broke off is recorded with what came of it.
func (t *turn) ask(q window.Squeeze) error {
	p := t.env.Prompt
	if t.env.Tools != nil {
		p.Tools = t.env.Tools.Specs()
	}
	budget := t.env.Budget
	if t.env.Tokens != nil {
		budget = window.Measure(t.s, p, t.env.Tokens, budget)
		if budget.Window > 0 {
			p.Tail = budget.String()
		}
	}
	req := window.Build(t.s, p, q)
	began := t.env.Clock.Now()
	var part partial
	for d, err := range t.env.Provider.Stream(t.ctx, req) {
		if err != nil {
			return t.broken(&part, began, err)
		}
		if d.End != nil {
			t.usage = t.usage.Add(d.End.Usage)
			if !t.answer(*d.End, began, "") {
				return errOver
			}
			return nil
		}
		part.add(d)
		if !t.yield(Said{d}, nil) {
			return errOver
		}
	}
	return t.broken(&part, began, fmt.Errorf("agent: the answer of %s ended without an end: %w", p.Model, llm.ErrNetwork))
}

// broken records what came of an answer that did not end.
func (t *turn) broken(part *partial, began time.Time, err error) error {
	stop, text := llm.StopError, err.Error()
	if t.ctx.Err() != nil {
		err = t.ctx.Err()
		stop, text = llm.StopAborted, "stopped by the user"
	}
	blocks := part.blocks()
	if len(blocks) == 0 {
		return err
	}
	a := llm.Answer{Message: llm.Message{Role: llm.Assistant, Blocks: blocks}, Stop: stop}
	if !t.answer(a, began, text) {
		return errOver
	}
	return err
}

func (t *turn) answer(a llm.Answer, began time.Time, problem string) bool {
	a.Message.Role = llm.Assistant
	return t.record(session.Message{
		Message: a.Message, At: began, Usage: a.Usage, Stop: a.Stop, Error: problem,
		Provider: t.env.Prompt.Provider, Model: t.env.Prompt.Model, API: t.env.API,
	})
}

// call runs calls side by side and records their results in order, each as
// soon as it and those before it are there.
func (t *turn) call(calls []llm.ToolCall) bool {
	type outcome struct {
		llm.ToolResult
		err error
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	outs := make([]chan outcome, len(calls))
	for i, c := range calls {
		if !t.yield(Calling{c}, nil) {
			return false
		}
		outs[i] = make(chan outcome, 1)
		go func() {
			r, err := t.run(ctx, c)
			outs[i] <- outcome{r, err}
		}()
	}
	var failed error
	for i, c := range calls {
		out := <-outs[i]
		r := out.ToolResult
		if out.err != nil {
			if failed == nil {
				failed = out.err
			}
			r = llm.Failed(c, "stopped: "+out.err.Error())
			if t.ctx.Err() != nil {
				r = llm.Failed(c, "stopped by the user")
			}
			cancel()
		}
		r.CallID, r.Name = c.ID, c.Name
		if !t.yield(Called{c, r}, nil) || !t.result(r) {
			return false
		}
	}
	if t.ctx.Err() != nil {
		failed = t.ctx.Err()
	}
	if failed != nil {
		return t.fail(failed)
	}
	return true
}

// run calls one tool. A tool that panics has failed; the conversation has not.
func (t *turn) run(ctx context.Context, c llm.ToolCall) (r llm.ToolResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = llm.Failed(c, fmt.Sprintf("the tool %s panicked: %v\n%s", c.Name, p, debug.Stack())), nil
		}
	}()
	if t.env.Tools == nil {
		return llm.Failed(c, "there are no tools here"), nil
	}
	return t.env.Tools.Run(ctx, c)
}

// partial collects an answer as it comes.
type partial struct {
	done []llm.Block
	open strings.Builder // the block being said
	kind llm.Block       // whose kind this is; nil: none
}

func (p *partial) add(d llm.Delta) {
	switch {
	case d.Text != "":
		p.say(llm.Text{}, d.Text)
	case d.Thinking != "":
		p.say(llm.Thinking{}, d.Thinking)
	case d.Call != nil:
		p.close()
		p.done = append(p.done, *d.Call)
	}
}

func (p *partial) say(kind llm.Block, text string) {
	if p.kind != kind {
		p.close()
		p.kind = kind
	}
	p.open.WriteString(text)
}

func (p *partial) close() {
	switch p.kind.(type) {
	case llm.Text:
		p.done = append(p.done, llm.Text{Text: p.open.String()})
	case llm.Thinking:
		p.done = append(p.done, llm.Thinking{Text: p.open.String()})
	}
	p.kind = nil
	p.open.Reset()
}

func (p *partial) blocks() []llm.Block {
	p.close()
	return p.done
}
