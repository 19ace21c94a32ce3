package inherit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit"
	"goclaw/session"
)

// chained writes a session of n messages to path.
func chained(t *testing.T, path, id string, n int) {
	t.Helper()
	lines := []string{header(id)}
	parent := ""
	for i := range n {
		next := fmt.Sprintf("%s-%d", id, i)
		lines = append(lines, userLine(next, parent, fmt.Sprint("say ", i)))
		parent = next
	}
	write(t, path, strings.Join(lines, "\n")+"\n")
}

// current returns what a key stands for, as its id and turns.
func current(t *testing.T, st session.Store, key session.Key) string {
	t.Helper()
	in, err := session.Current(context.Background(), st, key)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, %d turns", in.ID, in.Turns)
}

// TestOlderCopy: a backup has nothing new, and what it is a copy of stays the
// one to go on with. The other way round, the longer one is.
func TestOlderCopy(t *testing.T) {
	live, backup := t.TempDir(), t.TempDir()
	for dir, n := range map[string]int{live: 20, backup: 4} {
		sessions := filepath.Join(dir, "agents/main/sessions")
		chained(t, filepath.Join(sessions, "aaaa.jsonl"), "aaaa", n)
		write(t, filepath.Join(sessions, "sessions.json"), `{"agent:main:main":{"sessionId":"aaaa"}}`)
	}
	for name, test := range map[string]struct {
		dirs []string
		last inherit.State
		logs int
	}{
		"the live one first": {[]string{live, backup}, inherit.Copy, 1},
		"the backup first":   {[]string{backup, live}, inherit.New, 2},
	} {
		t.Run(name, func(t *testing.T) {
			st := openStore(t, t.TempDir())
			m := inherit.NewMemo("")
			var rep inherit.Report
			for _, dir := range test.dirs {
				rep, _ = take(t, st, m, false, dir)
			}
			if rep.Count(test.last) != 1 || len(dump(t, st)) != test.logs {
				t.Errorf("%v, %d logs; want one %s, %d logs", states(rep), len(dump(t, st)), test.last, test.logs)
			}
			if got := current(t, st, "agent:main:main"); !strings.HasSuffix(got, ", 20 turns") {
				t.Errorf("the key stands for %s, want the one with 20 turns", got)
			}
			for _, m := range []*inherit.Memo{m, inherit.NewMemo("")} {
				if rep, _ = take(t, st, m, false, test.dirs...); rep.Records() != 0 || rep.Count(inherit.New) != 0 {
					t.Errorf("again: %v, %d records", states(rep), rep.Records())
				}
			}
		})
	}
}

