//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// playing is a model that says what a script says, one line for each request: a
// text, or a tool and its arguments.
func playing(t *testing.T, script []string) string {
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		if len(script) == 0 {
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"the script is over"}}`, http.StatusBadRequest)
			return
		}
		line := script[0]
		script = script[1:]
		w.Header().Set("Content-Type", "text/event-stream")
		ev := func(name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }
		ev("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1200,"output_tokens":1}}}`)
		stop := "end_turn"
		if name, args, ok := strings.Cut(line, " {"); ok {
			stop = "tool_use"
			quoted, _ := json.Marshal("{" + args)
			ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_%02d","name":"%s","input":{}}}`, len(script), name))
			ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+string(quoted)+`}}`)
		} else {
			quoted, _ := json.Marshal(line)
			ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
			ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(quoted)+`}}`)
		}
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
		ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":60}}`)
		ev("message_stop", `{"type":"message_stop"}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestReadmeWork holds the day's work in the README against the program: a real
// chat in a real repository, with a model that says what its script says.
func TestReadmeWork(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "```\n~/greeter$ goclaw --plain\n")
	if !ok {
		t.Fatal("README.md has no work in ~/greeter")
	}
	blocks := strings.SplitN(rest, "\n```", 2)
	parts := strings.Split(blocks[0], "\n~/greeter$ goclaw --plain -c\n")
	if len(parts) != 2 {
		t.Fatal("the work in README.md is not killed and taken up once")
	}
	home := t.TempDir()
	repo := filepath.Join(home, "greeter")
	for name, text := range map[string]string{
		"go.mod":        "module greeter\n\ngo 1.24\n",
		"greet.go":      "package greeter\n\n// Greet returns a greeting.\nfunc Greet(name string) string {\n\treturn \"Hello \" + name\n}\n",
		"greet_test.go": "package greeter\n\nimport \"testing\"\n\nfunc TestGreet(t *testing.T) {\n\tif Greet(\"Ana\") == \"\" {\n\t\tt.Error(\"silent\")\n\t}\n}\n",
		"AGENTS.md":     "Run go test ./... after a change.\n",
	} {
		if err := os.MkdirAll(repo, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := playing(t, []string{
		`grep {"pattern":"Hello"}`,
		`read_file {"path":"greet.go"}`,
		`edit_file {"path":"greet.go","old_string":"return \"Hello \" + name","new_string":"return \"Hello, \" + name + \"!\""}`,
		`edit_file {"path":"greet.go","old_string":"return \"Hello \" + name","new_string":"return \"Good day, \" + name + \"!\""}`,
		`bash {"command":"go test ./..."}`,
		"Greet in greet.go now says \"Good day, Ana!\", and the tests pass.",
		"Only greet_test.go calls it, and it checks that the greeting is not empty.",
	})
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	open := func(args ...string) (*tuitest.Person, *exec.Cmd) {
		p := tuitest.New(t, 100, 80)
		cmd := exec.Command("goclaw", args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
		cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, ".goclaw"), "GOCLAW_NO_LOCAL=1", "TERM=xterm", "NO_COLOR=1", "PATH=" + os.Getenv("PATH"),
			"GOCACHE=" + strings.TrimSpace(string(cache)), "GOFLAGS=", "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=sk-test-0123456789"}
		cmd.Dir = repo
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return p, cmd
	}
	vary := regexp.MustCompile(`\(cached\)|[\d.]+s|in[~/][^:]*/greeter:`) // times, and where the folder is
	plain := func(s string) string { return vary.ReplaceAllString(strings.Join(strings.Fields(s), ""), "") }
	for i, args := range [][]string{nil, {"-c"}} {
		p, cmd := open(append(args, "--plain")...)
		var seen []string
		for line := range strings.SplitSeq(parts[i], "\n") {
			if strings.HasPrefix(line, "(") { // told, not shown
				continue
			}
			seen = append(seen, line)
			typed, ok := strings.CutPrefix(line, "> ")
			if _, answer, asked := strings.Cut(line, "(n REASON tells why): "); asked {
				typed, ok = answer, true
			}
			if !ok {
				continue
			}
			want := plain(strings.Join(seen, "\n"))
			want = strings.TrimSuffix(want, plain(typed))
			p.Await("the transcript up to "+line, func(s string, _, _ int) bool { return strings.HasSuffix(plain(s), want) })
			p.Press(typed + "\r")
		}
		want := plain(strings.Join(seen, "\n")) + ">"
		p.Await("the transcript", func(s string, _, _ int) bool { return plain(s) == want })
		cmd.Process.Kill()
		exits(t, cmd)
	}
}
