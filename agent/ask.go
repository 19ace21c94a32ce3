package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// trust is how far beyond the window, in percent, an estimate must be to be
// believed when nothing is left to squeeze.
const trust = 15

// request builds what is sent. Its context line says how full the window is
// with this very request. The error is a *tooLong if it cannot fit, because some
// servers would cut it silently, or if it leaves too little for an answer and
// can be made shorter.
func (t *turn) request(q window.Squeeze, b window.Budget) (llm.Request, error) {
	req := window.Build(t.s, t.env.Prompt, q)
	t.cut = q > window.Loose && length(req) < length(window.Build(t.s, t.env.Prompt, window.Loose))
	counts := t.env.Tokens != nil && b.Window > 0
	if counts && q > window.Loose {
		b.Used = window.Estimate(t.s, t.env.Prompt, t.env.Tokens, req)
		b.Counted = b.Used
	}
	t.used = b
	req.Tail = strings.Trim(t.env.Prompt.Tail+"\n"+window.Tail(t.s, b, !t.env.NoLine && t.env.Tokens != nil), "\n")
	if !counts {
		return req, nil
	}
	limit := b.Window
	if q >= window.Compact || t.policy().Compact == nil {
		limit += limit * trust / 100
	}
	long := b.Used > limit
	if b.Scarce() && !long {
		_, long = t.stage(q, b)
	}
	if long {
		return req, &tooLong{llm.OverflowError{Tokens: b.Used, Window: b.Window}}
	}
	req.MaxTokens = b.Answer(t.env.Prompt.MaxTokens)
	return req, nil
}

// ask asks the model once and records the answer. Of an answer that was stopped
// or broke off, what came is recorded.
func (t *turn) ask(q window.Squeeze, b window.Budget) error {
	req, err := t.request(q, b)
	if err != nil {
		return err
	}
	if t.limit > 0 && (req.MaxTokens == 0 || req.MaxTokens > t.limit) {
		req.MaxTokens = t.limit
	}
	most, err := t.env.MayAsk(t.ctx, t.usage, t.env.next(t.s, req, t.used.Used))
	if err != nil {
		return err
	}
	if most > 0 && (req.MaxTokens == 0 || most < req.MaxTokens) {
		req.MaxTokens = most
	}
	t.asked = req.MaxTokens
	began := t.env.Clock.Now()
	part := partial{stepped: began, fresh: session.Partial{Provider: t.env.Prompt.Provider, Model: t.env.Prompt.Model}}
	var held quiet
	for d, err := range t.env.Provider.Stream(t.ctx, req) {
		if err != nil {
			return t.broken(&part, req, began, err)
		}
		if d.Retry != nil {
			if !t.yield(Retrying{*d.Retry}, nil) {
				return errOver
			}
			continue
		}
		if d.End != nil {
			t.limit = 0
			if rest := held.end(); rest != "" && !t.yield(Said{llm.Delta{Text: rest}}, nil) {
				return errOver
			}
			return t.complete(*d.End, req, began)
		}
		if step, ok := part.step(d, t.env.Clock); ok && !t.record(step) {
			return errOver
		}
		part.add(d)
		if d.Begun != nil {
			continue
		}
		for _, d := range held.pass(d) {
			if !t.yield(Said{d}, nil) {
				return errOver
			}
		}
	}
	return t.broken(&part, req, began, fmt.Errorf("agent: the answer of %s broke off: %w", req.Model, llm.ErrNetwork))
}

// MayAsk asks Before whether the next request may be sent.
func (e Env) MayAsk(ctx context.Context, used, next llm.Usage) (answer int, err error) {
	if e.Before == nil {
		return 0, nil
	}
	return e.Before(ctx, used, next)
}

// cached is how long providers keep a prompt in their cache, at least.
const cached = 5 * time.Minute

// next returns what req, a request of that many tokens, will probably use. What
// the last answer's prompt held is read from the cache, if that had any.
func (e Env) next(s *session.Session, req llm.Request, tokens int) llm.Usage {
	u := llm.Usage{Input: tokens, Output: req.MaxTokens, Estimated: true}
	for _, r := range slices.Backward(s.Branch) {
		switch m := r.Body.(type) {
		case session.Compaction:
			return u
		case session.Message:
			if m.Role != llm.Assistant {
				continue
			}
			if m.Model == req.Model && e.Clock.Now().Sub(m.At) < cached {
				u.CacheRead = min(m.Usage.CacheRead+m.Usage.CacheWrite, u.Input)
				u.Input -= u.CacheRead
			}
			return u
		}
	}
	return u
}

// tooMany is how often the window, at most, a model is believed to have counted.
const tooMany = 100

// believable reports whether u can be the usage of one call.
func (e Env) believable(u llm.Usage) bool {
	return u.Within(tooMany * cmp.Or(e.Budget.Window, 10_000_000))
}

