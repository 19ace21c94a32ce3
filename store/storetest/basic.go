package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

func (s suite) appendRead(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := sessiontest.Log(sessiontest.User("hi"), sessiontest.Answer("hello"), sessiontest.User("more"))
	add(t, st, "s1", recs[0])
	add(t, st, "s1", recs[1])
	add(t, st, "s1", recs[2:]...)
	wantLog(t, st, "s1", recs)
	for after, want := range map[session.Seq]int{-1: 4, 0: 4, 1: 3, 3: 1, 4: 0, 99: 0} {
		if got := read(t, st, "s1", after); len(got) != want {
			t.Errorf("reading after %d gave %d records, want %d", after, len(got), want)
		} else if d := sessiontest.Diff(recs[4-want:], got); d != "" {
			t.Errorf("reading after %d (-want +got):\n%s", after, d)
		}
	}
	_, err := sessiontest.Collect(st.Read(bg, "nobody", 0))
	wantErr(t, "read of a log that does not exist", err, session.ErrNotFound)
	if _, err := session.Stat(bg, st, "nobody"); err == nil {
		t.Error("reading a log that does not exist made one")
	}

	must(t, st.Close())
	st = s.at(t, dir)
	wantLog(t, st, "s1", recs)
	wantReplay(t, st, "s1")
	next := session.Record{Seq: 5, ID: "e4", Parent: "e3", Time: sessiontest.Start, Body: sessiontest.Answer("bye")}
	add(t, st, "s1", next)
	wantLog(t, st, "s1", append(recs, next))
	wantReplay(t, st, "s1")
}

func (s suite) conflict(t *testing.T) {
	st := s.fresh(t)
	recs := sessiontest.Log(sessiontest.User("1"), sessiontest.Answer("2"), sessiontest.User("3"), sessiontest.Answer("4"))
	wantErr(t, "a gap before the first record", st.Append(bg, "s1", recs[1]), session.ErrConflict)
	if got := list(t, st, session.Query{}); len(got) != 0 {
		t.Fatalf("after a refused first record there are %d logs", len(got))
	}
	add(t, st, "s1", recs[:3]...)
	again, zero, negative := recs[2], recs[3], recs[3]
	again.ID, zero.Seq, negative.Seq = "other", 0, -1
	for _, c := range []struct {
		what string
		recs []session.Record
	}{
		{"the last record once more", recs[2:3]},
		{"another record at the last place", []session.Record{again}},
		{"the header once more", recs[:1]},
		{"a stale record", recs[1:2]},
		{"a gap", recs[4:5]},
		{"a batch that begins too early", recs[2:5]},
		{"a batch with a gap", []session.Record{recs[3], {Seq: 6, ID: "e5", Parent: "e4", Time: sessiontest.Start, Body: sessiontest.User("5")}}},
		{"a batch with a repeat", []session.Record{recs[3], recs[3]}},
		{"a batch that runs back", []session.Record{recs[4], recs[3]}},
		{"record 0", []session.Record{zero}},
		{"record -1", []session.Record{negative}},
	} {
		wantErr(t, c.what, st.Append(bg, "s1", c.recs...), session.ErrConflict)
	}
	wantLog(t, st, "s1", recs[:3])
	wantReplay(t, st, "s1")
	add(t, st, "s1", recs[3:]...)
	wantLog(t, st, "s1", recs)
}

