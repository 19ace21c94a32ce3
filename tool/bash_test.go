//go:build unix

package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/secrets"
	"goclaw/llm"
)

var yes = ApproverFunc(func(context.Context, Request) (Decision, error) { return Once, nil })

func TestBash(t *testing.T) {
	s := open(t, Options{Ask: yes}, map[string]string{"f": "in the workspace\n"})
	tests := []struct {
		command, want string
		isError       bool
	}{
		{"cat f", "in the workspace\n[exit code 0]", false},
		{"true", "(no output)\n[exit code 0]", false},
		{"printf x", "x\n[exit code 0]", false},
		{"exit 7", "(no output)\n[exit code 7]", true},
		{"echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n[exit code 0]", false},
		{"cat", "(no output)\n[exit code 0]", false},
		{"read x || echo no input", "no input\n[exit code 0]", false},
		{"cat /dev/tty 2>/dev/null || echo no terminal", "no terminal\n[exit code 0]", false},
		{`printf 'a\377b\0c'`, "a\uFFFDb\u2400c\n[exit code 0]", false},
		{"kill -SEGV $$", "(no output)\n[exit code 139, killed by a signal: segmentation fault]", true},
		{"pwd", s.ws.dir + "\n[exit code 0]", false},
		{"shopt -q extglob; [[ a == a ]] && echo bash", "bash\n[exit code 0]", false},
	}
	for _, tt := range tests {
		t.Run(tt.command, func(t *testing.T) {
			r := run(t, s, "bash", o{"command": tt.command})
			if r.Text() != tt.want || r.IsError != tt.isError {
				t.Errorf("got %v %q, want %v %q", r.IsError, r.Text(), tt.isError, tt.want)
			}
		})
	}
	contains(t, run(t, s, "bash", o{"command": "no-such-program-here"}).Text(), "not found", "[exit code 127]")
	fails(t, s, "bash", o{"command": "a\x00b"}, "NUL byte")
	fails(t, s, "bash", o{"command": "true", "timeout": 601}, "timeout: want number up to 600, got 601")
	fails(t, s, "bash", o{"command": "true", "timeout": 0}, "timeout: want number")
}

func TestBashOutputIsCapped(t *testing.T) {
	s := open(t, Options{Ask: yes, MaxOutput: 1000}, nil)
	got := ok(t, s, "bash", o{"command": "echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end"})
	if len(got) > 1000+noteRoom {
		t.Errorf("%d bytes", len(got))
	}
	contains(t, got, "begin\nxxx", "xxx\nend\n[exit code 0]", "\n[... 4999011 of 5000011 bytes cut ...]\n")
}

func TestBashWithoutShell(t *testing.T) {
	s := open(t, Options{Ask: yes, Shell: "/nowhere/bash"}, nil)
	fails(t, s, "bash", o{"command": "true"}, "could not be started", "/nowhere/bash")
	s.bash.shell = ""
	fails(t, s, "bash", o{"command": "true"}, "there is no bash")
}

