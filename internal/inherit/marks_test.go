package inherit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/session"
)

// TestMarks: a log says what is special about its session, in the header or, if
// that changes, in a record.
func TestMarks(t *testing.T) {
	const id = "0b5cf0ea-8a0e-4e0f-9d4b-5a2f8a6f0001"
	dir := t.TempDir()
	st := openStore(t, t.TempDir())
	memo := inherit.NewMemo("")
	line := func(typ, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00.000Z","type":%q,"payload":%s}`+"\n", typ, payload)
	}
	rollout := func(id, more string) string {
		return line("session_meta", `{"id":"`+id+`","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/me/proj"`+more+`}`) +
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}`)
	}
	live, archived := filepath.Join(dir, "sessions/2026/rollout-x.jsonl"), filepath.Join(dir, "archived_sessions/rollout-x.jsonl")
	write(t, live, rollout("cx", ""))
	write(t, filepath.Join(dir, "sessions/2026/rollout-y.jsonl"), rollout("sub", `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"cx"}}}`))
	write(t, filepath.Join(dir, "projects/-home-me-proj/"+id+".jsonl"), cc("user", "u1", "", `"message":{"role":"user","content":"go"}`)+"\n")
	want := func(marks map[session.ID]string) {
		t.Helper()
		take(t, st, memo, false, dir)
		for id, mark := range marks {
			in, err := session.Stat(context.Background(), st, id)
			if err != nil || in.Origin.Mark != mark || in.Subagent() != (mark == session.Subagent) {
				t.Errorf("%s is marked %q, want %q (%v)", id, in.Origin.Mark, mark, err)
			}
		}
	}
	want(map[session.ID]string{"cx": "", "sub": session.Subagent, id: ""})

	write(t, archived, "")
	if err := os.Rename(live, archived); err != nil {
		t.Fatal(err)
	}
	want(map[session.ID]string{"cx": session.Archived})
	before := dump(t, st)
	want(map[session.ID]string{"cx": session.Archived})
	if err := os.Rename(archived, live); err != nil {
		t.Fatal(err)
	}
	want(map[session.ID]string{"cx": ""})
	if n, m := len(before["cx"]), len(dump(t, st)["cx"]); m != n+1 {
		t.Errorf("%d records after it was taken out of the archive, %d before, want one more", m, n)
	}
}

// TestDeletedThere: what was deleted in its program is imported when asked for, or
// when its file is named. The log of one that was imported before is marked.
func TestDeletedThere(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	folder := filepath.Join(dir, "agents/main/sessions")
	log := func(id string) string {
		return `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/"}` + "\n" +
			`{"type":"message","id":"m-` + id + `","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	}
	const end = ".jsonl.deleted.2026-11-15T00-15-28.552Z"
	write(t, filepath.Join(folder, "live.jsonl"), log("live"))
	write(t, filepath.Join(folder, "away.jsonl"), log("away"))
	write(t, filepath.Join(folder, "gone"+end), log("gone"))
	write(t, filepath.Join(folder, "named"+end), log("named"))
	write(t, filepath.Join(folder, "sessions.json"), `{"agent:main:main":{"sessionId":"live"},"agent:main:away":{"sessionId":"away","archivedAt":1794701496880}}`)
	st, memo := openStore(t, t.TempDir()), inherit.NewMemo("")
	imported := func(deleted bool, paths ...string) map[session.ID]inherit.State {
		t.Helper()
		cat, err := inherit.Find(ctx, paths, inherit.FindOptions{Memo: memo})
		if err != nil {
			t.Fatal(err)
		}
		defer cat.Close()
		rep, err := inherit.Import(ctx, st, cat, inherit.ImportOptions{Memo: memo, Deleted: deleted})
		if err != nil {
			t.Fatal(err)
		}
		states := map[session.ID]inherit.State{}
		for _, o := range rep.Outcomes {
			states[o.ID] = o.State
		}
		return states
	}
	marks := func() map[session.ID]string {
		t.Helper()
		out := map[session.ID]string{}
		for in, err := range st.List(ctx, session.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			out[in.ID] = in.Origin.Mark
		}
		return out
	}
	type states = map[session.ID]inherit.State
	type marked = map[session.ID]string
	steps := []struct {
		name    string
		before  func() error
		deleted bool
		paths   []string
		states  states
		marks   marked
	}{
		{"at first", nil, false, []string{dir}, states{"live": inherit.New, "away": inherit.New, "gone": inherit.Deleted, "named": inherit.Deleted}, marked{"live": "", "away": session.Archived}},
		{"a file that is named", nil, false, []string{filepath.Join(folder, "named"+end)}, states{"named": inherit.New}, marked{"live": "", "away": session.Archived, "named": session.Deleted}},
		{"deleted since", func() error { return os.Rename(filepath.Join(folder, "live.jsonl"), filepath.Join(folder, "live"+end)) }, false, []string{dir},
			states{"live": inherit.Copy, "away": inherit.Unchanged, "gone": inherit.Deleted, "named": inherit.Unchanged}, marked{"live": session.Deleted, "away": session.Archived, "named": session.Deleted}},
		{"asked for", nil, true, []string{dir}, states{"live": inherit.Copy, "away": inherit.Unchanged, "gone": inherit.New, "named": inherit.Unchanged},
			marked{"live": session.Deleted, "away": session.Archived, "named": session.Deleted, "gone": session.Deleted}},
		{"and then not", nil, false, []string{dir}, states{"live": inherit.Copy, "away": inherit.Unchanged, "gone": inherit.Unchanged, "named": inherit.Unchanged},
			marked{"live": session.Deleted, "away": session.Archived, "named": session.Deleted, "gone": session.Deleted}},
	}
	for _, s := range steps {
		if s.before != nil {
			if err := s.before(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(s.states, imported(s.deleted, s.paths...)); diff != "" {
			t.Errorf("%s: states (-want +got):\n%s", s.name, diff)
		}
		if diff := cmp.Diff(s.marks, marks()); diff != "" {
			t.Errorf("%s: marks (-want +got):\n%s", s.name, diff)
		}
	}
}

// TestDeletedInACopy: what was deleted in OpenClaw is still deleted in a
// repaired copy of its database.
func TestDeletedInACopy(t *testing.T) {
	db := filepath.Join(unpacked(t), "openclaw-2026.9.6/openclaw-agent.sqlite")
	c := doctor.Copy{Root: db, To: filepath.Join(t.TempDir(), "copy"), Folder: true}
	want := map[inherit.State]int{inherit.New: 14, inherit.Deleted: 1}
	for _, from := range []string{db, c.To} {
		cat, err := inherit.Find(t.Context(), []string{from}, inherit.FindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer cat.Close()
		rep, err := inherit.Import(t.Context(), openStore(t, t.TempDir()), cat, inherit.ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, states(rep)); diff != "" {
			t.Errorf("%s: %s", from, diff)
		}
		if from == c.To {
			break
		}
		for _, o := range rep.Outcomes {
			x, err := doctor.Examine(t.Context(), o.Transcript)
			if err == nil {
				_, err = c.Add(t.Context(), x)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
}
