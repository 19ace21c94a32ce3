//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/internal/tui/tuitest"
)

// begins starts the program in home on a terminal of that size.
func begins(t *testing.T, home string, cols, rows int, more ...string) (*tuitest.Person, *exec.Cmd) {
	t.Helper()
	p := tuitest.New(t, cols, rows)
	cmd := exec.Command("goclaw", more...)
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home + "/home", "GOCLAW_NO_LOCAL=1", "TERM=xterm-256color", "NO_COLOR=1", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = home
	p.Run(cmd)
	t.Cleanup(func() { cmd.Process.Kill() })
	return p, cmd
}

const welcome = `goclaw is an agent: it reads and changes files here, and asks before it acts.
It never loses a conversation: not in a crash, nor when the window is full.
Write what you want done. ? shows the keys, / the commands, @ adds a file.
Found:
  keys          none: goclaw setup, or set ANTHROPIC_API_KEY or OPENAI_API_KEY
  local models  no server answers
  other agents  pi (3 sessions), claude-code (1 session)
Import 4 sessions (the originals are only read)?`

// answers presses key until text is there: what is pressed before a question is
// on the screen does not answer it.
func answers(p *tuitest.Person, key, text string) {
	for range 5 {
		p.Press(key)
		if p.Until(3*time.Second, func(s string, _, _ int) bool { return strings.Contains(s, text) }) {
			return
		}
	}
	p.See(text)
}

// others leaves sessions of other programs in home.
func others(t *testing.T, home string) {
	t.Helper()
	for i := range 3 {
		put(t, home, fmt.Sprintf("%ss%d.jsonl", piFolder, i), piSession(fmt.Sprint("s", i), 4, 100))
	}
	put(t, home, ".claude/projects/-w/11111111-1111-4111-8111-111111111111.jsonl", `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"11111111-1111-4111-8111-111111111111","cwd":"/w","version":"2.0.0","timestamp":"2026-11-15T00:00:01.000Z","isSidechain":false,"userType":"external","message":{"role":"user","content":"hello"}}
`)
}

// TestFirstStartInATerminal: the first start says in three lines what goclaw is,
// what there is on this machine, and imports after a yes; the second says none of
// that.
func TestFirstStartInATerminal(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	others(t, home)
	p, cmd := begins(t, home, 80, 24)
	p.See(welcome)
	answers(p, "\r", "4 sessions: 4 new; ")
	p.See("No key yet: the built-in offline model answers (it is not a language model).\n")
	p.See("New session main:cli:user")
	p.Press("/sessions all\r")
	p.See("hello")
	p.Press("\x1b")
	p.Rests() // a key right after Esc would be taken with Alt
	p.Press("/quit\r")
	if code := exits(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p, _ = begins(t, home, 80, 24)
	p.See("New session main:cli:user")
	if s := p.Text(); strings.Contains(s, "Import") {
		t.Errorf("the second start says\n%s", s)
	}
}

// Nothing is imported without a yes, and a no is remembered.
func TestFirstStartDeclined(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	others(t, home)
	p, cmd := begins(t, home, 40, 20)
	p.See("Import 4 sessions")
	for _, line := range strings.Split(p.Text(), "\n") {
		if n := len([]rune(line)); n > 40 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	answers(p, "\x1b", "[nothing was imported; goclaw import")
	p.See("New session main:cli:user")
	p.Press("hello\r")
	p.See("Hello!")
	p.Press("/quit\r")
	exits(t, cmd)
	sessions := func() string {
		cmd, out, errOut := child(t, home, "sessions")
		if err := cmd.Run(); err != nil {
			t.Fatal(err, errOut)
		}
		return out.String() + errOut.String()
	}
	if s := sessions(); strings.Contains(s, "pi:w:s0") {
		t.Errorf("it was imported:\n%s", s)
	}
	p, _ = begins(t, home, 80, 24)
	p.See("Restored: 1 previous turn")
	if s := p.Text(); strings.Contains(s, "Import ") || strings.Contains(s, "goclaw is an agent") {
		t.Errorf("the second start says\n%s", s)
	}
	cmd, out, errOut := child(t, home, "import")
	if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), "4 sessions: 4 new") {
		t.Errorf("goclaw import later: %v, %s%s", err, out, errOut)
	}
}

// The import of the first start shows how far it is and can be stopped: what is
// imported stays, and the next start imports the rest without asking again.
func TestFirstStartStopped(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	const sessions = 30
	for i := range sessions {
		put(t, home, fmt.Sprintf("%ss%02d.jsonl", piFolder, i), piSession(fmt.Sprintf("s%02d", i), 400, 2000))
	}
	p, cmd := begins(t, home, 80, 24)
	p.See("Import 30 sessions (the originals are only read)?")
	answers(p, "\r", " MB of ")
	p.Press("\x1b")
	p.Await("the end of the import", func(s string, _, _ int) bool { return strings.Contains(s, "New session main:cli:user") })
	stopped := strings.Contains(p.Text(), "[stopped; what is imported stays")
	p.Press("/quit\r")
	exits(t, cmd)
	if !stopped { // it was faster than the key
		t.Logf("it was not stopped:\n%s", p.Text())
	}
	p, _ = begins(t, home, 80, 24)
	p.See("New session main:cli:user")
	if s := p.Text(); stopped && !strings.Contains(s, "the last import did not finish: resuming it") || strings.Contains(s, "Import 30") {
		t.Errorf("the second start says\n%s", s)
	}
	list, out, _ := child(t, home, "sessions")
	if err := list.Run(); err != nil || strings.Count(out.String(), "pi:w:s") != sessions {
		t.Errorf("%v: %d sessions are there", err, strings.Count(out.String(), "pi:w:s"))
	}
}

// With --plain there is the same question, and the guide in three lines.
func TestFirstStartPlain(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	others(t, home)
	p := tuitest.New(t, 100, 30)
	cmd := exec.Command("goclaw", "--plain")
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, "home"), "GOCLAW_NO_LOCAL=1", "TERM=xterm", "NO_COLOR=1", "PATH=" + os.Getenv("PATH")}
	p.Run(cmd)
	t.Cleanup(func() { cmd.Process.Kill() })
	p.See("Import 4 sessions (the originals are only read)? [Y/n]")
	p.Press("\n")
	p.See("4 sessions: 4 new; ")
	p.See("Found here: pi (3 sessions), claude-code (1 session), imported (/sessions).")
}