func TestLookShell(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a", "bash"), "not executable")
	put(t, filepath.Join(dir, "b", "bash"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(dir, "b", "bash"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := lookShell(dir+"/a:.:"+dir+"/b"), dir+"/b/bash"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := lookShell(""); !filepath.IsAbs(got) {
		t.Errorf("no shell without a PATH: %q", got)
	}
}

func TestApproval(t *testing.T) {
	var asked []Request
	answer, answerErr := No, error(nil)
	s := open(t, Options{
		Ask: ApproverFunc(func(_ context.Context, r Request) (Decision, error) {
			asked = append(asked, r)
			return answer, answerErr
		}),
		Allowed: []string{"echo known"},
	}, nil)
	mark := filepath.Join(s.ws.dir, "ran")
	touch := o{"command": "echo x >> ran"}
	ran := func() int {
		b, _ := os.ReadFile(mark)
		return len(b) / 2
	}
	steps := []struct {
		name   string
		d      Decision
		err    error
		fails  string
		asked  int
		ran    int
		always []string
	}{
		{"no", No, nil, "did not allow", 1, 0, []string{"echo known"}},
		{"an error is a no", Always, errors.New("input is closed"), "could not be asked: input is closed", 2, 0, []string{"echo known"}},
		{"an unknown decision is a no", Decision(9), nil, "did not allow", 3, 0, []string{"echo known"}},
		{"once", Once, nil, "", 4, 1, []string{"echo known"}},
		{"once is once", No, nil, "did not allow", 5, 1, []string{"echo known"}},
		{"always", Always, nil, "", 6, 2, []string{"echo known", "echo x >> ran"}},
		{"not asked again", No, nil, "", 6, 3, []string{"echo known", "echo x >> ran"}},
	}
	for _, st := range steps {
		answer, answerErr = st.d, st.err
		if st.fails != "" {
			fails(t, s, "bash", touch, st.fails)
		} else {
			ok(t, s, "bash", touch)
		}
		if len(asked) != st.asked || ran() != st.ran {
			t.Errorf("%s: asked %d times and ran %d times, want %d and %d", st.name, len(asked), ran(), st.asked, st.ran)
		}
		if diff := cmp.Diff(st.always, s.Allowed()); diff != "" {
			t.Errorf("%s: %s", st.name, diff)
		}
	}
	if diff := cmp.Diff(Request{Tool: "bash", Command: "echo x >> ran", Dir: s.ws.dir, Rule: Exactly("echo x >> ran")}, asked[0]); diff != "" {
		t.Error(diff)
	}
	answer = No
	fails(t, s, "bash", o{"command": "echo x >> ran "}, "did not allow") // not the very same
	ok(t, s, "bash", o{"command": "echo known"})
}

func TestNobodyToAsk(t *testing.T) {
	alone := ApproverFunc(func(context.Context, Request) (Decision, error) { return No, ErrNoOne })
	for name, ask := range map[string]Approver{"no approver": nil, "one that has no one": alone} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Ask: ask, Allowed: []string{"echo known"}}, nil)
			fails(t, s, "bash", o{"command": "touch ran"}, "not done: bash needs the user's permission, and there is no one to ask", "allow it beforehand")
			if _, err := os.Stat(filepath.Join(s.ws.dir, "ran")); err == nil {
				t.Error("it ran")
			}
			contains(t, ok(t, s, "bash", o{"command": "echo known"}), "known")
		})
	}
}

// Of several calls at once, one asks at a time, and an "always" answers those
// that wait with the same command.
func TestApprovalOneAtATime(t *testing.T) {
	var asked, inside atomic.Int32
	s := open(t, Options{Ask: ApproverFunc(func(context.Context, Request) (Decision, error) {
		if inside.Add(1) > 1 {
			t.Error("asked two questions at once")
		}
		defer inside.Add(-1)
		asked.Add(1)
		time.Sleep(30 * time.Millisecond)
		return Always, nil
	})}, nil)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { ok(t, s, "bash", o{"command": fmt.Sprintf("echo %d", i%2)}) })
	}
	wg.Wait()
	if got := asked.Load(); got != 2 {
		t.Errorf("asked %d times, want 2", got)
	}
}

func TestCancelledWhileAsking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := open(t, Options{Ask: ApproverFunc(func(ctx context.Context, _ Request) (Decision, error) {
		cancel()
		<-ctx.Done()
		return Always, ctx.Err()
	})}, nil)
	_, err := s.Run(ctx, call("bash", o{"command": "touch ran"}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.ws.dir, "ran")); err == nil || len(s.Allowed()) > 0 {
		t.Error("it ran, or would next time")
	}
}

// pid waits for a number in a file that a command writes.
func pid(t *testing.T, path string) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if whole(path) {
			b, _ := os.ReadFile(path)
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				return n
			}
		}
	}
	t.Fatalf("no process number in %s", path)
	return 0
}

// whole reports whether a file holds a line.
func whole(path string) bool {
	b, _ := os.ReadFile(path)
	return strings.HasSuffix(string(b), "\n")
}

// alarm has the time of s's next command be up when the command has written a
// line to each file: however long that takes it, it gets there. The result is
// when that was.
func alarm(t *testing.T, s *Set, files ...string) *time.Time {
	rang := &time.Time{}
	s.bash.alarm = func(time.Duration) <-chan time.Time {
		up := make(chan time.Time)
		go func() {
			for _, f := range files {
				for !whole(filepath.Join(s.ws.dir, f)) {
					select {
					case <-t.Context().Done():
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			}
			*rang = time.Now()
			close(up)
		}()
		return up
	}
	return rang
}

// lives reports whether a process runs. One that ended and waits for whoever
// started it does not.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !hasProc()
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, p := range pids {
		for end := time.Now().Add(time.Minute); lives(p); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d still runs", p)
				syscall.Kill(p, syscall.SIGKILL)
				break
			}
		}
	}
}

