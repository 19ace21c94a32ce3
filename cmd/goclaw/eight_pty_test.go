//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/fixtures"
	"goclaw/internal/inherit"
	"goclaw/internal/tui/tuitest"
)

// eightHomes is a home in which all eight programs were used.
func eightHomes(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	made, real := unpackFixtures(t), fixtures.Unpack(t, "../../internal/inherit/testdata/real-programs.tar.zst")
	for to, from := range map[string]string{
		".openclaw":                      made + "/openclaw-2026.2.1/dot-openclaw",
		".pi/agent/sessions/--home-me--": made + "/pi-0.73.1",
		"claw0/workspace/.sessions":      made + "/claw0/layout-new-agents-sid/dot-sessions",
		".claude/projects":               real + "/claude-code/2.1.325-interactive/projects",
		".codex/sessions":                real + "/codex/0.166.0/sessions",
		".codex/archived_sessions":       real + "/codex/0.166.0/archived_sessions",
		".local/share/opencode":          real + "/opencode/1.18.33",
		".gemini":                        real + "/gemini-cli/0.61.0",
	} {
		if err := os.CopyFS(filepath.Join(home, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(home, "proj/.crush")
	list := fmt.Sprintf(`{"projects": [{"path": %q, "data_dir": %q}, {"path": "/gone", "data_dir": "/gone/.crush"}]}`, filepath.Dir(data), data)
	err := os.MkdirAll(data, 0o700)
	if err == nil {
		err = os.MkdirAll(filepath.Join(home, ".local/share/crush"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".local/share/crush/projects.json"), []byte(list), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite3.Open(filepath.Join(data, "crush.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(`CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT);
		CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts BLOB NOT NULL, model TEXT, provider TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER);
		INSERT INTO sessions VALUES ('0b5cf0ea-8a0e-4e0f-9d4b-5a2f8a6f0001', NULL, 'New Session', 1794749583, 1794749583, NULL);
		INSERT INTO messages VALUES ('m1', '0b5cf0ea-8a0e-4e0f-9d4b-5a2f8a6f0001', 'user', '[{"type":"text","data":{"text":"why is the build red"}}]', '', '', 1794749583, 1794749583, 1)`); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestEightPrograms: the first start on a machine with all eight programs says in
// a line for each what there is, how far it is, and lists everything by titles.
func TestEightPrograms(t *testing.T) {
	home := eightHomes(t)
	env := map[string]string{"HOME": home, "GOCLAW_HOME": home + "/goclaw", "GOCLAW_NO_LOCAL": "1", "TERM": "xterm", "NO_COLOR": "1", "GOCLAW_MODEL": "offline"}
	p := tuitest.New(t, 240, 100)
	if code := run([]string{"sessions"}, p.TTY, p.TTY, p.TTY, func(name string) string { return env[name] }); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.All())
	}
	fmt.Fprintln(p.TTY, "the end")
	p.Await("the end", func(string, int, int) bool { return strings.Contains(p.All(), "the end") })
	said := strings.ReplaceAll(p.All(), "\r\n", "\n")
	for _, program := range []string{inherit.OpenClaw, inherit.Pi, inherit.Claw0, inherit.ClaudeCode, inherit.Codex, inherit.OpenCode, inherit.GeminiCLI, inherit.Crush} {
		line := `(?m)^found [1-9]\d* sessions? of ` + program + ` \([0-9.]+ (B|KB|MB)(; read by its public schema, not verified against the program)?\)$`
		found := regexp.MustCompile(line).FindAllString(said, -1)
		if len(found) != 1 || strings.Contains(found[0], "not verified") != (program == inherit.Crush) {
			t.Errorf("%s: %q", program, found)
		}
		if rows := regexp.MustCompile(`(?m)^ *\d+  .*  `+program+`$`).FindAllString(said, -1); len(rows) == 0 {
			t.Errorf("no session of %s is listed", program)
		}
	}
	if !regexp.MustCompile(`\d+/\d+ files, .* of [0-9.]+ MB`).MatchString(said) {
		t.Error("no progress is shown")
	}
	if !regexp.MustCompile(`(?m)^\d+ sessions: \d+ new(, \d+ deleted in their program \(--deleted imports them\))?; \d+ records imported in `).MatchString(said) || strings.Contains(said, "could not be read") {
		t.Error("not everything is imported")
	}
	head := regexp.MustCompile(`(?m)^ *# +KEY +TITLE`).FindStringIndex(said)
	if head == nil {
		t.Fatalf("there is no list:\n%s", said)
	}
	header, list, _ := strings.Cut(said[head[0]:], "\n")
	title, turns := strings.Index(header, "TITLE"), strings.Index(header, "TURNS")
	uuid := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-|ses_[0-9a-f]{8}`)
	rows := 0
	for _, row := range strings.Split(list, "\n") {
		if !regexp.MustCompile(`^ *\d+  `).MatchString(row) {
			continue
		}
		rows++
		r := []rune(row)
		if t0 := strings.TrimSpace(string(r[title:min(turns, len(r))])); t0 == "" || uuid.MatchString(t0) {
			t.Errorf("a session has no title: %q", row)
		}
	}
	if rows < 40 {
		t.Errorf("%d sessions are listed", rows)
	}
	if t.Failed() {
		t.Logf("it said:\n%s", said)
	}
}
