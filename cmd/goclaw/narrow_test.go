//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/repl/ptytest"
)

// On a terminal of 40 columns commands break their lines between words, and
// what may be copied is in one piece; elsewhere nothing is broken.
func TestCommandsOnANarrowTerminal(t *testing.T) {
	const question = "Could you establish which counterparties acknowledged the outstanding reconciliation statements?"
	home, dir := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "a-transcript-with-a-long-name.jsonl")
	lines := `{"type":"session","version":3,"id":"aaaa0001","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"` + question + `"}],"timestamp":1}}
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "GOCLAW_HOME": home, "GOCLAW_NO_LOCAL": "1", "TERM": "xterm", "NO_COLOR": "1"}
	getenv := func(name string) string { return env[name] }
	for _, c := range []struct {
		args string
		code int
		want string // as the program writes it, a line of the terminal each
	}{
		{"import --dry-run " + dir, 0, "\npi          pi:w:aaaa0001\n  " + path + "\n"},
		{"import " + dir, 0, "1 session: 1 new; 2 records imported in"},
		{"sessions show aaaa0001", 0, "Could you establish which counterparties\nacknowledged the outstanding\nreconciliation statements?\n"},
		{"sessions show there-is-none", 1, "goclaw: there is no session\n\"there-is-none\""},
		{"search reconciliation", 0, " 1. pi:w:aaaa…  user  record 2\n"},
	} {
		p := ptytest.New(t, 40, 24)
		if code := run(strings.Fields(c.args), p.TTY, p.TTY, p.TTY, getenv); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.args, code, c.code)
		}
		want := strings.ReplaceAll(c.want, "\n", "\r\n")
		p.Await(c.args+" to write "+want, func(string, int, int) bool { return strings.Contains(p.All(), want) })
	}
	var out, errs strings.Builder
	if code := run([]string{"sessions", "show", "aaaa0001"}, nil, &out, &errs, getenv); code != 0 || !strings.Contains(out.String(), "\n"+question+"\n") {
		t.Errorf("where there is no terminal the question is broken (exit code %d): %q %q", code, out.String(), errs.String())
	}
}
