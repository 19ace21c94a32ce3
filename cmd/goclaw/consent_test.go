//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// machine is what listens on the ports of model servers: TestMain has reserved
// them, and built the program with their numbers. What is nil refuses to talk.
type machine struct {
	ollama, lmStudio, llamaCpp http.Handler
}

// switchOn makes m answer until the test is over.
func (m machine) switchOn(t *testing.T) {
	t.Helper()
	for at, h := range map[*port]http.Handler{ports.ollama: m.ollama, ports.lmStudio: m.lmStudio, ports.llamaCpp: m.llamaCpp} {
		at.serve(h)
		t.Cleanup(func() { at.serve(nil) })
	}
}

// ear is a model server that notes what it hears.
type ear struct {
	mu     sync.Mutex
	models []string // the first one is in memory
	studio bool     // LM Studio's API, not Ollama's
	heard  []string // METHOD PATH, with the headers that carry keys
	bodies string   // of everything
}

func (e *ear) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	what := r.Method + " " + r.URL.Path
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
		if v := r.Header.Get(name); v != "" {
			what += " " + name + "=" + v
		}
	}
	e.heard, e.bodies = append(e.heard, what), e.bodies+string(body)
	var list []string
	quoted := func(s string) []byte { data, _ := json.Marshal(s); return data }
	for i, m := range e.models {
		state := "not-loaded"
		if i == 0 {
			state = "loaded"
		}
		if e.studio {
			list = append(list, fmt.Sprintf(`{"id":%s,"type":"llm","state":%q,"max_context_length":32768,"loaded_context_length":16384}`, quoted(m), state))
		} else {
			list = append(list, fmt.Sprintf(`{"name":%s}`, quoted(m)))
		}
	}
	switch all := strings.Join(list, ","); {
	case r.URL.Path == "/v1/chat/completions":
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(body)
		openaiAnswer(w, text, results)
	case e.studio && r.URL.Path == "/api/v0/models":
		fmt.Fprintf(w, `{"data":[%s]}`, all)
	case !e.studio && r.URL.Path == "/api/tags":
		fmt.Fprintf(w, `{"models":[%s]}`, all)
	case !e.studio && r.URL.Path == "/api/ps":
		fmt.Fprintf(w, `{"models":[{"name":%s,"context_length":16384}]}`, quoted(e.models[0]))
	case !e.studio && r.URL.Path == "/api/show":
		io.WriteString(w, `{"capabilities":["completion","tools"],"model_info":{"llama.context_length":131072}}`)
	default:
		http.NotFound(w, r)
	}
}

// take returns what was heard since the last time.
func (e *ear) take() (heard []string, bodies string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	heard, bodies = e.heard, e.bodies
	e.heard, e.bodies = nil, ""
	return heard, bodies
}

// onlyProbed checks that a server was looked for and told nothing.
func (e *ear) onlyProbed(t *testing.T, when string) {
	t.Helper()
	heard, bodies := e.take()
	for _, h := range heard {
		switch h {
		case "GET /api/tags", "GET /api/ps", "POST /api/show", "GET /api/v0/models", "GET /v1/models":
		default:
			t.Errorf("%s: the server got %q", when, h)
		}
	}
	for _, secret := range []string{"ollama-secret", "blue", "hello"} {
		if strings.Contains(bodies, secret) {
			t.Errorf("%s: the server got %q", when, bodies)
		}
	}
	if len(heard) == 0 {
		t.Errorf("%s: no server was looked for", when)
	}
}

// chatted checks that a server got conversations.
func (e *ear) chatted(t *testing.T, when, want string) (heard []string) {
	t.Helper()
	heard, bodies := e.take()
	if !strings.Contains(bodies, want) || !strings.Contains(strings.Join(heard, "\n"), "POST /v1/chat/completions") {
		t.Errorf("%s: the server got %q: %.2000s", when, heard, bodies)
	}
	return heard
}

// keyless is the environment of somebody without a key, except Ollama's.
func keyless(home string, more ...string) []string {
	return append([]string{"HOME=" + home, "GOCLAW_HOME=" + home, "TERM=xterm", "PATH=" + os.Getenv("PATH"), "OLLAMA_API_KEY=ollama-secret", "NO_COLOR=1", "GOCLAW_SESSION_CHECKPOINT_ENABLED=false"}, more...)
}