// estimated returns what an answer with blocks to req has probably used.
func (e Env) estimated(s *session.Session, req llm.Request, blocks []llm.Block) llm.Usage {
	u := llm.Usage{Estimated: true}
	if e.Tokens != nil {
		u.Input = window.Estimate(s, e.Prompt, e.Tokens, req)
		u.Output = window.Estimate(s, e.Prompt, e.Tokens, llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Blocks: blocks}}})
	}
	return u
}

// complete records an answer that came to its end.
func (t *turn) complete(a llm.Answer, req llm.Request, began time.Time) error {
	flush := flushing(t.s)
	if !flush {
		t.stop = a.Stop
	}
	if u := a.Usage; !t.env.believable(u) {
		a.Usage = t.env.estimated(t.s, req, a.Message.Blocks)
		if !t.miscounted && !t.yield(Miscounted{u}, nil) {
			return errOver
		}
		t.miscounted = true
	}
	t.env.took(a.Usage, t.used)
	a.Usage = t.priced(a.Usage)
	t.usage = t.usage.Add(a.Usage)
	a.Message.Blocks, t.beyond = boundCalls(a.Message.Blocks, 2*t.env.maxCalls())
	if !t.answer(a, began, "") {
		return errOver
	}
	silent := !flush && len(a.Message.Calls()) == 0 && window.IsNoReply(a.Message.Text())
	if silent && !t.yield(Silent{}, nil) {
		return errOver
	}
	return nil
}

// maxCalls is how many calls of one answer are run.
func (e Env) maxCalls() int { return cmp.Or(e.MaxCalls, 128) }

// boundCalls returns blocks with at most n calls, and how many it left out:
// thousands, each with the answer that it was not run, would fill the window.
func boundCalls(blocks []llm.Block, n int) (kept []llm.Block, beyond int) {
	for _, b := range blocks {
		if _, ok := b.(llm.ToolCall); ok {
			if n--; n < 0 {
				beyond++
				continue
			}
		}
		kept = append(kept, b)
	}
	return kept, beyond
}

// priced returns u with its cost, if that is known.
func (t *turn) priced(u llm.Usage) llm.Usage {
	if t.env.Price != nil {
		u.Cost = t.env.Price(u)
	}
	return u
}

// spent returns what an answer that broke off has used: what the provider has
// reported, and an estimate of the rest. It is nothing if the model had not
// begun.
func (t *turn) spent(part *partial, req llm.Request, blocks []llm.Block) llm.Usage {
	if !part.begun {
		return llm.Usage{}
	}
	u := part.reported
	if !t.env.believable(u) {
		u = llm.Usage{Estimated: true}
	}
	if t.env.Tokens != nil {
		estimate := func(req llm.Request) int { return window.Estimate(t.s, t.env.Prompt, t.env.Tokens, req) }
		if u.Prompt() == 0 {
			u.Input, u.Estimated = estimate(req), true
		}
		if n := estimate(llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Blocks: blocks}}}); len(blocks) > 0 && n > u.Output {
			u.Output, u.Estimated = n, true
		}
	}
	return t.priced(u)
}

// quiet holds an answer back as long as it may become NO_REPLY.
type quiet struct {
	text string
	open bool // it is something else
}

// pass returns what can be shown now: d, with what was held back before it.
func (h *quiet) pass(d llm.Delta) []llm.Delta {
	switch {
	case h.open || d.Thinking != "":
		return []llm.Delta{d}
	case d.Text != "":
		h.text += d.Text
		if window.MayBeNoReply(h.text) {
			return nil
		}
		d.Text = h.text
	case strings.TrimSpace(h.text) != "": // a call follows: the model is not silent
		return append([]llm.Delta{{Text: h.end()}}, d)
	}
	h.text, h.open = "", true
	return []llm.Delta{d}
}

// end returns what is still held back and is not NO_REPLY.
func (h *quiet) end() string {
	text := h.text
	h.text, h.open = "", true
	if window.IsNoReply(text) {
		return ""
	}
	return text
}

// broken records what came of an answer that broke off. One that the user
// stopped is recorded even if nothing came: this distinguishes it from a crash.
func (t *turn) broken(part *partial, req llm.Request, began time.Time, err error) error {
	stop, text := llm.StopError, err.Error()
	if t.ctx.Err() != nil {
		err = t.ctx.Err()
		stop, text = llm.StopAborted, "stopped by the user"
	}
	blocks := part.blocks()
	if len(blocks) == 0 && stop == llm.StopError {
		return err // the question waits for an answer
	}
	a := llm.Answer{Message: llm.Message{Role: llm.Assistant, Blocks: blocks}, Stop: stop, Usage: t.spent(part, req, blocks)}
	if !t.answer(a, began, text) {
		return errOver
	}
	return err
}

func (t *turn) answer(a llm.Answer, began time.Time, problem string) bool {
	t.larger = false
	a.Message.Role = llm.Assistant
	return t.record(session.Message{
		Message: a.Message, At: began, Usage: a.Usage, Stop: a.Stop, Error: problem, Cut: t.cut,
		Provider: t.env.Prompt.Provider, Model: t.env.Prompt.Model, API: t.env.API,
	})
}
