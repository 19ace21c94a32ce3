package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/config"
)

// openClawHome is a home in which the real OpenClaw 2026.2.1 was used, with
// goclaw's configuration in its usual place.
func openClawHome(t *testing.T, config string) (home string) {
	t.Helper()
	home = t.TempDir()
	if err := os.CopyFS(filepath.Join(home, ".openclaw"), os.DirFS(filepath.Join(unpackFixtures(t), "openclaw-2026.2.1/dot-openclaw"))); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".openclaw/goclaw"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".openclaw/goclaw/config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// at runs a command in a home and returns what it wrote.
func at(t *testing.T, home, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	e := &noticing{}
	code, out = atNoticing(home, stdin, e, args...)
	return code, out, e.String()
}

// atNoticing is at with a standard error that is looked at.
func atNoticing(home, stdin string, errOut io.Writer, args ...string) (code int, out string) {
	env := map[string]string{"HOME": home, "GOCLAW_NO_LOCAL": "1", "NO_COLOR": "1"}
	var o bytes.Buffer
	code = run(args, strings.NewReader(stdin), &o, errOut, func(k string) string { return env[k] })
	return code, o.String()
}

// theirs is everything in OpenClaw's home but goclaw's own folder.
func theirs(t *testing.T, home string) map[string]string {
	t.Helper()
	all := seen(t, filepath.Join(home, ".openclaw"))
	for path := range all {
		if config.Within(filepath.Join(home, ".openclaw/goclaw"), path) {
			delete(all, path)
		}
	}
	return all
}

// everyCommand is what a user types in a home with sessions to inherit.
var everyCommand = [][]string{
	{"sessions"}, {"sessions", "--json"}, {"sessions", "show", "agent:main:main"}, {"context", "agent:main:main", "--model", "offline"},
	{"ask", "--model", "offline", "hello"}, {"search", "hello"}, {"import"}, {"import", "--strict"}, {"doctor"}, {"doctor", "--fix"}, {"sessions", "verify"},
	{"sessions", "rename", "agent:main:main", "a title"}, {"sessions", "fork", "agent:main:slack:channel:c0123"}, {"sessions", "export", "agent:main:main"},
	{"compact", "goclaw:main:main", "--model", "offline"}, {"sessions", "delete", "agent:main:hook:774e0008-0dd3-4197-903d-e6c59fe677ea", "--yes"}, {"config"},
}

// TestOriginalBlocks: the configuration blocks that the design of the first
// GoClaw shows work as written. OpenClaw's home is not changed, to the byte and
// the time of each file, whatever is done.
func TestOriginalBlocks(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]string{
		"the folder of sessions": `"storage": "jsonl", "path": "~/.openclaw/agents/main/sessions", "inherit": true, "defaultKey": "agent:main:main",
			"checkpoint": {"enabled": true, "model": "anthropic/claude-3-haiku", "fallbackToMain": true, "tokenThresholdPercents": [25, 50, 75], "turnThreshold": 15, "minTokensForGen": 10000},
			"compaction": {"reserveTokens": 4000, "preferCheckpoint": true}`,
		"the state folder": `"store": "jsonl", "path": "~/.openclaw", "defaultKey": "agent:main:main"`,
		"SQLite": `"store": "sqlite", "path": "~/.openclaw/goclaw/sessions.db", "defaultKey": "agent:main:main",
			"inherit": {"enabled": true, "source": "~/.openclaw/agents/main/sessions", "format": "jsonl"}`,
		"SQLite in the folder of sessions": `"store": "sqlite", "path": "~/.openclaw/agents/main/sessions/sessions.db", "defaultKey": "agent:main:main"`,
	} {
		t.Run(name, func(t *testing.T) {
			home := openClawHome(t, `{"session": {`+session+`}}`)
			before := theirs(t, home)
			check := func(did string) {
				t.Helper()
				if diff := cmp.Diff(before, theirs(t, home)); diff != "" {
					t.Fatalf("%s has changed OpenClaw's home (-before +after):\n%s", did, diff)
				}
			}
			code, _, errOut := at(t, home, "hello there\n", "--model", "offline")
			if code != 0 || !strings.Contains(errOut, "Restored: 13 previous turns of agent:main:main") ||
				!strings.Contains(errOut, "agent:main:main belongs to openclaw and is not changed: the conversation continues in goclaw:main:main") {
				t.Errorf("exit code %d:\n%s", code, errOut)
			}
			if told := strings.Contains(errOut, "goclaw's own are in "+filepath.Join(home, ".openclaw/goclaw/sessions")); told != (name != "SQLite") {
				t.Errorf("it is said where goclaw's own are: %v\n%s", told, errOut)
			}
			check("a chat")
			code, _, errOut = at(t, home, "hello again\n", "--model", "offline")
			if code != 0 || !strings.Contains(errOut, "Restored: 14 previous turns of goclaw:main:main") || strings.Contains(errOut, "goclaw's own are in") {
				t.Errorf("the second time: exit code %d:\n%s", code, errOut)
			}
			for _, args := range everyCommand {
				if code, _, errOut := at(t, home, "", args...); code == 2 || code != 0 && args[0] != "doctor" && args[0] != "compact" {
					t.Errorf("goclaw %s: exit code %d\n%s", strings.Join(args, " "), code, errOut)
				}
				check("goclaw " + strings.Join(args, " "))
			}
		})
	}
}

