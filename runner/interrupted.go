package runner

import (
	"goclaw/llm"
	"goclaw/session"
)

// Interrupted says what a session was doing when its log broke off.
type Interrupted struct {
	Calls  []llm.ToolCall // tools that were running
	Waits  bool           // the user's words, or tool results, have no answer, or one that broke off
	Prompt string         // what the user said last
}

// InterruptedIn returns what is unfinished in s. ok is false if s is at rest.
func InterruptedIn(s *session.Session) (t Interrupted, ok bool) {
	t.Calls = s.Unanswered()
	for i := len(s.Branch) - 1; i >= 0; i-- {
		m, is := s.Branch[i].Body.(session.Message)
		if !is || m.Excluded {
			continue
		}
		if !ok {
			t.Waits = m.Role == llm.User || m.Stop == llm.StopError
			ok = t.Waits || len(t.Calls) > 0
			if !ok {
				return t, false
			}
		}
		if session.IsTurn(m) {
			t.Prompt = m.Text()
			break
		}
	}
	return t, ok
}

// Resumable reports whether a turn with an empty message has something to do in
// s: what is torn, or an answer that the user stopped.
func Resumable(s *session.Session) bool {
	if _, ok := InterruptedIn(s); ok {
		return true
	}
	for i := len(s.Branch) - 1; i >= 0; i-- {
		if m, ok := s.Branch[i].Body.(session.Message); ok && !m.Excluded {
			return m.Role == llm.Assistant && m.Stop == llm.StopAborted
		}
	}
	return false
}
