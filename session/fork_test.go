package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// A fork has just been made, however old the records are that it begins with:
// it is listed first, and is not expired before anyone has said a word in it.
func TestForkIsUsedWhenItIsMade(t *testing.T) {
	st, c := memory.New(), &Clock{}
	old, err := session.Begin(ctx, st, session.Header{Key: "old"}, c)
	if err != nil {
		t.Fatal(err)
	}
	said, err := session.Keep(ctx, st, old, old.Next(User("long ago"), c), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Move(30 * 24 * time.Hour)
	f, err := session.Fork(ctx, st, old, "", 0, c)
	if err != nil {
		t.Fatal(err)
	}
	if want := c.Now().UTC().Truncate(time.Millisecond); !f.Created.Equal(want) || !f.Updated.Equal(want) {
		t.Errorf("a fork made at %s is created at %s and updated at %s", want, f.Created, f.Updated)
	}
	if r := f.Branch[0]; r.ID != said.ID || !r.Time.Equal(said.Time) {
		t.Errorf("the record that was copied is %s of %s, want %s of %s", r.ID, r.Time, said.ID, said.Time)
	}
	var keys []session.Key
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, in.Key)
	}
	if diff := cmp.Diff([]session.Key{"old-2", "old"}, keys); diff != "" {
		t.Errorf("sessions, latest first (-want +got):\n%s", diff)
	}
	again, err := session.Fork(ctx, st, old, "old-2", 0, c) // the clock stands still
	if err != nil {
		t.Fatal(err)
	}
	if now, err := session.Current(ctx, st, "old-2"); err != nil || now.ID != again.ID {
		t.Errorf("the session of old-2 is %s, %v, want the later fork %s", now.ID, err, again.ID)
	}
	c.Move(time.Hour)
	if _, err := session.Keep(ctx, st, f, f.Next(User("now"), c), c); err != nil || !f.Updated.After(f.Created) {
		t.Errorf("after a word in it, it is updated at %s, %v", f.Updated, err)
	}
}

// What was written in between stays before what is kept.
func TestKeepGoesBehindOthers(t *testing.T) {
	st, c := memory.New(), &Clock{}
	mine, err := session.Begin(ctx, st, session.Header{Key: "k"}, c)
	if err != nil {
		t.Fatal(err)
	}
	other, err := session.Open(ctx, st, mine.ID)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := session.Keep(ctx, st, other, other.Next(User("theirs"), c), c)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := session.Keep(ctx, st, mine, mine.Next(User("ours"), c), c)
	if err != nil {
		t.Fatal(err)
	}
	if ours.Seq != theirs.Seq+1 || ours.Parent != theirs.ID {
		t.Errorf("record %d behind %q, want %d behind %q", ours.Seq, ours.Parent, theirs.Seq+1, theirs.ID)
	}
	stored, err := session.Open(ctx, st, mine.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored.Info, mine.Info); diff != "" {
		t.Errorf("the session differs from its log (-log +session):\n%s", diff)
	}
	st.Close()
	if _, err := session.Keep(ctx, st, mine, mine.Next(User("late"), c), c); !errors.Is(err, session.ErrClosed) {
		t.Errorf("kept in a closed store: %v", err)
	}
	if mine.Records != 3 {
		t.Errorf("%d records after a failed append, want 3", mine.Records)
	}
}

// A fork ends at the record that is named, on whatever branch it is.
func TestForkAtAnyRecord(t *testing.T) {
	recs := Log(User("one"), Answer("two"), User("three"), Answer("four"), User("five"))
	recs = append(recs, // a rewind to "two", and another branch from there
		session.Record{Seq: 7, ID: "back", Body: session.Leaf{Target: recs[2].ID}},
		session.Record{Seq: 8, ID: "f7-other", Parent: recs[2].ID, Body: User("another three")},
		session.Record{Seq: 9, ID: "f8-other", Parent: "f7-other", Body: Answer("another four")},
	)
	st, c := memory.New(), &Clock{}
	if err := st.Append(ctx, ID, recs...); err != nil {
		t.Fatal(err)
	}
	s, err := session.Replay(ID, st.Read(ctx, ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[session.Seq]string{
		0: "one two another three another four", 1: "", 2: "one", 3: "one two", 4: "one two three", 5: "one two three four", 6: "one two three four five",
		7: "one two", 8: "one two another three", 9: "one two another three another four",
	} {
		f, err := session.Fork(ctx, st, s, "", at, c)
		if err != nil {
			t.Errorf("fork at %d: %v", at, err)
			continue
		}
		var said []string
		for _, r := range f.Branch {
			said = append(said, r.Body.(session.Message).Text())
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("fork at %d says %q, want %q", at, got, want)
		}
	}
	for _, at := range []session.Seq{10, -1} {
		if _, err := session.Fork(ctx, st, s, "", at, c); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("fork at %d: %v, want that it is not found", at, err)
		}
	}
}
