package briefing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
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
	b := New(Options{
		Config: func() *config.Loaded { return &config.Loaded{Config: config.Config{Workspace: dir}} },
		Getenv: func(string) string { return "" }, OpenClaw: func() openclaw.Installation { return openclaw.Installation{} },
	})
	s := &session.Session{Info: session.Info{ID: "one"}}
	ask := func() window.Prompt {
		b.Read(s, 100_000)
		return b.Prompt(window.Prompt{System: "You are goclaw."})
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

// TestBriefingOfAnAgent: the skills and the files of an agent of OpenClaw are read
// at the same times as instructions, and changes are told in the same way.
func TestBriefingOfAnAgent(t *testing.T) {
	home := t.TempDir()
	at := time.Now()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Hour)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(".openclaw/openclaw.json", "{}")
	write(".openclaw/workspace/SOUL.md", "A pirate.")
	write(".openclaw/workspace/skills/sail/SKILL.md", "---\nname: sail\ndescription: Sails.\n---\n")
	write("repo/AGENTS.md", "Use tabs.")
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	c := &config.Loaded{Config: config.Config{Workspace: filepath.Join(home, "repo")}, Home: filepath.Join(home, "goclaw")}
	claw, _ := openclaw.Installed(home, getenv)
	b := New(Options{Config: func() *config.Loaded { return c }, Getenv: getenv, OpenClaw: func() openclaw.Installation { return claw }})
	s := &session.Session{Info: session.Info{ID: "one", Key: "agent:main:main"}}
	ask := func() window.Prompt {
		b.Read(s, 100_000)
		return b.Prompt(window.Prompt{})
	}
	names := func(p window.Prompt) string {
		var out []string
		for _, s := range p.Sources {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	first := ask()
	if got := names(first); got != "~/.openclaw/workspace/SOUL.md AGENTS.md skills" || first.Tail != "" || !strings.Contains(first.System, "A pirate.") {
		t.Fatalf("%s: %+v", got, first)
	}
	write(".openclaw/workspace/SOUL.md", "A sailor.")
	write(".openclaw/workspace/USER.md", "Ada.")
	write(".agents/skills/swim/SKILL.md", "---\nname: swim\ndescription: Swims.\n---\n")
	again := ask()
	want := "[~/.openclaw/workspace/SOUL.md has changed since it was read: what it says now counts.]\n" +
		"[~/.openclaw/workspace/USER.md has changed since it was read: what it says now counts.]\n" +
		"[a new skill: swim: Swims. (" + home + "/.agents/skills/swim/SKILL.md)]"
	if again.System != first.System || again.Tail != want {
		t.Errorf("after changes, the tail is %s", again.Tail)
	}
	s.Compactions++
	fresh := ask()
	if got := names(fresh); got != "~/.openclaw/workspace/SOUL.md ~/.openclaw/workspace/USER.md AGENTS.md skills" || fresh.Tail != "" || !strings.Contains(fresh.System, "- swim: Swims.") || !strings.Contains(fresh.System, "A sailor.") {
		t.Errorf("after a compaction %s: %+v", got, fresh)
	}
	s = &session.Session{Info: session.Info{ID: "two", Key: "main:cli:user"}}
	if other := ask(); names(other) != "AGENTS.md skills" || strings.Contains(other.System, "sail:") {
		t.Errorf("another session has %+v", other)
	}
}
