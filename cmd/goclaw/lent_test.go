//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// lentVendor is a server with Anthropic's API that notes with which key it was asked.
type lentVendor struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string
}

func newLentVendor(t *testing.T) *lentVendor {
	v := &lentVendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.keys = append(v.keys, r.Header.Get("X-Api-Key"))
		v.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		anthropicAnswer(w, text, results)
	}))
	t.Cleanup(v.Close)
	return v
}

// asked returns the keys that the vendor was asked with since the last time.
func (v *lentVendor) asked() (keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys, v.keys = v.keys, nil
	return keys
}

const lentKey = "sk-lent-5Fq9ZxW2LkP0aB7c"

// withOpenClaw makes a home with an OpenClaw in it, as its version 2026.2.1 leaves
// it: an agent with a session, a model of a vendor at base, and a key.
func withOpenClaw(t *testing.T, home, base string) {
	t.Helper()
	const id = "0a1b2c3d-0000-4000-8000-000000000001"
	for name, text := range map[string]string{
		"openclaw.json": fmt.Sprintf(`{
			models: {mode: 'merge', providers: {house: {baseUrl: %q, api: 'anthropic-messages', models: [{id: 'house-1', name: 'House', contextWindow: 200000, maxTokens: 8192}]}}},
			agents: {defaults: {model: {primary: 'house/house-1'}}, list: [{id: 'main', default: true}]},
		}`, base),
		"agents/main/agent/auth-profiles.json": fmt.Sprintf(`{"version":1,"profiles":{"house:default":{"type":"api_key","provider":"house","key":%q}}}`, lentKey),
		"agents/main/sessions/sessions.json":   fmt.Sprintf(`{"agent:main:main":{"sessionId":%q,"updatedAt":1794700800000}}`, id),
		"agents/main/sessions/" + id + ".jsonl": fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"aaaaaaa1","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"what is first?","timestamp":1}}
{"type":"message","id":"aaaaaaa2","parentId":"aaaaaaa1","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"the mast"}],"api":"anthropic-messages","provider":"house","model":"house-1","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2},"stopReason":"stop","timestamp":2}}
`, id),
	} {
		file := filepath.Join(home, ".openclaw", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeysOfOpenClaw: a session of an agent of OpenClaw is asked with that agent's
// model and key after the user has agreed, once, at a terminal; a no is remembered
// and can be taken back; and the key is written nowhere.
func TestKeysOfOpenClaw(t *testing.T) {
	v, home := newLentVendor(t), t.TempDir()
	withOpenClaw(t, home, v.URL)
	at := strings.TrimPrefix(v.URL, "http://")
	question := "OpenClaw has a key for house in ~/.openclaw/agents/main/agent/auth-profiles.json. Use it to ask house/house-1 at " + at + "?"
	said := ""
	pipe := func(when, want string, keys int, args ...string) {
		t.Helper()
		out, errOut, code := inPipe(t, keyless(home), args...)
		said += out + errOut
		if got := v.asked(); len(got) != keys || code != 0 || !strings.Contains(out+errOut, want) {
			t.Errorf("%s: %v asked with %q, ends with %d, says %s", when, args, got, code, out+errOut)
		}
	}
	person := func(answer, want string) {
		t.Helper()
		p, cmd := atTerminal(t, home, "-s", "agent:main:main")
		if answer != "" {
			p.See(question)
			p.Press(answer)
		}
		p.See("Restored: ")
		p.Press("the second word\r")
		p.See(want)
		if answer == "y" {
			p.Press("/model\r")
			p.Await("the model among those that can be used", func(s string, _, _ int) bool {
				return regexp.MustCompile(`(?m)^.* 1 +house/house-1 +200k`).MatchString(s)
			})
			p.Press("\x1b")
			p.Rests()
		}
		p.Press("/quit\r")
		if code := exits(t, cmd); code != 0 {
			t.Errorf("exit code %d: %q", code, p.All())
		}
		said += p.All()
	}
	ask := []string{"ask", "-s", "agent:main:main", "the first word"}

	pipe("without a terminal", "It is used only if you agree: start goclaw in a terminal to be asked", 0, ask...)
	person("n", "Ollama, and start goclaw again.")
	if got := v.asked(); len(got) > 0 {
		t.Errorf("after a no, the vendor was asked with %q", got)
	}
	pipe("after a no", "because you said no: goclaw models forget openclaw:house undoes that", 0, ask...)
	pipe("the no", "openclaw:house: is not used at "+at+" (refused", 0, "models")
	person("", "Ollama, and start goclaw again.") // is not asked again
	pipe("taking it back", "forgotten: openclaw:house", 0, "models", "forget", "openclaw:house")
	person("y", "echo: the second word")
	if got := v.asked(); len(got) != 1 || got[0] != lentKey {
		t.Errorf("after a yes, the vendor was asked with %q", got)
	}
	pipe("after a yes", "echo: the first word", 1, ask...)
	pipe("the yes", "openclaw:house: is used at "+at+" (allowed", 0, "models")
	pipe("the window", "/200k", 0, "context", "goclaw:main:main")

	// Only the sessions of its agents have a part in it.
	pipe("another session", "no API key", 0, "ask", "the first word")
	// A new session of the agent has the agent's model.
	pipe("a new session", "echo: the first word", 1, "ask", "-s", "agent:main:other", "the first word")
	// What goclaw's own configuration says goes first.
	pipe("a model of the configuration", "offline", 0, "--model", "offline", "ask", "--json", "-s", "agent:main:main", "the first word")

	// Another address is another question.
	other := newLentVendor(t)
	withOpenClaw(t, home, other.URL)
	pipe("another address", "It is used only if you agree", 0, ask...)
	if got := other.asked(); len(got) > 0 {
		t.Errorf("the other vendor was asked with %q", got)
	}

	// A login is no key, and that is said.
	login := `{"version":1,"profiles":{"house:me":{"type":"oauth","provider":"house","access":"` + lentKey + `","refresh":"r","expires":9e15}}}`
	if err := os.WriteFile(filepath.Join(home, ".openclaw/agents/main/agent/auth-profiles.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe("a login", "what OpenClaw has for house is a login of its own, not a key", 0, ask...)

	if strings.Contains(said, lentKey) {
		t.Error("the key was shown")
	}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".openclaw":
			return fs.SkipDir
		}
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), lentKey) {
			t.Errorf("%s has the key", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
