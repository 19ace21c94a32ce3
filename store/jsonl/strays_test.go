//go:build unix

package jsonl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// Files that are no logs are neither opened nor waited for, and Check reports
// them.
func TestStrays(t *testing.T) {
	dir := t.TempDir()
	st := reopen(t, dir, OpenClaw)
	must(t, st.Append(t.Context(), "s1", logOf("s1", "k", sessiontest.User("a"))...))
	folder := filepath.Dir(logFile(t, st, "s1"))
	text, err := os.ReadFile(logFile(t, st, "s1"))
	must(t, err)
	must(t, syscall.Mkfifo(filepath.Join(folder, "fifo.jsonl"), 0o600))
	must(t, os.Mkdir(filepath.Join(folder, "dir.jsonl"), 0o700))
	must(t, os.Symlink("/etc/passwd", filepath.Join(folder, "link.jsonl")))
	write(t, "notes", folder, "notes.txt")
	write(t, string(text), folder, "copy of s1.jsonl")
	write(t, "", folder, "empty.jsonl")
	write(t, "{\"type\":\n"+string(text)[:30], folder, "broken.jsonl")
	for _, ok := range []string{"x.jsonl.lock", "x.jsonl.deleted.2026-11-15T00-15-28.552Z", "sessions.json.bak.1"} {
		write(t, "", folder, ok)
	}
	got := list(t, st, session.Query{})
	if len(got) != 1 || got[0].ID != "s1" {
		t.Errorf("the list is %+v, want s1", got)
	}
	for _, id := range []session.ID{"fifo", "dir", "link"} {
		if err := st.Append(t.Context(), id, header(id, "k")); err == nil {
			t.Errorf("a log was begun over %s", id)
		}
	}
	var said []string
	must(t, st.Check(t.Context(), func(id session.ID, err error) { said = append(said, fmt.Sprintf("%s: %v", id, err)) }))
	for _, want := range []string{
		": " + filepath.Join(folder, "fifo.jsonl") + " is not a regular file",
		": " + filepath.Join(folder, "dir.jsonl") + " is not a regular file",
		": " + filepath.Join(folder, "link.jsonl") + " is not a regular file",
		": " + filepath.Join(folder, "notes.txt") + " is no log",
		"s1: " + filepath.Join(folder, "copy of s1.jsonl") + " has the id of " + filepath.Join(folder, "s1.jsonl"),
		"empty: " + filepath.Join(folder, "empty.jsonl") + " has no records",
		"broken: " + filepath.Join(folder, "broken.jsonl") + ":1: ",
		"broken: " + filepath.Join(folder, "broken.jsonl") + ":2: the last line is incomplete",
		"broken: " + filepath.Join(folder, "broken.jsonl") + " has no records",
	} {
		n := 0
		for _, s := range said {
			if strings.HasPrefix(s, want) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q was said %d times", want, n)
		}
	}
	if len(said) != 9 {
		t.Errorf("check says\n%s", strings.Join(said, "\n"))
	}
}
