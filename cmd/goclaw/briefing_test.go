package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/internal/config"
	"goclaw/session"
	"goclaw/window"
)

// TestBriefingIsStable: a changed file is announced at the end of the request,
// and the beginning changes only after a compaction or in another session.
func TestBriefingIsStable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("Indent with tabs.", time.Now())
	b := briefing{env: &env{conf: &config.Loaded{Config: config.Config{Workspace: dir}}, getenv: func(string) string { return "" }}}
	s := &session.Session{Info: session.Info{ID: "one"}}
	ask := func() window.Prompt {
		b.read(s, 100_000)
		return b.prompt(window.Prompt{System: "You are goclaw."})
	}
	first := ask()
	if !strings.Contains(first.System, "Indent with tabs.") || first.Tail != "" || len(first.Sources) != 1 || first.Sources[0].Name != "AGENTS.md" {
		t.Fatalf("%+v", first)
	}
	write("Indent with spaces.", time.Now().Add(time.Hour))
	again := ask()
	if again.System != first.System || again.Tail != "[AGENTS.md has changed since it was read: what it says now counts.]" {
		t.Errorf("after a change: %+v", again)
	}
	s.Compactions++
	if fresh := ask(); !strings.Contains(fresh.System, "Indent with spaces.") || fresh.Tail != "" {
		t.Errorf("after a compaction: %+v", fresh)
	}
}
