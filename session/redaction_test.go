package session_test

import (
	"strings"
	"testing"

	"goclaw/session"
	. "goclaw/session/sessiontest"
)

// A target that does not fit its record takes out more, never less.
func TestTargetApply(t *testing.T) {
	r := session.Record{ID: "e1", Raw: []byte("{}"), Body: User("the key is abc, the é too")}
	span := func(field string, start, end int) session.Span {
		return session.Span{Field: field, Start: start, End: end}
	}
	for _, tt := range []struct {
		name  string
		spans []session.Span
		want  string
	}{
		{"a span", []session.Span{span("blocks.0", 11, 14)}, "the key is [redacted], the é too"},
		{"two, in any order", []session.Span{span("blocks.0", 11, 14), span("blocks.0", 0, 3)}, "[redacted] key is [redacted], the é too"},
		{"beyond the end", []session.Span{span("blocks.0", 11, 99)}, "[redacted]"},
		{"backwards", []session.Span{span("blocks.0", 14, 11)}, "[redacted]"},
		{"overlapping", []session.Span{span("blocks.0", 0, 5), span("blocks.0", 3, 9)}, "[redacted]"},
		{"in the middle of a character", []session.Span{span("blocks.0", 11, 21)}, "[redacted]"},
		{"a text that is not there", []session.Span{span("blocks.7", 0, 1)}, "[redacted]"},
		{"none", nil, "the key is abc, the é too"},
	} {
		got := session.Target{ID: "e1", Spans: tt.spans}.Apply(r)
		if text := got.Body.(session.Message).Text(); text != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.want)
		}
		if (len(got.Raw) == 0) != (len(tt.spans) > 0) {
			t.Errorf("%s: the line is %q", tt.name, got.Raw)
		}
	}
}

// What is left of arguments is JSON.
func TestTargetApplyJSON(t *testing.T) {
	r := session.Record{ID: "e1", Body: Call("c1", "bash", `{"command":"x"}`)}
	got := session.Target{ID: "e1", Spans: []session.Span{{Field: "blocks.0", Start: 5, End: 14}}}.Apply(r)
	if args := string(got.Body.(session.Message).Calls()[0].Args); args != `{"redacted":true}` {
		t.Errorf("arguments: %s", args)
	}
}

// The ids of redactions begin alike, and the ids after one still ascend.
func TestRedactionID(t *testing.T) {
	s, c := Replay(t, User("hi")), &Clock{}
	r := s.Next(session.Redaction{}, c)
	if !strings.HasPrefix(r.ID, session.RedactionPrefix) {
		t.Errorf("its id is %s", r.ID)
	}
	if err := s.Apply(r); err != nil {
		t.Fatal(err)
	}
	before, ok := r.IDTime()
	after, _ := s.Next(User("more"), c).IDTime()
	if !ok || after < before {
		t.Errorf("%d comes after %d", after, before)
	}
}
