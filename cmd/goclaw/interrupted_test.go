//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// child returns how the program is run as a process of its own, in a home.
func child(t *testing.T, home string, args ...string) (cmd *exec.Cmd, out, errOut *bytes.Buffer) {
	t.Helper()
	bin := filepath.Join(home, "goclaw")
	if _, err := os.Lstat(bin); err != nil {
		if err := os.Symlink(goclawBin(t), bin); err != nil {
			t.Fatal(err)
		}
	}
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, errOut, home
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, "home"), "GOCLAW_NO_LOCAL=1", "NO_COLOR=1"}
	return cmd, out, errOut
}

// put writes a file below home.
func put(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// piSession is a session of pi with so many messages of so many bytes.
func piSession(id string, messages, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"session","version":3,"id":%q,"timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}`+"\n", id)
	parent := "null"
	text := strings.Repeat("0123456789abcde ", size/16)
	for i := range messages {
		fmt.Fprintf(&b, `{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":%q,"timestamp":1}}`+"\n", i, parent, text)
		parent = fmt.Sprintf(`"m%d"`, i)
	}
	return b.String()
}

const piFolder = ".pi/agent/sessions/--w--/"

// midImport has the program import that many sessions of pi in a new home, sends it
// a signal when some of them are there, and waits for its end. If the import has
// ended before, it begins again.
func midImport(t *testing.T, sig os.Signal, sessions, messages int, args ...string) (home string, out, errOut *bytes.Buffer) {
	t.Helper()
	for range 10 {
		home = t.TempDir()
		for i := range sessions {
			put(t, home, fmt.Sprintf("%ss%02d.jsonl", piFolder, i), piSession(fmt.Sprintf("s%02d", i), messages, 2000))
		}
		cmd, out, errOut := child(t, home, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		some := func() bool {
			_, err := os.Stat(filepath.Join(home, "home", "inherit.json"))
			fi, err2 := os.Stat(filepath.Join(home, "home", "sessions.db-wal"))
			return err == nil && err2 == nil && fi.Size() > 1<<20
		}
		for !some() && len(ended) == 0 {
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Signal(sig)
		if err := <-ended; err != nil {
			return home, out, errOut
		}
	}
	t.Fatal("the import is always over before it is stopped")
	return "", nil, nil
}

// TestFirstStartKilled: a first start that is killed is finished by the next
// one, which says so, and the one after has nothing to do.
func TestFirstStartKilled(t *testing.T) {
	const sessions, messages = 30, 400
	home, _, _ := midImport(t, os.Kill, sessions, messages, "sessions")
	cmd, out, errOut := child(t, home, "sessions")
	if err := cmd.Run(); err != nil {
		t.Fatal(err, errOut)
	}
	if n := strings.Count(out.String(), "pi:w:s"); n != sessions || !strings.Contains(errOut.String(), "the last import did not finish: resuming it\n") {
		t.Errorf("the second start lists %d sessions, want %d, and says\n%s", n, sessions, errOut)
	}
	cmd, out, errOut = child(t, home, "sessions")
	if err := cmd.Run(); err != nil || errOut.Len() > 0 || strings.Count(out.String(), fmt.Sprintf("  %d  ", messages)) != sessions {
		t.Errorf("the third start (%v) says\n%s%s", err, out, errOut)
	}
}

// TestTwoAtOnce: imports at the same time end well, and nothing is there twice.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"import"}, {"sessions"}} {
		home := t.TempDir()
		for i := range 61 {
			put(t, home, fmt.Sprintf("%ss%02d.jsonl", piFolder, i), piSession(fmt.Sprintf("s%02d", i), 150, 500))
		}
		var cmds []*exec.Cmd
		var said []*bytes.Buffer
		for range 3 {
			cmd, _, errOut := child(t, home, args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds, said = append(cmds, cmd), append(said, errOut)
		}
		for i, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %v\n%s", args, err, said[i])
			}
		}
		cmd, out, errOut := child(t, home, "sessions", "--json")
		if err := cmd.Run(); err != nil {
			t.Fatal(err, errOut)
		}
		if n := strings.Count(out.String(), `"turns": 150,`); n != 61 {
			t.Errorf("%v: %d sessions, want 61", args, n)
		}
		if n := strings.Count(out.String(), `"records": 151,`); n != 61 {
			t.Errorf("%v: %d sessions are whole, want 61:\n%.600s", args, n, out)
		}
	}
}

// TestStoreFull: that the store cannot be written is said once, nothing is said of
// the sources, which are well, and the next import continues.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for i := range 20 {
		put(t, home, fmt.Sprintf("%ss%02d.jsonl", piFolder, i), piSession(fmt.Sprintf("s%02d", i), 200, 2000))
	}
	goclaw, out, errOut := child(t, home, "import")
	cmd := exec.Command("sh", "-c", `ulimit -f 4096; exec "$0" import`, goclaw.Path) // 2 or 4 MB
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = goclaw.Env, home, out, errOut
	err := cmd.Run()
	said := errOut.String()
	if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(said, "\n") != 2 || !strings.Contains(said, "goclaw: the store cannot be written: ") || !strings.Contains(said, " left: run goclaw import again when the store can be written") || strings.Contains(out.String(), "failed") {
		t.Errorf("%v, exit code %d, want 1\n%s%s", err, code, out, said)
	}
	cmd, out, errOut = child(t, home, "import")
	if err := cmd.Run(); err != nil || strings.Contains(out.String(), "left") {
		t.Errorf("with room: %v\n%s%s", err, out, errOut)
	}
	if n := strings.Count(spawn(t, home, "sessions", "--json"), `"records": 201,`); n != 20 {
		t.Errorf("%d whole sessions, want 20", n)
	}
}

