package tool

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// confined makes a place for a sandbox: a workspace, a folder beside it, the
// program's own state, and a folder for temporary files. It returns false where
// there is no sandbox, after it has checked what happens then.
func confined(t *testing.T, o Options) (*Set, string, bool) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	was := temporary
	temporary = []string{filepath.Join(base, "tmp")}
	t.Cleanup(func() { temporary = was })
	for name, text := range map[string]string{
		"ws/old": "old\n", "outside/old": "old\n", "outside/deep/old": "old\n", "home/config.json": apiKey, "home/workspace/notes.md": "a note\n",
		"home/logs/a.jsonl": apiKey, "tmp/x": "",
	} {
		put(t, filepath.Join(base, name), text)
	}
	for link, to := range map[string]string{"ws/out": "../outside", "ws/state": "../home", "ws/key": "../home/config.json", "ws/root": "/proc/self/root"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(base, "home")
	o.Workspace, o.Mode = filepath.Join(base, "ws"), ModeAll
	o.Fence = Fence{Private: []string{home, filepath.Join(home, "config.json")}, Open: []string{filepath.Join(home, "workspace")}}
	o.Env = append(o.Env, "PATH="+os.Getenv("PATH"), "HOME="+base, "TMPDIR="+filepath.Join(base, "tmp"), "BASE="+base, fmt.Sprintf("TEST=%d", os.Getpid()))
	s := open(t, o, nil)
	if s.bash.lacks() == "" {
		return s, base, true
	}
	t.Logf("no sandbox here: %s", s.bash.lacks())
	if c := s.Confinement(); c.Missing == "" {
		t.Errorf("%+v", c)
	}
	if o.Sandbox.Use == SandboxOn || o.Sandbox.NoNetwork {
		fails(t, s, "bash", o2("true"), "commands must run in a sandbox")
	} else {
		ok(t, s, "bash", o2("true"))
	}
	return s, base, false
}

func o2(command string) o { return o{"command": command} }

