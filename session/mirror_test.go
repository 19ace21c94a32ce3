package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
)

// TestContinue: a mirror stays as it is; what continues it begins with its
// live branch, once, and says where it came from.
func TestContinue(t *testing.T) {
	ctx := context.Background()
	st := session.NewMemory()
	say := func(seq session.Seq, id, parent, text string) session.Record {
		return session.Record{Seq: seq, ID: id, Parent: parent, Time: time.Unix(int64(seq), 0).UTC(), Body: session.Message{Message: llm.UserText(text)}}
	}
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}
	if err := st.Append(ctx, "m",
		session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: "agent:main:main", Origin: origin}},
		session.Record{Seq: 2, ID: "t", Side: true, Body: session.Title{Title: "Old friends"}},
		say(3, "a", "", "one"), say(4, "dead", "a", "never mind"), say(5, "b", "a", "two")); err != nil {
		t.Fatal(err)
	}
	m, err := session.Current(ctx, st, "agent:main:main")
	if err != nil || !m.Mirror() {
		t.Fatalf("%+v, %v: not a mirror", m, err)
	}
	own, err := session.Continue(ctx, st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Continue(ctx, st, m, session.System{})
	if err != nil || again.ID != own.ID {
		t.Errorf("continued twice: %s and %s, %v", own.ID, again.ID, err)
	}
	if own.Mirror() || own.Key != "goclaw:main:main" || own.Title != "Old friends" {
		t.Errorf("mirror %v, key %q, title %q", own.Mirror(), own.Key, own.Title)
	}
	if diff := cmp.Diff(session.Origin{Program: "goclaw", Key: "agent:main:main", ID: "m", Seq: 5}, own.Origin); diff != "" {
		t.Errorf("origin (-want +got):\n%s", diff)
	}
	s, err := session.Open(ctx, st, own.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok {
			got = append(got, m.Text())
		}
	}
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
		t.Errorf("its past (-want +got):\n%s", diff)
	}
	after, err := session.Stat(ctx, st, "m")
	if err != nil || after != m {
		t.Errorf("the mirror has changed: %+v, %v", after, err)
	}
}

// TestContinueWhatMoved: a mirror that was given another key goes on where it
// was continued.
func TestContinueWhatMoved(t *testing.T) {
	ctx := context.Background()
	st := session.NewMemory()
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:recovered:m", ID: "m"}
	if err := st.Append(ctx, "m",
		session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: origin.Key, Origin: origin}},
		session.Record{Seq: 2, ID: "a", Time: time.Unix(2, 0).UTC(), Body: session.Message{Message: llm.UserText("one")}}); err != nil {
		t.Fatal(err)
	}
	var own session.ID
	for i, key := range []session.Key{origin.Key, "agent:main:main", "agent:main:other"} {
		if i > 0 {
			if err := st.Append(ctx, "m", session.Record{Seq: session.Seq(2 + i), ID: string(key), Parent: "a", Side: true, Body: session.Moved{Key: key}}); err != nil {
				t.Fatal(err)
			}
		}
		m, err := session.Current(ctx, st, key)
		if err != nil || m.ID != "m" || m.Leaf != "a" {
			t.Fatalf("%s: %+v, %v", key, m, err)
		}
		got, err := session.Continue(ctx, st, m, session.System{})
		if err != nil || own != "" && got.ID != own {
			t.Errorf("%s is continued in %s, %v; want %s", key, got.ID, err, own)
		}
		own = got.ID
	}
}

