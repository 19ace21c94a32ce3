package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"goclaw/internal/config"
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

func TestWritable(t *testing.T) {
	home := t.TempDir()
	repo := filepath.Join(home, "repo", "sub")
	if err := os.MkdirAll(filepath.Join(home, "repo", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &config.Loaded{Config: config.Default()}
	c.Workspace, c.Tools.Mode, c.Tools.Network, c.Tools.Writable = repo, "all", "off", []string{"~/more", "/srv/out", "beside"}
	e := &env{conf: c, getenv: func(name string) string {
		return map[string]string{"HOME": home, "GOCACHE": "/fast/cache", "GOPATH": "/go:/other"}[name]
	}}
	got, err := sandbox(e)
	if err != nil || got.Use != tool.SandboxAuto || !got.NoNetwork {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, want := range []string{
		filepath.Join(home, "repo/.git"), filepath.Join(home, ".cache"), "/fast/cache", "/go/pkg", filepath.Join(home, ".npm"),
		filepath.Join(home, "more"), "/srv/out", filepath.Join(repo, "beside"),
	} {
		if !slices.Contains(got.Writable, want) {
			t.Errorf("%s is not among %v", want, got.Writable)
		}
	}
	if slices.Contains(got.Writable, home) || slices.Contains(got.Writable, filepath.Join(home, "repo")) {
		t.Errorf("too much: %v", got.Writable)
	}
	if _, err := os.Stat(filepath.Join(home, ".cache")); err != nil {
		t.Error(err)
	}
}
