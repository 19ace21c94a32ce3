//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// nobody is whom root becomes, who may read everything.
const nobody = 65534

// asNobody returns a folder that belongs to a user whom permissions hold for,
// and how that user runs the program in it: another one if this is root.
func asNobody(t *testing.T) (dir string, goclaw func(args ...string) (code int, out, errOut string)) {
	t.Helper()
	dir = t.TempDir()
	bin := filepath.Join(dir, "goclaw")
	src, err := os.Open(goclawBin(t))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(bin, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(args ...string) (int, string, string) {
		t.Helper()
		var out, errOut bytes.Buffer
		cmd := exec.Command(bin, args...)
		cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &errOut, dir
		cmd.Env = []string{"HOME=" + dir, "GOCLAW_HOME=" + filepath.Join(dir, "home"), "GOCLAW_NO_LOCAL=1", "NO_COLOR=1"}
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
	}
}

// TestDenied: what may not be read (a file, a folder, an index, a database, the
// log of one) has a line each, which says what to do, and everything else is
// taken. doctor says the same.
func TestDenied(t *testing.T) {
	dir, goclaw := asNobody(t)
	state := filepath.Join(dir, ".openclaw")
	line := func(id string) string {
		return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}`, id) + "\n" +
			`{"type":"message","id":"1","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	}
	put := func(name, text string) {
		path := filepath.Join(state, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("agents/main/sessions/good.jsonl", line("good"))
	put("agents/main/sessions/closed.jsonl", line("closed"))
	put("agents/blind/sessions/kept.jsonl", line("kept"))
	put("agents/blind/sessions/sessions.json", `{"agent:blind:main": {"sessionId": "kept"}}`)
	put("agents/shut/sessions/unseen.jsonl", line("unseen"))
	put("agents/dark/sessions/one.jsonl", line("one")) // can be listed, but not entered
	put("agents/dark/sessions/two.jsonl", line("two"))
	for _, agent := range []string{"data", "log"} {
		put("agents/"+agent+"/agent/openclaw-agent.sqlite-wal", "")
		db, err := sqlite3.Open(filepath.Join(state, "agents", agent, "agent/openclaw-agent.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Exec(`CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT)`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		put("agents/"+agent+"/agent/openclaw-agent.sqlite-wal", "")
	}
	if err := filepath.WalkDir(state, func(path string, _ os.DirEntry, err error) error {
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, nobody, nobody)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // what is said, and by path
	deny := func(name string, mode os.FileMode, said, say string) {
		path := filepath.Join(state, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
		want[filepath.Join(state, said)] = fmt.Sprintf(say, path)
	}
	const file, folder = "permission denied: to read it, do: chmod u+r %s", "permission denied: to read it, do: chmod u+rx %s"
	deny("agents/main/sessions/closed.jsonl", 0, "agents/main/sessions/closed.jsonl", file)
	deny("agents/blind/sessions/sessions.json", 0, "agents/blind/sessions/sessions.json", "the index cannot be read, its transcripts are imported without their keys: "+file)
	deny("agents/shut/sessions", 0, "agents/shut/sessions", folder)
	deny("agents/dark/sessions", 0o400, "agents/dark/sessions/one.jsonl", folder)
	deny("agents/data/agent/openclaw-agent.sqlite", 0, "agents/data/agent/openclaw-agent.sqlite", file)
	deny("agents/log/agent/openclaw-agent.sqlite-wal", 0, "agents/log/agent/openclaw-agent.sqlite-wal", file)
	if os.Getuid() == 0 {
		path := filepath.Join(state, "agents/main/sessions/others.jsonl")
		if err := os.WriteFile(path, []byte(line("others")), 0o600); err != nil {
			t.Fatal(err)
		}
		want[path] = "permission denied: it belongs to another user (0): run goclaw as that user, or have them do: chmod o+r " + path
	}
	check := func(name, text, mark string) {
		t.Helper()
		got := map[string]string{}
		for _, l := range strings.Split(text, "\n") {
			l, ok := strings.CutPrefix(l, mark)
			if path, what, cut := strings.Cut(l, ": "); ok && cut && strings.HasPrefix(path, state) {
				if _, twice := got[path]; twice {
					t.Errorf("%s: two lines for %s", name, path)
				}
				got[path] = what
			}
		}
		for path, w := range want {
			if got[path] != w {
				t.Errorf("%s: of %s it is said %q, want %q", name, path, got[path], w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d lines, want %d:\n%s", name, len(got), len(want), text)
		}
	}
	for _, args := range [][]string{{"import"}, {"import", state}} {
		code, out, errOut := goclaw(args...)
		check(args[0], errOut, "goclaw: ")
		if code != 1 || !strings.HasPrefix(out, "2 sessions: 2 ") || !strings.Contains(errOut, fmt.Sprintf("goclaw: %d sources could not be read: see above\n", len(want))) {
			t.Errorf("%v: exit code %d, want 1, output %q, errors\n%s", args, code, out, errOut)
		}
	}
	code, out, errOut := goclaw("doctor", state)
	check("doctor", out, "✗ ")
	if code != 1 || !strings.Contains(out, fmt.Sprintf("2 transcripts with 2 messages examined: %d findings\n", len(want))) {
		t.Errorf("doctor: exit code %d, want 1\n%s%s", code, out, errOut)
	}
	// Alone, each of them is an error as well.
	for _, name := range []string{"agents/main/sessions/closed.jsonl", "agents/shut/sessions", "agents/shut/sessions/unseen.jsonl", "agents/data/agent/openclaw-agent.sqlite"} {
		for _, args := range [][]string{{"import"}, {"doctor"}} {
			code, out, errOut := goclaw(append(args, filepath.Join(state, name))...)
			if code != 1 || strings.Count(out+errOut, "permission denied: to read it, do: chmod u+r") != 1 || strings.Contains(out, "nothing") {
				t.Errorf("%s %s: exit code %d\n%s%s", args[0], name, code, out, errOut)
			}
		}
	}
	if code, out, errOut := goclaw("sessions"); code != 0 || !strings.Contains(out, "agent:main:recovered:good") || !strings.Contains(out, "agent:blind:recovered:kept") {
		t.Errorf("sessions: exit code %d\n%s%s", code, out, errOut)
	}
}

// TestReadOnly: a store that may be read and not written can be looked at, with
// the files beside the database and without them, while another writes to it
// and while nobody does; what would change it says why it cannot.
func TestReadOnly(t *testing.T) {
	dir, goclaw := asNobody(t)
	home := filepath.Join(dir, "home")
	if code, _, errOut := goclaw("--model", "offline", "ask", "-s", "t:cli:me", "the tide turns at six"); code != 0 {
		t.Fatal(errOut)
	}
	if code, _, errOut := goclaw("search", "tide"); code != 0 {
		t.Fatal(errOut)
	}
	db := filepath.Join(home, "sessions.db")
	chmod := func(folder, file os.FileMode) {
		t.Helper()
		for _, p := range []string{db, db + "-wal", db + "-shm"} {
			if err := os.Chmod(p, file); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(home, folder); err != nil {
			t.Fatal(err)
		}
	}
	defer chmod(0o700, 0o600)
	look := func(t *testing.T) {
		t.Helper()
		chmod(0o500, 0o400)
		defer chmod(0o700, 0o600)
		for _, args := range [][]string{{"sessions"}, {"sessions", "show", "t:cli:me"}, {"sessions", "export", "t:cli:me"}, {"sessions", "verify"}} {
			if code, out, errOut := goclaw(args...); code != 0 || out == "" {
				t.Errorf("%v exits %d: %s", args, code, errOut)
			}
		}
		for _, args := range [][]string{{"--model", "offline", "ask", "-s", "t:cli:me", "more"}, {"sessions", "rename", "t:cli:me", "x"}, {"sessions", "delete", "t:cli:me"}} {
			if code, _, errOut := goclaw(args...); code != 1 || !strings.Contains(errOut, "permission denied") {
				t.Errorf("%v exits %d: %s", args, code, errOut)
			}
		}
	}
	t.Run("with the files beside it", look)
	t.Run("while another uses it", func(t *testing.T) {
		c, err := sqlite3.Open(db)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Exec("BEGIN IMMEDIATE; UPDATE sessions SET title = 'not yet'"); err != nil {
			t.Fatal(err)
		}
		look(t)
	})
	t.Run("alone", func(t *testing.T) {
		c, err := sqlite3.Open(db)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		c.Close()
		os.Remove(db + "-wal")
		os.Remove(db + "-shm")
		look(t)
	})
}
