package handover_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/handover"
	"goclaw/internal/secrets"
	"goclaw/llm"
	"goclaw/session"
)

func TestRedact(t *testing.T) {
	tests := map[string]string{
		"the key is sk-ant-api03-abcdefghijklmnopqrst, keep it":                              "the key is [redacted], keep it",
		"ghp_0123456789abcdefghij0123456789abcdefgh":                                         "[redacted]",
		"export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiC":                           "export AWS_SECRET_ACCESS_KEY=[redacted]",
		"AKIAIOSFODNN7EXAMPLE in us-east-1":                                                  "[redacted] in us-east-1",
		`password: "hunter22"`:                                                               `password: "[redacted]"`,
		"curl -s -u admin:Secr3tPass https://x.example":                                      "curl -s -u admin:[redacted] https://x.example",
		"curl --user 'admin:pass' https://x.example":                                         "curl --user 'admin:[redacted]' https://x.example",
		"docker run -u 1000:1000 image":                                                      "docker run -u 1000:1000 image",
		"post to https://hooks.slack.com/services/T00000/B00000/abcdefghij":                  "post to https://hooks.slack.com/services/[redacted]",
		"post to https://discord.com/api/webhooks/123456/abcdefghijklmnopqrstuvwxyz":         "post to https://discord.com/api/webhooks/123456/[redacted]",
		"Authorization: Bearer abcdef0123456789abcdef":                                       "Authorization: Bearer [redacted]",
		"postgres://me:s3cretpw@db.example/x":                                                "postgres://me:[redacted]@db.example/x",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nafter": "[redacted]\nafter",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl":                              "[redacted]",
		// what is no secret stays
		"the token count was 1234, see https://example.com/a:b": "the token count was 1234, see https://example.com/a:b",
		"set API_KEY=$MY_KEY before":                            "set API_KEY=$MY_KEY before",
		"commit 3f786850e387550fdab836ed7e6dc881de23001b":       "commit 3f786850e387550fdab836ed7e6dc881de23001b",
		"passwords must be changed":                             "passwords must be changed",
	}
	for in, want := range tests {
		if got, _ := secrets.Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

func conversation(t *testing.T) *session.Session {
	t.Helper()
	at := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	c := llm.ToolCall{ID: "c1", Name: "bash", Args: json.RawMessage(`{"command":"curl -u x","apiKey":"short","n":12345678901234567890}`)}
	bodies := []session.Body{
		session.Header{Version: 3, ID: "s", Key: "agent:main:main", Origin: session.Origin{Program: "openclaw", Path: "/x"}},
		session.Title{Title: "Deploy"},
		session.Message{Message: llm.UserText("use sk-ant-api03-abcdefghijklmnopqrst <script>alert(1)</script>")},
		session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Thinking{Text: "hm"}, llm.Text{Text: "**done**"}, c}}, Provider: "anthropic", Model: "m"},
		session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Result(c, "password=abcdefgh")}}},
		session.Compaction{Summary: "we deployed", FirstKept: "2"},
	}
	s, err := session.Replay("s", func(yield func(session.Record, error) bool) {
		leaf := ""
		for i, b := range bodies {
			r := session.Record{Seq: session.Seq(i + 1), Time: at, Body: b}
			if i > 0 {
				r.ID, r.Parent = fmt.Sprint(i), leaf
				leaf = r.ID
			}
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWrite(t *testing.T) {
	s := conversation(t)
	secrets := []string{"sk-ant", "abcdefgh", `"short"`, "&#34;short&#34;"}
	for _, format := range handover.Formats {
		var b bytes.Buffer
		if err := handover.Write(&b, s, format, false); err != nil {
			t.Fatal(err)
		}
		for _, x := range secrets {
			if strings.Contains(b.String(), x) {
				t.Errorf("%s holds %q:\n%s", format, x, b.String())
			}
		}
		for _, x := range []string{"Deploy", "agent:main:main", "we deployed", "12345678901234567890"} {
			if !strings.Contains(b.String(), x) {
				t.Errorf("%s lacks %q:\n%s", format, x, b.String())
			}
		}
		b.Reset()
		if err := handover.Write(&b, s, format, true); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "sk-ant-api03") {
			t.Errorf("%s lacks the secret that was asked for", format)
		}
	}
}

func TestHTMLRunsNothing(t *testing.T) {
	var b bytes.Buffer
	if err := handover.Write(&b, conversation(t), "html", false); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if strings.Contains(got, "<script") || !strings.Contains(got, "<strong>done</strong>") || !strings.Contains(got, "<details><summary>result bash</summary>") {
		t.Errorf("html:\n%s", got)
	}
	for _, x := range []string{"http://", "https://", "<link", "<iframe"} {
		if strings.Contains(got, x) {
			t.Errorf("the file is not self-contained: %q", x)
		}
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := handover.Write(&b, conversation(t), "json", false); err != nil {
		t.Fatal(err)
	}
	var n struct {
		Summary  string
		Redacted int
		Messages []struct{ Role, Kind, Text string }
	}
	if err := json.Unmarshal(b.Bytes(), &n); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range n.Messages {
		got = append(got, m.Role+" "+m.Kind+" "+m.Text)
	}
	if diff := cmp.Diff([]string{"user  use [redacted] <script>alert(1)</script>", "assistant  **done**", "tool  ", "user folded we deployed"}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if n.Summary != "we deployed" || n.Redacted != 3 {
		t.Errorf("summary %q, %d redacted, want 3", n.Summary, n.Redacted)
	}
}
