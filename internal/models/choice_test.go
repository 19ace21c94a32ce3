package models

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/config"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// with returns models that are chosen with a configuration alone.
func with(c *config.Loaded) *Models {
	return New(Options{Config: func() (*config.Loaded, error) { return c, nil }, Getenv: func(string) string { return "" }})
}

// What is in consent.json counts as far as it can be read; the rest is a no.
func TestConsentFile(t *testing.T) {
	home := t.TempDir()
	for content, want := range map[string]int{
		"": 0, "{": 0, "null": 0, `{"provider":"ollama"}`: 0, `[1, "x", null, {"allowed":true}]`: 0,
		`[{"provider":"ollama","address":"a","model":"m","allowed":true}, {"provider": 1}]`: 1,
	} {
		if err := os.WriteFile(consentFile(home), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := consents(home); len(got) != want {
			t.Errorf("%s: %+v", content, got)
		}
	}
	if err := os.WriteFile(consentFile(home), []byte(`[{"provider":"ollama","address":"a","model":"m","allowed":true}, 7]`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &with(&config.Loaded{Home: home}).permit
	ask := consent{Provider: "lmstudio", Address: "127.0.0.1:1234", Model: "phi"}
	p.set(ask, true)
	p.set(ask, false)
	if allowed, ok := p.of(ask); allowed || !ok {
		t.Errorf("allowed %v, answered %v", allowed, ok)
	}
	data, err := os.ReadFile(consentFile(home))
	var all []map[string]any
	if err != nil || json.Unmarshal(data, &all) != nil || len(all) != 2 {
		t.Fatalf("%s, %v", data, err)
	}
	delete(all[1], "at")
	if d := cmp.Diff(map[string]any{"provider": "lmstudio", "address": "127.0.0.1:1234", "model": "phi", "allowed": false}, all[1]); d != "" {
		t.Error(d)
	}
}

// Who gets a session without a question: the vendor that answered last, the
// built-in model aside. Answers of which nobody knows who gave them do not go to
// a server here.
func TestMoveNeedsConsent(t *testing.T) {
	by := func(provider string) session.Body {
		return sessiontest.By(provider, "m", sessiontest.Answer("a"))
	}
	unknown := func() session.Body { return sessiontest.Answer("a") }
	for _, c := range []struct {
		name string
		log  []session.Body
		to   string
		ok   bool
	}{
		{"new", []session.Body{sessiontest.User("q")}, "ollama", true},
		{"the same", []session.Body{sessiontest.User("q"), by("anthropic")}, "anthropic", true},
		{"the same, by another name", []session.Body{sessiontest.User("q"), by("openai-codex")}, "openai", true},
		{"another vendor", []session.Body{sessiontest.User("q"), by("anthropic")}, "openai", false},
		{"a server here", []session.Body{sessiontest.User("q"), by("anthropic")}, "ollama", false},
		{"from here to a vendor", []session.Body{sessiontest.User("q"), by("ollama")}, "anthropic", false},
		{"from here to here", []session.Body{sessiontest.User("q"), by("lmstudio")}, "ollama", true},
		{"only the built-in model", []session.Body{sessiontest.User("q"), by("offline")}, "ollama", true},
		{"the built-in model since", []session.Body{sessiontest.User("q"), by("anthropic"), sessiontest.User("q"), by("offline")}, "ollama", false},
		{"to the built-in model", []session.Body{sessiontest.User("q"), by("anthropic")}, "offline", true},
		{"nobody knows who, to a server here", []session.Body{sessiontest.User("q"), unknown()}, "ollama", false},
		{"nobody knows who, to a vendor", []session.Body{sessiontest.User("q"), unknown()}, "anthropic", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms := with(&config.Loaded{Config: config.Default(), Home: t.TempDir()})
			m, _, err := ms.move(t.Context(), sessiontest.Replay(t, c.log...), &Model{ProviderName: c.to, ModelName: "m"})
			var refused *moveError
			if ok := err == nil; ok != c.ok || !ok && !errors.As(err, &refused) || ok && m.ProviderName != c.to {
				t.Errorf("%v, %v", m, err)
			}
		})
	}
}

// TestWhichAPI: the catalogue chooses for OpenAI itself, and the configuration
// goes before it.
func TestWhichAPI(t *testing.T) {
	for _, c := range []struct{ conf, model, want string }{
		{`{}`, "openai/gpt-5", "openai-responses"},
		{`{}`, "openai/gpt-5.3-codex", "openai-responses"},
		{`{}`, "openai/gpt-6.1-sol", "openai-responses"},
		{`{}`, "openai/o3-pro", "openai-responses"},
		{`{}`, "openai/codex-mini-latest", "openai-responses"},
		{`{}`, "openai/gpt-7", "openai-responses"},
		{`{}`, "openai/gpt-4o", "openai-completions"},
		{`{}`, "openai/gpt-5-chat-latest", "openai-completions"},
		{`{}`, "openai/gpt-oss-20b", "openai-completions"},
		{`{}`, "openrouter/openai/gpt-5", "openai-completions"},
		{`{}`, "ollama/gpt-oss:20b", "openai-completions"},
		{`{}`, "anthropic/claude-opus-4-5", "anthropic-messages"},
		{`{"providers": {"openai": {"baseUrl": "http://10.0.0.5:8000/v1"}}}`, "openai/gpt-5", "openai-completions"},
		{`{"providers": {"openai": {"baseUrl": "https://x.openai.azure.com/openai/v1"}}}`, "openai/gpt-5", "openai-responses"},
		{`{"providers": {"openai": {"api": "chat"}}}`, "openai/gpt-5", "openai-completions"},
		{`{"providers": {"openai": {"api": "responses"}}}`, "openai/gpt-4o", "openai-responses"},
		{`{"providers": {"openai": {"api": "responses"}}, "models": {"openai/gpt-4o": {"api": "chat"}}}`, "openai/gpt-4o", "openai-completions"},
		{`{"models": {"openrouter/x-ai/grok-4.6": {"api": "responses"}}}`, "openrouter/x-ai/grok-4.6", "openai-responses"},
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(c.conf), 0o600); err != nil {
			t.Fatal(err)
		}
		conf, err := config.Load(func(name string) string { return map[string]string{"GOCLAW_HOME": home, "HOME": home}[name] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewModel(conf, c.model, func(string) string { return "k" })
		if key, ok := err.(*keyError); ok {
			m, err = key.model, nil
		}
		if err != nil || m.API != c.want || m.Prompt(conf).ThinksAnywhere != (c.want == "openai-responses") {
			t.Errorf("%s with %s: %+v, %v; want %s", c.model, c.conf, m, err, c.want)
		}
	}
}
