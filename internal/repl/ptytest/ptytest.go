//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package ptytest is a person at a terminal: it presses keys on a real
// pseudo-terminal and looks at the screen until it shows what it should.
package ptytest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"github.com/creack/pty"
)

// patience is how long the screen may take to show something.
const patience = 20 * time.Second

// Person sits before a terminal. TTY is the side that the program has.
type Person struct {
	TTY *os.File

	t      testing.TB
	master *os.File
	mu     sync.Mutex
	screen *screen
	all    strings.Builder
	grown  chan struct{}
}

// New returns a person before a terminal of that size.
func New(t testing.TB, cols, rows int) *Person {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	if master, err = polled(master); err != nil {
		t.Fatal(err)
	}
	p := &Person{TTY: tty, t: t, master: master, screen: newScreen(cols, rows), grown: make(chan struct{})}
	t.Cleanup(func() { tty.Close(); master.Close() })
	go p.watch()
	return p
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

func (p *Person) watch() {
	buf := make([]byte, 4096)
	var held []byte
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.all.Write(buf[:n])
		held = p.screen.write(append(held, buf[:n]...))
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Press sends keys as a terminal does.
func (p *Person) Press(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatalf("press %q: %v", keys, err)
	}
}

// Hangup takes the terminal away.
func (p *Person) Hangup() { p.master.Close() }

// Await looks at the screen until ok says yes.
func (p *Person) Await(what string, ok func(screen string, row, col int) bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		text, row, col := p.screen.String(), p.screen.row, p.screen.col
		grown := p.grown
		p.mu.Unlock()
		if ok(text, row, col) {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			p.t.Fatalf("waited for %s; the screen shows, with the cursor at %d,%d:\n%s\nall that came: %q", what, row, col, text, p.All())
		}
	}
}

// See waits for text on the screen.
func (p *Person) See(text string) {
	p.t.Helper()
	p.Await(fmt.Sprintf("%q", text), func(s string, _, _ int) bool { return strings.Contains(s, text) })
}

// Screen waits until the screen shows exactly want, with the cursor there.
func (p *Person) Screen(want string, row, col int) {
	p.t.Helper()
	p.Await(fmt.Sprintf("the cursor at %d,%d of\n%s\n", row, col, want), func(s string, r, c int) bool { return s == want && r == row && c == col })
}

// All returns every byte that came.
func (p *Person) All() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// screen is the least of a terminal: text, wrapping at the edge, and the few
// sequences that a line editor needs. An unknown one is shown, so that a test
// that meets it fails.
type screen struct {
	cols, rows int
	cells      [][]string // "" is the right half of a wide character
	row, col   int
	edge       bool // a character was written into the last column
}

func newScreen(cols, rows int) *screen {
	s := &screen{cols: cols, rows: rows}
	for range rows {
		s.cells = append(s.cells, s.blank())
	}
	return s
}

func (s *screen) blank() []string {
	row := make([]string, s.cols)
	for i := range row {
		row[i] = " "
	}
	return row
}

func (s *screen) String() string {
	var lines []string
	for _, row := range s.cells {
		lines = append(lines, strings.TrimRight(strings.Join(row, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// write shows b and returns what is not complete yet.
func (s *screen) write(b []byte) []byte {
	for len(b) > 0 {
		if b[0] == 0x1b {
			n := s.sequence(b)
			if n == 0 {
				return b
			}
			b = b[n:]
			continue
		}
		if !utf8.FullRune(b) {
			return b
		}
		r, n := utf8.DecodeRune(b)
		s.put(r)
		b = b[n:]
	}
	return nil
}

func (s *screen) put(r rune) {
	switch r {
	case '\r':
		s.col, s.edge = 0, false
		return
	case '\n':
		s.down()
		return
	}
	w := displaywidth.Rune(r)
	if s.edge || s.col+w > s.cols {
		s.col = 0
		s.down()
	}
	s.cells[s.row][s.col] = string(r)
	if w == 2 {
		s.cells[s.row][s.col+1] = ""
	}
	s.col += w
	if s.col == s.cols {
		s.col, s.edge = s.cols-1, true
	}
}

func (s *screen) down() {
	s.edge = false
	if s.row++; s.row == s.rows {
		s.cells = append(s.cells[1:], s.blank())
		s.row--
	}
}

// sequence obeys the one at the beginning of b, and returns its length.
func (s *screen) sequence(b []byte) int {
	for i := 2; i < len(b); i++ {
		if b[i] < 0x40 || b[i] > 0x7e {
			continue
		}
		arg := string(b[2:i])
		n := 1
		fmt.Sscanf(arg, "%d", &n)
		switch b[i] {
		case 'A':
			s.row, s.edge = max(s.row-n, 0), false
		case 'C':
			s.col, s.edge = min(s.col+n, s.cols-1), false
		case 'H':
			s.row, s.col, s.edge = 0, 0, false
		case 'J':
			if arg == "2" {
				*s = screen{cols: s.cols, rows: s.rows, cells: newScreen(s.cols, s.rows).cells, row: s.row, col: s.col}
				break
			}
			s.clear()
			for r := s.row + 1; r < s.rows; r++ {
				s.cells[r] = s.blank()
			}
		case 'K':
			s.clear()
		case 'm', 'h', 'l':
		default:
			for _, r := range fmt.Sprintf("<%q>", b[:i+1]) {
				s.put(r)
			}
		}
		return i + 1
	}
	return 0
}

// clear empties the rest of the row.
func (s *screen) clear() {
	for c := s.col; c < s.cols; c++ {
		s.cells[s.row][c] = " "
	}
}
