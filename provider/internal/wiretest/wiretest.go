// Package wiretest holds a server that speaks what a test writes down, and the
// small things that the tests of the providers share.
package wiretest

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/provider/retry"
)

// Server answers each request with the next of its answers and keeps what it
// was asked. A request too many fails the test, and so does one that the API
// would refuse.
type Server struct {
	*httptest.Server
	mu   sync.Mutex
	reqs []Request
}

// Request is what came over the wire.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// JSON decodes the body.
func (r Request) JSON(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(r.Body, &m); err != nil {
		t.Fatalf("request body is not JSON: %v\n%s", err, r.Body)
	}
	return m
}

// Serve starts a server that lives as long as the test.
func Serve(t *testing.T, answers ...http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left before it had said everything
		}
		s.mu.Lock()
		n := len(s.reqs)
		s.reqs = append(s.reqs, Request{r.URL.Path, r.Header.Clone(), body})
		s.mu.Unlock()
		judge := OpenAI
		switch {
		case strings.HasSuffix(r.URL.Path, "/messages"):
			judge = Anthropic
		case strings.HasSuffix(r.URL.Path, "/responses"):
			judge = Responses
		}
		if err := judge(body); r.Method == http.MethodPost && err != nil {
			t.Errorf("the API would refuse request %d: %v", n+1, err)
		}
		if n >= len(answers) {
			t.Errorf("request %d came, want only %d", n+1, len(answers))
			http.Error(w, "no more answers", http.StatusTeapot)
			return
		}
		answers[n](w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.reqs...)
}

// Status answers with an error body and headers given as "Name: value".
func Status(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, h := range headers {
			k, v, _ := strings.Cut(h, ": ")
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// SSE answers with an event stream, written in pieces as they are given.
func SSE(pieces ...string) http.HandlerFunc {
	record(strings.Join(pieces, ""))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, p := range pieces {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

// Cut answers with the beginning of an event stream and then drops the
// connection, as a crashed server or a broken line does.
func Cut(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		SSE(pieces...)(w, r)
		panic(http.ErrAbortHandler)
	}
}

// Hang answers with the beginning of an event stream and then with nothing,
// until the client leaves.
func Hang(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		SSE(pieces...)(w, r)
		<-r.Context().Done()
	}
}

// Policy retries like the default one, on a clock that does not wait: it notes
// the waits in the list returned. The jitter is zero.
func Policy() (retry.Policy, *[]time.Duration) {
	var waits []time.Duration
	return retry.Policy{
		Sleep: func(ctx context.Context, d time.Duration) error {
			waits = append(waits, d)
			return ctx.Err()
		},
		Now:  func() time.Time { return time.Date(2026, 11, 8, 12, 0, 0, 0, time.UTC) },
		Rand: func() float64 { return 0 },
	}, &waits
}

// Got is what a stream came to.
type Got struct {
	Text, Thinking string
	Calls          []llm.ToolCall
	End            *llm.Answer
	Err            error
	Deltas         int
	Begun          llm.Usage // reported last before the end
	Retries        []llm.Retry
}

// Collect reads a stream to its end and checks the promises that every
// provider makes: one field in a delta, nothing behind End or an error, and an
// End that holds what came before it.
func Collect(t *testing.T, stream iter.Seq2[llm.Delta, error]) Got {
	t.Helper()
	var g Got
	for d, err := range stream {
		if g.End != nil || g.Err != nil {
			t.Errorf("a delta came behind the end: %+v, %v", d, err)
		}
		if err != nil {
			g.Err = err
			continue
		}
		if d.Retry != nil && d == (llm.Delta{Retry: d.Retry}) {
			g.Retries = append(g.Retries, *d.Retry)
			continue
		}
		if d.Begun != nil && d == (llm.Delta{Begun: d.Begun}) {
			g.Begun = *d.Begun
			continue
		}
		g.Deltas++
		set := 0
		for _, is := range []bool{d.Text != "", d.Thinking != "", d.Call != nil, d.End != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			t.Errorf("delta %+v has %d fields set, want 1", d, set)
		}
		g.Text += d.Text
		g.Thinking += d.Thinking
		if d.Call != nil {
			g.Calls = append(g.Calls, *d.Call)
		}
		g.End = d.End
	}
	if g.End == nil && g.Err == nil {
		t.Error("the stream ended with neither End nor error")
	}
	if g.End != nil {
		var text, thinking string
		for _, b := range g.End.Message.Blocks {
			switch b := b.(type) {
			case llm.Text:
				text += b.Text
			case llm.Thinking:
				thinking += b.Text
			}
		}
		if text != g.Text || thinking != g.Thinking || len(g.End.Message.Calls()) != len(g.Calls) {
			t.Errorf("End holds %+v, want what the deltas held", g.End.Message)
		}
	}
	return g
}

// Refused returns a URL at which nobody listens.
func Refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
