//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// manyMessages makes a home with that many messages, which have no vectors yet.
func manyMessages(t *testing.T, n int) string {
	t.Helper()
	home := t.TempDir()
	put(t, home, "goclaw/config.json", `{"session": {"inherit": {"enabled": false}}}`)
	var b strings.Builder
	fmt.Fprintln(&b, `{"type":"session","version":3,"id":"many","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}`)
	parent := "null"
	for i := range n {
		fmt.Fprintf(&b, `{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"The ferry number %d leaves the harbour of the island in the morning.","timestamp":1}}`+"\n", i, parent, i)
		parent = fmt.Sprintf(`"m%d"`, i)
	}
	put(t, home, "many.jsonl", b.String())
	typed(t, home, "import", filepath.Join(home, "many.jsonl"))
	return home
}

// indexOn starts goclaw search --index with a terminal for what it says on the
// way.
func indexOn(t *testing.T, home string, cols int) (*tuitest.Person, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	p := tuitest.New(t, cols, 10)
	cmd := exec.Command("goclaw", "search", "--index")
	out := &bytes.Buffer{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, out, p.TTY
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, "goclaw"), "TERM=xterm", "PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return p, cmd, out
}

// TestVectorsOnATerminal: while vectors are made, one line says how many of how
// many; it fits the terminal, only ever grows, and is gone at the end. What was
// made before an interruption is not made again.
func TestVectorsOnATerminal(t *testing.T) {
	t.Parallel()
	const messages = 600
	home := manyMessages(t, messages)
	form := regexp.MustCompile(`^(?:indexing: \d+ of \d+(?: records)?(?:, [\d.]+/s)?(?:, (?:[\dhms]+ left|nearly done))?|(?:making )?vectors: (\d+) of (\d+)(?:, [\d.]+/s)?(?:, (?:[\dhms]+ left|nearly done))?|)$`)
	// shown checks the lines, and returns how many vectors the last one counts.
	shown := func(p *tuitest.Person, cols, total int) (last int) {
		t.Helper()
		lines, grew := strings.Split(p.All(), "\r"), 0
		for _, l := range lines {
			l = strings.ReplaceAll(l, "\x1b[K", "")
			if strings.HasPrefix(l, "goclaw: ") || strings.HasPrefix(l, "\n") || l == "the end" {
				continue
			}
			m := form.FindStringSubmatch(l)
			if m == nil || len(l) >= cols {
				t.Errorf("at %d columns: %q", cols, l)
				continue
			}
			if m[1] == "" {
				continue
			}
			made, _ := strconv.Atoi(m[1])
			if of, _ := strconv.Atoi(m[2]); made < last || of != total {
				t.Errorf("%d of %d after %d of %d", made, of, last, total)
			}
			if made > last {
				grew++
			}
			last = made
		}
		if grew < 2 {
			t.Errorf("at %d columns the line did not grow: %q", cols, p.All())
		}
		return last
	}

	p, cmd, out := indexOn(t, home, 40)
	code := 0
	for try := 0; ; try++ {
		p.Await("vectors", func(s string, _, _ int) bool {
			return regexp.MustCompile(`vectors: [1-9]\d+ of`).MatchString(p.All()) && strings.Count(p.All(), "vectors: ") >= 3
		})
		cmd.Process.Signal(os.Interrupt)
		if code = exits(t, cmd); code != 0 || try == 10 {
			break
		}
		home = manyMessages(t, messages) // it was done before it could be interrupted
		p, cmd, out = indexOn(t, home, 40)
	}
	if code != 130 || out.Len() > 0 {
		t.Errorf("interrupted, it exits %d with %q", code, out.String())
	}
	p.See("goclaw: stopped with ")
	if n := shown(p, 40, messages); n == 0 || n == messages {
		t.Errorf("%d vectors are made when it is interrupted", n)
	}
	m := regexp.MustCompile(`stopped with (\d+) vectors new`).FindStringSubmatch(strings.ReplaceAll(p.All(), "\r\n", " "))
	if m == nil {
		t.Fatalf("how many were made is not said: %q", p.All())
	}
	made, _ := strconv.Atoi(m[1])

	p, cmd, out = indexOn(t, home, 100)
	if code := exits(t, cmd); code != 0 {
		t.Fatalf("exit code %d: %q", code, p.All())
	}
	if got, want := out.String(), fmt.Sprintf("the index is up to date: %d messages and 0 notes, %d vectors new\n", messages, messages-made); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	fmt.Fprint(p.TTY, "the end")
	p.Await("an empty line before the end", func(s string, _, _ int) bool { return s == "the end" })
	shown(p, 100, messages-made)
}
