package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
)

// TestContinue: a mirror stays as it is; what continues it begins with its
// live branch, once, and says where it came from.
func TestContinue(t *testing.T) {
	ctx := context.Background()
	st := session.NewMemory()
	say := func(seq session.Seq, id, parent, text string) session.Record {
		return session.Record{Seq: seq, ID: id, Parent: parent, Time: time.Unix(int64(seq), 0).UTC(), Body: session.Message{Message: llm.UserText(text)}}
	}
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}
	if err := st.Append(ctx, "m",
		session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: "agent:main:main", Origin: origin}},
		session.Record{Seq: 2, ID: "t", Side: true, Body: session.Title{Title: "Old friends"}},
		say(3, "a", "", "one"), say(4, "dead", "a", "never mind"), say(5, "b", "a", "two")); err != nil {
		t.Fatal(err)
	}
	m, err := session.Current(ctx, st, "agent:main:main")
	if err != nil || !m.Mirror() {
		t.Fatalf("%+v, %v: not a mirror", m, err)
	}
	own, err := session.Continue(ctx, st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Continue(ctx, st, m, session.System{})
	if err != nil || again.ID != own.ID {
		t.Errorf("continued twice: %s and %s, %v", own.ID, again.ID, err)
	}
	if own.Mirror() || own.Key != "goclaw:main:main" || own.Title != "Old friends" {
		t.Errorf("mirror %v, key %q, title %q", own.Mirror(), own.Key, own.Title)
	}
	if diff := cmp.Diff(session.Origin{Program: "goclaw", Key: "agent:main:main", ID: "m", Seq: 5}, own.Origin); diff != "" {
		t.Errorf("origin (-want +got):\n%s", diff)
	}
	s, err := session.Open(ctx, st, own.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok {
			got = append(got, m.Text())
		}
	}
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
		t.Errorf("its past (-want +got):\n%s", diff)
	}
	after, err := session.Stat(ctx, st, "m")
	if err != nil || after != m {
		t.Errorf("the mirror has changed: %+v, %v", after, err)
	}
}
