package transcript

import (
	"fmt"

	"goclaw/agent"
	"goclaw/runner"
	"goclaw/window"
)

// Event says in one line what happened in a turn besides what was said and
// done, for people; "" if ev is no such event.
func Event(ev agent.Event) string {
	switch ev := ev.(type) {
	case agent.Squeezed:
		switch {
		case ev.Answer > 0:
			return fmt.Sprintf("the answer asked for is too long for the model: asking again for at most %s tokens", window.Short(ev.Answer))
		case ev.To == window.Compact: // agent.Compacting follows, if anything is compacted
			return "too long for the model: asking again with less"
		}
		return "too long for the model: asking again with shorter tool results"
	case agent.Compacting:
		return "the window is full: compacting the past"
	case agent.NotCompacted:
		return ev.Err.Error()
	case agent.Learnt:
		if ev.Answer > 0 {
			return fmt.Sprintf("%s/%s answers with at most %s tokens: remembered", ev.Provider, ev.Model, window.Short(ev.Answer))
		}
		return fmt.Sprintf("%s/%s takes only %s tokens: remembered", ev.Provider, ev.Model, window.Short(ev.Window))
	case agent.Silent:
		return Silent
	case runner.Switched:
		return Model(ev.To.Name(), ev.From.Name())
	case runner.Continued:
		return fmt.Sprintf("%s is %s's and stays as it is: this goes on in %s", ev.From.Key, ev.From.Origin.Program, ev.To.Key)
	case runner.Waiting:
		return fmt.Sprintf("waiting: this session is held by %s (pid %d) since %s", ev.By.Who, ev.By.PID, ev.By.Since.Local().Format("15:04:05"))
	}
	return ""
}