func (s suite) header(t *testing.T) {
	st := s.fresh(t)
	user := session.Record{Seq: 1, ID: "e1", Time: sessiontest.Start, Body: sessiontest.User("hi")}
	none := session.Record{Seq: 1, ID: "e1", Time: sessiontest.Start}
	for _, c := range []struct {
		what string
		id   session.ID
		rec  session.Record
	}{
		{"a log that begins with a message", "s1", user},
		{"a record without a body", "s1", none},
		{"a header of another session", "s1", header("s2", "k")},
		{"a header without an id", "s1", header("", "k")},
		{"a log without an id", "", header("", "k")},
		{"a key that is not UTF-8", "s1", header("s1", "k\xff")},
		{"an id that is not UTF-8", "s\xff", header("s\xff", "k")},
		{"an id with a NUL", "s\x00", header("s\x00", "k")},
	} {
		if err := st.Append(bg, c.id, c.rec); err == nil {
			t.Errorf("%s was accepted", c.what)
		}
	}
	if got := list(t, st, session.Query{}); len(got) != 0 {
		t.Errorf("after refused appends there are %d logs: %+v", len(got), got)
	}
	want := session.Header{Version: 3, ID: "s1", Key: "agent:main:main", CWD: "/home/me", Parent: "s0",
		Origin: session.Origin{Program: "openclaw", Path: "/x/y.jsonl", Key: "k", ID: "s0", Seq: 7}}
	rec := session.Record{Seq: 1, Time: sessiontest.Start, Body: want}
	add(t, st, "s1", rec)
	wantLog(t, st, "s1", []session.Record{rec})
	in, err := session.Stat(bg, st, "s1")
	must(t, err)
	wantInfo := session.Info{ID: "s1", Key: want.Key, Origin: want.Origin, Parent: want.Parent, CWD: want.CWD,
		Created: sessiontest.Start, Updated: sessiontest.Start, Records: 1, Last: 1, KeepFrom: 1}
	if d := cmp.Diff(wantInfo, in); d != "" {
		t.Errorf("info of a header (-want +got):\n%s", d)
	}
	for what, r := range map[string]session.Record{
		"a record without a body":        {Seq: 2, ID: "e1", Time: sessiontest.Start},
		"a record whose id has a NUL":    {Seq: 2, ID: "e\x00", Time: sessiontest.Start, Body: sessiontest.User("x")},
		"a record whose id is not UTF-8": {Seq: 2, ID: "e\xff", Time: sessiontest.Start, Body: sessiontest.User("x")},
	} {
		if err := st.Append(bg, "s1", r); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	wantLog(t, st, "s1", []session.Record{rec})
}

func (s suite) allOrNothing(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := sessiontest.Log(sessiontest.User("1"), sessiontest.Answer("2"), sessiontest.User("3"), sessiontest.Answer("4"))
	bad := func(at int, change func(*session.Record)) []session.Record {
		batch := append([]session.Record(nil), recs...)
		change(&batch[at])
		return batch
	}
	for at := range recs {
		for what, batch := range map[string][]session.Record{
			"without a body": bad(at, func(r *session.Record) { r.Body = nil }),
			"out of order":   bad(at, func(r *session.Record) { r.Seq += 7 }),
			"too large":      bad(at, func(r *session.Record) { r.Raw = make([]byte, storekit.MaxRecord+1) }),
		} {
			if err := st.Append(bg, "s1", batch...); err == nil {
				t.Fatalf("a batch whose record %d is %s was accepted", at+1, what)
			}
		}
	}
	if got := list(t, st, session.Query{}); len(got) != 0 {
		t.Fatalf("refused batches left %d logs", len(got))
	}
	must(t, st.Append(bg, "s1"))
	if got := list(t, st, session.Query{}); len(got) != 0 {
		t.Fatalf("an empty batch made a log")
	}
	add(t, st, "s1", recs[:2]...)
	must(t, st.Append(bg, "s1"))
	for at := 2; at < len(recs); at++ {
		batch := bad(at, func(r *session.Record) { r.Body = nil })[2:]
		if err := st.Append(bg, "s1", batch...); err == nil {
			t.Fatalf("a batch whose record %d has no body was accepted", at+1)
		}
		wantLog(t, st, "s1", recs[:2])
		wantReplay(t, st, "s1")
	}
	must(t, st.Close())
	st = s.at(t, dir)
	wantLog(t, st, "s1", recs[:2])
	add(t, st, "s1", recs[2:]...)

	long := logOf("s2", "k", bodies(1500)...)
	add(t, st, "s2", long...)
	wantLog(t, st, "s2", long)
	wantReplay(t, st, "s2")
}

// bodies returns n messages, alternately of the user and of the model.
func bodies(n int) []session.Body {
	var out []session.Body
	for i := range n {
		if i%2 == 0 {
			out = append(out, sessiontest.User(fmt.Sprintf("question %d", i)))
		} else {
			out = append(out, sessiontest.Answer(fmt.Sprintf("answer %d", i)))
		}
	}
	return out
}

func (s suite) trash(t *testing.T) {
	st := s.fresh(t)
	recs := sessiontest.Log(sessiontest.User("hi"), sessiontest.Answer("hello"))
	add(t, st, "s1", recs...)
	add(t, st, "s2", header("s2", "other"))
	for what, f := range map[string]func() error{
		"delete of no log":      func() error { return st.Delete(bg, "nobody") },
		"restore of no log":     func() error { return st.Restore(bg, "nobody") },
		"purge of no log":       func() error { return st.Purge(bg, "nobody") },
		"restore of a live log": func() error { return st.Restore(bg, "s1") },
		"purge of a live log":   func() error { return st.Purge(bg, "s1") },
	} {
		wantErr(t, what, f(), session.ErrNotFound)
	}
	wantLog(t, st, "s1", recs)

	before, err := session.Stat(bg, st, "s1")
	must(t, err)
	must(t, st.Delete(bg, "s1"))
	if got := list(t, st, session.Query{}); len(got) != 1 || got[0].ID != "s2" {
		t.Errorf("after deleting s1 the list is %+v, want s2 alone", got)
	}
	in := list(t, st, session.Query{Trash: true})
	if len(in) != 1 || in[0].ID != "s1" {
		t.Fatalf("the trash holds %+v, want s1 alone", in)
	}
	if d := time.Since(in[0].Trashed); d < -time.Minute || d > time.Minute {
		t.Errorf("s1 was trashed at %v, which is %v ago", in[0].Trashed, d)
	}
	gone := in[0]
	gone.Trashed = time.Time{}
	if d := cmp.Diff(before, gone); d != "" {
		t.Errorf("the trash changed the info (-before +after):\n%s", d)
	}
	wantLog(t, st, "s1", recs)
	next := session.Record{Seq: 4, ID: "e3", Parent: "e2", Time: sessiontest.Start, Body: sessiontest.User("more")}
	wantErr(t, "append to the trash", st.Append(bg, "s1", next), session.ErrNotFound)
	if err := st.Append(bg, "s1", recs[0]); err == nil {
		t.Error("a log was begun in place of one in the trash")
	}
	wantErr(t, "delete of a log in the trash", st.Delete(bg, "s1"), session.ErrNotFound)
	if got := list(t, st, session.Query{Key: sessiontest.Key}); len(got) != 0 {
		t.Errorf("a key whose log is in the trash lists %d", len(got))
	}

	must(t, st.Restore(bg, "s1"))
	after, err := session.Stat(bg, st, "s1")
	must(t, err)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("delete and restore changed the info (-before +after):\n%s", d)
	}
	add(t, st, "s1", next)
	wantLog(t, st, "s1", append(recs, next))

	must(t, st.Delete(bg, "s1"))
	must(t, st.Purge(bg, "s1"))
	_, err = sessiontest.Collect(st.Read(bg, "s1", 0))
	wantErr(t, "read of a purged log", err, session.ErrNotFound)
	wantErr(t, "restore of a purged log", st.Restore(bg, "s1"), session.ErrNotFound)
	wantErr(t, "second purge", st.Purge(bg, "s1"), session.ErrNotFound)
	if _, err := session.Stat(bg, st, "s1"); err == nil {
		t.Error("a purged log is still listed")
	}
	again := sessiontest.Log(sessiontest.User("again"))
	add(t, st, "s1", again...)
	wantLog(t, st, "s1", again)
	wantReplay(t, st, "s1")
	if got := list(t, st, session.Query{}); len(got) != 2 {
		t.Errorf("at the end there are %d logs, want 2", len(got))
	}
}

