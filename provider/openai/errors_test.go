package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"goclaw/llm"
	"goclaw/provider/internal/wiretest"
)

type recorded struct {
	Name, Source   string
	Status         int
	Body           json.RawMessage
	Stream, HTML   bool
	JSON           bool
	Kind, Says     string
	Tokens, Window int
	Again          bool
}

var kinds = map[string]error{
	"overflow": llm.ErrOverflow, "auth": llm.ErrAuth, "model": llm.ErrModel,
	"network": llm.ErrNetwork, "busy": llm.ErrBusy, "refused": llm.ErrRefused,
}

func (r recorded) answer() http.HandlerFunc {
	body := string(r.Body)
	json.Unmarshal(r.Body, &body) // a string is the body itself
	switch {
	case r.Stream:
		return wiretest.SSE(body)
	case r.HTML:
		return wiretest.Status(r.Status, body, "Content-Type: text/html; charset=utf-8")
	}
	return wiretest.Status(r.Status, body)
}

func TestRecordedErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			answers := []http.HandlerFunc{c.answer()}
			if c.Again {
				for range 4 {
					answers = append(answers, c.answer())
				}
			}
			srv := wiretest.Serve(t, answers...)
			p, waits := provider(srv.URL)
			req := llm.Request{Model: "some-model", Messages: []llm.Message{llm.UserText("hi")}}
			got := wiretest.Collect(t, p.Stream(t.Context(), req))
			if got.Deltas != 0 {
				t.Errorf("%d deltas came before the error", got.Deltas)
			}
			for kind, sentinel := range kinds {
				if is := errors.Is(got.Err, sentinel); is != (kind == c.Kind) {
					t.Errorf("errors.Is(%v, %s) = %v", got.Err, kind, is)
				}
			}
			if !strings.Contains(got.Err.Error(), c.Says) || strings.ContainsAny(got.Err.Error(), "\r\n") {
				t.Errorf("error is %q, want one line with %q", got.Err, c.Says)
			}
			if n := len(srv.Requests()); n != len(answers) || len(*waits) != len(answers)-1 {
				t.Errorf("%d requests with %d waits, want %d requests", n, len(*waits), len(answers))
			}
			var over *llm.OverflowError
			if errors.As(got.Err, &over) && (over.Tokens != c.Tokens || over.Window != c.Window) {
				t.Errorf("overflow of %d in %d, want %d in %d", over.Tokens, over.Window, c.Tokens, c.Window)
			}
		})
	}
}
