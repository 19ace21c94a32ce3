package repl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"goclaw/internal/attach"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/llm"
)

// attacher is an Input whose lines may have more than text.
type attacher interface {
	Attached() []llm.Block // what belongs to the line that was read last
}

// ranner is an Input that keeps what a command of the user printed for the next
// message, where the user sees it and can remove it.
type ranner interface {
	Ran(command, output string)
}

// shell runs the user's own commands.
type shell struct {
	chat *Chat
	ran  []llm.Block // what they printed, for the next message; where the Input does not keep it
}

// message makes a message of a line, what is attached to it, and what commands
// printed before.
func (s *shell) message(text string) llm.Message {
	var attached []llm.Block
	if in, ok := s.chat.in.(attacher); ok {
		attached = in.Attached()
	}
	attached = append(s.ran[:len(s.ran):len(s.ran)], attached...)
	s.ran = nil
	return attach.Message(text, attached)
}

// shellCommand returns the command of a line that begins with an exclamation
// mark. After two of them, the model does not see what it prints.
func shellCommand(line string) (command string, quiet, ok bool) {
	command, ok = strings.CutPrefix(line, "!")
	command, quiet = strings.CutPrefix(command, "!")
	command = strings.TrimSpace(command)
	return command, quiet, ok && command != ""
}

// run runs a command of the user's own, and shows what it prints.
func (s *shell) run(ctx context.Context, command string, quiet bool) {
	c := s.chat
	out := &shellOutput{print: c.view.screen.Print}
	var result llm.ToolResult
	stopped, presses, err := c.during(ctx, "running "+transcript.OneLine(transcript.Printable(command), 60), func(ctx context.Context) (err error) {
		defer out.close()
		defer out.every(200 * time.Millisecond)()
		result, err = c.o.Shell(ctx, command, out)
		return err
	})
	c.leaving = c.leaving || presses > 1
	if err != nil && !(stopped && errors.Is(err, context.Canceled)) {
		c.view.problem(err)
		return
	}
	text := terminal.Strip(result.Text())
	if result.IsError {
		c.view.note("%s", text[strings.LastIndexByte(text, '\n')+1:])
	} else if !out.any {
		c.view.note("(no output)")
	}
	if quiet {
		return
	}
	if in, ok := c.in.(ranner); ok {
		in.Ran(command, text)
		return
	}
	s.ran = append(s.ran, attach.Command(command, text))
	c.view.note("  its output goes with your next message; !!%s keeps it out", transcript.OneLine(transcript.Printable(command), 40))
}

// What is shown of a command's output: its beginning as it comes, and its end.
const (
	shownFirst = 1000 // lines
	shownLast  = 20
	maxShown   = 2000 // bytes of a line
)

// shellOutput prints the lines of a command.
type shellOutput struct {
	print func(string)

	mu      sync.Mutex
	partial []byte   // the line under way
	ready   []string // lines to print
	n       int      // lines so far
	last    []string // after the first ones
	any     bool
}

// Write takes what a command prints.
func (o *shellOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.any = o.any || len(p) > 0
	for rest := p; ; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := maxShown - len(o.partial); room > 0 {
			o.partial = append(o.partial, line[:min(room, len(line))]...)
		}
		if !whole {
			return len(p), nil
		}
		o.line()
		rest = after
	}
}

// line ends the line under way.
func (o *shellOutput) line() {
	text := strings.TrimRight(string(o.partial), "\r")
	text = text[strings.LastIndexByte(text, '\r')+1:] // a progress bar
	text = transcript.Printable(strings.ReplaceAll(strings.ToValidUTF8(terminal.Strip(text), "\uFFFD"), "\t", "    "))
	o.partial = o.partial[:0]
	if o.n++; o.n <= shownFirst {
		o.ready = append(o.ready, text)
		return
	}
	o.last = append(o.last, text)
	o.last = o.last[max(len(o.last)-shownLast, 0):]
}

// flush prints what is ready.
func (o *shellOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ready) > 0 {
		o.print(strings.Join(o.ready, "\n"))
		o.ready = nil
	}
}

// every flushes again and again, until stop is called.
func (o *shellOutput) every(d time.Duration) (stop func()) {
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-over:
				return
			case <-t.C:
				o.flush()
			}
		}
	}()
	return func() { close(over); <-stopped }
}

// close prints the rest.
func (o *shellOutput) close() {
	o.mu.Lock()
	if len(o.partial) > 0 {
		o.line()
	}
	if left := o.n - shownFirst - len(o.last); left > 0 {
		o.ready = append(o.ready, fmt.Sprintf("[... %s left out ...]", transcript.Count(left, "line")))
	}
	o.ready = append(o.ready, o.last...)
	o.last = nil
	o.mu.Unlock()
	o.flush()
}
