//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"goclaw/internal/tui/tuitest"
)

// picking starts a chat with three sessions on a terminal.
func picking(t *testing.T, args ...string) (*tuitest.Person, []string) {
	t.Helper()
	home := t.TempDir()
	env := keyless(home, "GOCLAW_NO_LOCAL=1")
	for _, x := range [][2]string{{"main:cli:lisbon", "Tell me about the trams of Lisbon"}, {"main:cli:parser", "Explain the walrus operator"}, {"main:cli:bread", "How is rye bread baked?"}} {
		if _, errOut, code := inPipe(t, env, "ask", "-s", x[0], x[1]); code != 0 {
			t.Fatal(errOut)
		}
	}
	p := tuitest.New(t, 80, 24)
	cmd := exec.Command("goclaw", args...)
	cmd.Env, cmd.Dir = env, home
	p.Run(cmd)
	return p, env
}

// sessionsOf returns the keys of goclaw sessions with more arguments.
func sessionsOf(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, errOut, code := inPipe(t, env, append([]string{"sessions", "list"}, args...)...)
	if code != 0 {
		t.Fatal(errOut)
	}
	return out
}

func TestPickingASession(t *testing.T) {
	t.Parallel()
	p, env := picking(t)
	p.Rests()
	p.Press("\x10") // Ctrl-P
	p.See("Esc back")
	p.Press("bread")
	p.See("1 of 3")
	p.Press("\x12\x15Rye\r") // Ctrl-R, Ctrl-U
	p.See(`it is called "Rye" now`)
	p.Press("\x18") // Ctrl-X
	p.See(`"Rye" is in the trash`)
	p.Press("\x15walrus")
	p.See("Explain the walrus")
	p.Press("\x06") // Ctrl-F
	p.See("forked as main:cli:parser-2")
	p.Press("\x15\x1a") // Ctrl-U, Ctrl-Z
	p.See(`"Rye" is back`)
	p.Press("lisbon\r")
	p.See("Restored: 1 previous turn of main:cli:lisbon")
	p.Rests()
	list := sessionsOf(t, env)
	for _, want := range []string{"main:cli:lisbon", "main:cli:parser", "main:cli:parser-2", "main:cli:bread", "Rye"} {
		if !strings.Contains(list, want) {
			t.Errorf("%s is not there:\n%s", want, list)
		}
	}
	p.Press("/quit\r")
}

func TestGoingBackInTheTree(t *testing.T) {
	t.Parallel()
	p, env := picking(t, "-s", "main:cli:bread")
	p.Rests()
	p.Press("/tree\r")
	p.See("you are here")
	p.Press("\x1b[A\r") // Up, Enter
	p.See("back to before record")
	p.See("as they are now.\n> How is rye bread baked?")
	p.Press(" And wheat bread?\r")
	p.See("start goclaw again.")
	p.Rests()
	p.Press("/tree\r")
	p.See("2 branches")
	p.Press("\x1b[H\x1b[B\r") // Home, Down, Enter: the end of the branch that was left
	p.See("switched to the other branch")
	p.Rests()
	p.Press("/quit\r")
	if list := sessionsOf(t, env); strings.Count(list, "main:cli:bread") != 1 {
		t.Error(list)
	}
}

func TestSearchOnTheScreen(t *testing.T) {
	t.Parallel()
	p, _ := picking(t, "-s", "main:cli:bread")
	p.Rests()
	p.Press("\x06") // Ctrl-F
	p.See("only in sessions of this folder")
	p.Press("walrus")
	p.See("#2 user Explain the walrus operator")
	p.Press("\r")
	p.See("hit 1 of")
	p.Press("o")
	p.See("Restored: 1 previous turn of main:cli:parser")
	p.Rests()
	p.Press("/quit\r")
}

// goclaw -r: Esc leaves, and nothing has changed.
func TestResumeAndLeave(t *testing.T) {
	t.Parallel()
	p, env := picking(t, "-r", "lis")
	before := sessionsOf(t, env)
	p.See("> lis")
	p.See("1 of 3")
	left := func(text string, _, _ int) bool { return !strings.Contains(text, "Esc back") }
	for range 5 { // right before an answer of the terminal it means Alt
		p.Press("\x1b")
		if p.Until(2*time.Second, left) {
			break
		}
	}
	p.Await("the end", left)
	if text := p.Text(); strings.Contains(text, "^[") {
		t.Errorf("the terminal answers a program that has ended:\n%s", text)
	}
	if after := sessionsOf(t, env); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
