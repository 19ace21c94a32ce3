//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// openClaw makes a folder of sessions of about that many bytes each.
func openClaw(t *testing.T, sessions, size int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range sessions {
		var b strings.Builder
		fmt.Fprintf(&b, `{"type":"session","version":3,"id":"s%d","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}`+"\n", i)
		parent := "null"
		for k := 0; b.Len() < size; k++ {
			fmt.Fprintf(&b, `{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":%q,"timestamp":1}}`+"\n", k, parent, strings.Repeat("word ", 400))
			parent = fmt.Sprintf(`"m%d"`, k)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%d.jsonl", i)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestImportOnATerminal: the bar is one line that grows within one file, too,
// fits the terminal, and is gone at the end.
func TestImportOnATerminal(t *testing.T) {
	src, home := openClaw(t, 2, 24<<20), t.TempDir()
	for _, cols := range []int{100, 40} {
		p := tuitest.New(t, cols, 10)
		cmd := exec.Command("goclaw", "import", src)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, &out, p.TTY
		cmd.Env = []string{"HOME=" + home, fmt.Sprint("GOCLAW_HOME=", home, "/", cols), "TERM=xterm", "PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"}
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %q", err, p.All())
		}
		if !strings.HasPrefix(out.String(), "2 sessions: 2 new") {
			t.Errorf("said %q", out.String())
		}
		p.Await("what to do next, and no bar", func(s string, _, _ int) bool {
			return strings.HasPrefix(s, "found 2 sessions of pi (48.0 MB)\ngoclaw sessions lists them; ")
		})
		bar, _, _ := strings.Cut(p.All(), "goclaw sessions lists")
		lines := strings.Split(bar, "\r")
		seen := map[string]bool{}
		form := regexp.MustCompile(`^([█░]{20} )?([012])/2 files(, [0-9.]+ (MB|KB|B) of 48.0 MB)?(, [0-9.]+ [MK]?B/s)?(, .*(left|done))?$`)
		for _, l := range lines[2 : len(lines)-1] {
			l = strings.TrimSuffix(l, "\x1b[K")
			if !form.MatchString(l) {
				t.Errorf("at %d columns: %q", cols, l)
			}
			seen[l] = true
		}
		if cols == 100 && !regexp.MustCompile(`0/2 files, [1-9][0-9.]* MB of`).MatchString(p.All()) {
			t.Errorf("nothing is said before the first file is done: %q", p.All())
		}
		if len(seen) < 3 {
			t.Errorf("at %d columns the line did not move: %q", cols, p.All())
		}
	}
}

// TestFirstStartOfNothing: where there is nothing to take over, no bar is shown.
func TestFirstStartOfNothing(t *testing.T) {
	home := t.TempDir()
	p := tuitest.New(t, 80, 10)
	cmd := exec.Command("goclaw", "sessions")
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, &out, p.TTY
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home + "/g", "TERM=xterm", "PATH=" + os.Getenv("PATH"), "GOCLAW_NO_LOCAL=1"}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %q", err, p.All())
	}
	fmt.Fprint(p.TTY, "the end")
	p.Await("the end", func(s string, _, _ int) bool { return strings.Contains(s, "the end") })
	if got := p.All(); strings.Contains(got, "files") {
		t.Errorf("it shows %q", got)
	}
}

// TestImportIntoAPipe: nothing but what there is to say.
func TestImportIntoAPipe(t *testing.T) {
	src, home := openClaw(t, 2, 1<<20), t.TempDir()
	var out, errOut bytes.Buffer
	cmd := exec.Command("goclaw", "import", src)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "TERM=xterm", "PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got, want := errOut.String(), "found 2 sessions of pi (2.0 MB)\n"; got != want || !strings.HasPrefix(out.String(), "2 sessions: 2 new") {
		t.Errorf("standard error %q, want %q; output %q", got, want, out.String())
	}
}
