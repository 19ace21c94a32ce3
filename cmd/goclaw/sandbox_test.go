//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/tui/tuitest"
	"goclaw/tool"
)

// The first line of a chat says what commands can do, and /mode says it again.
func TestSandboxIsSaid(t *testing.T) {
	t.Parallel()
	home, repo := t.TempDir(), t.TempDir()
	p := tuitest.New(t, 200, 40)
	cmd := exec.Command("goclaw", "--mode", "all", "--model", "offline")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, "claw"), "GOCLAW_NO_LOCAL=1", "TERM=xterm", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = repo
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	limits := "commands write only below this folder"
	set, err := tool.New(tool.Options{Workspace: repo, Now: time.Now, Mode: tool.ModeAll, Sandbox: tool.Sandbox{Use: tool.SandboxAuto}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if c := set.Confinement(); c.Missing != "" { // an old kernel, or another system
		limits = "there is no sandbox: " + c.Missing
	}
	p.See("it changes files and runs commands unasked; " + limits)
	p.Press("/mode edits\r")
	p.See("edits: changes files unasked, and asks before it runs commands\n")
	p.Press("/mode all\r")
	p.See("all: changes files and runs commands unasked; " + limits)
}
