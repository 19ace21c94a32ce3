//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tuitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tmux is a real tmux with one window, in which a shell runs.
type Tmux struct {
	t      testing.TB
	socket string
	env    []string
}

// NewTmux starts tmux with a window of that size, with a shell in dir, whose
// prompt is "$ ".
func NewTmux(t testing.TB, cols, rows int, dir string, env []string) *Tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	home, err := os.MkdirTemp("", "tmux") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	m := &Tmux{t: t, socket: filepath.Join(home, "s"), env: append([]string{"PS1=$ ", "HISTFILE=", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh"}, env...)}
	conf := filepath.Join(home, "conf")
	if err := os.WriteFile(conf, []byte("set -g history-limit 50000\nset -g status off\nset -sg escape-time 0\nset -g default-terminal tmux-256color\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", m.socket, "kill-server").Run()
		os.RemoveAll(home)
	})
	m.Do("-f", conf, "new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows), "-c", dir, "exec bash --norc --noprofile -i")
	m.See("$")
	return m
}

// Do runs a command of tmux, and returns what it prints.
func (m *Tmux) Do(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", m.socket}, args...)...)
	cmd.Env = m.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Type sends text as if it were typed.
func (m *Tmux) Type(text string) {
	m.t.Helper()
	m.Do("send-keys", "-l", "--", text)
}

// Press sends keys by their names in tmux: Enter, Escape, C-c, Up.
func (m *Tmux) Press(keys ...string) {
	m.t.Helper()
	m.Do(append([]string{"send-keys"}, keys...)...)
}

// Enter types a line and sends it.
func (m *Tmux) Enter(line string) {
	m.t.Helper()
	m.Type(line)
	m.Press("Enter")
}

// Resize gives the window another size.
func (m *Tmux) Resize(cols, rows int) {
	m.t.Helper()
	m.Do("resize-window", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows))
}

// Screen is what the window shows.
func (m *Tmux) Screen() string {
	m.t.Helper()
	return strings.TrimRight(m.Do("capture-pane", "-p"), "\n")
}

// Text is the scrollback and the screen. Lines that tmux has broken are whole.
func (m *Tmux) Text() string {
	m.t.Helper()
	lines := strings.Split(m.Do("capture-pane", "-p", "-J", "-S", "-"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Await looks at the scrollback and the screen until ok says yes.
func (m *Tmux) Await(what string, ok func(text string) bool) {
	m.t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(15 * time.Millisecond) {
		text := m.Text()
		if ok(text) {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("waited for %s; tmux shows\n%s\nand its screen is\n%s", what, text, m.Screen())
		}
	}
}

// See waits for text in the scrollback or on the screen.
func (m *Tmux) See(text string) {
	m.t.Helper()
	m.Await(fmt.Sprintf("%q", text), func(s string) bool { return strings.Contains(s, text) })
}

// SeeNow waits for text on the screen.
func (m *Tmux) SeeNow(text string) {
	m.t.Helper()
	m.Await(fmt.Sprintf("%q on the screen", text), func(string) bool { return strings.Contains(m.Screen(), text) })
}

// Gone waits until text is not on the screen.
func (m *Tmux) Gone(text string) {
	m.t.Helper()
	m.Await(fmt.Sprintf("no %q on the screen", text), func(string) bool { return !strings.Contains(m.Screen(), text) })
}

// Child returns the process that the shell runs.
func (m *Tmux) Child() int {
	m.t.Helper()
	shell := strings.TrimSpace(m.Do("display-message", "-p", "#{pane_pid}"))
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", shell).Output()
	var pid int
	if _, err2 := fmt.Sscan(string(out), &pid); err != nil || err2 != nil {
		m.t.Fatalf("the shell runs nothing: %v, %q", err, out)
	}
	return pid
}
