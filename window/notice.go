package window

import (
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
)

// Delivery is how a notice reaches the model.
type Delivery string

const (
	// AsSystem: at the end of the request while the turn lasts, and never
	// part of the conversation, so that a prompt cache stays warm.
	AsSystem Delivery = "system"
	// AsUser: as a message of its own.
	AsUser Delivery = "user"
	// AsMarked: as a message that says it is not the user's.
	AsMarked Delivery = "marked"
)

// Mark opens a marked notice.
const Mark = "[SYSTEM: pre-compaction memory flush]"

// Threshold is a notice that is given once the window is so full.
type Threshold struct {
	Percent int
	Text    string // YYYY-MM-DD stands for the day
	As      Delivery
}

// Notice is what is recorded when t is given now.
func (t Threshold) Notice(now time.Time) session.Notice {
	text := strings.ReplaceAll(t.Text, "YYYY-MM-DD", now.Format(time.DateOnly))
	if t.As == AsMarked && !strings.HasPrefix(text, Mark) {
		text = Mark + "\n" + text
	}
	return session.Notice{Percent: t.Percent, Text: text, As: string(t.As)}
}

// Due returns the highest of ts that b has reached and that was not given
// since the last fold: each is given once in a cycle, and a fold begins the
// next. Those that were jumped over are not made up for.
func Due(s *session.Session, b Budget, ts []Threshold) (Threshold, bool) {
	given := 0
	for _, n := range notices(s) {
		given = max(given, n.Percent)
	}
	var due Threshold
	ok := false
	for _, t := range ts {
		if t.Percent > given && t.Percent <= b.Percent() && (!ok || t.Percent >= due.Percent) {
			due, ok = t, true
		}
	}
	return due, ok
}

// Flush returns the notice that must come before a fold: the highest of ts
// that speaks to the model as a message. ok is false if there is none, or if
// it was given since the last fold.
func Flush(s *session.Session, ts []Threshold) (Threshold, bool) {
	var last Threshold
	for _, t := range ts {
		if t.As != AsSystem && t.Percent >= last.Percent {
			last = t
		}
	}
	if last.Percent == 0 {
		return last, false
	}
	for _, n := range notices(s) {
		if n.Percent >= last.Percent {
			return last, false
		}
	}
	return last, true
}

// notices returns what was given in this cycle.
func notices(s *session.Session) []session.Notice {
	var out []session.Notice
	for i := cycle(s); i < len(s.Branch); i++ {
		if n, ok := s.Branch[i].Body.(session.Notice); ok {
			out = append(out, n)
		}
	}
	return out
}

// cycle is the index of the first record behind the latest fold, in effect
// or not: a fold that was undone has been warned of.
func cycle(s *session.Session) int {
	for i := len(s.Branch) - 1; i >= 0; i-- {
		switch s.Branch[i].Body.(type) {
		case session.Compaction, session.Reset:
			return i + 1
		}
	}
	return 0
}

// Saved reports whether the model wrote to its memory after a notice of this
// cycle.
func Saved(s *session.Session) bool {
	warned := false
	open := map[string]bool{}
	for i := cycle(s); i < len(s.Branch); i++ {
		switch b := s.Branch[i].Body.(type) {
		case session.Notice:
			warned = true
		case session.Message:
			for _, c := range b.Calls() {
				if warned && tool.WritesMemory(c) {
					open[c.ID] = true
				}
			}
			for _, r := range b.Results() {
				if open[r.CallID] && !r.IsError {
					return true
				}
			}
		}
	}
	return false
}

// Warned reports whether a notice was given in this cycle.
func Warned(s *session.Session) bool { return len(notices(s)) > 0 }

// Tail is the changing end of a request: the context line, and the notices
// for the system that were given in this turn.
func Tail(s *session.Session, b Budget) string {
	var lines []string
	if b.Window > 0 {
		lines = append(lines, b.String())
	}
	for i := max(cycle(s), lastTurn(s.Branch)); i >= 0 && i < len(s.Branch); i++ {
		if n, ok := s.Branch[i].Body.(session.Notice); ok && n.As == string(AsSystem) {
			lines = append(lines, n.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// NoReply is what a model answers that has nothing to say.
const NoReply = "NO_REPLY"

// Silent reports whether m says nothing but NO_REPLY, in any case, and calls
// no tool: it is kept, and not shown.
func Silent(m llm.Message) bool {
	return m.Role == llm.Assistant && len(m.Calls()) == 0 && IsNoReply(m.Text())
}

// IsNoReply reports whether text is NO_REPLY, in any case, perhaps quoted or
// with a full stop.
func IsNoReply(text string) bool {
	return strings.EqualFold(strings.Trim(text, noReplyTrim), NoReply)
}

const noReplyTrim = " \t\r\n`*\"'."

// MayBeNoReply reports whether a text that begins like this may become
// NO_REPLY: a stream is held back for so long.
func MayBeNoReply(begin string) bool {
	t := strings.TrimLeft(begin, noReplyTrim)
	if len(t) <= len(NoReply) {
		return strings.EqualFold(t, NoReply[:len(t)])
	}
	return IsNoReply(begin)
}
