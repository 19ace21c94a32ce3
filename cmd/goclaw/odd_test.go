//go:build unix

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// What lies where a file is expected and is no file, by kind.
var oddFiles = map[string]func(path string) error{
	"a FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
	"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	"a socket": socket,
	"large":    func(path string) error { return sparse(path, 600<<20) },
}

// socket makes one, by a short name: long ones are refused.
func socket(path string) error {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	short := filepath.Join(dir, "s")
	l, err := net.Listen("unix", short)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	return os.Rename(short, path)
}

// sparse makes a large file that takes no space.
func sparse(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// FIFOs, devices, sockets, folders and huge files in the place of goclaw's own
// files, or named by the user, neither hang a command nor fill the memory: one
// line names the file.
func TestOddFiles(t *testing.T) {
	for _, c := range []struct {
		file  string   // below the home; it is replaced
		args  []string // a command that reads it
		code  int
		says  string // on standard error, besides the file
		takes string // kinds that are no problem there
	}{
		{"config.json", []string{"sessions"}, 1, "goclaw: config: ", ""},
		{"config.json", []string{"config", "init"}, 1, "goclaw: ", ""},
		{"allowed", []string{"ask", "hello"}, 0, "allowed for good cannot be read", ""},
		{"inherit.json", []string{"import", "--dry-run"}, 1, "goclaw: ", ""},
		{"removed.json", []string{"import", "--dry-run"}, 1, "goclaw: ", ""},
		{"sessions.db", []string{"sessions"}, 1, "goclaw: ", ""},
		{"index.db", []string{"doctor", "--model", "offline"}, 1, "", "large"},
		{"notes.txt", []string{"ask", "-a", "notes.txt", "hello"}, 1, "notes.txt cannot be attached: ", ""},
		{"agents/main/sessions/aaaa.jsonl", []string{"import", "agents"}, 1, "goclaw: ", "a folder"},
		{"windows.json", []string{"ask", "hello"}, 0, "", ""},
		{"windows.json", []string{"config"}, 0, "", ""},
		{"workspace/MEMORY.md", []string{"ask", "what do you remember?"}, 0, "", ""},
		{"workspace/MEMORY.md", []string{"search", "boat"}, 0, "", "large"},
		{"workspace/memory/2026-01-01.md", []string{"search", "boat"}, 0, "", "large"},
	} {
		t.Run(c.file+" "+c.args[0], func(t *testing.T) {
			t.Parallel()
			for kind, make := range oddFiles {
				home := t.TempDir()
				path := filepath.Join(home, c.file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := make(path); err != nil {
					t.Fatal(err)
				}
				out, errOut, code := limited(t, home, c.args...)
				if kind == c.takes {
					continue
				}
				if code != c.code {
					t.Errorf("%s: exit code %d, want %d\n%s%s", kind, code, c.code, out, errOut)
				}
				if c.says != "" && (!strings.Contains(errOut, c.says) || !strings.Contains(errOut, filepath.Base(c.file)) && !strings.Contains(errOut, "/dev/zero")) {
					t.Errorf("%s: standard error is %q, want it to say %q and to name %s", kind, errOut, c.says, c.file)
				}
				if c.says != "" && strings.Count(errOut, "\n") > 3 {
					t.Errorf("%s: standard error has many lines: %q", kind, errOut)
				}
			}
		})
	}
}

// limited runs the program with a deadline and a limit on its memory.
func limited(t *testing.T, home string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "goclaw", args...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "NO_COLOR=1", "PATH=" + os.Getenv("PATH")}
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("goclaw %q does not end: %s%s", args, o.String(), e.String())
	}
	// Linux counts what this process had when it started the other one as well.
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" && ru.Maxrss > max(512<<10, own.Maxrss) {
		t.Errorf("goclaw %q took %d MiB of memory", args, ru.Maxrss>>10)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}
