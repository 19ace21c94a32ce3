package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

// However a list is asked for, it is the same list.
func TestLists(t *testing.T) {
	const many = 2200
	s := at(t, filepath.Join(t.TempDir(), "sessions.db"))
	var trashed []session.ID
	for i := range many {
		id := session.ID(fmt.Sprintf("s%04d", i*7919%10_000))
		at := sessiontest.Start.Add(time.Duration(i*31%500) * time.Second) // some at the same moment
		key := session.Key(fmt.Sprintf("agent%d:chan%d:peer", i%3, i%5))
		recs := []session.Record{{Seq: 1, Time: at, Body: session.Header{ID: id, Key: key, Version: session.Version}}}
		if i%4 == 0 { // older than it is
			recs = append(recs, session.Record{Seq: 2, ID: "a", Time: at.Add(-time.Hour), Body: session.Title{Title: fmt.Sprint("Title ", i)}})
		}
		must(t, s.Append(bg, id, recs...))
		if i%50 == 0 {
			trashed = append(trashed, id)
		}
	}
	for _, id := range trashed {
		must(t, s.Delete(bg, id))
	}
	var infos []session.Info
	for _, id := range []bool{false, true} {
		all, err := sessiontest.Collect(s.List(bg, session.Query{Trash: id}))
		must(t, err)
		infos = append(infos, all...)
	}
	if len(infos) != many {
		t.Fatalf("%d sessions are listed, want %d", len(infos), many)
	}
	storekit.Sort(infos)
	for _, q := range []session.Query{{}, {Agent: "agent1"}, {Channel: "chan3"}, {Text: "title 1"}, {Agent: "agent2", Channel: "chan4", Text: "s00"}, {Agent: "none"}} {
		for _, q.Trash = range []bool{false, true} {
			for _, q.Limit = range []int{0, 1, 7, 44, 300, 2000, 5000} {
				var want []session.ID
				for _, in := range infos {
					if q.Match(in) && (q.Limit == 0 || len(want) < q.Limit) {
						want = append(want, in.ID)
					}
				}
				var got []session.ID
				for in, err := range s.List(bg, q) {
					must(t, err)
					if !q.Match(in) {
						t.Errorf("%+v lists %+v", q, in)
					}
					got = append(got, in.ID)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%+v (-want +got):\n%s", q, d)
				}
			}
		}
	}
}
