package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

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
