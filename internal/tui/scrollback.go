package tui

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// paper is what was printed: the lines above what is drawn.
type paper struct {
	loop          *loop
	width, height int // of the terminal
	reflows       bool

	pending []string // lines to print
	shots   shots
	flip    bool // changes when something was printed, so that a frame follows
}

// print puts text, whose only control sequences are styles, above what is drawn.
// It scrolls away from there.
func (p *paper) print(text string) {
	p.pending = append(p.pending, lines(text, p.width)...)
	p.loop.wake()
}

// lines wraps text to width. Each line has its own styles.
func lines(text string, width int) []string {
	text = strings.ReplaceAll(text, "\t", "    ")
	if width > 0 {
		text = lipgloss.Wrap(text, width, "")
	}
	return strings.Split(text, "\n")
}

// filter sees every message before Bubble Tea does. It runs what the chat wants
// done, and turns the message into one that prints lines: Bubble Tea has no way
// to print and to change what is drawn in one step.
func (l *loop) filter(tm tea.Model, msg tea.Msg) tea.Msg {
	m := tm.(*model)
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.reflow(msg)
	case awake:
		for _, f := range l.take() {
			f(m)
		}
		if text, ok := m.chunk(); ok {
			l.out.hold()
			return tea.Println(text)()
		}
	}
	return msg
}

// chunk returns the next lines to print: as many as there is room for above
// what is drawn. Bubble Tea would push more than that, with parts of what is
// drawn, into the scrollback.
func (p *paper) chunk() (string, bool) {
	if len(p.pending) == 0 {
		return "", false
	}
	room := p.height - p.shots.tallest(p.loop.out.frames.Load())
	if room <= 0 { // a screen that is full, the alternate one, or none yet
		time.AfterFunc(20*time.Millisecond, p.loop.wake)
		return "", false
	}
	n := min(room, len(p.pending))
	text := strings.Join(p.pending[:n], "\n")
	if p.pending = p.pending[n:]; len(p.pending) > 0 {
		p.loop.wake()
	}
	if text == "" {
		text = " " // nothing would be printed
	}
	p.flip = !p.flip
	return text, true
}

// shot is what one View looked like.
type shot struct {
	rows   []int // their widths
	x, y   int   // of the cursor
	alt    bool
	number uint64 // how many frames had been written before
}

// shots are the views of which one is on the screen: the one that was the last
// when a frame was written, and those since.
type shots struct{ list []shot }

func (s *shots) add(n shot) {
	s.settle(n.number)
	s.list = append(s.list, n)
}

// settle forgets the views before the one that the last of written frames shows.
func (s *shots) settle(written uint64) {
	for len(s.list) > 1 && s.list[1].number < written {
		s.list = s.list[1:]
	}
}

// tallest returns the most rows that may be on the screen now.
func (s *shots) tallest(written uint64) (rows int) {
	const unknown = 1 << 20
	s.settle(written)
	if written == 0 || len(s.list) == 0 {
		return unknown
	}
	for _, x := range s.list {
		if x.alt {
			return unknown
		}
		rows = max(rows, len(x.rows))
	}
	return rows
}

// output is the terminal. What is printed above the view is held back until the
// frame after it is written, so that both appear at once.
//
// The file is not embedded: it has WriteString and ReadFrom, which io would call
// in place of Write.
type output struct {
	file   *os.File
	frames atomic.Uint64

	mu      sync.Mutex
	holding bool
	held    []byte
}

// hold keeps what is written from now on.
func (o *output) hold() {
	o.mu.Lock()
	o.holding = true
	o.mu.Unlock()
}

// release lets the next frame out, and what was held with it. Soon it goes out
// without a frame.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holding {
		o.holding = false
		time.AfterFunc(50*time.Millisecond, o.flush)
	}
}

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.holding && len(o.held) > 0 {
		o.file.Write(o.held)
		o.held = nil
	}
}

// Read, Close and Fd are the file's: with them, Bubble Tea takes it for a
// terminal.
func (o *output) Read(p []byte) (int, error) { return o.file.Read(p) }
func (o *output) Close() error               { return o.file.Close() }
func (o *output) Fd() uintptr                { return o.file.Fd() }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holding {
		o.held = append(o.held, p...)
		return len(p), nil
	}
	o.frames.Add(1)
	if len(o.held) == 0 {
		return o.file.Write(p)
	}
	// The terminal shows what is between these marks as one change.
	begin := []byte(ansi.SetModeSynchronizedOutput)
	var all []byte
	if rest, ok := bytes.CutPrefix(p, begin); ok {
		all = append(append(append(all, begin...), o.held...), rest...)
	} else {
		all = append(append(all, o.held...), p...)
	}
	o.held = nil
	if _, err := o.file.Write(all); err != nil {
		return 0, err
	}
	return len(p), nil
}
