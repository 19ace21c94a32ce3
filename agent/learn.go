package agent

import (
	"errors"
	"fmt"

	"goclaw/llm"
	"goclaw/window"
)

// Windows that refusals name. Below leastWindow a refusal means something else.
// One below smallWindow is believed for a turn only: no model in use has one.
const (
	leastWindow = 1000
	smallWindow = 2000
)

// doubts reports whether a refusal is hard to believe. Its request is repeated
// once: a server's mistake must not compact the past. One that follows another
// refusal is believed.
func (t *turn) doubts(q window.Squeeze, err error) (Doubted, bool) {
	var predicted *tooLong
	var o *llm.OverflowError
	if t.doubted || q > window.Loose || errors.As(err, &predicted) || !errors.As(err, &o) || o.Most > 0 {
		return Doubted{}, false
	}
	if b := t.env.Budget; b.Window > 0 && o.Window >= b.Window {
		return Doubted{}, false // it is known to be this small
	}
	why := t.implausible(o.Window)
	if why == "" {
		why = t.env.contradicted(o, t.used.Used)
	}
	return Doubted{Provider: t.env.Prompt.Provider, Model: t.env.Prompt.Model, Window: o.Window, Why: why, Err: err}, why != ""
}

// contradicted says how a refusal contradicts used, our own count of the request;
// "" if it does not. Counts of the same text differ by less than a factor of two.
func (e Env) contradicted(o *llm.OverflowError, used int) string {
	known := e.Budget.Window
	switch {
	case e.Tokens == nil || used == 0:
	case o.Tokens > 2*used+leastWindow:
		return fmt.Sprintf("the request has about %s tokens, not %s", window.Short(used), window.Short(o.Tokens))
	case o.Window == 0 && o.Tokens == 0 && o.Answer == 0 && used < known/4:
		return fmt.Sprintf("the request has about %s of %s tokens", window.Short(used), window.Short(known))
	}
	return ""
}

// implausible says why a window cannot be the model's; "" if it can.
func (t *turn) implausible(w int) string {
	switch {
	case w == 0:
		return ""
	case w < t.env.Accepted:
		return fmt.Sprintf("it took %s tokens before", window.Short(t.env.Accepted))
	case w < smallWindow:
		return "that is too little to be believed"
	}
	return ""
}

// took notes that the model took a prompt, as long as u reports it. b is how the
// request was measured: a report above the window, or far above our own count,
// is the server's mistake.
func (e *Env) took(u llm.Usage, b window.Budget) {
	n := u.Prompt()
	if u.Estimated || n <= e.Accepted || b.Window > 0 && n > b.Window || e.Tokens != nil && n > 2*b.Used+leastWindow {
		return
	}
	e.Accepted = n
	if e.Took != nil {
		e.Took(n)
	}
}

// learn adopts what a refusal says about the model, for this turn at least.
func (t *turn) learn(b window.Budget, err error) bool {
	var predicted *tooLong
	if errors.As(err, &predicted) {
		return true
	}
	l := Learnt{Provider: t.env.Prompt.Provider, Model: t.env.Prompt.Model, Err: err}
	var o *llm.OverflowError
	errors.As(err, &o)
	switch {
	case o != nil && o.Most > 0:
		if want := t.env.Prompt.MaxTokens; want > 0 && want <= o.Most {
			return true
		}
		t.env.Prompt.MaxTokens, l.Answer, l.Exact = o.Most, o.Most, true
		if o.Most < leastAnswer {
			l.Once = "that is too little to be believed"
		}
		return t.yield(l, nil)
	case o != nil && o.Window > 0:
		l.Window, l.Exact = o.Window, true
	case o != nil && o.Answer > 0: // it may have been the answer
	case b.Used > 0:
		l.Window = max(b.Used-b.Used/20, t.env.Accepted) // what did not fit, and a little less
	}
	if l.Window < leastWindow || t.env.Budget.Window > 0 && l.Window >= t.env.Budget.Window {
		return true
	}
	l.Once = t.implausible(l.Window)
	if t.env.Fixed {
		l.Once = fmt.Sprintf("%s are configured", window.Short(t.env.Budget.Window))
	}
	t.env.Budget.Window = l.Window
	t.env.Budget.Reserve = min(t.env.Budget.Reserve, l.Window/4)
	return t.yield(l, nil)
}
