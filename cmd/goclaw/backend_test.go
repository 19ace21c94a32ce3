package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"goclaw/internal/config"
	"goclaw/llm"
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
	b := newBackend(&app{stores: &stores{st: st}})
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

// readAfter notes from where a log is read.
type readAfter struct {
	store
	from []session.Seq
}

func (r *readAfter) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	r.from = append(r.from, after)
	return r.store.Read(ctx, id, after)
}

// What a session used, in short, is the same as in full, and is counted on from
// where it was.
func TestUsageInShort(t *testing.T) {
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	st := &readAfter{store: file}
	e := &env{conf: &config.Loaded{}}
	b := newBackend(&app{env: e, stores: &stores{env: e, st: st}})
	log := sessiontest.Log(session.Header{Version: session.Version, ID: "s", Key: "t:cli:s"},
		sessiontest.User("one"), dear("a"), sessiontest.User("two"), dear("b"), dear("c"))
	same := func() {
		t.Helper()
		in, err := session.Stat(t.Context(), st, "s")
		if err != nil {
			t.Fatal(err)
		}
		var said [2]string
		for i, brief := range []bool{false, true} {
			v, err := b.steps(t.Context(), in, brief)
			if err != nil {
				t.Fatal(err)
			}
			said[i] = fmt.Sprint(v.(map[string]any)["usage"], v.(map[string]any)["lastTurn"])
		}
		if said[0] != said[1] || said[0] == fmt.Sprint(used{}, used{}) {
			t.Errorf("with %d records, in short it is %s, in full %s", in.Last, said[1], said[0])
		}
	}
	for _, n := range []int{3, 4, 6} {
		in, _ := session.Stat(t.Context(), st, "s")
		if err := st.Append(t.Context(), "s", log[in.Last:n]...); err != nil {
			t.Fatal(err)
		}
		st.from = nil
		if same(); fmt.Sprint(st.from) != fmt.Sprint([]session.Seq{0, in.Last}) {
			t.Errorf("with %d records it is read from %v", n, st.from)
		}
	}
	if err := errors.Join(st.Delete(t.Context(), "s"), st.Purge(t.Context(), "s"), st.Append(t.Context(), "s", log[:3]...)); err != nil {
		t.Fatal(err)
	}
	same()
}

// dear is an answer that cost something.
func dear(text string) session.Message {
	m := sessiontest.Answer(text)
	m.Usage = llm.Usage{Input: 10, Output: len(text), Cost: llm.Cost{Total: 0.25}}
	return m
}