// When the time is up the whole group goes: the shell, its children, those in
// the background, and those that do not listen to SIGTERM.
func TestTimeoutEndsTheGroup(t *testing.T) {
	tests := []struct {
		name, command string
		forced        bool
	}{
		{"child", `echo before; echo $$ > p1; bash -c 'echo $$ > p2; exec sleep 300'; true`, false},
		{"background child", `echo before; sleep 300 & echo $! > p1; sleep 300 & echo $! > p2; wait`, false},
		{"grandchild", `echo before; (sleep 300 & echo $! > p1; wait) & echo $! > p2; wait`, false},
		{"deaf child", `bash -c 'trap "" TERM; echo before; echo $$ > p1; echo $$ > p2; while :; do sleep 1; done'; true`, true},
		{"deaf child in the background", `(trap "" TERM; echo $BASHPID > p1; while :; do sleep 1; done) & echo before; echo $$ > p2; wait`, true},
		{"deaf shell", `trap "" TERM; echo before; echo $$ > p1; echo $$ > p2; while :; do sleep 1; done`, true},
		{"stopped child", `sleep 300 & echo $! > p1; echo before; kill -STOP $!; echo $$ > p2; wait`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{Ask: yes}, nil)
			s.bash.grace = 400 * time.Millisecond
			rang := alarm(t, s, "p1", "p2")
			r := run(t, s, "bash", o{"command": tt.command, "timeout": 0.5})
			if !r.IsError {
				t.Error("not an error")
			}
			contains(t, r.Text(), "before\n", "[ended after 500ms, when its time was up")
			if took := time.Since(*rang); tt.forced && took < s.bash.grace {
				t.Errorf("took %s: it was killed without being asked", took)
			}
			gone(t, pid(t, filepath.Join(s.ws.dir, "p1")), pid(t, filepath.Join(s.ws.dir, "p2")))
		})
	}
}

