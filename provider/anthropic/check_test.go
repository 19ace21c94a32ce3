package anthropic

import (
	"errors"
	"testing"

	"goclaw/llm"
	"goclaw/provider/internal/wiretest"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   error
	}{
		{"known", 200, `{"type":"model","id":"claude-sonnet-4-5-20250929","display_name":"Claude Sonnet 4.5","created_at":"2025-09-29T00:00:00Z"}`, nil},
		{"not known", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-sonnet-4-5"}}`, llm.ErrModel},
		{"a proxy without models", 404, `404 page not found`, llm.ErrUnlisted},
		{"a home page", 200, `<html>`, llm.ErrUnlisted},
		{"a wrong key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, llm.ErrAuth},
		{"busy", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := wiretest.Serve(t, wiretest.Status(c.status, c.body))
			p, waits := provider(srv.URL)
			if err := p.Check(t.Context(), "claude-sonnet-4-5"); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			reqs := srv.Requests()
			if len(reqs) != 1 || len(*waits) != 0 || reqs[0].Path != "/v1/models/claude-sonnet-4-5" || reqs[0].Header.Get("X-Api-Key") != "sk-test" {
				t.Errorf("asked %+v, waited %v", reqs, *waits)
			}
		})
	}
	p, _ := provider("http://127.0.0.1:1")
	if err := p.Check(t.Context(), "claude-sonnet-4-5"); !errors.Is(err, llm.ErrNetwork) {
		t.Errorf("nobody there: %v", err)
	}
	if err := New(Config{}).Check(t.Context(), "claude-sonnet-4-5"); !errors.Is(err, llm.ErrAuth) {
		t.Errorf("without a key: %v", err)
	}
}
