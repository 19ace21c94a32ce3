//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A chat whose store is removed or replaced says so, and acknowledges nothing
// more.
func TestChatWhoseStoreIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		do     func(home string) error
	}{
		"database removed": {"{}", func(home string) error { return os.Remove(filepath.Join(home, "sessions.db")) }},
		"home renamed": {"{}", func(home string) error {
			if err := os.Rename(home, home+".away"); err != nil {
				return err
			}
			return os.Mkdir(home, 0o700)
		}},
		"folder renamed": {`{"session": {"store": "jsonl"}}`, func(home string) error {
			return os.Rename(filepath.Join(home, "sessions"), filepath.Join(home, "away"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, home, "config.json", c.config)
			if err := os.Chmod(filepath.Join(home, "config.json"), 0o600); err != nil {
				t.Fatal(err)
			}
			p, cmd := sit(t, home, "xterm")
			p.See("New session main:cli:user")
			p.Press("remember that the boat is blue\r")
			p.See("Noted in memory")
			p.Rests()
			if err := c.do(home); err != nil {
				t.Fatal(err)
			}
			p.Press("and the car is red\r")
			p.See("your message is not saved: the arrow up brings it back")
			if said := strings.Join(strings.Fields(p.Text()), " "); !strings.Contains(said, "was removed or replaced while goclaw had it open") {
				t.Errorf("the chat does not say why:\n%s", p.Text())
			}
			p.Press("\x15")
			p.Rests()
			p.Press("\x04")
			exits(t, cmd)
		})
	}
}

// Every command leaves alone a write-ahead log whose database is missing or
// empty, and says what to do.
func TestCommandsLeaveAnOrphanedWAL(t *testing.T) {
	home := t.TempDir()
	p, cmd := sit(t, home, "xterm")
	p.See("New session main:cli:user")
	p.Press("remember that the boat is blue\r")
	p.See("Noted in memory")
	p.Rests()
	cmd.Process.Kill() // else it would copy its log into the database
	exits(t, cmd)
	db := filepath.Join(home, "sessions.db")
	files := func() (all [][]byte) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			b, _ := os.ReadFile(db + suffix)
			all = append(all, b)
		}
		return all
	}
	if len(files()[1]) < 4096 {
		t.Fatalf("the write-ahead log has %d bytes", len(files()[1]))
	}
	if err := os.Rename(db, db+".away"); err != nil {
		t.Fatal(err)
	}
	before := files()
	for _, empty := range []bool{false, true} {
		if empty {
			if err := os.WriteFile(db, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{
			{"sessions"}, {"sessions", "show", "main:cli:user"}, {"sessions", "verify"}, {"sessions", "copy", filepath.Join(home, "copy")}, {"doctor"}, {"doctor", "--fix"},
			{"ask", "hello"}, {"search", "boat"}, {"import"}, {"context", "main:cli:user"}, {"backup", filepath.Join(home, "b.zip")},
		} {
			if empty && len(args) > 1 {
				continue // the same code
			}
			var out, errOut bytes.Buffer
			code := run(append([]string{"--model", "offline"}, args...), strings.NewReader(""), &out, &errOut, func(name string) string {
				return map[string]string{"HOME": home, "GOCLAW_HOME": home, "GOCLAW_NO_LOCAL": "1"}[name]
			})
			if code != 1 || !strings.Contains(errOut.String(), db+"-wal has ") || !strings.Contains(errOut.String(), "--repair-to NEW") {
				t.Errorf("empty=%v: goclaw %s: exit code %d\n%s%s", empty, strings.Join(args, " "), code, out.String(), errOut.String())
			}
			for i, b := range files() {
				if !bytes.Equal(b, before[i]) {
					t.Fatalf("empty=%v: goclaw %s has changed the files", empty, strings.Join(args, " "))
				}
			}
		}
	}
	if err := os.Rename(db+".away", db); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	run([]string{"sessions", "show", "main:cli:user"}, strings.NewReader(""), &out, &out, func(name string) string {
		return map[string]string{"HOME": home, "GOCLAW_HOME": home, "GOCLAW_NO_LOCAL": "1"}[name]
	})
	if !strings.Contains(out.String(), "the boat is blue") {
		t.Errorf("with the database moved back, goclaw shows:\n%s", out.String())
	}
}
