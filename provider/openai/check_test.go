package openai

import (
	"errors"
	"testing"

	"goclaw/llm"
	"goclaw/provider/internal/wiretest"
)

func TestCheck(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"gpt-5"},{"id":"llama3.2:latest"},{"id":"qwen3:8b"}]}`
	for _, c := range []struct {
		name, model string
		status      int
		body        string
		want        error
	}{
		{"listed", "gpt-5", 200, list, nil},
		{"Ollama's tag", "llama3.2", 200, list, nil},
		{"another size", "qwen3", 200, list, llm.ErrModel},
		{"not listed", "gpt-4", 200, list, llm.ErrModel},
		{"an empty list", "gpt-5", 200, `{"data":[]}`, llm.ErrUnlisted},
		{"something else", "gpt-5", 200, `<html>`, llm.ErrUnlisted},
		{"no such path", "gpt-5", 404, `not found`, llm.ErrUnlisted},
		{"a wrong key", "gpt-5", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, llm.ErrAuth},
		{"busy", "gpt-5", 503, `{"error":{"message":"overloaded"}}`, llm.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := wiretest.Serve(t, wiretest.Status(c.status, c.body))
			p, waits := provider(srv.URL)
			if err := p.Check(t.Context(), c.model); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			reqs := srv.Requests()
			if len(reqs) != 1 || len(*waits) != 0 || reqs[0].Path != "/v1/models" || reqs[0].Header.Get("Authorization") != "Bearer sk-test" {
				t.Errorf("asked %+v, waited %v", reqs, *waits)
			}
		})
	}
	p, _ := provider("http://127.0.0.1:1")
	if err := p.Check(t.Context(), "gpt-5"); !errors.Is(err, llm.ErrNetwork) {
		t.Errorf("nobody there: %v", err)
	}
	p = New(Config{})
	if err := p.Check(t.Context(), "gpt-5"); !errors.Is(err, llm.ErrAuth) {
		t.Errorf("without a key: %v", err)
	}
}
