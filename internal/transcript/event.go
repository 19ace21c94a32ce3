package transcript

import (
	"fmt"
	"math"
	"strings"
	"time"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/window"
)

// Event describes in one line an event of a turn that is neither an answer nor a
// tool call; "" for any other event.
func Event(ev agent.Event) string {
	switch ev := ev.(type) {
	case agent.Squeezed:
		switch {
		case ev.Answer > 0:
			return fmt.Sprintf("the requested answer is too long for the model: asking again for at most %s tokens", window.Short(ev.Answer))
		case ev.To == window.Compact: // agent.Compacting follows, if anything is compacted
			return "too long for the model: asking again with less"
		}
		return "too long for the model: asking again with shorter tool results"
	case agent.Compacting:
		if price := Price(ev.Cut.Uses); price != "" {
			return "the window is full: compacting the past (" + price + ")"
		}
		return "the window is full: compacting the past"
	case agent.Retrying:
		return fmt.Sprintf("%s, again in %s (%d of %d)", OneLine(Printable(ev.Why), 60), seconds(ev.Wait), ev.Try, ev.Of)
	case agent.NotCompacted:
		return ev.Err.Error()
	case agent.Learnt:
		var what []string
		if ev.Window > 0 {
			what = append(what, fmt.Sprintf("takes only %s tokens", window.Short(ev.Window)))
		}
		if ev.Answer > 0 {
			what = append(what, fmt.Sprintf("answers with at most %s tokens", window.Short(ev.Answer)))
		}
		if len(what) == 0 {
			return ""
		}
		if ev.Once != "" {
			return fmt.Sprintf("%s/%s %s in this turn (not remembered: %s)", ev.Provider, ev.Model, strings.Join(what, " and "), ev.Once)
		}
		return fmt.Sprintf("%s/%s %s: remembered", ev.Provider, ev.Model, strings.Join(what, " and "))
	case agent.Doubted:
		long := "too long"
		if ev.Window > 0 {
			long = fmt.Sprintf("longer than %s tokens", window.Short(ev.Window))
		}
		return fmt.Sprintf("%s/%s refused the request as %s, but %s: asking again", ev.Provider, ev.Model, long, ev.Why)
	case agent.LeftOut:
		return leftOut(ev)
	case agent.Miscounted:
		u := ev.Reported
		return fmt.Sprintf("the server reported numbers of tokens that cannot be true (%d in, %d out): estimates are recorded", u.Input+u.CacheRead+u.CacheWrite, u.Output)
	case agent.Silent:
		return Silent
	case runner.Switched:
		return Model(ev.To.Name(), ev.From.Name())
	case runner.Continued:
		return fmt.Sprintf("%s belongs to %s and is not changed: the conversation continues in %s", ev.From.Key, ev.From.Origin.Program, ev.To.Key)
	case runner.Waiting:
		return fmt.Sprintf("waiting: this session has been locked by %s (pid %d) since %s", ev.By.Who, ev.By.PID, ev.By.Since.Local().Format("15:04:05"))
	}
	return ""
}

// seconds writes a wait: whole seconds, or tenths of the first.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
}

// leftOut says what an API refused.
func leftOut(ev agent.LeftOut) string {
	var what []string
	for _, p := range ev.Parts {
		name := "text"
		switch b := p.Block.(type) {
		case llm.Image:
			name = "image"
		case llm.ToolCall:
			name = "call of " + Printable(b.Name)
		case llm.ToolResult:
			name = "result of " + Printable(b.Name)
		case llm.Thinking:
			name = "thinking"
		}
		what = append(what, fmt.Sprintf("the %s in record %d", name, p.Seq))
	}
	const most = 3
	if n := len(what) - most; n > 0 {
		what = append(what[:most], fmt.Sprintf("%d more", n))
	}
	return fmt.Sprintf("the API refuses %s (%s): asking again without it; the log keeps it, and later requests leave it out", strings.Join(what, ", "), Printable(ev.Err.Why))
}
