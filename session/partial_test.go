package session_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
)

func part(offset int, text string) session.Partial {
	return session.Partial{Offset: offset, Text: text}
}

// shown returns what the branch says, a line for each message.
func shown(recs []session.Record) []string {
	var out []string
	for _, r := range recs {
		if m, ok := r.Body.(session.Message); ok {
			line := fmt.Sprintf("%s: %s", m.Role, m.Text())
			if m.Error == session.BrokeOff && m.Stop == llm.StopAborted {
				line += " (broke off)"
			}
			out = append(out, line)
		}
	}
	return out
}

func TestPartialAnswers(t *testing.T) {
	user, answer := sessiontest.User, sessiontest.Answer
	thinks := session.Partial{Thinking: "hm", Text: "So ", Provider: "p", Model: "m"}
	tests := []struct {
		name string
		log  []session.Body
		want []string
	}{
		{"broke off", []session.Body{user("q"), thinks, part(5, "far")}, []string{"user: q", "assistant: So far (broke off)"}},
		{"whole", []session.Body{user("q"), thinks, part(5, "far"), answer("So far, so good.")}, []string{"user: q", "assistant: So far, so good."}},
		{"asked again", []session.Body{user("q"), thinks, user("Go on."), answer("ok")}, []string{"user: q", "assistant: So  (broke off)", "user: Go on.", "assistant: ok"}},
		{"twice", []session.Body{user("q"), part(0, "a"), part(0, "b"), part(1, "c")}, []string{"user: q", "assistant: a (broke off)", "assistant: bc (broke off)"}},
		{"with other records", []session.Body{user("q"), part(0, "a"), session.Title{Title: "t"}, part(1, "b"), session.Notice{Percent: 50, As: "system"}, answer("ab")}, []string{"user: q", "assistant: ab"}},
		{"no beginning", []session.Body{user("q"), part(7, "late")}, []string{"user: q"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recs := sessiontest.Log(tt.log...)
			s := replay(t, recs)
			if diff := cmp.Diff(tt.want, shown(s.Branch)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if s.Turns != len(tt.want)-countAnswers(tt.want) {
				t.Errorf("%d turns", s.Turns)
			}
			if tt.name != "no beginning" { // whoever reads one by one shows it all the same
				var j session.Joiner
				var one []session.Record
				for _, r := range recs {
					one = append(one, j.Next(r)...)
				}
				if diff := cmp.Diff(tt.want, shown(append(one, j.End()...))); diff != "" {
					t.Errorf("one by one: -want +got\n%s", diff)
				}
			}
		})
	}
	s := sessiontest.Replay(t, user("q"), thinks)
	m := s.Branch[len(s.Branch)-1].Body.(session.Message)
	if m.Provider != "p" || m.Model != "m" || len(m.Blocks) != 2 || m.Blocks[0] != (llm.Thinking{Text: "hm"}) {
		t.Errorf("got %+v", m)
	}
	if open := s.Unanswered(); len(open) != 0 {
		t.Errorf("calls to run: %v", open)
	}
}

func countAnswers(lines []string) (n int) {
	for _, l := range lines {
		if l[0] == 'a' {
			n++
		}
	}
	return n
}

// A fork has the parts as they are in the log.
func TestForkOfPartialAnswer(t *testing.T) {
	st, clock := memory.New(), &sessiontest.Clock{}
	s, err := session.Begin(t.Context(), st, session.Header{Key: "main:cli:user"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []session.Body{sessiontest.User("q"), part(0, "So "), part(3, "far")} {
		if _, err := session.Keep(t.Context(), st, s, s.Next(b, clock), clock); err != nil {
			t.Fatal(err)
		}
	}
	f, err := session.Fork(t.Context(), st, s, "", 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(t.Context(), st, f.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"user: q", "assistant: So far (broke off)"}
	if diff := cmp.Diff(want, shown(again.Branch)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if again.Records != 4 {
		t.Errorf("%d records, want 4", again.Records)
	}
}
