package wiretest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"goclaw/llm"
)

// recorded is an answer that a server gave once, and what a provider has to
// make of it.
type recorded struct {
	Name, Source   string
	Status         int
	Body           json.RawMessage // a string is the body itself
	Stream, HTML   bool
	Kind, Says     string
	Tokens, Window int
	Answer, Most   int
	Again          bool
}

var kinds = map[string]error{
	"overflow": llm.ErrOverflow, "auth": llm.ErrAuth, "model": llm.ErrModel,
	"network": llm.ErrNetwork, "busy": llm.ErrBusy, "refused": llm.ErrRefused,
}

func (r recorded) answer() http.HandlerFunc {
	body := string(r.Body)
	json.Unmarshal(r.Body, &body)
	switch {
	case r.Stream:
		return SSE(body)
	case r.HTML:
		return Status(r.Status, body, "Content-Type: text/html; charset=utf-8")
	}
	return Status(r.Status, body)
}

// Recorded gives each answer in testdata/recorded.json to a provider that asks
// url for model, with the list of its waits, and checks the error it makes of
// it: its kind and no other, its words on one line, its numbers, and how often
// it asked.
func Recorded(t *testing.T, model string, provider func(url string) (llm.Provider, *[]time.Duration)) {
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("testdata/recorded.json holds no answer")
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			answers := []http.HandlerFunc{c.answer()}
			if c.Again {
				for range 4 {
					answers = append(answers, c.answer())
				}
			}
			srv := Serve(t, answers...)
			p, waits := provider(srv.URL)
			req := llm.Request{Model: model, Messages: []llm.Message{llm.UserText("hi")}}
			got := Collect(t, p.Stream(t.Context(), req))
			if got.Err == nil {
				t.Fatalf("no error came, want one with %q", c.Says)
			}
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
			for i, r := range got.Retries {
				if r.Why == "" || r.Err == nil || r.Wait != (*waits)[i] || r.Try != i+2 || r.Of != 5 {
					t.Errorf("retry %d was told as %+v", i, r)
				}
			}
			if len(got.Retries) != len(*waits) {
				t.Errorf("%d retries were told, want %d", len(got.Retries), len(*waits))
			}
			var over *llm.OverflowError
			want := llm.OverflowError{Tokens: c.Tokens, Window: c.Window, Answer: c.Answer, Most: c.Most}
			if errors.As(got.Err, &over) {
				if want.Err = over.Err; *over != want {
					t.Errorf("overflow of %+v, want %+v", *over, want)
				}
			}
		})
	}
}

// A Break is an answer that says "Hel" and fails, and how that is told.
type Break struct {
	Name   string
	Answer http.HandlerFunc
	Kind   error
	Says   string
}

// BrokenInTheMiddle checks that after a delta nothing is tried again, that no
// End comes, and that nothing is an overflow any more.
func BrokenInTheMiddle(t *testing.T, provider func(url string) (llm.Provider, *[]time.Duration), breaks ...Break) {
	for _, c := range breaks {
		t.Run(c.Name, func(t *testing.T) {
			srv := Serve(t, c.Answer)
			p, _ := provider(srv.URL)
			req := llm.Request{Model: "some-model", Messages: []llm.Message{llm.UserText("hi")}}
			got := Collect(t, p.Stream(t.Context(), req))
			if got.Text != "Hel" || got.End != nil || !errors.Is(got.Err, c.Kind) || errors.Is(got.Err, llm.ErrOverflow) || !strings.Contains(got.Err.Error(), c.Says) {
				t.Errorf("got %q, %v, want Hel and %q", got.Text, got.Err, c.Says)
			}
		})
	}
}
