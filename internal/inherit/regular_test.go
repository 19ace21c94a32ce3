//go:build unix

package inherit_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/inherit"
)

const line = `{"type":"session","version":3,"id":"aaaa-1","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/"}
{"type":"message","id":"m1","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}
`

// FIFOs where files are expected give a line each, and nothing waits.
func TestPipesInPlaceOfFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents/main/sessions/aaaa-1.jsonl"), line)
	pipes := []string{"openclaw.json", "agents/main/sessions/sessions.json", "agents/main/sessions/bbbb.jsonl"}
	for _, p := range pipes {
		if err := mkfifo(filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	found := make(chan *inherit.Catalogue, 1)
	go func() {
		c, err := inherit.Find(context.Background(), []string{dir}, inherit.FindOptions{})
		if err != nil {
			t.Error(err)
		}
		found <- c
	}()
	select {
	case c := <-found:
		defer c.Close()
		if len(c.Transcripts) != 1 {
			t.Errorf("%d transcripts, want 1", len(c.Transcripts))
		}
		var said []string
		for _, p := range c.Problems {
			said = append(said, p.String())
		}
		for _, p := range pipes {
			if !strings.Contains(strings.Join(said, "\n"), p) {
				t.Errorf("nothing is said of %s: %q", p, said)
			}
		}
	case <-time.After(time.Minute):
		t.Fatal("the finding waits for a FIFO")
	}
}

// The programs' own variables say where they are.
func TestPlaces(t *testing.T) {
	env := map[string]string{"OPENCLAW_STATE_DIR": "~/claw", "CODEX_HOME": "/cx", "PI_CODING_AGENT_DIR": "/pi"}
	var got []string
	for _, p := range inherit.Places("/home/me", func(k string) string { return env[k] }) {
		got = append(got, p.Program+" "+p.Path)
	}
	want := []string{
		"openclaw /home/me/claw", "pi /pi/sessions", "claw0 /home/me/claw0/workspace/.sessions", "claude-code /home/me/.claude/projects",
		"claude-code /home/me/.config/claude/projects", "codex /cx/sessions", "codex /cx/archived_sessions",
		"opencode /home/me/.local/share/opencode", "gemini-cli /home/me/.gemini/tmp", "crush /home/me/.local/share/crush",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = nil // without a home
	for _, p := range inherit.Places("", func(k string) string { return env[k] }) {
		got = append(got, p.Program+" "+p.Path)
	}
	if diff := cmp.Diff([]string{"pi /pi/sessions", "codex /cx/sessions", "codex /cx/archived_sessions"}, got); diff != "" {
		t.Errorf("without a home (-want +got):\n%s", diff)
	}
}

// A folder agents is OpenClaw's only if its agents have sessions: what lies
// beside another's is found.
func TestAgentsOfOthers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents/reviewer.md"), "a subagent")
	write(t, filepath.Join(dir, "projects/-home-x/aaaa-1.jsonl"), line)
	c, err := inherit.Find(context.Background(), []string{dir}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(c.Transcripts) != 1 {
		t.Errorf("%d transcripts, want the one beside agents/", len(c.Transcripts))
	}
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
