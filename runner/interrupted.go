package runner

import (
	"slices"

	"goclaw/llm"
	"goclaw/session"
)

// Interrupted is what a session was doing when its log broke off.
type Interrupted struct {
	Calls  []llm.ToolCall // tools that were running
	Waits  bool           // the last message waits for an answer, or for the rest of one
	Partly bool           // a part of the answer is there
	Prompt string         // what the user said last
}

// InterruptedIn returns what was interrupted in s. ok is false if nothing was.
func InterruptedIn(s *session.Session) (t Interrupted, ok bool) {
	last := lastMessage(s)
	t.Calls = s.Unanswered()
	t.Partly = last.Role == llm.Assistant && last.Error == session.BrokeOff
	t.Waits = last.Role == llm.User || last.Stop == llm.StopError || t.Partly
	if !t.Waits && len(t.Calls) == 0 {
		return t, false
	}
	for _, r := range slices.Backward(s.Branch) {
		if m, ok := r.Body.(session.Message); ok && !m.Excluded && session.IsTurn(m) {
			t.Prompt = m.Text()
			break
		}
	}
	return t, true
}

// Resumable reports whether a turn with an empty message has something to do in
// s: what was interrupted, or an answer that the user stopped.
func Resumable(s *session.Session) bool {
	_, ok := InterruptedIn(s)
	last := lastMessage(s)
	return ok || last.Role == llm.Assistant && last.Stop == llm.StopAborted
}

// lastMessage returns the last message of s that is part of the conversation,
// or an empty one.
func lastMessage(s *session.Session) session.Message {
	for _, r := range slices.Backward(s.Branch) {
		if m, ok := r.Body.(session.Message); ok && !m.Excluded {
			return m
		}
	}
	return session.Message{}
}
