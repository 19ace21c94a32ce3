//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/tui/tuitest"
)

// TestCommandIsSeen: in a chat, what a command prints is seen while it runs, and
// nothing of it is left when goclaw is killed.
func TestCommandIsSeen(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		anthropicAnswer(w, text, results)
	}))
	t.Cleanup(srv.Close)
	home, repo := t.TempDir(), t.TempDir()
	p := tuitest.New(t, 160, 40)
	cmd := exec.Command("goclaw", "--mode", "all")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, "claw"), "GOCLAW_NO_LOCAL=1", "TERM=xterm", "PATH=" + os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL=" + srv.URL, "ANTHROPIC_API_KEY=sk-test-0123456789"}
	cmd.Dir = repo
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p.See("/help lists the commands")
	p.Press(`call bash {"command":"seq 1 20; while [ ! -e go ]; do sleep 0.05; done; echo over"}` + "\r")
	p.See("\n  16\n  17\n  18\n  19\n  20\n")
	if err := os.WriteFile(filepath.Join(repo, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.See("\n  6\n  … 15 more lines")
	p.Rests()

	p.Press(`call bash {"command":"setsid sleep 300 & echo $! > a; sleep 300 & echo $! > b; echo both; wait"}` + "\r")
	p.See("\n  both\n")
	cmd.Process.Kill()
	for _, name := range []string{"a", "b"} {
		data, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(testPatience); runs(pid); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d still runs", pid)
				syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}

// runs reports whether a process runs: one that nobody has collected does not.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil && !os.IsNotExist(err) || err == nil && !strings.Contains(string(stat), ") Z ")
}