// TestAnotherStore: other agents' sessions are imported into the store that is
// configured, although another one was used before. A session under OpenClaw's
// key is looked for there before one of goclaw's own begins.
func TestAnotherStore(t *testing.T) {
	home := openClawHome(t, `{}`)
	if code, _, errOut := at(t, home, "hello\n", "--model", "offline"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errOut)
	}
	conf := filepath.Join(home, ".openclaw/goclaw/config.json")
	block := `{"session": {"storage": "jsonl", "path": "~/.openclaw/agents/main/sessions", "inherit": true, "defaultKey": "agent:main:main"}}`
	if err := os.WriteFile(conf, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := at(t, home, "hello\n", "--model", "offline")
	if code != 0 || !strings.Contains(errOut, "Restored: 13 previous turns of agent:main:main") || !strings.Contains(errOut, "the conversation continues in goclaw:main:main") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	if code, _, errOut := at(t, home, "hello\n", "--model", "offline"); code != 0 || strings.Contains(errOut, "found ") {
		t.Errorf("the second time: exit code %d:\n%s", code, errOut)
	}

	// OpenClaw begins the session after goclaw looked.
	home = openClawHome(t, block)
	sessions := filepath.Join(home, ".openclaw/agents/main/sessions")
	if err := os.Rename(sessions, filepath.Join(home, "away")); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := at(t, home, "", "sessions"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errOut)
	}
	if err := os.Rename(filepath.Join(home, "away"), sessions); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := at(t, home, "", "ask", "--model", "offline", "hello"); code != 0 || !strings.Contains(errOut, "the conversation continues in goclaw:main:main") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}

