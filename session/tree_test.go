package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

func TestTips(t *testing.T) {
	user, answer := sessiontest.User, sessiontest.Answer
	log := []session.Record{
		{ID: "a", Body: user("one")}, {ID: "b", Parent: "a", Body: answer("1")},
		{ID: "c", Parent: "b", Body: user("two")}, {ID: "d", Parent: "c", Body: answer("2")},
		{ID: "l", Parent: "d", Body: session.Leaf{Target: "b"}},
	}
	tips := func() []session.Tip {
		t.Helper()
		s, err := session.Replay("s", sessiontest.Yield(log...))
		if err != nil {
			t.Fatal(err)
		}
		return s.Tips()
	}
	// The live branch ends where another goes on.
	if diff := cmp.Diff([]session.Tip{{ID: "b", Seq: 2, Live: true}, {ID: "d", Seq: 4, Own: 3}}, tips()); diff != "" {
		t.Error(diff)
	}
	log = append(log, session.Record{ID: "e", Parent: "l", Body: user("two again")}, session.Record{ID: "f", Parent: "e", Body: answer("2b")})
	if diff := cmp.Diff([]session.Tip{{ID: "d", Seq: 4, Own: 3}, {ID: "f", Seq: 7, Live: true}}, tips()); diff != "" {
		t.Error(diff)
	}
	s, err := session.Replay("s", sessiontest.Yield(log...))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range s.Path("d") {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, ids); diff != "" {
		t.Error(diff)
	}
	up := map[session.Seq]session.Seq{}
	for r, parent := range s.Links() {
		up[r.Seq] = parent
	}
	if diff := cmp.Diff(map[session.Seq]session.Seq{1: 0, 2: 1, 3: 2, 4: 3, 6: 2, 7: 6}, up); diff != "" {
		t.Error(diff)
	}
}
