package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"goclaw/internal/stores"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

// A client that pages through the list while sessions are written to, or begun,
// misses none.
func TestListPages(t *testing.T) {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	b := newBackend(&app{stores: &stores.Stores{Store: st}})
	now := sessiontest.Start
	write := func(id session.ID) {
		t.Helper()
		now = now.Add(500 * time.Millisecond) // every second of them is a whole second
		in, err := session.Stat(t.Context(), st, id)
		rec := session.Record{Seq: 1, Time: now, Body: session.Header{Version: session.Version, ID: id, Key: session.Key("t:cli:" + string(id))}}
		if err == nil {
			rec = session.Record{Seq: in.Last + 1, ID: fmt.Sprint("r", in.Last), Parent: in.Leaf, Time: now, Body: sessiontest.User("more")}
		}
		if err := st.Append(t.Context(), id, rec); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []session.ID{"a", "b_1", "c", "d", "e", "f", "g"} {
		write(id)
	}
	var pages [][]session.ID
	q := url.Values{"limit": {"2"}}
	for range 10 {
		infos, next, err := b.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var page []session.ID
		for _, in := range infos {
			page = append(page, in.ID)
		}
		if pages = append(pages, page); next == "" {
			break
		}
		if len(pages) == 1 { // one that was read, two that were not, and a new one
			for _, id := range []session.ID{"g", "b_1", "a", "new"} {
				write(id)
			}
		}
		q.Set("after", next)
	}
	if got, want := fmt.Sprint(pages), "[[g f] [e d] [c] [new a] [b_1 g]]"; got != want {
		t.Errorf("the pages are %s, want %s", got, want)
	}
}
