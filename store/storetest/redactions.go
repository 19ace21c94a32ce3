package storetest

import (
	"fmt"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

// secret is what redactions takes out.
const secret = "hunter2222"

// spansOf finds secret in the texts of r.
func spansOf(r session.Record) (t session.Target) {
	t.ID = r.ID
	r.Texts(func(field, text string) string {
		for at := 0; ; {
			i := strings.Index(text[at:], secret)
			if i < 0 {
				return text
			}
			at += i
			t.Spans = append(t.Spans, session.Span{Field: field, Start: at, End: at + len(secret)})
			at += len(secret)
		}
	})
	return t
}

// clock gives every session of a test another id.
var clock = &sessiontest.Clock{Step: 1e6}

// redact appends a redaction of the records with these ids, as st shows them.
func redact(t *testing.T, st session.Store, id session.ID, ids ...string) {
	t.Helper()
	var b session.Redaction
	for _, r := range read(t, storekit.Redacted(st), id, 0) {
		for _, want := range ids {
			if r.ID == want {
				b.Targets = append(b.Targets, spansOf(r))
			}
		}
	}
	s, err := session.Open(bg, st, id)
	must(t, err)
	_, err = session.Keep(bg, st, s, s.Next(b, clock), clock)
	must(t, err)
}

// redactions: what a redaction takes out is in no record that is read through
// storekit.Redacted, nor in a session, from wherever the reading starts; the
// log itself keeps its bytes.
func (s suite) redactions(t *testing.T) {
	st := s.fresh(t)
	says := func(what string, recs []session.Record) {
		t.Helper()
		for _, r := range recs {
			if len(r.Raw) > 0 && strings.Contains(string(r.Raw), secret) || strings.Contains(fmt.Sprintf("%s", r.Body), secret) {
				t.Errorf("%s: record %d holds the secret: %s %s", what, r.Seq, r.Body, r.Raw)
			}
		}
	}
	add(t, st, "s1", sessiontest.Log(
		sessiontest.User("use hunter2222, not hunter2222x"),
		sessiontest.Call("c1", "bash", `{"command":"login hunter2222"}`),
		sessiontest.Result("c1", "hello hunter2222"),
		session.Compaction{Summary: "the word is hunter2222", FirstKept: "e2"},
		session.Title{Title: "about hunter2222"},
		sessiontest.User("nothing"),
	)...)
	live, err := session.Replay("s1", st.Read(bg, "s1", 0))
	must(t, err)
	redact(t, st, "s1", "e1", "e2", "e3")
	redact(t, st, "s1", "e1", "e4", "e5") // e1 again: there is nothing left in it
	shown := storekit.Redacted(st)
	for after := range session.Seq(9) {
		says(fmt.Sprintf("read after %d", after), read(t, shown, "s1", after))
	}
	all := read(t, shown, "s1", 0)
	if got := all[1].Body.(session.Message).Text(); got != "use [redacted], not [redacted]x" {
		t.Errorf("the first message is %q", got)
	}
	if got := string(all[2].Body.(session.Message).Calls()[0].Args); got != `{"command":"login [redacted]"}` {
		t.Errorf("the call is %s", got)
	}
	for what, st := range map[string]session.Store{"the store": st, "the redacted store": shown} {
		whole, err := session.Replay("s1", st.Read(bg, "s1", 0))
		must(t, err)
		says("a replay of "+what, whole.Branch)
		opened, err := session.Open(bg, st, "s1")
		must(t, err)
		says("open of "+what, opened.Branch)
		fork, err := session.Fork(bg, st, whole, session.Key("copy:of:"+strings.ReplaceAll(what, " ", "-")), 0, clock)
		must(t, err)
		says("a fork of "+what, read(t, st, fork.ID, 0))
		early, err := session.Fork(bg, st, whole, session.Key("early:of:"+strings.ReplaceAll(what, " ", "-")), 3, clock)
		must(t, err)
		says("an early fork of "+what, read(t, st, early.ID, 0))
		if got := len(fork.Branch); got != 8 {
			t.Errorf("a fork of %s has %d records", what, got)
		}
	}
	// A session that was loaded before learns of it, record by record.
	for _, from := range []session.Store{st, shown} {
		for r, err := range from.Read(bg, "s1", live.Last) {
			must(t, err)
			must(t, live.Apply(r))
		}
		says("a live session", live.Branch)
	}
	raw := ""
	for _, r := range read(t, st, "s1", 0) {
		raw += string(r.Raw)
	}
	if n := strings.Count(raw, secret); raw != "" && n != 6 {
		t.Errorf("the log holds the secret %d times, want 6: it was rewritten", n)
	}
}
