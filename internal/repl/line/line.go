// Package line reads lines from a terminal: editing with history, search,
// completion, pastes that stay whole, and texts of several lines.
//
// A Terminal controls its terminal from Open to Close. Keys are read even while
// nobody asks for a line: they wait for the next ReadLine, except Ctrl-C and
// Escape, which take effect at once. Text typed before them becomes the beginning
// of the next line, and is not sent by itself.
package line

import (
	"context"
	"errors"
	"fmt"
	"goclaw/internal/repl/history"
	"goclaw/internal/terminal"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// ErrInterrupt is returned when the user pressed Ctrl-C instead of finishing
// the line, or when ReadLine's context was cancelled with it as the cause.
var ErrInterrupt = errors.New("line: interrupted")

// Terminal is a terminal that lines are read from. One goroutine reads at a
// time.
type Terminal struct {
	in, tty *os.File
	fd      int              // of in
	out     *terminal.Writer // to tty
	cooked  *term.State

	// Complete, History and Paint (which colours the prompt) may be nil.
	Complete Completer
	History  *history.History
	Paint    func(string) string

	mu        sync.Mutex
	queue     []key
	ready     chan struct{} // has an item when queue or failed changed
	failed    error
	reading   bool
	interrupt func()
	draft     string // what the next ReadLine begins with
}

// Open takes control of a terminal: keys are read as they are pressed, and the
// terminal marks pastes. interrupt is called when Ctrl-C or Escape is pressed while
// no line is being read. Close releases the terminal.
func Open(in, out *os.File, interrupt func()) (*Terminal, error) {
	t := &Terminal{in: in, fd: int(in.Fd()), tty: out, out: terminal.NewWriter(out), ready: make(chan struct{}, 1), interrupt: interrupt}
	if err := t.hold(); err != nil {
		return nil, err
	}
	go t.pump()
	return t, nil
}

func (t *Terminal) hold() error {
	cooked, err := term.MakeRaw(t.fd)
	if err != nil {
		return fmt.Errorf("the terminal cannot be set up: %w", err)
	}
	t.cooked = cooked
	if err := cookOutput(t.fd); err != nil {
		return errors.Join(fmt.Errorf("the terminal cannot be set up: %w", err), term.Restore(t.fd, cooked))
	}
	_, err = io.WriteString(t.out, terminal.Control("?2004h"))
	return err
}

// Close restores the terminal.
func (t *Terminal) Close() error {
	_, err := io.WriteString(t.out, terminal.Control("?2004l"))
	return errors.Join(err, term.Restore(t.fd, t.cooked))
}

// pump reads keys until the terminal goes away.
func (t *Terminal) pump() {
	var d decoder
	buf := make([]byte, 16<<10)
	for {
		err := t.pumpOnce(&d, buf)
		if err != nil {
			t.mu.Lock()
			t.failed = io.EOF
			t.mu.Unlock()
			t.wake()
			return
		}
	}
}

// escapeWait is how long the rest of a key's sequence may take. After it, Escape
// was pressed.
const escapeWait = 100 * time.Millisecond

// forever is longer than anyone waits.
const forever = time.Duration(-1)

// pumpOnce reads and queues what is there, or waits for it. Where that is
// possible, reading and queueing are one step for whoever asks a question: keys
// are in the terminal or in the queue, and never on the way.
func (t *Terminal) pumpOnce(d *decoder, buf []byte) error {
	if !canWait {
		n, err := t.in.Read(buf)
		t.mu.Lock()
		t.got(d.feed(buf[:n])) // unlocks
		return err
	}
	if string(d.buf) == "\x1b" && !readable(t.fd, escapeWait) {
		t.mu.Lock()
		t.got(d.alone()) // unlocks
		return nil
	}
	readable(t.fd, forever)
	t.mu.Lock()
	if !readable(t.fd, 0) { // a question has dropped it
		t.mu.Unlock()
		return nil
	}
	n, err := t.in.Read(buf)
	t.got(d.feed(buf[:n]))
	return err
}

func (t *Terminal) wake() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// maxAhead is how many keys may wait for the next line.
const maxAhead = 1 << 16

// got queues keys that came together. It is called with the lock, and releases
// it: a question sets all of the keys aside or none.
func (t *Terminal) got(keys []key) {
	interrupts, sleeps := 0, false
	for _, k := range keys {
		switch {
		case !t.reading && (k.code == interrupt || k.code == cancel):
			t.queue = draft(t.queue)
			interrupts++
		case !t.reading && k.code == suspend:
			sleeps = true
		case len(t.queue) < maxAhead:
			t.queue = append(t.queue, k)
		}
	}
	t.mu.Unlock()
	for range interrupts {
		if t.interrupt != nil {
			t.interrupt()
		}
	}
	if sleeps {
		t.sleep()
	}
	t.wake()
}

// draft returns keys pressed before a Ctrl-C as text to edit: the next ReadLine
// shows it, and the user decides whether to send it.
func draft(keys []key) []key {
	var out []key
	for _, k := range keys {
		switch k.code {
		case enter:
			k.code = newline
		case eof:
			continue
		}
		out = append(out, k)
	}
	for len(out) > 0 && out[len(out)-1].code == newline {
		out = out[:len(out)-1]
	}
	return out
}

// sleep is Ctrl-Z: the shell gets the terminal back for a while.
func (t *Terminal) sleep() {
	t.Close()
	stop()
	t.hold() // if it fails, so does the next read
}

// setAside removes the waiting keys from the queue and returns them as a draft:
// text typed before a question must not answer it.
func (t *Terminal) setAside() []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	flush(t.fd)
	ahead := draft(t.queue)
	t.queue = nil
	return ahead
}

