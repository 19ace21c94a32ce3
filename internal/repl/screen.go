package repl

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// screen is the Display of plain lines, with a spinner while nothing else
// happens, below the last lines that a running tool has printed. The spinner
// has its line to itself.
type screen struct {
	out, notes io.Writer
	style      transcript.Style
	live       bool
	width      func() int // of the spinner's line
	columns    func() int // that lines are wrapped to; 0: they are not

	mu     sync.Mutex
	text   *transcript.Printer // of the answer under way
	think  *transcript.Wrapper // of the thinking under way
	label  string              // of the spinner; "": there is none
	since  time.Time
	tail   []string // what a tool printed last
	drawn  bool
	above  int // lines of tail that are drawn above the spinner
	paused bool
	err    error // the first error of out
}

// frames of the spinner.
var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

const (
	tick      = 100 * time.Millisecond
	patience  = 3 // ticks until the spinner appears
	tailLines = 5 // of what a running tool prints
)

// Busy implements Display.
func (s *screen) Busy(label string) (done func()) {
	s.Wait(label)
	stop := s.spin()
	return func() {
		stop()
		s.Finish()
	}
}

// Status implements Display: plain lines have no place for it.
func (s *screen) Status(Status) {}

// Err implements Display.
func (s *screen) Err() error { return s.err }

// Call implements Display.
func (s *screen) Call(c Call) {
	switch c.State {
	case CallRuns:
		s.printed(c.Tail)
		if c.Tail == "" {
			s.Note(transcript.Wrap(s.style.Yellow("→ "+c.Title), s.columns()))
			s.Wait(cell(c.Name, 40))
		}
	case CallEnded:
		s.printed("")
	case CallRecorded:
		for _, line := range c.Lines {
			s.Note(transcript.Wrap(line, s.columns()))
		}
	}
}

// spin shows the spinner until stop is called.
func (s *screen) spin() (stop func()) {
	if !s.live {
		return func() {}
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		t := time.NewTicker(tick)
		defer t.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-t.C:
				s.mu.Lock()
				s.frame(n)
				s.mu.Unlock()
			}
		}
	}()
	return func() {
		close(done)
		<-over
		s.mu.Lock()
		s.clear()
		s.label = ""
		s.mu.Unlock()
	}
}

func (s *screen) frame(n int) {
	took := time.Since(s.since)
	if s.label == "" || s.paused || s.think != nil || s.text != nil && s.text.Open() || took < patience*tick {
		return
	}
	width := s.width()
	text := s.top()
	for _, l := range s.tail {
		text += s.style.Dim("  "+transcript.OneLine(l, max(width-3, 1))) + terminal.Control("K") + "\n"
	}
	text += s.style.Dim(spinner(n, s.label, took, width)) + terminal.Control("K")
	if len(s.tail) < s.above {
		text += terminal.Control("J")
	}
	s.write(s.out, text)
	s.drawn, s.above = true, len(s.tail)
}

// top moves the cursor to the beginning of what frame has drawn.
func (s *screen) top() string {
	if s.above == 0 {
		return terminal.Return()
	}
	return terminal.Return() + terminal.Control(fmt.Sprintf("%dA", s.above))
}

// printed shows the last lines of tail, which a running tool has printed, until
// something else is shown.
func (s *screen) printed(tail string) {
	tail = strings.TrimRight(transcript.Printable(tail), "\n")
	var lines []string
	if tail != "" {
		lines = strings.Split(tail, "\n")
	}
	s.mu.Lock()
	s.tail = lines[max(0, len(lines)-tailLines):]
	s.mu.Unlock()
}

// spinner returns the spinner's line for a terminal of that width. The last
// column stays free: after it the cursor may jump to the next line.
func spinner(n int, label string, took time.Duration, width int) string {
	seconds := ""
	if took >= time.Second {
		seconds = fmt.Sprintf(" %ds", int(took.Seconds()))
	}
	return fmt.Sprintf("%c %s%s", frames[n%len(frames)], transcript.OneLine(label, max(width-3-len(seconds), 1)), seconds)
}

// Wait sets the spinner's label.
func (s *screen) Wait(label string) {
	s.mu.Lock()
	if s.label != label {
		s.label, s.since = label, time.Now()
	}
	s.mu.Unlock()
}

// clear removes the spinner, and what is above it.
func (s *screen) clear() {
	if s.drawn {
		s.write(s.out, s.top()+terminal.Control("J"))
		s.drawn, s.above = false, 0
	}
	s.since = time.Now()
}

func (s *screen) write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil && w == s.out && s.err == nil {
		s.err = err
	}
}

// Said shows part of an answer.
func (s *screen) Said(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = transcript.Printable(strings.ReplaceAll(text, "\r", ""))
	if s.text == nil {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return
		}
		s.end()
		s.text = transcript.NewPrinter(func(text string) { s.write(s.out, text) }, s.columns)
	}
	s.clear()
	s.text.Write(text)
}

// Thought shows part of the model's thinking.
func (s *screen) Thought(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = transcript.Printable(strings.ReplaceAll(text, "\r", ""))
	if s.think == nil {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return
		}
		s.end()
		s.think = transcript.NewWrapper(func(text string) { s.write(s.notes, s.style.Dim(text)) }, s.columns)
	}
	s.clear()
	s.think.Write(text)
}

// end finishes what is under way and moves the cursor to an empty line.
func (s *screen) end() {
	s.clear()
	if s.text != nil {
		s.text.Close()
		s.text = nil
	}
	if s.think != nil {
		s.think.Flush()
		s.think = nil
		s.write(s.notes, "\n")
	}
}

// Finish is end for callers that do not hold the mutex.
func (s *screen) Finish() {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
}

// Note shows a line that is not part of an answer.
func (s *screen) Note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.write(s.notes, line+"\n")
}

// Print shows a line that was asked for.
func (s *screen) Print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.write(s.out, line+"\n")
}

// Pause hides the spinner until resume is called: the line belongs to the user.
func (s *screen) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.paused = true
	return func() {
		s.mu.Lock()
		s.paused, s.since = false, time.Now()
		s.mu.Unlock()
	}
}