func (s suite) trashReopened(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	recs := logOf("a", "k", sessiontest.User("a"))
	add(t, st, "a", recs...)
	for _, id := range []session.ID{"b", "c"} {
		add(t, st, id, header(id, "k"))
	}
	must(t, st.Delete(bg, "a"))
	must(t, st.Delete(bg, "b"))
	must(t, st.Purge(bg, "b"))
	was, err := session.Stat(bg, st, "a")
	must(t, err)
	must(t, st.Close())
	st = s.at(t, dir)
	if got := list(t, st, session.Query{Trash: true}); len(got) != 1 || got[0].ID != "a" || !got[0].Trashed.Equal(was.Trashed) {
		t.Errorf("reopened, the trash holds %+v, want %+v", got, was)
	}
	if got := list(t, st, session.Query{}); len(got) != 1 || got[0].ID != "c" {
		t.Errorf("reopened, the list is %+v, want c", got)
	}
	must(t, st.Restore(bg, "a"))
	must(t, st.Close())
	st = s.at(t, dir)
	wantLog(t, st, "a", recs)
	if got := list(t, st, session.Query{}); len(got) != 2 {
		t.Errorf("restored and reopened, the list is %+v, want a and c", got)
	}
}

// moved: a session is found by its new key, through every handle, and its header
// still has the old one.
func (s suite) moved(t *testing.T) {
	dir := t.TempDir()
	st, other := s.at(t, dir), s.at(t, dir)
	recs := logOf("s1", "agent:main:old", sessiontest.User("hi"))
	h := recs[0].Body.(session.Header)
	h.Origin = session.Origin{Program: "openclaw", Path: "/x.jsonl", Key: h.Key, ID: h.ID}
	recs[0].Body = h
	add(t, st, "s1", recs...)
	for _, st := range []session.Store{st, other} {
		if in, err := session.Current(bg, st, "agent:main:old"); err != nil || in.ID != "s1" {
			t.Fatalf("Current is %+v, %v", in, err)
		}
	}
	for i, key := range []session.Key{"agent:main:new", "agent:ops:main"} {
		r := session.Record{Seq: session.Seq(3 + i), ID: string(key), Parent: "e1", Side: true, Time: sessiontest.Start, Body: session.Moved{Key: key}}
		recs = append(recs, r)
		add(t, st, "s1", r)
		reopened := s.at(t, dir)
		for _, st := range []session.Store{st, other, reopened} {
			wantLog(t, st, "s1", recs)
			wantReplay(t, st, "s1")
			if in, err := session.Current(bg, st, key); err != nil || in.ID != "s1" || in.Leaf != "e1" || in.Origin.Key != "agent:main:old" {
				t.Errorf("moved to %s: Current is %+v, %v", key, in, err)
			}
			_, err := session.Current(bg, st, "agent:main:old")
			wantErr(t, "the key that it had", err, session.ErrNotFound)
		}
	}
}

