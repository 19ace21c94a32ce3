//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// busy answers as Anthropic's API does, and refuses the first n requests because
// of its rate limit.
func busy(t *testing.T, n int32, after string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked.Add(1) <= n {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit."}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(body)
		anthropicAnswer(w, text, results)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// claude is the environment of somebody with a key for Anthropic's API at url.
func claude(home, url string) []string {
	return keyless(home, "GOCLAW_NO_LOCAL=1", "ANTHROPIC_API_KEY=sk-test-0123456789", "ANTHROPIC_BASE_URL="+url)
}

// Whoever waits for a model that is busy is told so, each time, in a pipe and as
// JSON.
func TestRetriesAreTold(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		url, asked := busy(t, 2, "0.2")
		args := []string{"ask", "hello"}
		if asJSON {
			args = append(args, "--json")
		}
		out, errOut, code := inPipe(t, claude(t.TempDir(), url), args...)
		if code != 0 || asked.Load() != 3 || !strings.Contains(out, "hello") {
			t.Fatalf("exit code %d after %d requests: %s%s", code, asked.Load(), out, errOut)
		}
		if !asJSON {
			if errOut != "429, again in 0.2 s (2 of 5)\n429, again in 0.2 s (3 of 5)\n" {
				t.Errorf("it says %q", errOut)
			}
			continue
		}
		var told []float64
		for line := range strings.Lines(out) {
			var ev struct {
				Type, Text, Retry, Problem string
				Seconds, Try, Of           float64
			}
			if err := json.Unmarshal([]byte(line), &ev); err != nil {
				t.Fatal(err)
			}
			if ev.Retry != "" {
				told = append(told, ev.Try)
				if ev.Type != "notice" || ev.Retry != "429" || ev.Seconds != 0.2 || ev.Of != 5 || !strings.Contains(ev.Problem, "rate limit") || !strings.HasPrefix(ev.Text, "429, again in 0.2 s (") {
					t.Errorf("%s", line)
				}
			}
		}
		if len(told) != 2 || told[0] != 2 || told[1] != 3 {
			t.Errorf("tries %v were told", told)
		}
	}
}

// In a chat Ctrl-C ends the wait, and the message is kept.
func TestStoppedWhileWaitingToRetry(t *testing.T) {
	url, asked := busy(t, 1, "55")
	home := t.TempDir()
	p, cmd := talks(t, home, claude(home, url))
	p.See("\n>")
	p.Press("hello\r")
	p.See("429, again in 55 s (2 of 5)")
	p.Press("\x03")
	p.See("[stopped; everything so far is saved]")
	p.Press("/continue\r")
	p.See("echo: hello")
	p.Press("/quit\r")
	exits(t, cmd)
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}

	p, cmd = talks(t, home, claude(home, "http://127.0.0.1:1"), "ask", "hello")
	p.Await("the reason", func(s string, _, _ int) bool {
		return regexp.MustCompile(`connection refused, again in 0\.\d s \(2 of 5\)`).MatchString(s)
	})
	p.Press("\x03")
	if code := exits(t, cmd); code != 130 {
		t.Errorf("exit code %d", code)
	}
}
