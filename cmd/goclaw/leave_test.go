//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// asks starts goclaw on a terminal of its own, with what was typed before
// it began. in is its standard input; "": the terminal.
func asks(t *testing.T, home, typed, in string, args ...string) (*tuitest.Person, *exec.Cmd) {
	t.Helper()
	p := tuitest.New(t, 100, 40)
	p.Press(typed)
	cmd := exec.Command("goclaw", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	if in != "" {
		cmd.Stdin = strings.NewReader(in)
	}
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "TERM=xterm", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return p, cmd
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestTypedAheadIsNoLeave: what was typed before a question was asked does not
// answer it, in any face of the program, and what comes through a pipe never
// does.
func TestTypedAheadIsNoLeave(t *testing.T) {
	const question = "bash wants to run in "
	for name, start := range map[string]func(t *testing.T, home string) (*tuitest.Person, *exec.Cmd){
		"ask": func(t *testing.T, home string) (*tuitest.Person, *exec.Cmd) {
			return asks(t, home, "y\ny\ny", "", "ask", "run touch ran")
		},
		"ask with a pipe": func(t *testing.T, home string) (*tuitest.Person, *exec.Cmd) {
			return asks(t, home, "y\n", "run touch ran\n", "ask")
		},
		"lines in a pipe": func(t *testing.T, home string) (*tuitest.Person, *exec.Cmd) {
			return asks(t, home, "y\n", "run touch ran\ny\ny\n")
		},
		"chat": func(t *testing.T, home string) (*tuitest.Person, *exec.Cmd) {
			p, cmd := sit(t, home, "xterm")
			p.Rests()
			p.Press("run touch ran\ry\ry\ry")
			return p, cmd
		},
		"chat on a dumb terminal": func(t *testing.T, home string) (*tuitest.Person, *exec.Cmd) {
			p, cmd := sit(t, home, "dumb")
			p.See("\n>")
			p.Press("run touch ran\ny\ny\ny")
			return p, cmd
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			p, cmd := start(t, home)
			p.See(question)
			p.See("\n  touch ran\n")
			if name == "chat" {
				p.See("y  yes, once\n  s  yes, in this session\n  a  yes, always here\n❯ n  no")
				p.See("\n> y\nEnter queues it; Esc: answer first")
				p.Press("\x1b")
				p.See("your message is set aside")
				p.Press("n")
			} else {
				p.See("[y]es, this [s]ession, [a]lways here, [N]o")
				p.Press("n\r")
			}
			p.See("the user did not allow")
			switch name {
			case "chat": // what was sent was queued, and is said now; the rest waits in the input
				p.Await("two more messages", func(s string, _, col int) bool {
					return strings.Count(s, "\n> y\n") == 3 && col == len("> y") && !strings.ContainsAny(s, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
				})
				p.Press("\x03")
				p.Rests()
				p.Press("\x04")
			case "chat on a dumb terminal":
				p.See("\n>")
				p.Press("\x04")
			}
			exits(t, cmd)
			if exists(filepath.Join(home, "workspace", "ran")) {
				t.Errorf("the command ran without leave: %q", p.All())
			}
		})
	}
}

// TestLeaveInAsk: ask shows a command as the chat does, with what would hide
// in it, and an answer counts.
func TestLeaveInAsk(t *testing.T) {
	home := t.TempDir()
	p, cmd := asks(t, home, "", "", "ask", "run touch ran # \x1b[8mhidden")
	p.See(`  "touch ran # \x1b[8mhidden"` + "\n[y]es, this [s]ession, [a]lways here, [N]o")
	p.Press("what?\r")
	p.Await("the question again", func(s string, _, _ int) bool { return strings.Count(s, "[N]o") == 2 })
	p.Press("a\r")
	if code := exits(t, cmd); code != 0 || !exists(filepath.Join(home, "workspace", "ran")) {
		t.Errorf("exit code %d, the command ran: %v", code, exists(filepath.Join(home, "workspace", "ran")))
	}
	if got, err := os.ReadFile(filepath.Join(home, "allowed")); err != nil || string(got) != fmt.Sprintf("%q %q\n", filepath.Join(home, "workspace"), `bash("touch ran # \x1b[8mhidden")`) {
		t.Errorf("allowed for always is %q, %v", got, err)
	}

	// What names goclaw's own files is asked about each time.
	for range 2 {
		p, cmd = asks(t, home, "", "", "ask", "run ls "+home+"/allowed")
		p.See("It names goclaw's own files, so you are asked every time.\n[y]es, [N]o")
		p.Press("a\r")
		p.Await("the question again", func(s string, _, _ int) bool { return strings.Count(s, "[N]o") == 2 })
		p.Press("y\r")
		exits(t, cmd)
	}
}

// TestConfirmIsNotTypedAhead: nor is a deletion confirmed that way.
func TestConfirmIsNotTypedAhead(t *testing.T) {
	home := t.TempDir()
	_, cmd := asks(t, home, "", "", "ask", "hello")
	exits(t, cmd)
	p, cmd := asks(t, home, "y\n", "", "sessions", "delete", "--purge", "main:cli:user")
	p.See("[y/N]")
	p.Press("n\n")
	p.See("was not removed")
	if code := exits(t, cmd); code == 0 {
		t.Errorf("exit code %d: %q", code, p.All())
	}
}

// TestTypedAheadAnswersNothing: the same for every other question: where
// conversations go, what is continued, which session is opened.
func TestTypedAheadAnswersNothing(t *testing.T) {
	ollama := &ear{models: []string{"llama3.2"}}
	machine{ollama: ollama}.switchOn(t)
	refused := func(t *testing.T, home string) []string { // a message without an answer
		url, _ := busy(t, 99, "3600")
		env := claude(home, url)
		if _, errOut, code := inPipe(t, env, "ask", "hello"); code != 1 {
			t.Fatal(errOut)
		}
		return env
	}
	two := func(t *testing.T, home string) []string {
		env := keyless(home, "GOCLAW_NO_LOCAL=1")
		for _, key := range []string{"main:cli:one", "main:cli:two"} {
			if _, errOut, code := inPipe(t, env, "ask", "-s", key, "hello"); code != 0 {
				t.Fatal(errOut)
			}
		}
		return env
	}
	for name, c := range map[string]struct {
		args     []string
		prepare  func(t *testing.T, home string) (env []string)
		question string
		answer   string
		then     string
		draws    bool // what was typed is in the input
	}{
		"a server, in ask":    {[]string{"ask", "hello"}, nil, "Send conversations to it? [y/N]", "n\n", "because you said no", false},
		"a server, in chat":   {nil, nil, "Send conversations to it?\n  y yes  ❯ n no", "n", "because you said no", true},
		"an interrupted turn": {nil, refused, "Continue it?\n❯ y yes    n no", "n", "/continue resumes it later.", true},
		"an interrupted turn on a dumb terminal": {nil, func(t *testing.T, home string) []string {
			return append(refused(t, home), "TERM=dumb")
		}, "Continue it? [Y/n]", "n\n", "/continue resumes it later.", false},
		"which session":                 {[]string{"-r"}, two, "Esc back", "cli one\r", "Restored: 1 previous turn of main:cli:one", true},
		"which session, in plain lines": {[]string{"-r", "--plain"}, two, "Which one? [1-2, or a part of its name]", "one\n", "Restored: 1 previous turn of main:cli:one", false},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			env := keyless(home)
			if c.prepare != nil {
				env = c.prepare(t, home)
			}
			ollama.take()
			p := tuitest.New(t, 200, 40)
			p.Press("y\ny\n1\ny") // before the program has begun
			cmd := exec.Command("goclaw", c.args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
			cmd.Env, cmd.Dir = env, home
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			p.See(c.question)
			if c.draws && c.args == nil { // what was typed stands below the question
				p.See("Enter queues it; Esc: answer first")
				p.Press("\x1b")
				p.See("your message is set aside")
			}
			p.Press(c.answer)
			p.See(c.then)
			if len(c.args) == 0 || c.args[0] == "-r" {
				p.See("\n>")
				if c.draws {
					p.See("\n> y\n  y\n  1\n  y\n")
				}
				p.Press("\x03")
				p.Await("an empty input", func(_ string, _, col int) bool { return col == len("> ") })
				p.Press("\x04")
			}
			exits(t, cmd)
			if heard, bodies := ollama.take(); strings.Contains(bodies, "hello") {
				t.Errorf("the server got %q", heard)
			}
		})
	}
}
