package tui

import (
	"strings"
	"time"

	"goclaw/internal/repl"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// paint makes of transcript's styles what a terminal understands.
func (m *model) paint(text string) string { return terminal.Text(text) }

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

func (m *model) said(text string) {
	if !m.text.open {
		m.finish()
	}
	if done, ok := m.text.write(text); ok {
		m.print(done)
	}
}

func (m *model) thought(text string) {
	if !m.think.open {
		m.finish()
	}
	if done, ok := m.think.write(text); ok {
		m.print(m.paint(m.style.Dim(done)))
	}
}

// finish ends the answer or the thinking under way.
func (m *model) finish() {
	if rest, ok := m.text.close(); ok {
		m.print(rest)
	}
	if rest, ok := m.think.close(); ok {
		m.print(m.paint(m.style.Dim(rest)))
	}
}

// echo prints a message as it was sent.
func (m *model) echo(text string) {
	text = strings.ReplaceAll(transcript.Printable(text), "\n", "\n  ")
	m.print(m.paint(m.style.Green("> ") + m.style.Bold(text)))
}

func (m *model) busy(label string) {
	m.working++
	m.wait(label)
}

func (m *model) wait(label string) {
	if m.label != label {
		m.label, m.since = label, time.Now()
	}
}

// idle ends work. Calls that it did not finish are over as well.
func (m *model) idle() {
	if m.working--; m.working > 0 {
		return
	}
	m.finish()
	for _, c := range m.calls {
		m.print(m.paint(m.style.Yellow("→ "+c.Title) + m.style.Dim("  not finished")))
	}
	m.calls, m.label = nil, ""
	m.missed()
}

// call keeps up with a tool call: it is drawn until its result is recorded, and
// printed then.
func (m *model) call(c repl.Call) {
	m.finish()
	i := 0
	for i < len(m.calls) && m.calls[i].ID != c.ID {
		i++
	}
	if c.State == repl.CallRecorded {
		if i < len(m.calls) {
			m.calls = append(m.calls[:i], m.calls[i+1:]...)
		}
		m.print(m.paint(m.style.Yellow("→ " + c.Title)))
		for _, line := range c.Lines {
			m.print(m.paint(line))
		}
		return
	}
	if i == len(m.calls) {
		m.calls = append(m.calls, c)
	} else {
		m.calls[i] = c
	}
}

// tailLines is how many lines of a running call's output are drawn.
const tailLines = 5

// callLines draws a call that is under way.
func (m *model) callLines(c repl.Call) []string {
	state := string(frames[m.beat%len(frames)])
	took := time.Since(c.Began).Round(time.Second)
	if c.State == repl.CallEnded {
		state, took = "→", c.Took.Round(100*time.Millisecond)
	}
	out := []string{m.paint(m.style.Yellow(state+" "+transcript.OneLine(c.Title, max(m.width-12, 1))) + m.style.Dim(" "+took.String()))}
	tail := strings.TrimRight(transcript.Printable(c.Tail), "\n")
	if tail == "" {
		return out
	}
	all := strings.Split(tail, "\n")
	for _, l := range all[max(0, len(all)-tailLines):] {
		out = append(out, m.paint(m.style.Dim("  "+transcript.OneLine(l, max(m.width-3, 1)))))
	}
	return out
}
