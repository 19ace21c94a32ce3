package tui

import (
	"strings"
	"time"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// live is what is under way: an answer, calls, and what is waited for.
type live struct {
	*paper
	style transcript.Style

	text    answer // under way
	think   answer // the thinking under way
	light   bool   // the background
	calls   calls
	working int  // how much work is under way
	typing  bool // there is something in the input
	// steerable: the work is a turn, which takes messages while it runs
	steerable bool
	halted    bool   // it was told to stop
	label     string // what it waits for
	since     time.Time
	beat      int // of the spinner
}

// paint makes of transcript's styles what a terminal understands.
func (v *live) paint(text string) string { return terminal.Text(text) }

// echo prints a message as it was sent.
func (v *live) echo(text string) {
	text = strings.ReplaceAll(transcript.Printable(text), "\n", "\n  ")
	v.print(v.paint(v.style.Green("> ") + v.style.Bold(text)))
}

func (v *live) busy(label string) {
	v.working++
	v.wait(label)
}

func (v *live) wait(label string) {
	if v.label != label {
		v.label, v.since = label, time.Now()
	}
}

// idle ends work, and reports whether it was the last. Calls that it did not
// finish are over as well.
func (v *live) idle() (over bool) {
	if v.working--; v.working > 0 {
		return false
	}
	v.finish()
	v.abandon()
	v.label, v.halted = "", false
	return true
}

// keys returns what keys do while work is under way.
func (v *live) keys() (out []string) {
	if v.typing {
		out = append(out, "Enter queues")
		if v.steerable {
			out = append(out, "Ctrl-S sends it into this answer")
		}
	}
	return append(out, "Esc stops")
}

// now returns the lines of what is under way; waiting: with what is waited for.
func (v *live) now(waiting bool) (out []string) {
	out = append(out, v.think.drawn(v.width)...)
	out = append(out, v.text.drawn(v.width)...)
	out = append(out, v.calls.drawn(v.beat, v.width, v.style)...)
	if v.working > 0 && v.label != "" && waiting && len(v.calls.open) == 0 {
		out = append(out, v.paint(v.style.Dim(spinner(v.beat, v.label, time.Since(v.since), v.width, v.keys()))))
	}
	return out
}
