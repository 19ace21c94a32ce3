package repl

import (
	"io"
	"strings"
	"sync"

	"goclaw/internal/transcript"
)

// screen is the Display of plain lines.
type screen struct {
	out, notes io.Writer
	style      transcript.Style
	columns    func() int // that lines are wrapped to; 0: they are not

	mu    sync.Mutex
	text  *transcript.Printer // of the answer under way
	think *transcript.Wrapper // of the thinking under way
	err   error               // the first error of out
}

// Busy implements Display. Nothing shows that work is under way: only what
// comes of it is written.
func (s *screen) Busy(string) (done func()) { return s.Finish }

// Wait implements Display.
func (s *screen) Wait(string) {}

// Status implements Display: plain lines have no place for it.
func (s *screen) Status(Status) {}

// Err implements Display.
func (s *screen) Err() error { return s.err }

// Call implements Display: the call when it begins, and its result.
func (s *screen) Call(c Call) {
	switch {
	case c.State == CallRuns && c.Tail == "":
		s.Note(transcript.Wrap(s.style.Yellow("→ "+c.Title), s.columns()))
	case c.State == CallRecorded:
		for _, line := range c.Lines {
			s.Note(transcript.Wrap(line, s.columns()))
		}
	}
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
	s.think.Write(text)
}

// end finishes what is under way and moves the cursor to an empty line.
func (s *screen) end() {
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

// Pause implements Display: the line belongs to the user.
func (s *screen) Pause() (resume func()) {
	s.Finish()
	return func() {}
}
