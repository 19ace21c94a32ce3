package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

// feed follows a store by storekit.ChangesOf, through appends, deletions and
// purges by two handles, and compares the result with List after each.
func (s suite) feed(t *testing.T) {
	dir := t.TempDir()
	st, other := s.at(t, dir), s.at(t, dir)
	since := ""
	known := map[session.ID]session.Seq{}
	follow := func(what string) {
		t.Helper()
		ch, err := storekit.ChangesOf(bg, st, since)
		must(t, err)
		if ch.All {
			clear(known)
		}
		for _, c := range ch.Logs {
			if known[c.ID] = c.Last; c.Gone {
				delete(known, c.ID)
			}
		}
		since = ch.Now
		want := map[session.ID]session.Seq{}
		for _, in := range list(t, st, session.Query{}) {
			want[in.ID] = in.Last
		}
		if d := cmp.Diff(want, known); d != "" {
			t.Errorf("%s: the sessions known from the feed (-list +feed):\n%s", what, d)
		}
	}
	follow("empty")
	for i, h := range []session.Store{st, other, st, other} {
		id := session.ID(fmt.Sprint("s", i))
		add(t, h, id, logOf(id, "k", sessiontest.User("1"))...)
		follow("begun")
		follow("nothing new")
		in, err := session.Stat(bg, h, id)
		must(t, err)
		add(t, h, id, session.Record{Seq: in.Last + 1, ID: "more", Parent: in.Leaf, Time: in.Updated, Body: sessiontest.Answer("2")})
		follow("grown")
	}
	for i, h := range []session.Store{other, st} {
		id := session.ID(fmt.Sprint("s", i))
		must(t, h.Delete(bg, id))
		follow("deleted")
		must(t, h.Restore(bg, id))
		follow("restored")
		must(t, h.Delete(bg, id))
		must(t, h.Purge(bg, id))
		follow("purged")
	}
	if since == "" {
		return
	}
	// Without a change, a feed with positions is empty.
	if ch, err := storekit.ChangesOf(bg, st, since); err != nil || len(ch.Logs) > 0 || ch.All || ch.Now != since {
		t.Errorf("without a change, the feed is %+v (%v)", ch, err)
	}
}
