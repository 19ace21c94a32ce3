//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The examples in docs/api.md run as they are written, but for the port.
func TestServeExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(name); err != nil && os.Getenv("GOCLAW_NO_SKIP") == "" {
			t.Skip(err)
		}
	}
	doc, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	script := "set -eo pipefail\n"
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		block := strings.ReplaceAll(m[1], "127.0.0.1:7331", address)
		if strings.Contains(block, "goclaw serve") {
			block = strings.Replace(block, " &\n", " > /dev/null &\npid=$!\ntrap 'kill $pid; wait $pid' EXIT\nuntil curl -s http://"+address+"/healthz > /dev/null; do kill -0 $pid; done\n", 1)
		}
		script += block
	}
	home := t.TempDir()
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = t.TempDir()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "event: done|event: done|1|Trip|session|true|409|[]|stop"
	if got := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "|"); got != want {
		t.Errorf("the examples print %q, want %q", got, want)
	}
}
