//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const hiddenKey = "sk-hidden-0123456789abcdef"

// A command that the model writes finds the key neither in its environment nor
// in that of goclaw, not even as root, and goclaw and the process that makes
// checkpoints still have it.
func TestCommandsCannotReadTheKey(t *testing.T) {
	keys := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		keys <- r.Header.Get("X-Api-Key")
		raw, _ := io.ReadAll(r.Body)
		text, results := lastWords(raw)
		w.Header().Set("Content-Type", "text/event-stream")
		anthropicAnswer(w, text, results)
	}))
	defer srv.Close()
	home := t.TempDir()
	// The path is built so that the fence does not see it.
	command := `p=/pr; cat ${p}oc/$PPID/environ ${p}oc/self/environ | tr '\\0' '\\n'; env; echo read`
	allowed := strings.ReplaceAll(command, `\\`, `\`)
	if err := os.WriteFile(filepath.Join(home, "allowed"), []byte(fmt.Sprintf("%q\n", allowed)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(goclawBin(t), "ask", "--json", `call bash {"command":"`+command+`"}`)
	cmd.Env = append(os.Environ(), "GOCLAW_HOME="+home, "HOME="+home, "ANTHROPIC_BASE_URL="+srv.URL, "ANTHROPIC_API_KEY="+hiddenKey,
		"DATABASE_URL=postgres://me:"+hiddenKey+"@host/x", "PLAIN=stays")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte(`read\n`)) || !bytes.Contains(out, []byte("PLAIN=stays")) {
		t.Errorf("the command did not run:\n%s", out)
	}
	if bytes.Contains(out, []byte(hiddenKey)) {
		t.Errorf("the command found the key:\n%s", out)
	}
	if got := <-keys; got != hiddenKey {
		t.Errorf("the server got the key %q", got)
	}
}

// Other processes of the user cannot look into a running goclaw. If the test
// runs as root, for whom nothing is closed, it looks as another user.
func TestOthersCannotLookInside(t *testing.T) {
	dir := t.TempDir()
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		var err error
		if dir, err = os.MkdirTemp("/tmp", "goclaw"); err != nil { // whose parents are open to all
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "goclaw")
	program, err := os.ReadFile(goclawBin(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin, program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "mcp")
	cmd.Env = []string{"HOME=" + dir, "GOCLAW_HOME=" + filepath.Join(dir, "home"), "GOCLAW_NO_LOCAL=1", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=" + hiddenKey, "PLAIN=stays"}
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if _, err := io.ReadFull(answers, make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	for _, name := range []string{"environ", "mem", "fd"} {
		look := exec.Command("cat", fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		if name == "fd" {
			look = exec.Command("ls", fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		}
		look.SysProcAttr = attr
		if out, err := look.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("ermission denied")) {
			t.Errorf("/proc/PID/%s can be read: %v\n%s", name, err, out)
		}
	}
	if os.Getuid() == 0 { // root may look, and finds no key
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		if err != nil || !bytes.Contains(env, []byte("PLAIN=stays\x00")) || bytes.Contains(env, []byte(hiddenKey)) {
			t.Errorf("/proc/PID/environ for root: %v %q", err, env)
		}
	}
}

// A password in an argument is not in the list of processes.
func TestArgumentsAreHidden(t *testing.T) {
	home := t.TempDir()
	for name, dsn := range map[string]string{
		"an address": "postgres://me:" + hiddenKey + "@127.0.0.1:%d/x?sslmode=disable",
		"words":      "host=127.0.0.1 port=%d sslmode=disable dbname=x password=" + hiddenKey,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			cmd, _, errOut := child(t, home, "sessions", "copy", "--to", "postgres", fmt.Sprintf(dsn, l.Addr().(*net.TCPAddr).Port))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			c, err := l.Accept() // it has parsed the DSN, and waits for an answer
			if err != nil {
				t.Fatal(err)
			}
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			c.Close()
			l.Close()
			cmd.Wait()
			if err != nil || bytes.Contains(line, []byte(hiddenKey)) || !bytes.Contains(line, []byte("copy")) {
				t.Errorf("the command line is %q (%v)", line, err)
			}
			if said := errOut.String(); strings.Contains(said, hiddenKey) || strings.Count(said, "\n") != 1 || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("it exits %d: %s", cmd.ProcessState.ExitCode(), said)
			}
		})
	}
}
