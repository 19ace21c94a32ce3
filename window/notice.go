package window

import (
	"slices"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// How a notice reaches the model.
const (
	// AsSystem: in the tail of every request while the window is that full.
	// It is never part of the conversation, so that a prompt cache stays valid.
	AsSystem = "system"
	// AsUser: as a separate message.
	AsUser = "user"
	// AsMarked: as a message that says it is not the user's.
	AsMarked = "marked"
)

// Mark begins a marked notice.
const Mark = "[SYSTEM: pre-compaction memory flush]"

// Threshold is a notice that is given when the window is Percent full.
type Threshold struct {
	Percent int
	Text    string // YYYY-MM-DD stands for the day
	As      string
	Once    bool // AsSystem, but only for the turn in which it is given
}

// Notice is the record of t when it is given now.
func (t Threshold) Notice(now time.Time) session.Notice {
	text := strings.ReplaceAll(t.Text, "YYYY-MM-DD", now.Format(time.DateOnly))
	if t.As == AsMarked && !strings.HasPrefix(text, Mark) {
		text = Mark + "\n" + text
	}
	return session.Notice{Percent: t.Percent, Text: text, As: t.As, Once: t.Once}
}

// Due returns the highest of ts that b has reached, unless that or a higher one
// was given since the latest compaction: each is given at most once in a cycle,
// and a compaction begins the next cycle. Lower ones that were skipped are not
// given later.
func Due(s *session.Session, b Budget, ts []Threshold) (Threshold, bool) {
	given, _ := highest(s)
	var due Threshold
	ok := false
	for _, t := range ts {
		if t.Percent > given && t.Percent <= b.Percent() && (!ok || t.Percent >= due.Percent) {
			due, ok = t, true
		}
	}
	return due, ok
}

// Flush returns the notice that must come before a compaction: the highest of ts
// that is sent as a message. ok is false if there is none, or if it was given in
// this cycle.
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
	given, _ := highest(s)
	return last, given < last.Percent
}

// highest returns the percentage of the highest notice given in this cycle,
// and whether there was one.
func highest(s *session.Session) (percent int, ok bool) {
	for _, r := range s.Branch[cycle(s):] {
		if n, is := r.Body.(session.Notice); is {
			percent, ok = max(percent, n.Percent), true
		}
	}
	return percent, ok
}

// cycle is the index of the first record after the latest compaction, undone or
// not: the model was warned of an undone one as well.
func cycle(s *session.Session) int {
	for i, r := range slices.Backward(s.Branch) {
		switch r.Body.(type) {
		case session.Compaction, session.Reset:
			return i + 1
		}
	}
	return 0
}

// Given is a notice that was given to the model.
type Given struct {
	session.Notice
	Record   session.Record
	Actioned bool // the model wrote a memory file after it and before the next compaction
}

// Notices returns the notices on the branch of s, oldest first.
func Notices(s *session.Session) []Given { return given(s.Branch) }

func given(recs []session.Record) []Given {
	var out []Given
	first := 0                // the first notice of this cycle
	wrote := map[string]int{} // calls that write a memory file: how many notices came before
	for _, r := range recs {
		switch b := r.Body.(type) {
		case session.Compaction, session.Reset:
			first = len(out)
			clear(wrote)
		case session.Notice:
			out = append(out, Given{Notice: b, Record: r})
		case session.Message:
			if first == len(out) {
				continue // nothing to act on
			}
			for _, c := range b.Calls() {
				if writesMemory(c) {
					wrote[c.ID] = len(out)
				}
			}
			for _, res := range b.Results() {
				for i := first; i < wrote[res.CallID] && !res.IsError; i++ {
					out[i].Actioned = true
				}
			}
		}
	}
	return out
}

// Saved reports whether the model wrote a memory file after a notice of this
// cycle.
func Saved(s *session.Session) bool {
	return slices.ContainsFunc(given(s.Branch[cycle(s):]), func(n Given) bool { return n.Actioned })
}

// Warned reports whether a notice was given in this cycle.
func Warned(s *session.Session) bool {
	_, ok := highest(s)
	return ok
}

// Tail is the tail of a request that fills b: the context line, if line is set,
// and the notices AsSystem. A notice stays until b falls below its percentage or
// a compaction begins the next cycle; one with Once stays for its turn only.
func Tail(s *session.Session, b Budget, line bool) string {
	var lines []string
	if line && b.Window > 0 {
		lines = append(lines, b.String())
	}
	turn := lastTurn(s.Branch)
	for i := cycle(s); i < len(s.Branch); i++ {
		n, ok := s.Branch[i].Body.(session.Notice)
		if !ok || n.As != AsSystem {
			continue
		}
		if n.Once && i > turn || !n.Once && n.Percent <= b.Percent() {
			lines = append(lines, n.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// noReply is the answer of a model that has nothing to say.
const noReply = "NO_REPLY"

// Silent reports whether m is NO_REPLY, in upper or lower case, and calls no
// tool. It is recorded and not shown.
func Silent(m llm.Message) bool {
	return m.Role == llm.Assistant && len(m.Calls()) == 0 && IsNoReply(m.Text())
}

// IsNoReply reports whether text is NO_REPLY, in upper or lower case, perhaps
// quoted or with a full stop.
func IsNoReply(text string) bool {
	return strings.EqualFold(strings.Trim(text, noReplyTrim), noReply)
}

const noReplyTrim = " \t\r\n`*\"'."

// MayBeNoReply reports whether a text that begins like this may become
// NO_REPLY. A stream is held back that long.
func MayBeNoReply(begin string) bool {
	t := strings.TrimLeft(begin, noReplyTrim)
	if len(t) <= len(noReply) {
		return strings.EqualFold(t, noReply[:len(t)])
	}
	return IsNoReply(begin)
}
