package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Turn records in and does what Next says until that is Rest. With an empty
// message it resumes what the log left open: calls that were running when it
// broke off are answered as interrupted, never run again, and a model that the
// user stopped is told to go on.
//
// If ctx is cancelled, the answer so far is recorded as stopped, and so are the
// calls that did not finish. The error is then ctx's.
func Turn(ctx context.Context, s *session.Session, in llm.Message, env Env) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := turn{ctx: ctx, s: s, env: env.Complete(), yield: yield}
		if t.begin(in) && t.loop() {
			yield(Done{Usage: t.usage, Stop: t.stop}, nil)
		}
	}
}

// turn is a turn in progress. Its methods return false when it is over: the
// error was yielded, or the consumer ended it.
type turn struct {
	ctx    context.Context
	s      *session.Session
	env    Env
	yield  func(Event, error) bool
	usage  llm.Usage
	used   window.Budget // as the last request was measured
	asked  int           // tokens that the last request left for the answer; 0: the provider's choice
	limit  int           // tokens of the answer after a refusal, until there is one; 0: as the budget has it
	stop   llm.Stop      // of the last answer to the user
	cut    bool          // long tool results were cut from the request that is being answered
	larger bool          // a compaction would have made the context larger: none is tried until the next answer
	futile int           // answers in a row with calls that cannot be run
	beyond int           // calls of the last answer that were not recorded: it had far too many
	left   bool          // parts of the request were left out in this turn because the API refused them
	again  bool          // the last answer was stopped before its first word, and is wanted after all

	miscounted bool // the provider reported usage that cannot be true
	doubted    bool // a refusal was not believed, and the request repeated
}

func (t *turn) fail(err error) bool {
	t.yield(nil, err)
	return false
}

func (t *turn) record(b session.Body) bool {
	last := t.s.Last
	if !t.yield(Recorded{Record: t.s.Next(b, t.env.Clock)}, nil) {
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
	last, _ := latest(t.s)
	if last == nil || last.Role != llm.Assistant || last.Stop != llm.StopAborted {
		return true
	}
	if strings.TrimSpace(last.Text()) != "" { // the model sees what it had said
		return t.record(session.Message{Message: llm.UserText("Go on."), At: t.env.Clock.Now()})
	}
	t.again = true
	return true
}

// steered records what the user has said meanwhile, unless calls wait for their
// results: what comes between the two breaks the request.
func (t *turn) steered() bool {
	if t.env.Steer == nil || len(t.s.Unanswered()) > 0 {
		return true
	}
	for t.ctx.Err() == nil {
		m := t.env.Steer()
		if len(m.Blocks) == 0 {
			break
		}
		m.Role = llm.User
		if !t.record(session.Message{Message: m, At: t.env.Clock.Now()}) {
			return false
		}
	}
	return true
}

func (t *turn) result(r llm.ToolResult) bool {
	return t.record(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{r}}, At: t.env.Clock.Now()})
}