func (t *Terminal) size() (w, h int) {
	w, h, err := term.GetSize(int(t.tty.Fd()))
	if err != nil || w < 1 || h < 1 {
		return 80, 24
	}
	return w, h
}

// take waits for keys.
func (t *Terminal) take(ctx context.Context) ([]key, error) {
	for {
		t.mu.Lock()
		keys, err := t.queue, t.failed
		t.queue = nil
		t.mu.Unlock()
		if len(keys) > 0 {
			return keys, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-t.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ReadLine shows prompt and returns what the user enters, without the last
// line end. The error is io.EOF for Ctrl-D on an empty line or a terminal
// that is gone, ErrInterrupt for Ctrl-C (with what was typed so far), or the
// cause of ctx's end.
func (t *Terminal) ReadLine(ctx context.Context, prompt string) (string, error) {
	draft := t.draft
	t.draft = ""
	return t.read(ctx, prompt, draft, t.History, t.Complete)
}

// Draft is the text that the next ReadLine begins with, to be changed.
func (t *Terminal) Draft(text string) { t.draft = text }

// Ask is ReadLine without history and completion, for questions. Text typed
// before the question does not answer it: it comes back afterwards as a draft.
func (t *Terminal) Ask(ctx context.Context, prompt string) (string, error) {
	ahead := t.setAside()
	defer func() {
		if len(ahead) > 0 {
			t.unread(ahead)
		}
	}()
	return t.read(ctx, prompt, "", nil, nil)
}

func (t *Terminal) read(ctx context.Context, prompt, draft string, h *history.History, c Completer) (string, error) {
	t.setReading(true)
	defer t.setReading(false)
	var lines []string
	if h != nil {
		lines = h.Lines()
	}
	e := newEditor(lines, c)
	e.set(draft, len(draft))
	v := view{t: t, prompt: prompt}
	v.draw(e)
	for {
		keys, err := t.take(ctx)
		if err != nil {
			v.leave(e, "")
			return e.text, err
		}
		for i, k := range keys {
			switch e.press(k) {
			case accepted:
				t.unread(keys[i+1:])
				v.leave(e, "")
				if h != nil {
					h.Add(e.text) // a history that cannot be written is no reason to stop
				}
				return e.text, nil
			case interrupted:
				t.unread(keys[i+1:])
				v.leave(e, "^C")
				return e.text, ErrInterrupt
			case ended:
				t.unread(keys[i+1:])
				v.leave(e, "")
				return "", io.EOF
			case suspended:
				v.leave(e, "^Z")
				t.sleep()
				v = view{t: t, prompt: prompt}
			case cleared:
				io.WriteString(t.out, terminal.Control("H")+terminal.Control("2J"))
				v = view{t: t, prompt: prompt}
			}
			if len(e.options) > 0 {
				v.list(e, e.options)
			}
		}
		v.draw(e)
	}
}

func (t *Terminal) setReading(on bool) {
	t.mu.Lock()
	t.reading = on
	t.mu.Unlock()
}

func (t *Terminal) unread(keys []key) {
	t.mu.Lock()
	t.queue = append(append([]key(nil), keys...), t.queue...)
	t.mu.Unlock()
	t.wake()
}
