package agent

import (
	"cmp"
	"errors"
	"slices"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

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

// How long an answer is asked for after a refusal: at least, and if the refusal
// has no numbers.
const (
	leastAnswer  = 256
	likelyAnswer = 4096
)

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

// tooLong is an overflow that was predicted: the model was not asked.
type tooLong struct{ llm.OverflowError }

func (e *tooLong) Unwrap() error { return &e.OverflowError }