// A command is asked to end before it is made to, so that it can clean up;
// also one that is stopped.
func TestTimeoutAsksFirst(t *testing.T) {
	tidy := `trap "echo cleaned > done; exit" TERM; echo $BASHPID > p; sleep 300 & wait`
	for name, command := range map[string]string{
		"running": tidy,
		"stopped": `(` + tidy + `) & while [ ! -s p ]; do sleep 0.01; done; kill -STOP $!; trap "" TERM; echo > stopped; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Ask: yes}, nil)
			s.bash.grace = 10 * time.Second // to clean up, on a busy machine
			alarm(t, s, map[string]string{"running": "p", "stopped": "stopped"}[name])
			fails(t, s, "bash", o{"command": command, "timeout": 0.5}, "ended after 500ms")
			if got := get(t, filepath.Join(s.ws.dir, "done")); got != "cleaned\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestDefaultTimeout(t *testing.T) {
	s := open(t, Options{Ask: yes, BashTimeout: 200 * time.Millisecond}, nil)
	began := time.Now()
	fails(t, s, "bash", o{"command": "sleep 300"}, "(no output)\n[ended after 200ms")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("took %s", took)
	}
	if got := open(t, Options{Ask: yes}, nil).bash.timeout; got != 2*time.Minute {
		t.Errorf("default is %s", got)
	}
}

func TestCancelEndsTheGroup(t *testing.T) {
	s := open(t, Options{Ask: yes}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	p := filepath.Join(s.ws.dir, "p")
	go func() {
		defer cancel()
		for {
			if b, _ := os.ReadFile(p); strings.HasSuffix(string(b), "\n") {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	r, err := s.Run(ctx, call("bash", o{"command": `echo before; sleep 300 & echo $! > p; wait`}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	promise(t, r, "bash")
	contains(t, r.Text(), "before\n[interrupted")
	gone(t, pid(t, p))
}

// What a command leaves in its group ends with it, whether it holds the output
// open or not, and whether it listens to signals or not; a result is not held up.
func TestBackgroundEnds(t *testing.T) {
	for name, command := range map[string]string{
		"writes":         `(while :; do echo tick; sleep 0.05; done) & echo $! > p; echo started`,
		"silent":         `sleep 300 > /dev/null 2>&1 & echo $! > p; echo started`,
		"nohup":          `nohup sleep 300 > /dev/null 2>&1 & echo $! > p; echo started`,
		"deaf":           `(trap "" TERM HUP; echo $BASHPID > p; while :; do sleep 1; done) & while [ ! -s p ]; do sleep 0.01; done; echo started`,
		"disowned":       `sleep 300 & echo $! > p; disown; echo started`,
		"grandchild":     `(sleep 300 & echo $! > p); echo started`,
		"holds the pipe": `(exec 7>&1; exec > /dev/null 2>&1; sleep 300) & echo $! > p; echo started`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{Ask: yes}, nil)
			s.bash.grace = 300 * time.Millisecond
			got := ok(t, s, "bash", o{"command": command})
			contains(t, got, "started\n", "[exit code 0; what it had left in the background was ended]")
			gone(t, pid(t, filepath.Join(s.ws.dir, "p")))
		})
	}
	// What has ended by itself is not worth a word.
	s := open(t, Options{Ask: yes}, nil)
	s.bash.linger = time.Minute // however long it takes
	if got := ok(t, s, "bash", o{"command": `(sleep 0.02; echo late) & (true &) ; echo now`}); got != "now\nlate\n[exit code 0]" {
		t.Errorf("got %q", got)
	}
}

// What a command prints is told while it runs, without secrets, and the result
// is what it would be.
func TestOutputIsTold(t *testing.T) {
	var mu sync.Mutex
	var told []string
	begun := 0
	seen := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(told, "\x00"), text)
	}
	s := open(t, Options{Ask: ApproverFunc(func(context.Context, Request) (Decision, error) {
		if begun != 0 {
			t.Error("it began before it was allowed")
		}
		return Once, nil
	})}, nil)
	ctx := llm.WithProgress(t.Context(), llm.Progress{
		Begun: func() { begun++ },
		Output: func(tail string, bytes int64) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, tail)
		},
	})
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	wait := func(name string) string { return fmt.Sprintf("while [ ! -e %s ]; do sleep 0.01; done; ", name) }
	command := "seq 1 100; " + wait("a") + "printf 'half '; " + wait("b") + "echo line; printf '10%%\\r50%%'; " + wait("c") + "echo; echo " + token + "; printf 'a\\033[31mb\\n'; " + wait("d") + "echo end"
	done := make(chan llm.ToolResult)
	go func() {
		r, err := s.Run(ctx, call("bash", o{"command": command}))
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	for _, step := range []struct{ seen, touch string }{{"99\n100", "a"}, {"100\nhalf ", "b"}, {"half line\n50%", "c"}, {"[redacted]\na\x1b[31mb", "d"}} {
		for end := time.Now().Add(time.Minute); !seen(step.seen); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q is not told: %q", step.seen, told)
			}
		}
		put(t, filepath.Join(s.ws.dir, step.touch), "")
	}
	r := <-done
	contains(t, r.Text(), "1\n2\n3\n", "half line\n10%\r50%\n"+token+"\n", "end\n[exit code 0]")
	if seen(token) || seen("10%") || begun != 1 {
		t.Errorf("begun %d times, told %q", begun, told)
	}
	for _, tail := range told {
		if strings.Count(tail, "\n") >= tellLines || len(tail) > tellBytes {
			t.Errorf("too much is told at once: %q", tail)
		}
	}
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("ä", tellBytes)
	for _, tt := range []struct {
		out    string
		rested bool
		want   string
	}{
		{"", false, ""},
		{"a\nb", false, "a"},
		{"a\nb", true, "a\nb"},
		{"a\r\nb\r\n", false, "a\nb"},
		{"10%\r20%\r", true, "20%"},
		{strings.Repeat("x\n", 30), false, strings.Repeat("x\n", tellLines-1) + "x"},
		{"\xa4\nb\n", false, "\nb"},
		{long, true, long[len(long)-tellBytes:]},
		{"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n", false, "[redacted]"},
	} {
		if got := lastLines([]byte(tt.out), tt.rested); got != tt.want {
			t.Errorf("%.40q: got %.80q, want %.80q", tt.out, got, tt.want)
		}
	}
}

// A command ends with the process that runs it, also if that is killed: its
// shell, its children, and those that do not listen to SIGTERM.
func TestKilledProcessEndsItsCommand(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"children":   `(sleep 300 & echo $! > p1; wait) & echo $$ > p2; wait`,
		"deaf child": `bash -c 'trap "" TERM; echo $$ > p1; while :; do sleep 1; done' & echo $$ > p2; trap "" TERM; wait`,
		"daemon":     `setsid bash -c 'trap "" TERM; echo $$ > p1; while :; do sleep 1; done' > /dev/null 2>&1 & echo $$ > p2; nohup sleep 300`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), "TOOL_BASH="+dir, "TOOL_COMMAND="+command)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p1, p2 := pid(t, filepath.Join(dir, "p1")), pid(t, filepath.Join(dir, "p2"))
			if !lives(p1) || !lives(p2) {
				t.Error("the command does not run")
			}
			cmd.Process.Kill()
			cmd.Wait()
			gone(t, p1, p2)
		})
	}
}

func TestEnvironment(t *testing.T) {
	env := []string{"PATH=" + systemPath, "HOME=/home/u", "ANTHROPIC_API_KEY=hush", "GITHUB_TOKEN=hush", "PGPASSWORD=hush",
		"DATABASE_URL=postgres://u:hush@h/db", "PAGER=less", "BROKEN", "NAME=with=equals"}
	s := open(t, Options{Ask: yes, Env: env}, nil)
	got := ok(t, s, "bash", o{"command": "env"})
	if strings.Contains(got, "hush") {
		t.Errorf("a secret got through:\n%s", got)
	}
	contains(t, got, "HOME=/home/u\n", "NAME=with=equals\n", "PAGER=cat\n", "PWD="+s.ws.dir+"\n")

	t.Setenv("GOCLAW_TEST_MARK", "of the process itself")
	got = ok(t, open(t, Options{Ask: yes}, nil), "bash", o{"command": "env; ls / > /dev/null"})
	if strings.Contains(got, "GOCLAW_TEST_MARK") {
		t.Error("the process's own environment got through")
	}
	contains(t, got, "PATH="+systemPath)
}

func TestSecret(t *testing.T) {
	tests := []struct {
		name, value string
		want        bool
	}{
		{"OPENAI_API_KEY", "x", true},
		{"openai_api_key", "x", true},
		{"GEMINI_APIKEY", "x", true},
		{"GITHUB_TOKEN", "x", true},
		{"GH_TOKEN_READ", "x", true},
		{"CLIENT_SECRET", "x", true},
		{"AWS_SECRET_ACCESS_KEY", "x", true},
		{"AWS_ACCESS_KEY_ID", "x", true},
		{"AWS_SESSION_TOKEN", "x", true},
		{"PGPASSWORD", "x", true},
		{"DB_PASSWORD", "x", true},
		{"DB_PASSWD", "x", true},
		{"MYSQL_PWD", "x", true},
		{"SMTP_PASS", "x", true},
		{"GPG_PASSPHRASE", "x", true},
		{"GOOGLE_APPLICATION_CREDENTIALS", "/x.json", true},
		{"SSH_PRIVATE_KEY_FILE", "x", true},
		{"GITHUB_PAT", "x", true},
		{"DATABASE_URL", "postgres://u:p@h/d", true},
		{"REDIS", "redis://:p@h:6379", true},
		{"PATH", "/bin", false},
		{"PWD", "/x", false},
		{"OLDPWD", "/x", false},
		{"HOME", "/x", false},
		{"TOKENIZERS_PARALLELISM", "true", false},
		{"SSH_AUTH_SOCK", "/x", false},
		{"KEYBOARD", "de", false},
		{"DATABASE_URL", "postgres://u@h:5432/d", false},
		{"SITE", "https://example.org/a:b@c", false},
		{"HTTPS_PROXY", "http://u:p@proxy:3128", false},
		{"LANG", "en_GB.UTF-8", false},
	}
	for _, tt := range tests {
		if got := len(secrets.Environment([]string{tt.name + "=" + tt.value})) == 0; got != tt.want {
			t.Errorf("%s=%s: got %v", tt.name, tt.value, got)
		}
	}
}
