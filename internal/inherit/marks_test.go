package inherit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"goclaw/internal/inherit"
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