// marked: a mark in the header and the latest record that changes it are in the
// list, through every handle, whatever the program is called.
func (s suite) marked(t *testing.T) {
	dir := t.TempDir()
	st, other := s.at(t, dir), s.at(t, dir)
	program := "codex\x1f2"
	recs := logOf("s1", "codex:proj:s1", sessiontest.User("hi"))
	h := recs[0].Body.(session.Header)
	h.Origin = session.Origin{Program: program, Path: "/x.jsonl", Key: h.Key, ID: h.ID, Mark: session.Subagent}
	recs[0].Body = h
	add(t, st, "s1", recs...)
	want := func(mark string) {
		t.Helper()
		for _, st := range []session.Store{st, other, s.at(t, dir)} {
			wantReplay(t, st, "s1")
			in, err := session.Stat(bg, st, "s1")
			if err != nil || in.Origin.Mark != mark || in.Origin.Program != program || in.Subagent() != (mark == session.Subagent) || in.Leaf != "e1" {
				t.Errorf("the mark is %q of %q, want %q (%v)", in.Origin.Mark, in.Origin.Program, mark, err)
			}
		}
	}
	want(session.Subagent)
	for i, mark := range []string{session.Archived, "", session.Deleted} {
		r := session.Record{Seq: session.Seq(3 + i), ID: "mark" + mark, Parent: "e1", Side: true, Time: sessiontest.Start, Body: session.Marked{Mark: mark}}
		add(t, st, "s1", r)
		want(mark)
	}
}

