//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tuitest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
)

// Patience is how long anything may take in a test that waits for it. It only
// ends a test that hangs: a busy machine is slow.
const Patience = 90 * time.Second

// Person sits before a terminal in a test, which fails when something is not
// seen in time.
type Person struct {
	*Terminal
	t testing.TB
}

// New returns a person before a terminal of that size.
func New(t testing.TB, cols, rows int) *Person {
	t.Helper()
	term, err := Open(cols, rows)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(term.Close)
	return &Person{Terminal: term, t: t}
}

// Run starts cmd on the terminal. It is killed at the end of the test.
func (p *Person) Run(cmd *exec.Cmd) {
	p.t.Helper()
	if err := p.Start(cmd); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cmd.Process.Kill() })
}

// Press sends keys as a terminal does.
func (p *Person) Press(keys string) {
	p.t.Helper()
	if err := p.Send(keys); err != nil {
		p.t.Fatalf("press %q: %v", keys, err)
	}
}

// Drag gives the terminal another size.
func (p *Person) Drag(cols, rows int) {
	p.t.Helper()
	if err := p.Resize(cols, rows); err != nil {
		p.t.Fatal(err)
	}
}

// Await looks at the scrollback and the screen until ok says yes. The cursor's
// place is that on the screen.
func (p *Person) Await(what string, ok func(text string, row, col int) bool) {
	p.t.Helper()
	if !p.Until(Patience, ok) {
		row, col := p.Cursor()
		p.t.Fatalf("waited for %s; the terminal shows, with the cursor at %d,%d:\n%s\nall that came: %q", what, row, col, p.Text(), p.All())
	}
}

// See waits for text in the scrollback or on the screen.
func (p *Person) See(text string) {
	p.t.Helper()
	p.Await(fmt.Sprintf("%q", text), func(s string, _, _ int) bool { return strings.Contains(s, text) })
}

// Shows waits until the terminal shows exactly want, with the cursor there.
func (p *Person) Shows(want string, row, col int) {
	p.t.Helper()
	p.Await(fmt.Sprintf("the cursor at %d,%d of\n%s\n", row, col, want), func(s string, r, c int) bool { return s == want && r == row && c == col })
}

// Rests waits until the chat waits for a message: nothing is under way, and the
// cursor is in an empty input.
func (p *Person) Rests() {
	p.t.Helper()
	if !p.UntilCells(Patience, Resting) {
		row, col := p.Cursor()
		p.t.Fatalf("waited for the chat to rest; the terminal shows, with the cursor at %d,%d:\n%s\nall that came: %q", row, col, p.Text(), p.All())
	}
}

// Resting reports whether a terminal shows a chat that waits for a message.
func Resting(v *vt.Emulator) bool {
	at := v.CursorPosition()
	if c := v.CellAt(0, at.Y); at.X != 2 || c == nil || c.Content != ">" || v.IsAltScreen() {
		return false
	}
	for y := range v.Height() {
		if c := v.CellAt(0, y); c != nil && c.Content >= "\u2800" && c.Content <= "\u28ff" { // a spinner
			return false
		}
	}
	return true
}

// Read is the moment in which somebody who was typing reads a question: keys in
// the middle of a word do not answer one.
func (p *Person) Read() { time.Sleep(700 * time.Millisecond) }
