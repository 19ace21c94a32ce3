package naming_test

import (
	"errors"
	"testing"

	"goclaw/internal/naming"
	"goclaw/session"
	. "goclaw/session/sessiontest"
)

// A record is named by its number, its id or the beginning of its id.
func TestLocate(t *testing.T) {
	recs := Log(User("one"), Answer("two"), User("three"))
	recs = append(recs,
		session.Record{Seq: 5, ID: "f7-other", Parent: "e3", Body: User("four")},
		session.Record{Seq: 6, ID: "f8-other", Parent: "f7-other", Body: Answer("five")},
	)
	s, err := session.Replay(ID, Yield(recs...))
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]session.Seq{"1": 1, "2": 2, "#3": 3, "6": 6, "e3": 4, "f7-other": 5, "f7": 5, "f8": 6} {
		if got, err := naming.Locate(Yield(recs...), s.Info, ref); got != want || err != nil {
			t.Errorf("%q is record %d, %v, want %d", ref, got, err, want)
		}
	}
	for _, ref := range []string{"", "0", "7", "-1", "nowhere", "f", "#"} {
		got, err := naming.Locate(Yield(recs...), s.Info, ref)
		if err == nil || ref != "f" && !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%q is record %d, %v, want that it is not found", ref, got, err)
		}
	}
}
