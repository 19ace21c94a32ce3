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

	text    stream // the answer under way
	think   stream // the thinking under way
	calls   calls
	working int    // how much work is under way
	label   string // what it waits for
	since   time.Time
	beat    int // of the spinner
}

// paint makes of transcript's styles what a terminal understands.
func (v *live) paint(text string) string { return terminal.Text(text) }

// stream is text that comes in pieces. Its complete lines are printed at once;
// only the line under way is drawn.
type stream struct {
	open bool
	tail string
}

// write adds text, and returns the lines that are complete now.
func (s *stream) write(text string) (done string, ok bool) {
	text = transcript.Printable(strings.ReplaceAll(text, "\r", ""))
	if !s.open {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return "", false
		}
		s.open = true
	}
	s.tail += text
	i := strings.LastIndexByte(s.tail, '\n')
	if i < 0 {
		return "", false
	}
	done, s.tail = s.tail[:i], s.tail[i+1:]
	return done, true
}

// close ends the text, and returns the rest.
func (s *stream) close() (rest string, ok bool) {
	rest, ok = s.tail, s.open && s.tail != ""
	*s = stream{}
	return rest, ok
}

// live returns the lines that are drawn.
func (s *stream) live(width int, paint func(string) string) []string {
	if s.tail == "" {
		return nil
	}
	text := s.tail
	if paint != nil {
		text = paint(text)
	}
	return lines(terminal.Text(text), width)
}

func (v *live) said(text string) {
	if !v.text.open {
		v.finish()
	}
	if done, ok := v.text.write(text); ok {
		v.print(done)
	}
}

func (v *live) thought(text string) {
	if !v.think.open {
		v.finish()
	}
	if done, ok := v.think.write(text); ok {
		v.print(v.paint(v.style.Dim(done)))
	}
}

// finish ends the answer or the thinking under way.
func (v *live) finish() {
	if rest, ok := v.text.close(); ok {
		v.print(rest)
	}
	if rest, ok := v.think.close(); ok {
		v.print(v.paint(v.style.Dim(rest)))
	}
}

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
	v.label = ""
	return true
}

// now returns the lines of what is under way; waiting: with what is waited for.
func (v *live) now(waiting bool) (out []string) {
	out = append(out, v.think.live(v.width, v.style.Dim)...)
	out = append(out, v.text.live(v.width, nil)...)
	out = append(out, v.calls.drawn(v.beat, v.width, v.style)...)
	if v.working > 0 && v.label != "" && waiting && len(v.calls.open) == 0 {
		out = append(out, v.paint(v.style.Dim(spinner(v.beat, v.label, time.Since(v.since), v.width))))
	}
	return out
}
