//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// TestStatusLineOfTheProgram: the last lines say which model, folder and title,
// how full the window is, what was spent, the mode, and that a checkpoint is being
// made by another process, and no longer.
func TestStatusLineOfTheProgram(t *testing.T) {
	t.Parallel()
	for _, size := range []struct {
		cols, rows int
		before     string // the status lines after the second turn
	}{
		{80, 24, `\nanthropic/claude-sonnet-4-5 · ~/work · say hello to the harbour master\n[█░│]{20} \d+% of 200k · last \$[0-9.]+, all \$[0-9.]+ · ask · checkpoint…$`},
		{40, 20, `\nclaude-sonnet-4[-5…]* · (work · )?say hello to [a-z ]*…\n[█░│]+ \d+% · \$[0-9.]+(/\$[0-9.]+)? · ask · check(point)?…$`},
	} {
		s := serveSummaries(t)
		home := t.TempDir()
		put(t, home, "home/config.json", soon)
		put(t, home, "work/a.txt", "a")
		p := tuitest.New(t, size.cols, size.rows)
		cmd := exec.Command("goclaw")
		cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home + "/home", "GOCLAW_NO_LOCAL=1", "TERM=xterm-256color", "NO_COLOR=1", "PATH=" + os.Getenv("PATH"),
			"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + s.url}
		cmd.Dir = home + "/work"
		p.Run(cmd)
		t.Cleanup(func() { cmd.Process.Kill() })
		p.Await("an open chat", func(s string, _, _ int) bool { return strings.Contains(s, "% ") && strings.Contains(s, "New session") })
		p.Press("say hello to the harbour master\r")
		p.See("echo: say hello to the harbour master")
		p.Await("a cost", func(s string, _, _ int) bool { return regexp.MustCompile(`\$0\.0\d+`).MatchString(s) })
		p.Press("and again\r")
		p.See("echo: and again")
		s.wait(t)
		p.Await("a checkpoint that is being made", func(s string, _, _ int) bool {
			return regexp.MustCompile(size.before).MatchString(strings.TrimRight(s, "\n "))
		})
		s.release()
		p.Await("no checkpoint", func(s string, _, _ int) bool { return !strings.Contains(s, "check") && strings.Contains(s, "ask") })
		p.Press("/quit\r")
		if code := exits(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}