func (t *turn) loop() bool {
	limit := cmp.Or(t.env.MaxSteps, 200)
	squeeze := window.Loose
	for asked := 0; ; {
		if !t.steered() {
			return false
		}
		b := t.measure()
		next := Next(t.s, b, squeeze, t.policy())
		if _, rests := next.(Rest); rests && t.again {
			next = Ask{Squeeze: squeeze}
		}
		switch a := next.(type) {
		case Rest:
			return true
		case Call:
			why := futile(a.Calls, t.env)
			if !t.call(a.Calls) {
				return false
			}
			if t.futile++; why == "" {
				t.futile = 0
			}
			if t.futile >= maxFutile {
				return t.fail(fmt.Errorf("%w: %d answers in a row, the last because %s", ErrFutile, t.futile, why))
			}
		case Warn:
			if last, _ := latest(t.s); asked == 0 && last != nil && last.Role == llm.Assistant {
				return true // nothing was asked: there is nothing to warn about
			}
			if !t.record(a.Threshold.Notice(t.env.Clock.Now())) {
				return false
			}
		case Compact:
			a.Cut.Uses = a.Cut.Estimate(t.env.Summarizer)
			if _, err := t.env.MayAsk(t.ctx, t.usage, a.Cut.Uses); err != nil {
				return t.fail(err)
			}
			if !t.compact(a.Cut) {
				return false
			}
			if !t.larger {
				squeeze = window.Loose
			}
		case Ask:
			if asked++; asked > limit {
				return t.fail(fmt.Errorf("%w: the model was asked %d times", ErrSteps, limit))
			}
			flush := flushing(t.s)
			err := t.ask(a.Squeeze, b)
			refused, places := refusedPlaces(t.s, t.env.Prompt, a.Squeeze, err)
			if t.left {
				places = nil // once in a turn
			}
			t.again = t.again && (errors.Is(err, llm.ErrOverflow) || len(places) > 0)
			switch {
			case err == errOver:
				return false
			case len(places) > 0:
				if !t.leaveOut(places, refused) {
					return false
				}
			case err != nil && flush && t.ctx.Err() == nil:
				return true // the user has the answer; a precaution may fail, or cost too much
			case errors.Is(err, llm.ErrOverflow):
				var ok bool
				if squeeze, ok = t.tighter(a.Squeeze, b, err); !ok {
					return false
				}
			case err != nil:
				return t.fail(err)
			}
		}
	}
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

// refusedPlaces returns what err says that the API refuses of a request and what
// of that can be left out.
func refusedPlaces(s *session.Session, p window.Prompt, q window.Squeeze, err error) (refused *llm.RefusedError, places []window.Place) {
	if !errors.As(err, &refused) {
		return nil, nil
	}
	return refused, window.Refused(s, p, q, refused)
}

// leaveOut records that the API refuses the blocks at places. Build leaves them
// out from here on.
func (t *turn) leaveOut(places []window.Place, refused *llm.RefusedError) bool {
	t.left = true
	ev := LeftOut{Err: refused}
	for _, at := range places {
		i := slices.IndexFunc(t.s.Branch, func(r session.Record) bool { return r.ID == at.Record })
		part := Part{Seq: t.s.Branch[i].Seq}
		if m, ok := t.s.Branch[i].Body.(session.Message); ok && at.Block < len(m.Blocks) {
			part.Block = m.Blocks[at.Block]
		}
		ev.Parts = append(ev.Parts, part)
		if !t.record(session.Refused{Target: at.Record, Block: at.Block, Why: refused.Why}) {
			return false
		}
	}
	return t.yield(ev, nil)
}

// tighter returns how to squeeze the request after one that was too long. ok is
// false if the turn is over.
func (t *turn) tighter(q window.Squeeze, b window.Budget, err error) (next window.Squeeze, ok bool) {
	if d, ok := t.doubts(q, err); ok {
		t.doubted = true
		return q, t.yield(d, nil)
	}
	if !t.learn(b, err) {
		return q, false
	}
	if o := (*llm.OverflowError)(nil); errors.As(err, &o) {
		n := t.shorter(q, b, o)
		switch {
		case n > 0:
			t.limit = n
			return q, t.yield(Squeezed{To: q, Answer: n, Err: err}, nil)
		case o.Most > 0: // a shorter prompt would not help
			return q, t.fail(err)
		}
	}
	if next, ok := t.stage(q, b); ok {
		t.limit = 0 // a shorter prompt leaves more for the answer
		return next, t.yield(Squeezed{To: next, Err: err}, nil)
	}
	e := &FullError{Budget: t.measure(), Compactions: compactions(t.s), Err: err}
	_, recs := window.Sent(t.s)
	e.Alone = len(recs) > 0 && t.env.Tokens != nil && b.Window > 0 && lastSize(t.s, t.env) > b.Window
	return q, t.fail(e)
}

// shorter returns how long an answer may be after a request that was refused
// for the length of its answer; 0 if that was not the reason, or if the prompt
// leaves too little and can be made shorter.
func (t *turn) shorter(q window.Squeeze, b window.Budget, o *llm.OverflowError) int {
	n := 0
	switch {
	case o.Most > 0:
		n = o.Most
	case o.Answer == 0:
		return 0
	case o.Window > 0:
		b.Window, b.Reserve = t.env.Budget.Window, t.env.Budget.Reserve // as just learnt
		if b.Window <= 0 || b.Window > o.Window {
			b.Window = o.Window
		}
		b.Used, b.Counted = max(t.used.Used, o.Tokens), t.used.Counted
		if _, ok := t.stage(q, b); ok && b.Scarce() {
			return 0
		}
		n = b.Free()
	case t.limit > 0: // it was not the answer
		return 0
	default: // one of the two is too long, and nobody says which
		n = min(o.Answer/4, likelyAnswer)
	}
	if t.limit > 0 && o.Most == 0 {
		n = min(n, t.limit/2) // what was asked for last was too much
	}
	if asked := cmp.Or(t.asked, o.Answer); asked > 0 && n >= asked || n < leastAnswer && o.Most == 0 {
		return 0
	}
	return n
}

// stage returns the next squeeze after q that sends less.
func (t *turn) stage(q window.Squeeze, b window.Budget) (next window.Squeeze, ok bool) {
	for next := q + 1; next <= window.Tight; next++ {
		_, compacts := t.policy().plan(t.s, b)
		if next == window.Compact && compacts || length(window.Build(t.s, t.env.Prompt, next)) < length(window.Build(t.s, t.env.Prompt, q)) {
			return next, true
		}
	}
	return q, false
}

// length returns the bytes of text in a request: one that is not shorter is not
// worth sending.
func length(req llm.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += llm.SizeOf(m.Blocks).Text
	}
	return n
}

