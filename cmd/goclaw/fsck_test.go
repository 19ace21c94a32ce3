package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

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
