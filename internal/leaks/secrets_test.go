package leaks

import (
	"strings"
	"testing"

	"goclaw/internal/secrets"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
	"goclaw/store/memory"
)

// A key that an interrupted answer has in two parts is found and taken out.
func TestSecretInParts(t *testing.T) {
	st, ctx := memory.New(), t.Context()
	key := "sk-ant-api03-abcdefghijklmnopWXYZ"
	recs := sessiontest.Log(
		sessiontest.User("say it"),
		session.Partial{Text: "it is " + key[:15], Thinking: "hm"},
		session.Partial{Offset: 23, Text: key[15:] + ", done"},
	)
	if err := st.Append(ctx, "s1", recs...); err != nil {
		t.Fatal(err)
	}
	in, err := session.Stat(ctx, st, "s1")
	if err != nil {
		t.Fatal(err)
	}
	leaks, b, err := inLog(ctx, st, in, secrets.Find)
	if err != nil || len(leaks) != 1 || leaks[0].Seq != 3 || len(b.Targets) != 2 {
		t.Fatalf("%v, %v, %v", leaks, b, err)
	}
	s, err := session.Open(ctx, st, "s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Keep(ctx, st, s, s.Next(b, session.System{}), session.System{}); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(ctx, storekit.Redacted(st), "s1")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Session{s, again} {
		said := ""
		for _, r := range s.Branch {
			if m, ok := r.Body.(session.Message); ok {
				said += m.Text()
			}
		}
		if strings.Contains(said, "abcdef") || strings.Contains(said, "WXYZ") || !strings.Contains(said, "it is [redacted]") {
			t.Errorf("the session says %q", said)
		}
	}
}