func TestSandboxWrites(t *testing.T) {
	s, base, here := confined(t, Options{Sandbox: Sandbox{Use: SandboxAuto}, Ask: yes})
	if !here {
		return
	}
	if got := s.Confinement().String(); got != "commands write only below this folder" {
		t.Errorf("got %q", got)
	}
	for _, command := range []string{
		"echo x > new && mkdir -p d/e && mv new d/e/ && ln d/e/new hard && ln -s d soft && echo y >> soft/e/new && rm -r d hard soft",
		"truncate -s 0 old && echo more > old",
		"echo x > $TMPDIR/new && mktemp",
		"echo x > /dev/null && echo seen > /dev/stdout",
		"ls / > /dev/null && ls $HOME && cat /etc/passwd > /dev/null",
		"cat $BASE/outside/deep/old $BASE/home/workspace/notes.md",
		"sleep 300 & kill $! && ! wait $!",
		"mkfifo p && (echo x > p &) && cat p && rm p",
		"cat <(echo x) | tee copy && python3 -c 'print(1)' || ! command -v python3",
	} {
		if r := run(t, s, "bash", o2(command)); r.IsError {
			t.Errorf("%s: %s", command, r.Text())
		}
	}
	for _, command := range []string{
		"echo x > ../outside/new", "echo x > $BASE/new", "echo x >> ../outside/old", ": > ../outside/old", "rm ../outside/old", "mv ../outside/old .",
		"ln ../outside/old hard && echo x > hard", "ln -s ../outside/old soft; echo x > soft", "echo x > out/new", "mkdir out/dir", "rmdir out/deep", "rm -r out/deep",
		"echo x > /proc/self/root$BASE/outside/new", "echo x > root$BASE/outside/new", "echo x > /proc/$$/cwd/../outside/new",
		"cd ../outside && touch new", "truncate -s 0 ../outside/old", "dd if=/dev/null of=../outside/old", "mkfifo ../outside/p", "ln -s x ../outside/s",
		"mv old ../outside/old", "cp old ../outside/old", "mv ../outside ../gone", "echo x > $BASE/home/workspace/notes.md",
		"bash -c 'exec bash -c \"echo x > ../outside/new\"'", "setsid -w touch ../outside/new", "env -i /bin/sh -c 'echo x > ../outside/new'",
		"mount -t tmpfs none ../outside && touch ../outside/new", "unshare -Urm mount -t tmpfs none ../outside", "mknod disk b 8 0", "chroot .. touch outside/new",
		"kill -0 $TEST", "kill -STOP $PPID $TEST", "cat /proc/$TEST/mem", "echo 1 > /proc/sys/kernel/panic",
	} {
		r := run(t, s, "bash", o2(command))
		if !r.IsError {
			t.Errorf("%s: it is not refused: %s", command, r.Text())
		}
	}
	contains(t, run(t, s, "bash", o2("echo x > ../outside/new")).Text(), "; the sandbox lets it write only in the workspace")
	if got := run(t, s, "bash", o2("exit 3")).Text(); got != "(no output)\n[exit code 3]" {
		t.Errorf("the sandbox is blamed for %q", got)
	}
	for name, want := range map[string]string{"outside/old": "old\n", "outside/deep/old": "old\n", "home/config.json": apiKey, "home/workspace/notes.md": "a note\n"} {
		if got := get(t, filepath.Join(base, name)); got != want {
			t.Errorf("%s is now %q", name, got)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(base, "*")); len(names) != 4 {
		t.Errorf("there is now %v", names)
	}
	// The program itself is as free as before, in every thread.
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := os.WriteFile(filepath.Join(base, "outside", fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Only in the mode all.
	s.SetMode(ModeEdits)
	if c := s.Confinement(); c != (Confinement{}) {
		t.Errorf("%+v", c)
	}
	s.bash.sandbox.Use = SandboxOn
	if c := s.Confinement(); !c.Files {
		t.Errorf("%+v", c)
	}
}

func TestSandboxHidesTheProgram(t *testing.T) {
	s, base, here := confined(t, Options{Sandbox: Sandbox{Use: SandboxOn, Writable: []string{"/nowhere"}}, Ask: yes})
	if !here {
		return
	}
	ways := []string{
		"cat ../home/config.json", "cat state/config.json", "cat key", "cat < key", "cat /proc/self/root$BASE/home/config.json", "cat root$BASE/home/logs/a.jsonl",
		"cp ../home/config.json copy", "ln ../home/config.json copy && cat copy", "mv ../home/config.json .", "mv ../home mine && cat mine/config.json", "tar c ../home", "grep -r sk- ../home",
		"cd ../home && cat config.json", "rm ../home/config.json", "echo x > ../home/allowed", "echo x >> ../home/config.json", "mkdir ../home/new", "rm -r ../home/logs",
		"cd ../home/workspace && cat ../config.json", "find $BASE -name config.json -exec cat {} +",
	}
	for _, command := range ways {
		r := run(t, s, "bash", o2(command))
		if !r.IsError || strings.Contains(r.Text(), apiKey) {
			t.Errorf("%s: %s", command, r.Text())
		}
	}
	for _, name := range []string{"home/config.json", "home/logs/a.jsonl"} {
		if got := get(t, filepath.Join(base, name)); got != apiKey {
			t.Errorf("%s is now %q", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "home/allowed")); err == nil {
		t.Error("a permission was written")
	}
	contains(t, ok(t, s, "bash", o2("cat ../home/workspace/notes.md state/workspace/notes.md")), "a note\na note\n")
}

// The workspace may contain the program's state: everything else in it can be
// written.
func TestSandboxAroundTheProgram(t *testing.T) {
	s, base, here := confined(t, Options{Sandbox: Sandbox{Use: SandboxOn}, Ask: yes})
	if !here {
		return
	}
	s.bash.dir = base
	ok(t, s, "bash", o2("echo x > outside/new && echo y > ws/new && mkdir outside/d && rm -r outside/d && cat home/workspace/notes.md"))
	for _, command := range []string{"cat home/config.json", "echo x > home/allowed", "mv home mine", "rm home/config.json"} {
		if r := run(t, s, "bash", o2(command)); !r.IsError || strings.Contains(r.Text(), apiKey) {
			t.Errorf("%s: %s", command, r.Text())
		}
	}
}

func TestSandboxNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "hello\n")
			c.Close()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	read := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && cat <&3", port)
	s, _, _ := confined(t, Options{Sandbox: Sandbox{Use: SandboxAuto}})
	contains(t, ok(t, s, "bash", o2(read)), "hello")
	s, _, here := confined(t, Options{Sandbox: Sandbox{NoNetwork: true}})
	if !here {
		return
	}
	s.SetMode(ModeAsk) // in every mode
	s.guard.ask = yes
	for _, command := range []string{read, fmt.Sprintf("echo x > /dev/udp/127.0.0.1/%d", port), "python3 -c 'import socket; socket.socket(socket.AF_UNIX)' || exit 1"} {
		r := run(t, s, "bash", o2(command))
		if !r.IsError {
			t.Errorf("%s: %s", command, r.Text())
		}
	}
	contains(t, run(t, s, "bash", o2(read)).Text(), "; the sandbox gives it no network]")
	contains(t, ok(t, s, "bash", o2("echo x | cat; touch ../outside/new && echo written")), "x\nwritten\n") // files are as free as ever
}

// A build that uses caches outside of the workspace works.
func TestSandboxBuilds(t *testing.T) {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	s, base, here := confined(t, Options{
		Sandbox: Sandbox{Use: SandboxOn, Writable: dirs[:2], NoNetwork: true},
		Env:     []string{"GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1], "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local", "CGO_ENABLED=0"},
	})
	if !here {
		return
	}
	put(t, filepath.Join(base, "ws/go.mod"), "module hello\n")
	put(t, filepath.Join(base, "ws/main.go"), "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"built\") }\n")
	contains(t, ok(t, s, "bash", o2("go vet . && go build -o hello . && ./hello && git init -q . && git add go.mod && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline")), "built\n", " one\n")
}

// A command in a sandbox ends like any other.
func TestSandboxEnds(t *testing.T) {
	s, base, here := confined(t, Options{Sandbox: Sandbox{Use: SandboxOn, NoNetwork: true}})
	if !here {
		return
	}
	alarm(t, s, "p")
	fails(t, s, "bash", o{"command": "setsid sleep 300 & echo $! > p; sleep 300; true", "timeout": 1.5}, "ended after 1.5s")
	gone(t, pid(t, filepath.Join(base, "ws/p")))
	if err := syscall.Kill(os.Getpid(), 0); err != nil {
		t.Error(err)
	}
}

// Where Landlock is missing, bubblewrap confines as well, or it is said that
// there is neither.
func TestBubblewrap(t *testing.T) {
	was := landlockVersion
	landlockVersion = func() int { return 2 }
	defer func() { landlockVersion = was }()
	s, base, here := confined(t, Options{Sandbox: Sandbox{Use: SandboxOn, NoNetwork: true}, Ask: yes})
	if !here {
		if c := s.Confinement(); !c.Refused || !strings.Contains(c.Missing, "bubblewrap") {
			t.Errorf("%+v", c)
		}
		return
	}
	contains(t, ok(t, s, "bash", o2("echo x > new && cat new $BASE/outside/old $BASE/home/workspace/notes.md && touch $TMPDIR/y && pwd")), "x\nold\na note\n"+s.ws.dir+"\n")
	for _, command := range []string{
		"echo x > ../outside/new", "rm ../outside/old", "echo x > out/new", "cat ../home/config.json", "cat key", "ls ../home/logs", "echo x > ../home/allowed", "echo x > ../home/workspace/notes.md",
		"cat /proc/1/root$BASE/home/config.json", "kill -0 $TEST", "umount ../home", "exec 3<>/dev/tcp/127.0.0.1/1", "touch /var/lib/goclaw-outside",
	} {
		if r := run(t, s, "bash", o2(command)); !r.IsError || strings.Contains(r.Text(), apiKey) {
			t.Errorf("%s: %s", command, r.Text())
		}
	}
	contains(t, run(t, s, "bash", o2("echo x > ../outside/new")).Text(), "the sandbox", "lets it write only")
	contains(t, ok(t, s, "bash", o2("sleep 300 > /dev/null 2>&1 & echo started")), "started\n") // and ended with its namespace
	fails(t, s, "bash", o{"command": "setsid sleep 300 & sleep 300; true", "timeout": 0.5}, "ended after 500ms")
	gone(t, strays("BASE="+base+"\x00")...)
	if got := get(t, filepath.Join(base, "home/config.json")); got != apiKey {
		t.Errorf("the configuration is %q", got)
	}
}

func TestNoSandboxHere(t *testing.T) {
	for _, tt := range []struct {
		sandbox Sandbox
		mode    Mode
		want    string
		refused bool
	}{
		{Sandbox{}, ModeAll, "", false},
		{Sandbox{Use: SandboxAuto}, ModeEdits, "", false},
		{Sandbox{Use: SandboxAuto}, ModeAll, "there is no sandbox: no reason", false},
		{Sandbox{Use: SandboxOn}, ModeAsk, "commands are refused, because there is no sandbox: no reason", true},
		{Sandbox{NoNetwork: true}, ModeAsk, "commands are refused, because there is no sandbox: no reason", true},
	} {
		s := open(t, Options{Sandbox: tt.sandbox, Mode: tt.mode, Ask: yes}, nil)
		s.bash.noSandbox = func() string { return "no reason" }
		if got := s.Confinement().String(); got != tt.want {
			t.Errorf("%+v in mode %v: %q, want %q", tt.sandbox, tt.mode, got, tt.want)
		}
		if r := run(t, s, "bash", o2("true")); r.IsError != tt.refused {
			t.Errorf("%+v in mode %v: %s", tt.sandbox, tt.mode, r.Text())
		}
	}
	if _, err := ParseSandboxUse("maybe"); err == nil || err.Error() != `the sandbox must be auto, on or off, not "maybe"` {
		t.Errorf("got %v", err)
	}
}

func TestArea(t *testing.T) {
	a := area{hidden: []string{"/h/state", "/h/db"}, open: []string{"/h/state/ws", "/w"}}
	for path, want := range map[string]bool{
		"/": false, "/h": false, "/h/state": true, "/h/state/x": true, "/h/state/ws": false, "/h/state/ws/x": false, "/h/statement": false, "/h/db": true, "/w": false,
	} {
		if got := a.hides(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := under("/h", a.hidden); !slices.Equal(got, a.hidden) {
		t.Errorf("got %v", got)
	}
	if got := under("/h/state", a.hidden); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
