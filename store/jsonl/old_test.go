package jsonl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// A folder that v0.1 wrote opens: its index is read as it is, and its
// sessions.json is what this version writes, byte for byte, except that titles
// are labels since.
func TestOldFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("testdata/v0.1")))
	index, err := os.ReadFile(filepath.Join(dir, "index"))
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, "index")))
	st := reopen(t, dir, OpenClaw)

	indexed := map[session.ID]session.Info{}
	clean := parseIndex(string(index), func(e *entry) {
		if !e.isTable() {
			indexed[e.id] = e.view.info
		}
	})
	if !clean {
		t.Error("the index is damaged")
	}
	for id, want := range map[session.ID]struct {
		compactions int
		bend        session.Seq
	}{"straight": {1, 0}, "bent": {0, 4}} {
		s, err := session.Replay(id, st.Read(t.Context(), id, 0))
		must(t, err)
		if d := cmp.Diff(s.Info, indexed[id], sessiontest.SameInfo); d != "" {
			t.Errorf("%s in the index (-replay +index):\n%s", id, d)
		}
		if s.Compactions != want.compactions || s.LastBend != want.bend {
			t.Errorf("%s has %d compactions and its last bend at %d, want %+v", id, s.Compactions, s.LastBend, want)
		}
		checkInfo(t, st, id)
	}

	// Written again, sessions.json is the same, but for the label.
	_, err = st.Rebuild(t.Context())
	must(t, err)
	must(t, st.Close())
	table := filepath.Join("agents", "main", "sessions", "sessions.json")
	want, err := os.ReadFile(filepath.Join("testdata", "v0.1", table))
	must(t, err)
	want = bytes.Replace(want, []byte(`"folds":1}`), []byte(`"folds":1},"label":"A title"`), 1)
	got, err := os.ReadFile(filepath.Join(dir, table))
	must(t, err)
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("sessions.json (-v0.1 +now):\n%s", d)
	}
}
