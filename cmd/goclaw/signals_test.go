//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignalsEndEveryCommand: TERM and Ctrl-C end whatever a command is doing,
// also while it waits for input that does not come.
func TestSignalsEndEveryCommand(t *testing.T) {
	big := t.TempDir()
	for i := range 20 {
		put(t, big, fmt.Sprintf("s%02d.jsonl", i), piSession(fmt.Sprintf("s%02d", i), 2000, 500))
	}
	tests := map[string]struct {
		args   []string
		server bool
	}{
		"ask, waiting for its input":  {args: []string{"ask", "-"}},
		"ask, waiting for the answer": {args: []string{"ask", "go"}, server: true},
		"chat in a pipe":              {args: nil},
		"mcp":                         {args: []string{"mcp"}},
		"tail -f":                     {args: []string{"sessions", "tail", "-f", "main:cli:user"}},
		"import":                      {args: []string{"import", big}},
		"doctor":                      {args: []string{"doctor", big}},
		"search":                      {args: []string{"search", "0123456789abcde"}},
	}
	for name, tt := range tests {
		for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
			t.Run(fmt.Sprint(name, ", ", sig), func(t *testing.T) {
				t.Parallel()
				home := t.TempDir()
				switch {
				case strings.HasPrefix(name, "tail"):
					spawn(t, home, "ask", "--model", "offline", "hi")
				case name == "search":
					for i := range 5 {
						put(t, home, fmt.Sprintf("%ss%02d.jsonl", piFolder, i), piSession(fmt.Sprintf("s%02d", i), 1000, 500))
					}
				}
				cmd, _, errOut := child(t, home, tt.args...)
				if tt.server {
					cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+hanging(t))
				}
				in, err := cmd.StdinPipe() // never closed by the test
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(300 * time.Millisecond) // it works, or waits
				_ = cmd.Process.Signal(sig)
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				select {
				case <-ended:
				case <-time.After(testPatience):
					_ = cmd.Process.Kill()
					t.Errorf("it goes on after %v\n%s", sig, errOut)
					<-ended
				}
				if strings.Contains(errOut.String(), "panic") {
					t.Errorf("it says\n%s", errOut)
				}
				_ = os.RemoveAll(filepath.Join(home, "home"))
			})
		}
	}
}