// TestShared: OpenClaw's folder is written to if the person says so, its own
// transcript goes on, and a session that OpenClaw holds is left to it.
func TestShared(t *testing.T) {
	home := openClawHome(t, `{"session": {"store": "jsonl", "path": "~/.openclaw/agents/main/sessions", "shared": true, "defaultKey": "agent:main:main"}}`)
	file := filepath.Join(home, ".openclaw/agents/main/sessions/d0d7f0bc-5c9c-4418-b017-52a9bc82e88f.jsonl")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lock := []byte(fmt.Sprintf(`{"pid": %d, "createdAt": "2099-11-15T00:17:38.618Z"}`, os.Getppid()))
	if err := os.WriteFile(file+".lock", lock, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &noticing{text: "waiting: this session has been locked by", do: func() { os.Remove(file + ".lock") }}
	code, _ := atNoticing(home, "hello there\n", e, "--model", "offline")
	errOut := e.String()
	if code != 0 || !strings.Contains(errOut, "Restored: 13 previous turns of agent:main:main") || !strings.Contains(errOut, "waiting: this session has been locked by") || strings.Contains(errOut, "found") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	after, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(after, before) || !bytes.Contains(after[len(before):], []byte("hello there")) {
		t.Errorf("OpenClaw's transcript does not go on: %v, %d and %d bytes", err, len(before), len(after))
	}
	// The model that OpenClaw's log names is nobody's choice here.
	conf := `{"model": "offline", "session": {"store": "jsonl", "path": "~/.openclaw/agents/main/sessions", "shared": true}}`
	if err := os.WriteFile(filepath.Join(home, ".openclaw/goclaw/config.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := at(t, home, "", "ask", "-s", "agent:main:main", "hello"); code != 0 || strings.Contains(errOut, "chosen") {
		t.Errorf("exit code %d:\n%s%s", code, out, errOut)
	}
	if _, err := os.Stat(filepath.Join(home, ".openclaw/agents/main/sessions/agents")); err == nil {
		t.Error("a second store is nested in OpenClaw's folder")
	}
}

// TestForeignDatabase: a database that is not goclaw's gets a line that says what
// to do, and is not touched.
func TestForeignDatabase(t *testing.T) {
	for name, test := range map[string]struct{ sql, want string }{
		"an earlier GoClaw": {`CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, metadata JSON);
			CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, type TEXT NOT NULL, timestamp INTEGER NOT NULL, data JSON NOT NULL);
			INSERT INTO sessions VALUES ('goclaw:main:main', 1769962601713, 1769962605713, NULL);
			INSERT INTO messages VALUES ('a', 'goclaw:main:main', NULL, 'message', 1769962602000, '{"role":"user","content":"when do we move?"}'),
				('b', 'goclaw:main:main', 'a', 'message', 1769962602000, '{"role":"assistant","content":"on Friday"}');`,
			"is the database of an earlier GoClaw, and goclaw does not write to it: mv "},
		"another program": {`CREATE TABLE songs (name TEXT)`, "is a database of another program, and goclaw does not write to it: move it away, or set session.path to another file"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, ".openclaw/goclaw")
			db := filepath.Join(dir, "sessions.db")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			c, err := sqlite3.Open("file:" + db)
			if err == nil {
				err = c.Exec(test.sql)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			before := seen(t, dir)
			for _, args := range [][]string{{"sessions"}, {"ask", "--model", "offline", "hello"}, {"doctor"}, {}} {
				code, _, errOut := at(t, home, "", args...)
				if code != 1 || !strings.Contains(errOut, test.want) || strings.Count(errOut, "\n") != 1 {
					t.Errorf("goclaw %s: exit code %d\n%s", strings.Join(args, " "), code, errOut)
				}
			}
			if diff := cmp.Diff(before, seen(t, dir)); diff != "" {
				t.Errorf("it was touched (-before +after):\n%s", diff)
			}
			if name != "an earlier GoClaw" {
				return
			}
			for _, args := range [][]string{{"context", "--model", "offline", "--file", db}, {"doctor", db}} {
				if code, out, errOut := at(t, home, "", args...); code != 0 || args[0] == "context" && !strings.Contains(out, "when do we move?") {
					t.Errorf("goclaw %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errOut)
				}
			}
			// What the line says to do.
			if err := os.Rename(db, db+".old"); err != nil {
				t.Fatal(err)
			}
			if code, out, errOut := at(t, home, "", "import", db+".old"); code != 0 || !strings.Contains(out, "1 session: 1 new") {
				t.Errorf("exit code %d\n%s%s", code, out, errOut)
			}
			if code, out, errOut := at(t, home, "", "sessions", "show", "goclaw:main:main"); code != 0 || !strings.Contains(out, "when do we move?") || !strings.Contains(out, "on Friday") {
				t.Errorf("exit code %d\n%s%s", code, out, errOut)
			}
		})
	}
}
