//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// TestWorkInAFolder is a day's work in short: start in a repository, see an edit
// as a diff, refuse it with a reason, allow it, go back, be killed, come back
// and go on.
func TestWorkInAFolder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = append(sent, string(raw))
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		anthropicAnswer(w, text, results)
	}))
	t.Cleanup(srv.Close)
	home, repo := t.TempDir(), t.TempDir()
	file := filepath.Join(repo, "a.go")
	if err := os.WriteFile(file, []byte("package a\n\nvar x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "AGENTS.md"), []byte("Prefer constants."), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(args ...string) (*tuitest.Person, *exec.Cmd) {
		p := tuitest.New(t, 100, 60)
		cmd := exec.Command("goclaw", args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
		cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "TERM=xterm", "PATH=" + os.Getenv("PATH"),
			"ANTHROPIC_BASE_URL=" + srv.URL, "ANTHROPIC_API_KEY=sk-test-0123456789"}
		cmd.Dir = repo
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return p, cmd
	}
	is := func(want string) {
		t.Helper()
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
	}

	p, cmd := open()
	p.See("(/mode)")
	p.Rests()
	edit := `call edit_file {"path":"a.go","old_string":"var x","new_string":"const x"}`
	p.Press(edit + "\r")
	p.See("edit_file wants to change a.go")
	p.See("   3 - var x = 1\n   3 + const x = 1\n")
	p.See("n  no")
	is("package a\n\nvar x = 1\n")
	p.Press("b")
	p.See("because")
	p.Press("use a function\r")
	p.See("use a function\n")
	p.Rests()
	p.Press(edit + "\r")
	p.See("edit_file wants to change a.go") // what was asked first is gone
	p.See("n  no")
	p.Press("y")
	p.See("✓ edit_file a.go") // its diff was in the question
	p.Rests()
	is("package a\n\nconst x = 1\n")
	mu.Lock()
	all := strings.Join(sent, "\n")
	mu.Unlock()
	if !strings.Contains(all, "Prefer constants.") || !strings.Contains(all, "use a function") {
		t.Errorf("the model was not told the instructions or the reason:\n%s", all)
	}
	p.Press("/rewind\r")
	p.See("Files are as they are now.\n> call edit_file")
	p.Press("\x15hello\r") // another message instead
	p.See("echo: hello")
	p.Rests()
	cmd.Process.Kill()
	exits(t, cmd)

	p, cmd = open("-c")
	p.See("Restored: 2 previous turns of main:cli:user")
	p.Rests()
	p.Press("/tree\r")
	p.See("hello")
	p.See("you are here")
	p.Press("\x1b")
	p.Rests()
	p.Press("go on\r")
	p.See("echo: go on")
	p.Rests()
	p.Press("/quit\r")
	if code := exits(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
