//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestShortcutsOnATerminal: Tab completes prompts and skills beside commands, and
// what they send is what the model gets.
func TestShortcutsOnATerminal(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		".claude/commands/tidy-up.md":          "Tidy up $1.\n",
		".agents/skills/tidy-skill/SKILL.md":   "---\nname: tidy-skill\ndescription: Tidies.\n---\nThe body.\n",
		".agents/skills/second-skill/SKILL.md": "---\nname: second-skill\ndescription: Seconds.\n---\nThe second body.\n",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, cmd := atTerminal(t, home, "--model", "offline")
	p.See("/help lists the commands.")
	p.Press("/tidy")
	p.See("/tidy-skill") // both are offered
	p.See("/tidy-up")
	p.Press("-u\t desk\r")
	p.See("/tidy-up sends ~/.claude/commands/tidy-up.md (1 line)")
	p.Press("/skill:sec\t\r")
	p.See("/skill:second-skill sends ~/.agents/skills/second-skill/SKILL.md (4 lines)")
	p.Press("/history\r")
	p.See("Tidy up desk.")
	p.See("The second body.")
	p.Press("/quit\r")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %q", err, p.All())
	}
}