// atTerminal starts the program on a terminal.
func atTerminal(t *testing.T, home string, args ...string) (*tuitest.Person, *exec.Cmd) {
	t.Helper()
	return talks(t, home, keyless(home), args...)
}

// talks starts the program on a terminal, with that environment in that folder.
func talks(t *testing.T, dir string, env []string, args ...string) (*tuitest.Person, *exec.Cmd) {
	t.Helper()
	return talksAfter(t, "", dir, env, args...)
}

// talksAfter is talks with what was typed before the program began.
func talksAfter(t *testing.T, typed, dir string, env []string, args ...string) (*tuitest.Person, *exec.Cmd) {
	t.Helper()
	p := tuitest.New(t, 200, 40)
	p.Press(typed)
	cmd := exec.Command("goclaw", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.Env, cmd.Dir = env, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return p, cmd
}

// inPipe runs the program without a terminal.
func inPipe(t *testing.T, env []string, args ...string) (out, errOut string, code int) {
	t.Helper()
	cmd := exec.Command("goclaw", args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func ollamaAt() string { return strings.TrimPrefix(ports.ollama.url, "http://") }

// Without a terminal no server gets anything but the probe, until it is named.
func TestNoConsentInAPipe(t *testing.T) {
	ollama, studio, llama := &ear{models: []string{"llama3.2"}}, &ear{models: []string{"phi-4"}, studio: true}, &ear{}
	machine{ollama, studio, llama}.switchOn(t)
	home := t.TempDir()
	how := fmt.Sprintf("a model server answers at %s (Ollama, llama3.2), but nothing is sent to it unless you say so: --model ollama/llama3.2, ", ollamaAt())
	for _, args := range [][]string{
		{"ask", "the boat is blue"}, {"ask", "--json", "hello"}, {"compact", "main:cli:user"}, {"context", "main:cli:user"}, {"doctor"}, {},
	} {
		out, errOut, _ := inPipe(t, keyless(home), args...)
		ollama.onlyProbed(t, fmt.Sprint(args))
		studio.onlyProbed(t, fmt.Sprint(args))
		if said := out + errOut; len(args) > 0 && args[0] != "context" && !strings.Contains(said, how) {
			t.Errorf("%v says %q", args, said)
		}
	}
	if heard, _ := llama.take(); len(heard) > 0 {
		t.Errorf("port 8080 got %q", heard)
	}
	out, errOut, code := inPipe(t, keyless(home), "ask", "hello")
	if code != 0 || !strings.Contains(errOut, "the built-in offline model answers") || !strings.Contains(out, "Hello! Ask me") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	ollama.take()

	// The name is a yes, for this model.
	_, errOut, code = inPipe(t, keyless(home), "ask", "--model", "ollama/llama3.2", "hello")
	if code != 0 {
		t.Fatal(errOut)
	}
	ollama.chatted(t, "--model", "hello")
	_, errOut, _ = inPipe(t, keyless(home), "ask", "-s", "main:cli:new", "hello")
	heard := ollama.chatted(t, "after --model", "hello")
	if !strings.Contains(strings.Join(heard, "\n"), "POST /v1/chat/completions Authorization=Bearer ollama-secret") || strings.Contains(errOut, "say so") {
		t.Errorf("got %q; said %q", heard, errOut)
	}

	// Another server in its place has other models: it gets nothing.
	other := &ear{models: []string{"evil:latest"}}
	machine{ollama: other}.switchOn(t)
	_, errOut, _ = inPipe(t, keyless(home), "ask", "-s", "main:cli:third", "hello")
	other.onlyProbed(t, "another server")
	if !strings.Contains(errOut, "(Ollama, evil:latest), but nothing is sent to it") {
		t.Errorf("said %q", errOut)
	}

	// The configuration is a yes as well; 8080 is looked at if it says so.
	for _, env := range []string{"GOCLAW_MODEL=ollama/evil:latest", "GOCLAW_CONFIG=" + filepath.Join(home, "named.json")} {
		if err := os.WriteFile(filepath.Join(home, "named.json"), []byte(`{"providers": {"ollama": {"baseUrl": "`+ports.ollama.url+`/v1"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errOut, code = inPipe(t, keyless(t.TempDir(), env), "ask", "hello"); code != 0 {
			t.Errorf("%s: %s", env, errOut)
		}
		other.chatted(t, env, "hello")
	}
}

// A person at a terminal is asked once for each address and model, and the
// answer is remembered, yes or no, until it is forgotten.
func TestConsentAtATerminal(t *testing.T) {
	ollama := &ear{models: []string{"llama3.2"}}
	machine{ollama: ollama}.switchOn(t)
	home := t.TempDir()
	question := fmt.Sprintf("A model server answers at %s (Ollama, llama3.2). Send conversations to it?", ollamaAt())

	p, cmd := atTerminal(t, home)
	p.See(question)
	ollama.onlyProbed(t, "before the answer")
	p.Press("\r") // no
	p.See("is not used, because you said no: goclaw models forget ollama/llama3.2 undoes that")
	p.See("New session main:cli:user with offline")
	p.Press("the boat is blue\r")
	p.See("I am the built-in offline model")
	p.Press("/quit\r")
	exits(t, cmd)
	p, cmd = atTerminal(t, home, "ask", "hello")
	p.See("Hello! Ask me what was said")
	exits(t, cmd)
	if strings.Contains(p.All(), "[y/N]") {
		t.Errorf("it asks again: %q", p.All())
	}
	ollama.onlyProbed(t, "after a no")
	out, _, _ := inPipe(t, keyless(home), "config")
	if !strings.Contains(out, "remembered.server.ollama/llama3.2") || !strings.Contains(out, fmt.Sprintf("is not sent conversations at %s (refused 20", ollamaAt())) {
		t.Errorf("config says %s", out)
	}

	if out, errOut, code := inPipe(t, keyless(home), "models", "forget", "ollama/llama3.2"); code != 0 {
		t.Fatal(out, errOut)
	}
	p, cmd = atTerminal(t, home, "ask", "hello")
	p.See(question)
	p.Press("\x03") // no answer: nothing is remembered
	exits(t, cmd)
	ollama.onlyProbed(t, "without an answer")
	p, cmd = atTerminal(t, home, "ask", "hello")
	p.See(question)
	p.Press("y\r")
	p.See("echo: ")
	if code := exits(t, cmd); code != 0 {
		t.Errorf("exit code %d: %q", code, p.All())
	}
	ollama.chatted(t, "after a yes", "hello")
	p, cmd = atTerminal(t, home)
	p.Rests()
	p.Press("and again\r")
	p.See("echo: and again")
	p.Press("/quit\r")
	exits(t, cmd)
	if strings.Contains(p.Text(), "Send conversations to it?") {
		t.Errorf("it asks again: %q", p.All())
	}
	ollama.chatted(t, "the next time", "and again")
	if _, errOut, code := inPipe(t, keyless(home), "ask", "in a pipe"); code != 0 || strings.Contains(errOut, "say so") {
		t.Errorf("a yes does not count in a pipe: %s", errOut)
	}
	ollama.chatted(t, "in a pipe", "in a pipe")
	out, _, _ = inPipe(t, keyless(home), "doctor")
	if want := fmt.Sprintf("remembered: ollama/llama3.2 may be sent conversations at %s (allowed 20", ollamaAt()); !strings.Contains(out, want) {
		t.Errorf("doctor says %s", out)
	}
	if st, err := os.Stat(filepath.Join(home, "consent.json")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}

	// Another model at the same address is another question, whatever it is
	// called.
	evil := &ear{models: []string{"evil\x1b]0;x\a:latest"}}
	machine{ollama: evil}.switchOn(t)
	p, cmd = atTerminal(t, home)
	p.Await("the question", func(s string, _, _ int) bool { return strings.Contains(s, "Send conversations to it?") })
	if strings.Contains(p.All(), "\x1b]0;") {
		t.Errorf("the name of a model reaches the terminal: %q", p.All())
	}
	p.Press("n\r")
	p.See("\n>")
	p.Press("/quit\r")
	exits(t, cmd)
	evil.onlyProbed(t, "another model")
}

// A session of another vendor needs a yes of its own before it is sent to a
// server here; so does an imported one. Each is asked about once.
func TestConsentToMoveASession(t *testing.T) {
	ollama := &ear{models: []string{"llama3.2"}}
	machine{ollama: ollama}.switchOn(t)
	home := t.TempDir()
	dir := filepath.Join(home, ".pi", "agent", "sessions", "--w--")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		log := `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/` + id + `"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"the boat is blue","timestamp":1}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"noted"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-5","usage":{"input":10,"output":3,"cacheRead":0,"cacheWrite":0,"totalTokens":13},"stopReason":"stop","timestamp":2}}
`
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, errOut, code := inPipe(t, keyless(home), "import"); code != 0 {
		t.Fatal(out, errOut)
	}
	// The server is allowed; that is not enough.
	if _, errOut, code := inPipe(t, keyless(home), "ask", "--model", "ollama/llama3.2", "-s", "main:cli:other", "hello"); code != 0 {
		t.Fatal(errOut)
	}
	ollama.take()
	_, errOut, code := inPipe(t, keyless(home), "ask", "-s", "pi:one:one", "hello")
	if code != 1 || !strings.Contains(errOut, "pi:one:one was answered by anthropic/claude-opus-4-5 so far, and is not sent to another vendor unless you say so: --model ollama/llama3.2 sends it there") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	ollama.onlyProbed(t, "in a pipe")

	question := fmt.Sprintf("This session was answered by anthropic/claude-opus-4-5 so far. Send it to ollama/llama3.2 at %s?", ollamaAt())
	p, cmd := atTerminal(t, home, "-s", "pi:one:one")
	p.See(question)
	ollama.onlyProbed(t, "before the answer")
	p.Press("n\r")
	p.See("this session is not sent to ollama/llama3.2, because you said no")
	p.See("\n>")
	p.Press("hello\r")
	p.See("Hello! Ask me what was said")
	p.Press("/quit\r")
	exits(t, cmd)
	ollama.take()
	p, cmd = atTerminal(t, home, "ask", "-s", "goclaw:pi:one:one", "hello")
	p.See("Hello! Ask me what was said")
	exits(t, cmd)
	if strings.Contains(p.All(), "[y/N]") {
		t.Errorf("it asks again: %q", p.All())
	}
	ollama.onlyProbed(t, "after a no")

	p, cmd = atTerminal(t, home, "ask", "-s", "pi:two:two", "hello")
	p.See(question)
	p.Press("yes\r")
	p.See("echo: hello")
	exits(t, cmd)
	if n := strings.Count(p.All(), "[y/N]"); n != 1 {
		t.Errorf("asked %d times: %q", n, p.All())
	}
	ollama.chatted(t, "after a yes", "the boat is blue")
	if _, errOut, code := inPipe(t, keyless(home), "ask", "-s", "goclaw:pi:two:two", "once more"); code != 0 {
		t.Error(errOut)
	}
	ollama.chatted(t, "the next time", "once more")
}

// TestNoIsNotNoKey: who has a key and says no to it is not told that there is
// none.
func TestNoIsNotNoKey(t *testing.T) {
	machine{}.switchOn(t)
	home := t.TempDir()
	put(t, home, piFolder+"one.jsonl", `{"type":"session","version":3,"id":"one","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"the boat is blue","timestamp":1}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"noted"}],"api":"openai-completions","provider":"openai","model":"gpt-5","stopReason":"stop","timestamp":2}}
`)
	env := keyless(home, "ANTHROPIC_API_KEY=sk-test")
	if out, errOut, code := inPipe(t, env, "import"); code != 0 {
		t.Fatal(out, errOut)
	}
	p, cmd := talks(t, home, env, "-s", "pi:w:one")
	p.See("Send it to anthropic/")
	p.Press("n")
	p.See("because you said no")
	p.See("Restored")
	p.Press("/quit\r")
	exits(t, cmd)
	if strings.Contains(p.All(), "No key yet") {
		t.Errorf("it says\n%s", p.All())
	}
}
