package spending

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"goclaw/internal/config"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

// readAfter notes from where a log is read.
type readAfter struct {
	session.Store
	from []session.Seq
}

func (r *readAfter) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	r.from = append(r.from, after)
	return r.Store.Read(ctx, id, after)
}

// What a session used, in short, is the same as in full, and is counted on from
// where it was.
func TestUsageInShort(t *testing.T) {
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	st := &readAfter{Store: file}
	var all Tallies
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
			v, err := all.Steps(t.Context(), st, &config.Loaded{}, in, brief)
			if err != nil {
				t.Fatal(err)
			}
			said[i] = fmt.Sprint(v.(map[string]any)["usage"], v.(map[string]any)["lastTurn"])
		}
		if said[0] != said[1] || said[0] == fmt.Sprint(Line{}, Line{}) {
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
