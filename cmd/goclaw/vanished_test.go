package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openClawMoves does what the doctor of OpenClaw 2026.9.6 does with a folder of
// logs: its own database takes their place, and they are archived.
func openClawMoves(t *testing.T, home string) {
	t.Helper()
	agent := filepath.Join(home, ".openclaw/agents/main")
	archive := filepath.Join(agent, "sessions/session-sqlite-import-archive")
	db, err := os.ReadFile(filepath.Join(unpackFixtures(t), "openclaw-2026.9.6-imported/openclaw-agent.sqlite"))
	if err == nil {
		err = os.MkdirAll(filepath.Join(agent, "agent"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(agent, "agent/openclaw-agent.sqlite"), db, 0o600)
	}
	if err == nil {
		err = os.MkdirAll(archive, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Join(agent, "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !e.IsDir() {
			if err := os.Rename(filepath.Join(agent, "sessions", e.Name()), filepath.Join(archive, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestVanishedStore: goclaw has shared OpenClaw's folder, and OpenClaw has moved
// the logs into its database. It is said what happened, import takes them back,
// and nothing is written into the folder any more.
func TestVanishedStore(t *testing.T) {
	const block = `{"session": {"store": "jsonl", "path": "~/.openclaw/agents/main/sessions", "shared": true, "defaultKey": "agent:main:main"}}`
	keys := func(home string) (out []string) {
		t.Helper()
		_, list, _ := at(t, home, "", "sessions", "--json", "--agent", "main")
		var rows []struct{ Key string }
		if err := json.Unmarshal([]byte(list), &rows); err != nil {
			t.Fatalf("%v: %s", err, list)
		}
		for _, r := range rows {
			out = append(out, r.Key)
		}
		return out
	}
	home := openClawHome(t, block)
	if code, _, errOut := at(t, home, "", "ask", "--model", "offline", "-s", "agent:main:main", "hello"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errOut)
	}
	before := keys(home)
	if len(before) < 8 {
		t.Fatalf("%q", before)
	}
	openClawMoves(t, home)
	theirs0 := theirs(t, home)
	const what = "OpenClaw has moved the sessions of "
	own := filepath.Join(home, ".openclaw/goclaw/sessions")
	off := strings.Replace(block, `"shared"`, `"inherit": false, "shared"`, 1)
	conf := filepath.Join(home, ".openclaw/goclaw/config.json")
	if err := os.WriteFile(conf, []byte(off), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nothing is imported by itself, and it is said each time
		code, out, errOut := at(t, home, "", "sessions")
		if code != 0 || !strings.Contains(errOut, what) || !strings.Contains(errOut, "openclaw-agent.sqlite (") || !strings.Contains(errOut, "goclaw import brings them back, and goclaw's own are in "+own) {
			t.Errorf("sessions: exit code %d\n%s%s", code, out, errOut)
		}
	}
	if code, out, _ := at(t, home, "", "doctor"); code != 1 || !strings.Contains(out, "store: "+what) || !strings.Contains(out, "then set session.path to "+own) {
		t.Errorf("doctor: exit code %d\n%s", code, out)
	}
	if err := os.WriteFile(conf, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := at(t, home, "", "import")
	if code != 0 || !strings.Contains(errOut, "of openclaw (") {
		t.Errorf("import: exit code %d\n%s%s", code, out, errOut)
	}
	after := map[string]bool{}
	for _, k := range keys(home) {
		after[k] = true
	}
	for _, k := range before {
		if !after[k] {
			t.Errorf("%s did not come back: %v", k, after)
		}
	}
	if code, _, errOut := at(t, home, "", "ask", "--model", "offline", "-s", "agent:main:main", "are you there?"); code != 0 || !strings.Contains(errOut, "the conversation continues in goclaw:main:main") {
		t.Errorf("ask: exit code %d\n%s", code, errOut)
	}
	if diff := cmp.Diff(theirs0, theirs(t, home)); diff != "" {
		t.Errorf("OpenClaw's home has changed:\n%s", diff)
	}
}