// TestUpgradedOwner: OpenClaw has moved its files into a database. The keys
// stand for what it writes there.
func TestUpgradedOwner(t *testing.T) {
	dir := unpacked(t)
	st := openStore(t, t.TempDir())
	m := inherit.NewMemo("")
	files := filepath.Join(dir, "openclaw-2026.2.1", "dot-openclaw")
	take(t, st, m, false, files)
	if err := os.Rename(files, filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "openclaw-2026.9.6-imported", "openclaw-agent.sqlite")
	take(t, st, m, false, path)
	owner, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	// Its main session differs from the file, the other does not.
	for key, id := range map[session.Key]string{"agent:main:main": "d0d7f0bc-5c9c-4418-b017-52a9bc82e88f", "agent:main:webchat:dm:flush": "b476b690-35d1-41dd-8989-56b04c580cd0"} {
		in, err := session.Current(context.Background(), st, key)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Replace(userLine("live", in.Leaf, "after the upgrade"), "2026-11-15T00:00:01", "2026-11-16T00:00:01", 1)
		if err := owner.Exec(fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, event_json, created_at)
			SELECT session_id, max(seq)+1, '%s', 0 FROM transcript_events WHERE session_id = '%s'`, line, id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	take(t, st, m, false, path)
	for _, key := range []session.Key{"agent:main:main", "agent:main:webchat:dm:flush"} {
		in, err := session.Current(context.Background(), st, key)
		if err != nil {
			t.Fatal(err)
		}
		if in.Leaf != "live" {
			t.Errorf("%s stands for %s, which ends with %q", key, in.ID, in.Leaf)
		}
	}
}

// TestKeysFollowTheIndex: whatever the owner's index says last is what a
// session is called, also if it could not be read before, or came later.
func TestKeysFollowTheIndex(t *testing.T) {
	const recovered = "agent:main:recovered:"
	type step struct {
		index string
		moved int
		want  map[session.Key]string
	}
	none := "there is no session with the key %q"
	tests := map[string][]step{
		"a torn index": {
			{`{"agent:main:main":{"sessionId":"aaaa"`, 0, map[session.Key]string{recovered + "aaaa": "aaaa, 4 turns"}},
			{`{"agent:main:main":{"sessionId":"aaaa"}}`, 1, map[session.Key]string{"agent:main:main": "aaaa, 4 turns", recovered + "aaaa": none}},
			{`{"agent:main:main":{"sessionId":"aaaa"`, 0, map[session.Key]string{"agent:main:main": "aaaa, 4 turns"}},
		},
		"its entry comes later": {
			{`{}`, 0, map[session.Key]string{recovered + "aaaa": "aaaa, 4 turns"}},
			{`{"agent:main:main":{"sessionId":"aaaa","label":"Late"}}`, 1, map[session.Key]string{"agent:main:main": "aaaa, 4 turns"}},
		},
		"no index at first": {
			{``, 0, map[session.Key]string{"pi:work:aaaa": "aaaa, 4 turns"}},
		},
		"pointed elsewhere": {
			{`{"agent:main:main":{"sessionId":"bbbb","label":"Main"}}`, 0, map[session.Key]string{"agent:main:main": "bbbb, 6 turns"}},
			{`{"agent:main:main":{"sessionId":"aaaa"},"agent:main:other":{"sessionId":"bbbb","label":"Other"}}`, 2,
				map[session.Key]string{"agent:main:main": "aaaa, 4 turns", "agent:main:other": "bbbb, 6 turns"}},
			{`{"agent:main:main":{"sessionId":"bbbb"},"agent:main:other":{"sessionId":"aaaa"}}`, 2,
				map[session.Key]string{"agent:main:main": "bbbb, 6 turns", "agent:main:other": "aaaa, 4 turns"}},
		},
		"back to an older one": { // bbbb has more, and would be the current one
			{`{"agent:main:main":{"sessionId":"bbbb"}}`, 0, map[session.Key]string{"agent:main:main": "bbbb, 6 turns"}},
			{`{"agent:main:main":{"sessionId":"aaaa"}}`, 2, map[session.Key]string{"agent:main:main": "aaaa, 4 turns", recovered + "bbbb": "bbbb, 6 turns"}},
		},
		"its entry is gone": {
			{`{"agent:main:main":{"sessionId":"aaaa"}}`, 0, map[session.Key]string{"agent:main:main": "aaaa, 4 turns"}},
			{`{"agent:main:x":{"sessionId":"cccc"}}`, 0, map[session.Key]string{"agent:main:main": "aaaa, 4 turns"}},
		},
	}
	for name, steps := range tests {
		for _, remember := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", name, remember), func(t *testing.T) {
				sessions := filepath.Join(t.TempDir(), "s")
				if name != "no index at first" {
					sessions = filepath.Join(t.TempDir(), "agents/main/sessions")
				}
				chained(t, filepath.Join(sessions, "aaaa.jsonl"), "aaaa", 4)
				chained(t, filepath.Join(sessions, "bbbb.jsonl"), "bbbb", 6)
				st := openStore(t, t.TempDir())
				m := inherit.NewMemo("")
				for i, step := range steps {
					if step.index != "" {
						write(t, filepath.Join(sessions, "sessions.json"), step.index+strings.Repeat("\n", i))
					}
					if !remember {
						m = inherit.NewMemo("")
					}
					rep, _ := take(t, st, m, false, sessions)
					if rep.Moved() != step.moved || i > 0 && rep.Count(inherit.New)+rep.Count(inherit.Rewritten) > 0 {
						t.Errorf("step %d: %v, %d moved, want %d", i, states(rep), rep.Moved(), step.moved)
					}
					for key, want := range step.want {
						if want == none {
							want = fmt.Sprintf(none, key)
						}
						if got := current(t, st, key); got != want {
							t.Errorf("step %d: %s stands for %s, want %s", i, key, got, want)
						}
					}
					if rep, _ = take(t, st, m, false, sessions); rep.Moved()+rep.Records() > 0 {
						t.Errorf("step %d, again: %d moved, %d records", i, rep.Moved(), rep.Records())
					}
				}
				if n := len(dump(t, st)); n != 2 {
					t.Errorf("%d logs, want 2", n)
				}
			})
		}
	}
}

// TestWaysOfReading: each way has one log, which is found again, and the key
// stands for the one that was asked for.
func TestWaysOfReading(t *testing.T) {
	src := t.TempDir()
	lines := []string{header("s"), userLine("1", "", "one"), userLine("2", "gone", "two"), userLine("3", "2", "three")}
	file := filepath.Join(src, "agents/main/sessions/s.jsonl")
	write(t, file, strings.Join(lines, "\n")+"\n")
	write(t, filepath.Join(src, "agents/main/sessions/sessions.json"), `{"agent:main:main":{"sessionId":"s"}}`)
	for _, remember := range []bool{true, false} {
		st := openStore(t, t.TempDir())
		m := inherit.NewMemo("")
		turns := map[bool]string{true: "strict-s, 2 turns", false: "s, 3 turns"}
		for i, strict := range []bool{true, false, true, false, false, true} {
			if !remember {
				m = inherit.NewMemo("")
			}
			rep, _ := take(t, st, m, strict, src)
			if i > 1 && rep.Count(inherit.Unchanged) != 1 {
				t.Errorf("%d: %v, want unchanged", i, states(rep))
			}
			if got := current(t, st, "agent:main:main"); got != turns[strict] {
				t.Errorf("%d, strict %v: the key stands for %s, want %s", i, strict, got, turns[strict])
			}
			if n := len(dump(t, st)); n != min(i+1, 2) {
				t.Errorf("%d: %d logs", i, n)
			}
		}
		if got := current(t, st, "agent:main:main:healed"); got != turns[false] {
			t.Errorf("the other one is %s, want %s", got, turns[false])
		}
	}
}

// TestRemovedOfManyWithOneID: a session that was removed for good is not taken
// from its file nor from a copy elsewhere. Others that have its id are.
func TestRemovedOfManyWithOneID(t *testing.T) {
	ctx := context.Background()
	src, copied, home := t.TempDir(), t.TempDir(), t.TempDir()
	chained(t, filepath.Join(src, "a.jsonl"), "s", 2)
	chained(t, filepath.Join(copied, "a.jsonl"), "s", 2)
	st := openStore(t, home)
	removed, err := inherit.OpenRemoved(filepath.Join(home, "removed.json"))
	if err != nil {
		t.Fatal(err)
	}
	purge := func(id session.ID) {
		t.Helper()
		in, err := session.Stat(ctx, st, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{removed.Add(in), st.Delete(ctx, id), st.Purge(ctx, id)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func(strict bool) map[string]inherit.State {
		t.Helper()
		cat, err := inherit.Find(ctx, []string{src, copied}, inherit.FindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer cat.Close()
		rep, err := inherit.Import(ctx, st, cat, inherit.ImportOptions{Removed: removed, Strict: strict})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]inherit.State{}
		for _, o := range rep.Outcomes {
			got[filepath.Base(filepath.Dir(o.Path))+"/"+filepath.Base(o.Path)] = o.State
		}
		return got
	}
	at := func(dir, name string) string { return filepath.Base(dir) + "/" + name }
	look(false)
	purge("s")
	for _, name := range []string{"0.jsonl", "b.jsonl"} { // before and behind it
		write(t, filepath.Join(src, name), header("s")+"\n"+userLine("x", "", "in "+name)+"\n")
	}
	for i, want := range []inherit.State{inherit.New, inherit.Unchanged} {
		if diff := cmp.Diff(map[string]inherit.State{
			at(src, "a.jsonl"): inherit.Purged, at(copied, "a.jsonl"): inherit.Purged, at(src, "0.jsonl"): want, at(src, "b.jsonl"): want,
		}, look(false)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
	}
	if got := look(true)[at(src, "a.jsonl")]; got != inherit.Purged {
		t.Errorf("read strictly: %s", got)
	}
	for id := range dump(t, st) {
		purge(id)
	}
	for name, got := range look(false) {
		if got != inherit.Purged {
			t.Errorf("all removed, and %s is %s", name, got)
		}
	}
}