// lastSize returns how many tokens the last record of the context needs.
func lastSize(s *session.Session, env Env) int {
	l := window.Weigh(s, env.Prompt, env.Tokens, env.Budget.Window)
	for i := len(l.Records) - 1; i >= 0; i-- {
		if l.Records[i] > 0 {
			return l.Records[i] + l.Fixed
		}
	}
	return 0
}

// How long an answer is asked for after a refusal: at least, and if the refusal
// has no numbers.
const (
	leastAnswer  = 256
	likelyAnswer = 4096
)

// policy returns how the turn stays inside the window from here on.
func (t *turn) policy() Policy {
	p := t.env.policy()
	if t.larger {
		p.Compact = nil
	}
	return p
}

// compact compacts the past, unless that would make the context larger. If no
// model can write the summary it is an extract, so that otherwise only the user,
// or a store that fails, prevents a compaction.
func (t *turn) compact(c compact.Cut) bool {
	if !t.yield(Compacting{c}, nil) {
		return false
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	left := false
	c.Retrying = func(r llm.Retry) {
		if left = left || !t.yield(Retrying{r}, nil); left {
			cancel()
		}
	}
	body, err := c.Compact(ctx, t.env.Summarizer)
	if left {
		return false
	}
	var larger *compact.LargerError
	if errors.As(err, &larger) {
		t.usage = t.usage.Add(larger.Usage)
		t.larger = true
		return t.yield(NotCompacted{larger}, nil)
	}
	if err != nil {
		return t.fail(err)
	}
	t.usage = t.usage.Add(body.Usage)
	return t.record(body)
}

// measure returns how full the window is.
func (t *turn) measure() window.Budget {
	if t.env.Tokens == nil {
		return t.env.Budget
	}
	return window.Measure(t.s, t.env.Prompt, t.env.Tokens, t.env.Budget)
}

// errOver: the consumer ended the turn.
var errOver = errors.New("agent: over")

// tooLong is an overflow that was predicted: the model was not asked.
type tooLong struct{ llm.OverflowError }

func (e *tooLong) Unwrap() error { return &e.OverflowError }

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

// How much of an answer is recorded at a time while it comes: a crash costs no
// more than stepBytes of what was shown, and of a slow answer no more than what
// came within stepTime, or leastStep.
const (
	stepBytes = 4 << 10
	stepTime  = time.Second
	leastStep = 256
)

// partial collects an answer as it comes.
type partial struct {
	done []llm.Block
	open strings.Builder // the block that is coming
	kind llm.Block       // its kind; nil: no block is open

	begun    bool // the model has begun to answer
	reported llm.Usage

	fresh   session.Partial // what is not recorded yet; its Offset is what is
	stepped time.Time       // when something was recorded last
}

// step adds d to what is not recorded yet, and returns what is to be recorded
// before d is shown, if that is enough.
func (p *partial) step(d llm.Delta, c session.Clock) (due session.Partial, ok bool) {
	if d.Text == "" && d.Thinking == "" {
		return due, false
	}
	if d.Thinking != "" && p.fresh.Text != "" && p.fresh.Size() >= leastStep {
		due, ok = p.take(), true // thinking comes first in a part
	}
	p.fresh.Text += d.Text
	p.fresh.Thinking += d.Thinking
	if ok || p.fresh.Size() < leastStep {
		return due, ok
	}
	if now := c.Now(); p.fresh.Size() >= stepBytes || now.Sub(p.stepped) >= stepTime {
		p.stepped = now
		return p.take(), true
	}
	return due, false
}

// take returns what is not recorded yet, as if it were.
func (p *partial) take() session.Partial {
	due := p.fresh
	p.fresh = session.Partial{Offset: due.Offset + due.Size()}
	return due
}

func (p *partial) add(d llm.Delta) {
	p.begun = true
	switch {
	case d.Begun != nil:
		p.reported = *d.Begun
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
