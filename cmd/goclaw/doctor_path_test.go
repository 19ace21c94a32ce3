package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// TestRepairOfADatabase: a finding names the session, and the repaired copy keeps
// keys and titles.
func TestRepairOfADatabase(t *testing.T) {
	home, src := t.TempDir(), t.TempDir()
	path := filepath.Join(src, "openclaw-agent.sqlite")
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(`CREATE TABLE session_nodes (session_key TEXT, current_session_id TEXT, entry_json TEXT);
		INSERT INTO session_nodes VALUES ('agent:main:telegram:dm:1', 'd1', '{"sessionId":"d1","label":"Ann"}'), ('agent:main:main', 'd2', '{"sessionId":"d2"}');
		CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT);
		INSERT INTO transcript_events VALUES
		('d1', 0, '{"type":"session","version":3,"id":"d1","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}'),
		('d1', 1, '{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}'),
		('d1', 2, '{"type":"message","id":"b","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"user","content":"again","timestamp":1}}'),
		('d2', 0, '{"type":"session","version":3,"id":"d2","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}'),
		('old', 0, '{"type":"session","version":3,"id":"old","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(home, "copy")
	var out, errOut bytes.Buffer
	code := run([]string{"doctor", path, "--repair-to", to}, strings.NewReader(""), &out, &errOut, func(k string) string { return map[string]string{"HOME": home}[k] })
	if code != 1 || !strings.Contains(out.String(), path+"#d1:3: it has no parentId: ") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errOut.String())
	}
	typed(t, home, "import", to)
	list := typed(t, home, "sessions", "--json")
	for _, want := range []string{`"key": "agent:main:telegram:dm:1"`, `"title": "Ann"`, `"key": "agent:main:main"`, `"key": "agent:main:recovered:old"`} {
		if !strings.Contains(list, want) {
			t.Errorf("the copy, imported, has no %s:\n%s", want, list)
		}
	}
}

// TestRepairGoesOn: a copy that cannot be written is one finding, and the
// others are written. The copy of a.jsonl stands where the folder for the
// sessions of a.jsonl.sqlite should be.
func TestRepairGoesOn(t *testing.T) {
	home, src := t.TempDir(), t.TempDir()
	line := func(id string) string {
		return `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}` + "\n"
	}
	for name, text := range map[string]string{
		"sessions.json": `{"agent:main:a": {"sessionId": "a"}}`,
		"a.jsonl":       line("a"),
		"z.jsonl":       line("z"),
	} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlite3.Open(filepath.Join(src, "a.jsonl.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(`CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT); INSERT INTO transcript_events VALUES ('d', 0, '` + strings.TrimSpace(line("d")) + `')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(home, "copy")
	var out, errOut bytes.Buffer
	code := run([]string{"doctor", src, "--repair-to", to}, strings.NewReader(""), &out, &errOut, func(k string) string { return map[string]string{"HOME": home}[k] })
	if code != 1 || strings.Count(out.String(), "it could not be repaired") != 1 || !strings.Contains(out.String(), "3 transcripts with 0 messages examined: 1 finding") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errOut.String())
	}
	for _, name := range []string{"a.jsonl", "z.jsonl", "sessions.json"} {
		if _, err := os.Stat(filepath.Join(to, name)); err != nil {
			t.Error(err)
		}
	}
}