// spawn is the output of a command that must do well.
func spawn(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd, out, errOut := child(t, home, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("goclaw %v: %v\n%s", args, err, errOut)
	}
	return out.String()
}

// TestServerFollows: a server takes what other agents write while it runs, if
// that is wanted.
func TestServerFollows(t *testing.T) {
	home := t.TempDir()
	put(t, home, piFolder+"one.jsonl", piSession("one", 1, 16))
	spawn(t, home, "import")
	cmd, _, errOut := child(t, home, "mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, errOut)
		}
	}()
	put(t, home, piFolder+"two.jsonl", piSession("two", 1, 16))
	list := func() string { // which does not look itself
		cmd, out, _ := child(t, home, "sessions")
		cmd.Env = append(cmd.Env, "GOCLAW_SESSION_INHERIT_FOLLOW=false")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for begin := time.Now(); !strings.Contains(list(), "pi:w:two"); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > testPatience {
			t.Fatal("what was written while the server ran was not taken")
		}
	}
}

// TestTailFollows: tail -f of an imported session shows what its program writes.
func TestTailFollows(t *testing.T) {
	home := t.TempDir()
	put(t, home, piFolder+"one.jsonl", piSession("one", 1, 16))
	spawn(t, home, "import")
	cmd, _, errOut := child(t, home, "sessions", "tail", "-f", "one")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(os.Interrupt)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	await := func(text string) {
		t.Helper()
		for {
			select {
			case l, ok := <-lines:
				if !ok {
					t.Fatalf("tail has ended before %q: %s", text, errOut)
				}
				if strings.Contains(l, text) {
					return
				}
			case <-time.After(testPatience):
				t.Fatalf("%q was not shown", text)
			}
		}
	}
	await("user")
	f, err := os.OpenFile(filepath.Join(home, piFolder+"one.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"type":"message","id":"late","parentId":null,"timestamp":"2026-11-15T01:00:00.000Z","message":{"role":"user","content":"said while tail was waiting","timestamp":1794700802000}}` + "\n"); err != nil {
		t.Fatal(err)
	}
	await("said while tail was waiting")
}

// TestNoHome: without a home nothing is looked for where one happens to be, and
// it is said what is missing.
func TestNoHome(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, piFolder+"one.jsonl", piSession("one", 1, 16))
	put(t, dir, ".openclaw/agents/main/sessions/two.jsonl", piSession("two", 1, 16))
	for _, c := range []struct {
		env  []string
		args []string
		code int
		says string
	}{
		{[]string{"GOCLAW_HOME=" + filepath.Join(dir, "home")}, []string{"sessions"}, 0, ""},
		{[]string{"GOCLAW_HOME=" + filepath.Join(dir, "home")}, []string{"import"}, 1, "goclaw: HOME is not set, so goclaw does not know where other agents keep their sessions: name a PATH\n"},
		{nil, []string{"sessions"}, 1, "goclaw: neither GOCLAW_HOME nor HOME is set: set GOCLAW_HOME to the folder for goclaw's sessions\n"},
	} {
		cmd, out, errOut := child(t, dir, c.args...)
		cmd.Env = append([]string{"GOCLAW_NO_LOCAL=1"}, c.env...)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || errOut.String() != c.says || strings.Contains(out.String(), "pi:w:one") {
			t.Errorf("%v %v: exit code %d, want %d\n%s%s", c.env, c.args, code, c.code, out, errOut)
		}
	}
}

// TestUnfinishedLine: a line that its program is writing is not damaged: it is
// taken when it is whole.
func TestUnfinishedLine(t *testing.T) {
	home := t.TempDir()
	whole := piSession("one", 2, 16)
	put(t, home, piFolder+"one.jsonl", whole[:len(whole)-20])
	cmd, out, errOut := child(t, home, "import")
	if err := cmd.Run(); err != nil || !strings.Contains(errOut.String(), "one.jsonl:3: an unfinished line: it is imported when it is complete\n") || strings.Contains(errOut.String(), "damaged") || !strings.Contains(out.String(), "2 records imported") {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	put(t, home, piFolder+"one.jsonl", whole)
	cmd, out, errOut = child(t, home, "import")
	if err := cmd.Run(); err != nil || strings.Contains(errOut.String(), "unfinished") || !strings.Contains(out.String(), "1 continued; 1 record imported") {
		t.Errorf("when it is whole: %v\n%s%s", err, out, errOut)
	}
}

// TestInterrupted: Ctrl-C says how much is left, and that it goes on.
func TestInterrupted(t *testing.T) {
	const sessions = 40
	home, out, errOut := midImport(t, os.Interrupt, sessions, 400, "import")
	said := errOut.String()
	if !strings.Contains(said, " left: run goclaw import to continue\n") || strings.Contains(said, "above") || strings.Contains(out.String(), "failed") {
		t.Errorf("stopped, it says\n%s%s", out, said)
	}
	if n := strings.Count(spawn(t, home, "sessions"), "pi:w:s"); n != sessions {
		t.Errorf("the next start lists %d sessions, want %d", n, sessions)
	}
}
