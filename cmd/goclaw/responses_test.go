//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// TestReasoningSurvivesKill: what the model thought before its calls is on disk
// before the calls are run, and goes back with their results after kill -9. The
// server would refuse the calls without it.
func TestReasoningSurvivesKill(t *testing.T) {
	home := t.TempDir()
	put(t, home, "home/config.json", `{"providers": {"openai": {"api": "responses"}}}`)
	var mu sync.Mutex
	var sent []string
	var reasons reasoner
	results := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if sent = append(sent, string(body)); len(sent) == 2 { // the results
			close(results)
			mu.Unlock()
			<-r.Context().Done()
			mu.Lock()
			return
		}
		reasons.answer(w, body)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	env := []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + srv.URL}
	cmd, _, _ := child(t, home, "ask", "--model", "openai/gpt-5", "list both")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-results
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	cmd, out, errOut := child(t, home, "ask", "--model", "openai/gpt-5", "--continue")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	if got := out.String(); got != "echo: list both\n" {
		t.Errorf("answered %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	items := func(body string) string {
		_, rest, _ := strings.Cut(body, `"input":`)
		input, _, _ := strings.Cut(rest, `],"model":`)
		return input
	}
	if len(sent) != 3 || items(sent[1]) != items(sent[2]) || !strings.Contains(sent[2], `"encrypted_content":"`+sealed("rs_1")+`"`) {
		t.Errorf("%d requests, the last two with\n%s\n%s", len(sent), items(sent[1]), items(sent[len(sent)-1]))
	}
}

// TestModelsOnATerminal: the list of models fits into 80 columns, has what a
// server here offers, and its numbers can be chosen; /think completes to the
// levels of the model.
func TestModelsOnATerminal(t *testing.T) {
	machine{ollama: &ear{models: []string{"llama3.2"}}}.switchOn(t)
	home := t.TempDir()
	p := tuitest.New(t, 80, 60)
	cmd := exec.Command("goclaw")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.Env, cmd.Dir = keyless(home, "ANTHROPIC_API_KEY=sk-test", "OPENAI_API_KEY=sk-test"), home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	p.See("New session")
	p.Press("/model\r")
	p.See("Choose a model")
	p.See("ollama/llama3.2")
	rows := 0
	for line := range strings.SplitSeq(p.Screen(), "\n") {
		if _, name, ok := strings.Cut(line, "/"); ok && strings.HasPrefix(strings.TrimLeft(line, "❯>* "), fmt.Sprint(rows+1, " ")) {
			if rows++; rows == 1 && !strings.HasPrefix(name, "llama3.2 ") {
				t.Errorf("a line of the list is %q", line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("the list has %d models:\n%s", rows, p.Screen())
	}
	p.Press("\x1b")
	p.Rests()
	p.Press("/model opus-5-5\r")
	p.See("now using anthropic/claude-opus-5-5")
	p.Press("/think ")
	p.See("xhigh")
	p.Press("max\r")
	p.See("thinking: max (set for this session)")
	p.Press("/think off\r")
	p.See("does not think at level off")
	p.Press("/model 1\r")
	p.See("now using ollama/llama3.2")
	p.Rests()
	p.Press("\x04")
	if code := exits(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