// TestCurrentOfCopies: of logs that were begun at once, the one that was
// written last is current, then the longer one, then the original. Their ids
// say nothing.
func TestCurrentOfCopies(t *testing.T) {
	ctx := context.Background()
	type log struct {
		id    session.ID
		begun int64 // in seconds
		said  []int64
	}
	tests := map[string]struct {
		logs []log
		want session.ID
	}{
		"begun last":   {[]log{{"b", 1, []int64{9}}, {"a", 2, []int64{3}}}, "a"},
		"written last": {[]log{{"z-m", 1, []int64{2, 3}}, {"m", 1, []int64{4}}}, "m"},
		"longer":       {[]log{{"z-m", 1, []int64{3}}, {"m", 1, []int64{2, 3}}}, "m"},
		"the original": {[]log{{"z-m", 1, []int64{3}}, {"m", 1, []int64{3}}}, "m"},
		"a prior id":   {[]log{{"a-m", 1, []int64{3}}, {"m", 1, []int64{3}}}, "m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			st := session.NewMemory()
			for _, l := range test.logs {
				recs := []session.Record{{Seq: 1, Time: time.Unix(l.begun, 0).UTC(), Body: session.Header{Version: 3, ID: l.id, Key: "k", Origin: session.Origin{Program: "pi", Path: "/x.jsonl", ID: "m"}}}}
				parent := ""
				for i, at := range l.said {
					id := string(rune('0' + i))
					recs = append(recs, session.Record{Seq: session.Seq(i + 2), ID: id, Parent: parent, Time: time.Unix(at, 0).UTC(), Body: session.Message{Message: llm.UserText("x")}})
					parent = id
				}
				if err := st.Append(ctx, l.id, recs...); err != nil {
					t.Fatal(err)
				}
			}
			in, err := session.Current(ctx, st, "k")
			if err != nil || in.ID != test.want {
				t.Errorf("Current is %s, %v; want %s", in.ID, err, test.want)
			}
			if in, err = session.Find(ctx, st, "k", false); err != nil || in.ID != test.want {
				t.Errorf("Find is %s, %v; want %s", in.ID, err, test.want)
			}
		})
	}
}

// TestBehind: what is said in a mirror after it was continued is counted, until
// it is continued again from there.
func TestBehind(t *testing.T) {
	ctx := context.Background()
	st := session.NewMemory()
	say := func(seq session.Seq, id, parent string) session.Record {
		return session.Record{Seq: seq, ID: id, Parent: parent, Time: time.Unix(int64(seq), 0).UTC(), Body: session.Message{Message: llm.UserText(id)}}
	}
	add := func(recs ...session.Record) {
		t.Helper()
		if err := st.Append(ctx, "m", recs...); err != nil {
			t.Fatal(err)
		}
	}
	origin := session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: "agent:main:main", ID: "m"}
	add(session.Record{Seq: 1, Time: time.Unix(1, 0).UTC(), Body: session.Header{Version: 3, ID: "m", Key: origin.Key, Origin: origin}}, say(2, "a", ""))
	m, err := session.Stat(ctx, st, "m")
	if err != nil {
		t.Fatal(err)
	}
	own, err := session.Continue(ctx, st, m, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	behind := func(own session.Info, after int64) int {
		t.Helper()
		_, n, err := session.Behind(ctx, st, own, time.Unix(after, 0))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	add(session.Record{Seq: 3, ID: "t", Parent: "a", Side: true, Time: time.Unix(3, 0).UTC(), Body: session.Title{Title: "x"}})
	if n := behind(own, 0); n != 0 {
		t.Errorf("a title counts: %d", n)
	}
	add(say(4, "b", "a"), say(5, "c", "b"))
	if all, late, mirror := behind(own, 0), behind(own, 4), behind(m, 0); all != 2 || late != 1 || mirror != 0 {
		t.Errorf("%d messages, %d later than the fourth, %d of the mirror itself; want 2, 1, 0", all, late, mirror)
	}
	s, err := session.Open(ctx, st, "m")
	if err != nil {
		t.Fatal(err)
	}
	f, err := session.Fork(ctx, st, s, own.Key, "", session.System{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Continue(ctx, st, m, session.System{})
	if err != nil || again.ID != f.ID || behind(again, 0) != 0 {
		t.Errorf("continued in %s, %v, %d behind; want %s, 0", again.ID, err, behind(again, 0), f.ID)
	}
}
