//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package tuitest is a terminal with a person before it. Terminal is a real
// pseudo-terminal whose output goes to charm's emulator, with scrollback; it
// answers what programs ask a terminal. Person presses keys on one in a test,
// and looks at it until it shows what it should.
package tuitest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// Terminal is an emulator at the far end of a pseudo-terminal. TTY is the side
// that the program has.
type Terminal struct {
	TTY *os.File

	master  *os.File
	mu      sync.Mutex
	vt      *vt.Emulator
	all     bytes.Buffer
	frame   bool // inside of a synchronised update: the screen is half drawn
	deletes bool // a sequence that deletes lines, which do not scroll away
	kept    int  // how many lines had scrolled away before it
	grown   chan struct{}
}

// Open returns a terminal of that size.
func Open(cols, rows int) (*Terminal, error) {
	master, tty, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("there is no pseudo-terminal: %w", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		return nil, err
	}
	if master, err = polled(master); err != nil {
		return nil, err
	}
	t := &Terminal{TTY: tty, master: master, vt: vt.NewEmulator(cols, rows), grown: make(chan struct{})}
	t.vt.SetScrollbackSize(1 << 20)
	t.vt.SetCallbacks(vt.Callbacks{
		EnableMode:  func(m ansi.Mode) { t.frame = t.frame || m == ansi.ModeSynchronizedOutput },
		DisableMode: func(m ansi.Mode) { t.frame = t.frame && m != ansi.ModeSynchronizedOutput },
	})
	t.vt.RegisterCsiHandler('M', func(ansi.Params) bool {
		t.deletes, t.kept = true, t.vt.ScrollbackLen()
		return false
	})
	// Modes that were set once are known, and reported when a program asks for them.
	t.vt.WriteString(ansi.ResetModeSynchronizedOutput + ansi.ResetModeUnicodeCore)
	go t.watch()
	go t.answer()
	return t, nil
}

// polled returns f as a file whose Close ends a Read, so that a terminal can
// be taken away. It closes f.
func polled(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Close takes the terminal away.
func (t *Terminal) Close() {
	t.TTY.Close()
	t.Hangup()
}

// Hangup takes the terminal away from the program; TTY stays open.
func (t *Terminal) Hangup() {
	t.master.Close()
	if w, ok := t.vt.InputPipe().(io.Closer); ok {
		w.Close() // ends answer
	}
}

// Start runs cmd on the terminal, as the program that has it.
func (t *Terminal) Start(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.TTY, t.TTY, t.TTY
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd.Start()
}

func (t *Terminal) watch() {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		t.all.Write(buf[:n])
		t.show(buf[:n])
		t.vt.InputPipe().Write(nil) // until answer has sent what there was to answer
		close(t.grown)
		t.grown = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// show gives b to the emulator. It takes lines that are deleted at the top of
// the screen for lines that scroll away: no terminal keeps those, so neither
// does show.
func (t *Terminal) show(b []byte) {
	for len(b) > 0 {
		n := bytes.IndexByte(b, 'M') + 1
		if n == 0 {
			n = len(b)
		}
		t.vt.Write(b[:n])
		b = b[n:]
		if t.deletes {
			t.deletes = false
			t.forget(t.vt.ScrollbackLen() - t.kept)
		}
	}
}

// forget takes the last n lines of the scrollback back.
func (t *Terminal) forget(n int) {
	s := t.vt.Scrollback()
	if n <= 0 || s == nil {
		return
	}
	kept := append([]uv.Line(nil), s.Lines()[:s.Len()-n]...)
	s.Clear()
	for _, l := range kept {
		s.Push(l)
	}
}

// answer sends the program what the emulator has to say to it. Whoever sees what
// is on the screen knows that the questions that came with it are answered: keys
// that are pressed then come after the answers.
func (t *Terminal) answer() {
	buf := make([]byte, 4096)
	for {
		n, err := t.vt.Read(buf)
		if err != nil {
			return
		}
		if n > 0 {
			t.master.Write(buf[:n])
		}
	}
}

// Send writes keys as a terminal does.
func (t *Terminal) Send(keys string) error {
	_, err := t.master.WriteString(keys)
	return err
}

// Resize gives the terminal another size. Lines that no longer fit scroll away;
// like xterm, it does not break lines again.
func (t *Terminal) Resize(cols, rows int) error {
	t.mu.Lock()
	if away := t.vt.CursorPosition().Y - (rows - 1); away > 0 && !t.vt.IsAltScreen() {
		fmt.Fprintf(t.vt, "\x1b[%dS\x1b[%dA", away, away)
	}
	t.vt.Resize(cols, rows)
	t.mu.Unlock()
	return pty.Setsize(t.master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
}

// Look calls see with the terminal held still, for what Text does not say.
func (t *Terminal) Look(see func(*vt.Emulator)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	see(t.vt)
}

// Screen returns what the screen shows, without the blanks at the ends.
func (t *Terminal) Screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.rows(), "\n")
}

// Scrollback returns the lines that scrolled away.
func (t *Terminal) Scrollback() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scrolled()
}

// Text returns the scrollback and the screen.
func (t *Terminal) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text()
}

// All returns every byte that came.
func (t *Terminal) All() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.String()
}

// Cursor returns where the cursor is on the screen.
func (t *Terminal) Cursor() (row, col int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.vt.CursorPosition()
	return at.Y, at.X
}

// Until looks at the terminal until ok says yes, and reports whether it did
// within that time. It does not look at a frame that is half drawn.
func (t *Terminal) Until(patience time.Duration, ok func(text string, row, col int) bool) bool {
	return t.await(patience, func() bool {
		t.mu.Lock()
		half, text, at := t.frame, "", t.vt.CursorPosition()
		if !half {
			text = t.text()
		}
		t.mu.Unlock()
		return !half && ok(text, at.Y, at.X)
	})
}

// UntilCells is Until for those who look at cells, which is faster.
func (t *Terminal) UntilCells(patience time.Duration, ok func(*vt.Emulator) bool) bool {
	return t.await(patience, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return !t.frame && ok(t.vt)
	})
}

// await calls ok, and again whenever something came.
func (t *Terminal) await(patience time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		t.mu.Lock()
		grown := t.grown
		t.mu.Unlock()
		if ok() {
			return true
		}
		select {
		case <-grown:
		case <-deadline.C:
			return false
		}
	}
}

func (t *Terminal) text() string {
	return strings.Join(append(t.scrolled(), t.rows()...), "\n")
}

func (t *Terminal) scrolled() []string {
	var lines []string
	for _, l := range t.vt.Scrollback().Lines() {
		lines = append(lines, words(len(l), func(x int) *uv.Cell { return &l[x] }))
	}
	return lines
}

// rows are the lines of the screen down to the last one that shows something.
func (t *Terminal) rows() []string {
	var lines []string
	for y := range t.vt.Height() {
		lines = append(lines, words(t.vt.Width(), func(x int) *uv.Cell { return t.vt.CellAt(x, y) }))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// words returns the text of n cells.
func words(n int, cell func(x int) *uv.Cell) string {
	var b strings.Builder
	for x := 0; x < n; {
		c := cell(x)
		if c == nil || c.Content == "" {
			b.WriteByte(' ')
			x++
			continue
		}
		b.WriteString(c.Content)
		x += max(c.Width, 1)
	}
	return strings.TrimRight(b.String(), " ")
}
