package openai

import (
	"testing"

	"pgregory.net/rapid"

	"goclaw/provider/internal/wiretest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/window"
)

// anyLog draws a log, sane or insane, and holds the bytes that would be sent
// for it against what the API refuses.
func anyLog(t *rapid.T) {
	bodies := append(sessiontest.AnyBodies(t, "openai", "gpt-5"), sessiontest.User("and now?"))
	s, err := session.Replay("s", sessiontest.Yield(sessiontest.Log(bodies...)...))
	if err != nil {
		t.Fatal(err)
	}
	req := window.Build(s, window.Prompt{Provider: "openai", Model: "gpt-5", System: "Be brief.", Tail: "now"}, window.Loose)
	prompt := window.Prompt{Provider: "openai", Model: "gpt-5", System: "Be brief.", Tail: "now", ThinksAnywhere: true}
	body, err := NewResponses(Config{}).Body(window.Build(s, prompt, window.Loose))
	if err != nil {
		t.Fatal(err)
	}
	if err := wiretest.Responses(body); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, base := range []string{DefaultBaseURL, "http://localhost:8080", "https://openrouter.ai/api/v1"} {
		p := New(Config{BaseURL: base, APIKey: "k"})
		body, err := p.build(req, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := wiretest.OpenAI(body); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	}
}

func TestAnyLogIsAccepted(t *testing.T) { rapid.Check(t, anyLog) }

func FuzzAnyLog(f *testing.F) {
	sessiontest.Seeds(f)
	f.Fuzz(rapid.MakeFuzz(anyLog))
}
