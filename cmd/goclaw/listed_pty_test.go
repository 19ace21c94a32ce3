//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/tui/tuitest"
)

// listHome is a home with two sessions, one of them a mirror.
func listHome(t *testing.T) (getenv func(string) string) {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	lines := `{"type":"session","version":3,"id":"01a1dc9e-3ce8-7531-b8f2-0dbe2c2f3780","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/srv/projects/harbour-office"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Establish which counterparties acknowledged the outstanding statements"}],"timestamp":1}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-11-01T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"All of them."}],"provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":50000,"output":10,"totalTokens":50010},"stopReason":"stop","timestamp":2}}
`
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "GOCLAW_HOME": home, "GOCLAW_NO_LOCAL": "1", "TERM": "xterm", "NO_COLOR": "1", "GOCLAW_MODEL": "offline"}
	getenv = func(name string) string { return env[name] }
	var out strings.Builder
	for _, args := range [][]string{{"import", dir}, {"new", "main:cli:trip", "--title", "Trip to Rome"}} {
		if code := run(args, nil, &out, &out, getenv); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, out.String())
		}
	}
	return getenv
}

// A list fits the terminal; the number of a session is whole in it and can be
// used, as are its age, its turns and how full it is.
func TestListFitsTheTerminal(t *testing.T) {
	getenv := listHome(t)
	for columns, want := range map[int][]string{
		40:  {`(?m)^1 Trip to Rome$`, `(?m)^2 Establish which counterparties \S*…$`, `(?m)^  \d+d, 1 turn, 25%, …\S*/harbour-office$`},
		80:  {`(?m)^#  KEY +TITLE +TURNS  FULL  AGE  FOLDER$`, `(?m)^1  main:cli:trip +Trip to Rome +0 `, `(?m)^2  pi:harbour-\S*…  Establish which co.*…  1      25%   \d+d  …\S*office$`},
		200: {`(?m)^#  KEY +TITLE +TURNS  CONTEXT  LAST USED  FOLDER +MODEL +FROM$`, `(?m)^2  pi:harbour-office:01a1dc9e-3ce8-\S*  Establish which counterparties .*  1      50k 25%  \d+d ago .* anthropic/claude-sonnet-4-5  pi$`},
	} {
		p := tuitest.New(t, columns, 24)
		if code := run([]string{"sessions"}, p.TTY, p.TTY, p.TTY, getenv); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		for _, w := range want {
			p.Await(w, func(string, int, int) bool {
				return regexp.MustCompile(w).MatchString(strings.ReplaceAll(p.All(), "\r", ""))
			})
		}
		for _, line := range strings.Split(strings.ReplaceAll(p.All(), "\r", ""), "\n") {
			if w := displaywidth.String(line); w > columns {
				t.Errorf("%d columns: a line has %d: %q", columns, w, line)
			}
		}
		if code := run([]string{"sessions", "show", "2"}, p.TTY, p.TTY, p.TTY, getenv); code != 0 {
			t.Errorf("show 2: exit code %d", code)
		}
		p.Await("the second session", func(string, int, int) bool { return strings.Contains(p.All(), "All of them.") })
	}
}

// The numbers are those of the list on the same terminal, if there is one.
func TestNumbersOfATerminal(t *testing.T) {
	getenv := listHome(t)
	a, b, c := tuitest.New(t, 80, 24), tuitest.New(t, 80, 24), tuitest.New(t, 80, 24)
	on := func(p *tuitest.Person, want string, args ...string) {
		t.Helper()
		run(args, p.TTY, p.TTY, p.TTY, getenv)
		p.Await(want, func(string, int, int) bool { return strings.Contains(p.All(), want) })
	}
	on(a, "#  KEY", "sessions")
	on(b, "1  pi:harbour", "sessions", "--text", "counterparties")
	on(a, "main:cli:trip  Trip to Rome\r\n", "sessions", "show", "1")
	on(b, "All of them.", "sessions", "show", "1")
	on(c, "All of them.", "sessions", "show", "1") // no list here: the latest anywhere
}

// A person who names a session that is not there has mistyped, or asks for a new
// one with --new.
func TestNothingBeginsByMistake(t *testing.T) {
	getenv := listHome(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"ask", "-s", "main:cli:tripp", "hello"}, 1, "goclaw: there is no session \"main:cli:tripp\"; did you mean main:cli:trip"},
		{[]string{"-s", "main:cli:other"}, 1, "--new starts this one"},
		{[]string{"ask", "--new", "-s", "main:cli:other", "hello"}, 0, "a new session, main:cli:other"},
		{[]string{"ask", "-s", "main:cli:other", "hello again"}, 0, "Hello"},
	} {
		p := tuitest.New(t, 120, 24)
		if code := run(c.args, p.TTY, p.TTY, p.TTY, getenv); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.args, code, c.code)
		}
		p.Await(c.want, func(string, int, int) bool { return strings.Contains(p.All(), c.want) })
	}
	var out strings.Builder
	if run([]string{"sessions", "--json"}, nil, &out, &out, getenv); strings.Contains(out.String(), "tripp") || strings.Count(out.String(), `"key": "main:cli:other"`) != 1 {
		t.Errorf("the sessions are %s", out.String())
	}
}
