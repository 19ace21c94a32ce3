// Package pick holds what a person chooses from on a terminal: sessions, points
// of a session to go back to, hits of a search, and models. Each has the screen
// to itself until something is chosen or Esc is pressed (tui.Overlay).
//
// Nothing here waits: what takes time (a store, a search) runs in commands of
// Bubble Tea, and what they return is dropped if it is not wanted any more.
// Whatever a log says is made printable before it is shown.
package pick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/transcript"
)

// pause is how long nothing must be typed before what was said is searched.
var pause = 120 * time.Millisecond

// jobs are changes of the store. They run one after the other, in the order of
// the keys.
type jobs struct {
	waiting []func(context.Context) tea.Msg
	running bool
}

// add returns the command that begins with f, nil if it has to wait.
func (j *jobs) add(f func(context.Context) tea.Msg) tea.Cmd {
	j.waiting = append(j.waiting, f)
	return j.next()
}

// next returns the command that goes on, nil if there is nothing to do.
func (j *jobs) next() tea.Cmd {
	if j.running || len(j.waiting) == 0 {
		return nil
	}
	f := j.waiting[0]
	j.waiting, j.running = j.waiting[1:], true
	return func() tea.Msg { return f(context.Background()) } // a change that was asked for is made, also if the screen is left
}

// done is called when the message of a job came.
func (j *jobs) done() tea.Cmd {
	j.running = false
	return j.next()
}

func (j *jobs) idle() bool { return !j.running && len(j.waiting) == 0 }

// message is what happened last.
type message struct {
	note string
	bad  bool // it is an error
}

func (m *message) say(format string, args ...any) {
	m.note, m.bad = fmt.Sprintf(format, args...), false
}

func (m *message) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		m.note, m.bad = name(err.Error()), true
	}
}

// line shows it in one line, or else what is said otherwise.
func (m *message) line(otherwise string, width int) string {
	switch {
	case m.note == "":
		return paint(cDim, cut(otherwise, width))
	case m.bad:
		return paint(cBad, cut(m.note, width))
	}
	return cut(m.note, width)
}

// age is how long ago something was, in few columns.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return transcript.Age(now.Sub(then))
}

// isKey reports whether msg is one of keys.
func isKey(msg tea.Msg, keys ...string) bool {
	k, ok := msg.(tea.KeyPressMsg)
	return ok && slices.Contains(keys, k.String())
}

// helpLines shows keys and what they do, one in a line.
func helpLines(title string, list []hint, more string, width int) []string {
	out := []string{paint(cHead, title), ""}
	for _, h := range list {
		for i, l := range paragraphs(h[1], width-12) {
			key := ""
			if i == 0 {
				key = h[0]
			}
			out = append(out, "  "+paint(cBold, cell(key, 9))+" "+l)
		}
	}
	out = append(out, "")
	for _, l := range paragraphs(more, width) {
		out = append(out, paint(cDim, l))
	}
	return out
}
