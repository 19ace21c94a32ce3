package asjson

import (
	"maps"

	"goclaw/agent"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
)

// Event returns the fields of the line that tells programs of ev; nil if
// there is none.
func Event(ev agent.Event) map[string]any {
	switch ev := ev.(type) {
	case agent.Said:
		switch {
		case ev.Text != "":
			return map[string]any{"type": "delta", "text": ev.Text}
		case ev.Thinking != "":
			return map[string]any{"type": "thinking", "text": ev.Thinking}
		}
		return nil
	case agent.Calling:
		return map[string]any{"type": "tool", "state": "running", "id": ev.Call.ID, "name": ev.Call.Name, "input": ev.Call.Args}
	case agent.Printed:
		return map[string]any{"type": "tool", "state": "output", "id": ev.Call.ID, "name": ev.Call.Name, "tail": ev.Tail, "bytes": ev.Bytes}
	case agent.Called:
		return map[string]any{"type": "tool", "state": "done", "id": ev.Call.ID, "name": ev.Call.Name, "isError": ev.Result.IsError, "output": ev.Result.Text(), "milliseconds": ev.Took.Milliseconds()}
	case agent.Done:
		u := ev.Usage
		return map[string]any{"type": "done", "stopReason": ev.Stop, "cut": ev.Stop == llm.StopLength, "usage": map[string]any{"input": u.Input, "output": u.Output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite, "cost": u.Cost.Total}}
	}
	text, fields := notice(ev)
	if text == "" {
		return nil
	}
	out := map[string]any{"type": "notice", "text": text}
	maps.Copy(out, fields)
	return out
}

// notice returns the text of a notice and its other fields.
func notice(ev agent.Event) (text string, fields map[string]any) {
	text = transcript.Event(ev)
	switch ev := ev.(type) {
	case agent.Recorded:
		if n, ok := ev.Record.Body.(session.Notice); ok {
			return n.Text, map[string]any{"percent": n.Percent, "injectAs": n.As}
		}
	case agent.Squeezed:
		fields = map[string]any{"squeeze": ev.To.String()}
	case agent.Retrying:
		fields = map[string]any{"retry": ev.Why, "seconds": ev.Wait.Seconds(), "try": ev.Try, "of": ev.Of, "problem": transcript.Problem(ev.Err)}
	case agent.Compacting:
		// folded is the name of compacted in v0.1, which programs may read.
		fields = map[string]any{"inputTokens": ev.Cut.Uses.Input, "outputTokens": ev.Cut.Uses.Output, "cost": ev.Cut.Uses.Cost.Total, "compacted": ev.Cut.Compacted, "folded": ev.Cut.Compacted, "kept": ev.Cut.Kept, "tokensBefore": ev.Cut.Before}
	case agent.NotCompacted:
		fields = map[string]any{"tokensBefore": ev.Err.Before, "tokensAfter": ev.Err.After}
	case agent.Learnt:
		fields = map[string]any{"model": ev.Provider + "/" + ev.Model, "window": ev.Window, "answer": ev.Answer, "remembered": ev.Once == ""}
	case agent.Doubted:
		fields = map[string]any{"model": ev.Provider + "/" + ev.Model, "window": ev.Window, "doubted": true}
	case agent.LeftOut:
		var records []session.Seq
		for _, p := range ev.Parts {
			records = append(records, p.Seq)
		}
		fields = map[string]any{"leftOut": records, "problem": ev.Err.Why}
	case agent.Silent:
		fields = map[string]any{"noReply": true}
	case runner.Switched:
		fields = map[string]any{"model": ev.To.Name(), "before": ev.From.Name()}
	case runner.Continued:
		fields = map[string]any{"session": ev.To.ID, "key": ev.To.Key}
	}
	return text, fields
}