func (s suite) list(t *testing.T) {
	st := s.fresh(t)
	at := func(id session.ID, key session.Key, minutes int, title string) {
		recs := logOf(id, key, sessiontest.Title(title))
		for i := range recs {
			recs[i].Time = sessiontest.Start.Add(time.Duration(minutes) * time.Minute)
		}
		add(t, st, id, recs...)
	}
	at("s1", "main:cli:user", 1, "Groceries")
	at("s2", "agent:ops:telegram:direct:42", 5, "École d'été")
	at("s3", "agent:main:main", 3, "100% sure_thing")
	at("b", "agent:ops:main", 3, "")
	at("B", "agent:ops:cron:nightly", 3, "")
	at("t1", "main:cli:user", 9, "gone")
	must(t, st.Delete(bg, "t1"))
	all := list(t, st, session.Query{})
	for _, c := range []struct {
		q    session.Query
		want []session.ID
	}{
		{session.Query{}, []session.ID{"s2", "B", "b", "s3", "s1"}},
		{session.Query{Limit: 2}, []session.ID{"s2", "B"}},
		{session.Query{Limit: 99}, []session.ID{"s2", "B", "b", "s3", "s1"}},
		{session.Query{ID: "s3"}, []session.ID{"s3"}},
		{session.Query{ID: "S3"}, nil},
		{session.Query{ID: "s3", Key: "main:cli:user"}, nil},
		{session.Query{Key: "main:cli:user"}, []session.ID{"s1"}},
		{session.Query{Key: "main:cli"}, nil},
		{session.Query{Agent: "ops"}, []session.ID{"s2", "B", "b"}},
		{session.Query{Agent: "ops", Channel: "cron"}, []session.ID{"B"}},
		{session.Query{Agent: "ops", Limit: 1}, []session.ID{"s2"}},
		{session.Query{Channel: "cli"}, []session.ID{"s1"}},
		{session.Query{Agent: "op"}, nil},
		{session.Query{Text: "grocer"}, []session.ID{"s1"}},
		{session.Query{Text: "GROCER"}, []session.ID{"s1"}},
		{session.Query{Text: "éCOLE D'É"}, []session.ID{"s2"}},
		{session.Query{Text: "telegram"}, []session.ID{"s2"}},
		{session.Query{Text: "S3"}, []session.ID{"s3"}},
		{session.Query{Text: "100%"}, []session.ID{"s3"}},
		{session.Query{Text: "%"}, []session.ID{"s3"}},
		{session.Query{Text: "sure_"}, []session.ID{"s3"}},
		{session.Query{Text: "_"}, []session.ID{"s3"}},
		{session.Query{Text: "e", Limit: 1}, []session.ID{"s2"}},
		{session.Query{Trash: true}, []session.ID{"t1"}},
		{session.Query{Trash: true, Text: "GONE"}, []session.ID{"t1"}},
		{session.Query{Trash: true, ID: "s1"}, nil},
	} {
		var got []session.ID
		for _, in := range list(t, st, c.q) {
			got = append(got, in.ID)
			if !c.q.Match(in) {
				t.Errorf("list %+v yields %s, which does not match", c.q, in.ID)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("list %+v = %v, want %v", c.q, got, c.want)
		}
	}
	for range st.List(bg, session.Query{}) {
		break // must release everything that the next call needs
	}
	if d := cmp.Diff(all, list(t, st, session.Query{})); d != "" {
		t.Errorf("two lists in a row differ:\n%s", d)
	}
}

func (s suite) keys(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	keys := []session.Key{"a:b", "A:b", "a:B", "a_b", "a:b ", " a:b", "a:b:", "a", "a:b\x00", "a:b\x00c", "a:b\n", "🦀", "🦀\u200d", "é", "e\u0301",
		"", "%", "a%3ab", "../x", "'; drop table sessions; --", `"`, `\`, "\u2028", "ſ", "s", "ß", "SS"}
	for i, k := range keys {
		id := session.ID(fmt.Sprintf("s%02d", i))
		add(t, st, id, header(id, k))
	}
	check := func(st session.Store) {
		t.Helper()
		for i, k := range keys {
			if k == "" {
				continue // selects all
			}
			got := list(t, st, session.Query{Key: k})
			if len(got) != 1 || got[0].Key != k || got[0].ID != session.ID(fmt.Sprintf("s%02d", i)) {
				t.Errorf("list of key %q = %+v, want that key alone", k, got)
			}
		}
		if got := list(t, st, session.Query{}); len(got) != len(keys) {
			t.Errorf("%d keys gave %d sessions", len(keys), len(got))
		}
	}
	check(st)
	must(t, st.Close())
	check(s.at(t, dir))
}

func (s suite) ids(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	ids := []session.ID{"a", "A", "a:b", "a_b", "a b", "a ", " a", "../x", "..", ".", "/", "a/b", `a\b`, "con", "con.jsonl", "nul", "🦀", "é", "e\u0301", "%", "%61",
		"a\n", "*", "a.jsonl", "a.jsonl.lock", "sessions", "sessions.json", "-rf", "~", "'", session.ID(longText(300))}
	for _, id := range ids {
		add(t, st, id, logOf(id, "k", sessiontest.User("I am "+string(id)))...)
	}
	check := func(st session.Store) {
		t.Helper()
		for _, id := range ids {
			wantLog(t, st, id, logOf(id, "k", sessiontest.User("I am "+string(id))))
			if in, err := session.Stat(bg, st, id); err != nil || in.ID != id {
				t.Errorf("stat of %q = %q, %v", id, in.ID, err)
			}
		}
		got := list(t, st, session.Query{})
		if len(got) != len(ids) {
			t.Errorf("%d ids gave %d sessions", len(ids), len(got))
		}
		for i := 1; i < len(got); i++ { // all were updated at one time
			if got[i-1].ID >= got[i].ID {
				t.Errorf("list has %q before %q", got[i-1].ID, got[i].ID)
			}
		}
	}
	check(st)
	must(t, st.Close())
	st = s.at(t, dir)
	check(st)
	must(t, st.Delete(bg, "a"))
	wantLog(t, st, "A", logOf("A", "k", sessiontest.User("I am A")))
	must(t, st.Purge(bg, "a"))
	wantLog(t, st, "A", logOf("A", "k", sessiontest.User("I am A")))
}

func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghij"[i%10]
	}
	return string(b)
}

func (s suite) clocks(t *testing.T) {
	st := s.fresh(t)
	seed := uint64(0)
	for name, step := range map[string]time.Duration{"stands still": 0, "runs back": -90 * time.Second, "runs": time.Millisecond, "runs finely": 100 * time.Nanosecond} {
		seed++
		c := &sessiontest.Clock{Step: step, Seed: seed}
		one, err := session.Begin(bg, st, session.Header{Key: session.Key(name)}, c)
		must(t, err)
		var want []string
		for i := range 30 {
			r := one.Next(sessiontest.User(fmt.Sprint(i)), c)
			add(t, st, one.ID, r)
			must(t, one.Apply(r))
			want = append(want, r.ID)
		}
		got := read(t, st, one.ID, 1)
		var ids []string
		for i, r := range got {
			ids = append(ids, r.ID)
			if r.Seq != session.Seq(i)+2 {
				t.Errorf("clock %s: record %d has number %d", name, i+2, r.Seq)
			}
		}
		if d := cmp.Diff(want, ids); d != "" {
			t.Errorf("clock %s: order (-want +got):\n%s", name, d)
		}
		wantReplay(t, st, one.ID)
		again, err := session.Load(bg, st, session.Key(name), c)
		must(t, err)
		if again.ID != one.ID || again.Turns != 30 {
			t.Errorf("clock %s: loaded %s with %d turns, want %s with 30", name, again.ID, again.Turns, one.ID)
		}
		two, err := session.Begin(bg, st, session.Header{Key: session.Key(name)}, c)
		must(t, err)
		if cur, err := session.Current(bg, st, session.Key(name)); err != nil || cur.ID != two.ID {
			t.Errorf("clock %s: the newest log is %s (%v), want %s", name, cur.ID, err, two.ID)
		}
	}
	// Times as fine as clocks have and as strange as files have.
	recs := logOf("wild", "wild", bodies(6)...)
	for i, at := range []time.Time{sessiontest.Start.Add(123456789), sessiontest.Start.Add(-time.Nanosecond), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), sessiontest.Start.In(time.FixedZone("x", 3600*5+1800)), {}} {
		recs[i].Time = at
	}
	for _, r := range recs {
		add(t, st, "wild", r)
		wantReplay(t, st, "wild")
	}
	for i, r := range read(t, st, "wild", 0) {
		if d := r.Time.Sub(recs[i].Time); d <= -time.Millisecond || d >= time.Millisecond {
			t.Errorf("time %v came back as %v", recs[i].Time, r.Time)
		}
	}
}

func (s suite) manySessions(t *testing.T) {
	dir := t.TempDir()
	st := s.at(t, dir)
	const n = 300
	for i := range n {
		id := session.ID(fmt.Sprintf("s%03d", i))
		add(t, st, id, logOf(id, session.Key(fmt.Sprintf("k%d", i%7)), sessiontest.User(fmt.Sprint(i)), sessiontest.Answer("same ids everywhere"))...)
	}
	must(t, st.Close())
	st = s.at(t, dir)
	if got := list(t, st, session.Query{}); len(got) != n {
		t.Fatalf("%d sessions became %d", n, len(got))
	}
	if got := list(t, st, session.Query{Key: "k3"}); len(got) != (n-3+6)/7 {
		t.Errorf("key k3 has %d sessions, want %d", len(got), (n-3+6)/7)
	}
	for i := 0; i < n; i += 37 {
		id := session.ID(fmt.Sprintf("s%03d", i))
		wantLog(t, st, id, logOf(id, session.Key(fmt.Sprintf("k%d", i%7)), sessiontest.User(fmt.Sprint(i)), sessiontest.Answer("same ids everywhere")))
		wantReplay(t, st, id)
	}
}
