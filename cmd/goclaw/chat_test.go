//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"goclaw/internal/tui/tuitest"
)

// sit starts the program on a terminal of its own.
func sit(t *testing.T, home, termName string, args ...string) (*tuitest.Person, *exec.Cmd) {
	t.Helper()
	p := tuitest.New(t, 100, 40)
	cmd := exec.Command("goclaw", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "TERM=" + termName, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return p, cmd
}

// exits waits for the program's end and returns its exit code.
func exits(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testPatience):
		t.Fatal("the program does not end")
	}
	return cmd.ProcessState.ExitCode()
}

// A conversation on a terminal survives whatever ends the program, and the
// terminal is left as it was where there is a chance.
func TestChatOnATerminal(t *testing.T) {
	home := t.TempDir()
	p, cmd := sit(t, home, "xterm")
	p.See("New session main:cli:user")
	p.Press("remember that the boat is blue\r")
	p.See("Noted in memory")
	p.Rests()
	cmd.Process.Kill()
	exits(t, cmd)

	for n, end := range []struct {
		name string
		do   func(*tuitest.Person, *exec.Cmd)
	}{
		{"ctrl-d", func(p *tuitest.Person, _ *exec.Cmd) { p.Press("\x04") }},
		{"ctrl-c twice", func(p *tuitest.Person, _ *exec.Cmd) {
			p.Press("\x03")
			p.See("Ctrl-C again to quit")
			p.Press("\x03")
		}},
		{"terminate", func(_ *tuitest.Person, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGTERM) }},
		{"hang up", func(_ *tuitest.Person, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGHUP) }},
		{"hang up, by the terminal and by its shell", func(_ *tuitest.Person, cmd *exec.Cmd) {
			for range 3 {
				cmd.Process.Signal(syscall.SIGHUP)
				time.Sleep(time.Millisecond)
			}
		}},
		{"quit", func(p *tuitest.Person, _ *exec.Cmd) { p.Press("/quit\r") }},
	} {
		p, cmd := sit(t, home, "xterm")
		p.See("Restored: 1 previous turn of main:cli:user")
		p.Rests()
		end.do(p, cmd)
		if code := exits(t, cmd); code != 0 {
			t.Errorf("%s: exit code %d, want 0", end.name, code)
		}
		cooked := tuitest.New(t, 100, 40)
		want, err := term.GetState(int(cooked.TTY.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := term.GetState(int(p.TTY.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if *got != *want {
			t.Errorf("%s (%d): the terminal is left as %+v, want %+v", end.name, n, got, want)
		}
	}
	st, err := os.Stat(filepath.Join(home, "history"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the history is %v, %v; want a file of mode 0600", st, err)
	}
}

// A command is run when the user allows it, and once allowed for always it is
// not asked about again, in the next process either.
func TestLeaveOnATerminal(t *testing.T) {
	home := t.TempDir()
	p, cmd := sit(t, home, "xterm")
	p.See("New session")
	p.Press("run echo it is $((6*7))\r")
	p.See("wants to run")
	p.See("a  yes, always here")
	p.Press("a")
	p.See("it is 42")
	p.Rests()
	p.Press("\x04")
	exits(t, cmd)
	p, cmd = sit(t, home, "xterm")
	p.See("Restored: ")
	p.Rests()
	p.Press("run echo it is $((6*7))\r")
	p.See("✓ bash echo it is $((6*7))")
	if strings.Contains(p.All(), "wants to run") {
		t.Errorf("what is allowed for always is asked about again: %q", p.All())
	}
	p.Rests()
	p.Press("\x04")
	exits(t, cmd)
}

func TestChatOnADumbTerminal(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"session": {"inherit": {"enabled": false}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, cmd := sit(t, home, "dumb")
	p.See("\n>")
	p.Press("hello\n")
	p.See("not a language model")
	p.Press("/quit\n")
	if code := exits(t, cmd); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if strings.Contains(p.All(), "\x1b") {
		t.Errorf("a terminal that can do nothing gets escapes: %q", p.All())
	}
}
