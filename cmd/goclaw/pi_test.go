package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/fixtures"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
	"goclaw/store/sqlite"
	"goclaw/window"
)

// inPi is what pi makes of a session file.
type inPi struct {
	Messages []string // role and text
	CWD      string
	Name     string
	Listed   bool // among the sessions of its folder
}

// openInPi opens files with a version of pi.
func openInPi(t *testing.T, version string, files ...string) (out []inPi) {
	t.Helper()
	pi, err := filepath.Abs("../../.cache/pi/" + version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(pi, "dist")); err != nil {
		t.Skip("there is no pi in .cache/pi, where scripts/test puts it")
	}
	cmd := exec.Command("node", append([]string{"testdata/pi.mjs", pi}, files...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("pi %s: %v\n%s", version, err, errs.String())
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var s inPi
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// saidIn returns the messages of a session as pi has them.
func saidIn(s *session.Session) []string {
	out := []string{}
	c, recs := window.Sent(s)
	if c != nil {
		out = append(out, "compactionSummary "+c.Summary)
	}
	for _, r := range recs {
		switch b := r.Body.(type) {
		case session.Message:
			role := string(b.Role)
			what := b.Text()
			if rs := b.Results(); len(rs) > 0 {
				role, what = "toolResult", rs[0].Text()
			}
			out = append(out, role+" "+what)
		case session.CustomMessage:
			out = append(out, "custom "+llm.Message{Blocks: b.Blocks}.Text())
		}
	}
	return out
}

// TestPiReadsMirrors: an exported or copied session of another program is in
// pi what it is here, although pi takes the last line of a file for the end of the
// conversation.
func TestPiReadsMirrors(t *testing.T) {
	home := t.TempDir()
	dir := fixtures.Unpack(t, "../../internal/inherit/testdata/real-programs.tar.zst")
	wires, err := filepath.Glob(filepath.Join(dir, "*", "*", "wire.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range wires { // not of the programs
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	typed(t, home, "import", dir)
	st, err := sqlite.Open(filepath.Join(home, "goclaw", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	copies := filepath.Join(home, "copies")
	typed(t, home, "sessions", "copy", "--to", "jsonl", copies)
	var files []string
	var want []*session.Session
	for in, err := range st.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Replay(in.ID, st.Read(t.Context(), in.ID, 0))
		if err != nil {
			t.Fatal(err)
		}
		exported := filepath.Join(home, fmt.Sprint(len(files), ".jsonl"))
		typed(t, home, "sessions", "export", string(in.ID), "-o", exported)
		copied, err := filepath.Glob(filepath.Join(copies, "agents", "*", "sessions", storekit.FileName(string(in.ID))+".jsonl"))
		if err != nil || len(copied) != 1 {
			t.Fatalf("the copies of %s are %q, %v", in.ID, copied, err)
		}
		files = append(files, exported, copied[0])
		want = append(want, s, s)
	}
	if len(files) < 40 {
		t.Fatalf("%d files of sessions, want 40", len(files))
	}
	for _, version := range []string{"0.73.1", "1.5.0"} {
		for i, got := range openInPi(t, version, files...) {
			if diff := cmp.Diff(saidIn(want[i]), got.Messages); diff != "" {
				t.Errorf("pi %s, %s of %s (-ours +pi's):\n%s", version, files[i], want[i].Key, diff)
			}
			if got.CWD != want[i].CWD {
				t.Errorf("pi %s: the folder of %s is %q, want %q", version, want[i].Key, got.CWD, want[i].CWD)
			}
		}
	}
}

// TestPiReadsOurs: a session that ask began is in pi's list for its folder, with
// its title.
func TestPiReadsOurs(t *testing.T) {
	home := t.TempDir()
	typed(t, home, "ask", "--model", "offline", "the tide turns at six")
	typed(t, home, "sessions", "rename", "main", "Tides")
	copies := filepath.Join(home, "copies")
	typed(t, home, "sessions", "copy", "--to", "jsonl", copies)
	files, err := filepath.Glob(filepath.Join(copies, "agents", "main", "sessions", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, version := range []string{"0.73.1", "1.5.0"} {
		got := openInPi(t, version, files[0])[0]
		if got.CWD != home || got.Name != "Tides" || !got.Listed || !slices.Contains(got.Messages, "user the tide turns at six") {
			t.Errorf("pi %s has %+v", version, got)
		}
	}
	table, err := os.ReadFile(filepath.Join(filepath.Dir(files[0]), "sessions.json"))
	if err != nil || !bytes.Contains(table, []byte(`"label": "Tides"`)) {
		t.Errorf("the title is no label in\n%s", table)
	}
}

// TestPiReadsOldMirrors: goclaw 0.5 kept lines of other programs as they were, and
// a mirror can end with some. The export has one more line then.
func TestPiReadsOldMirrors(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "goclaw"), 0o700); err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(filepath.Join(home, "goclaw", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	recs := sessiontest.Log(session.Header{ID: "old", Key: "claude:proj:old", Origin: session.Origin{Program: "claude-code", Path: "/gone.jsonl", ID: "old"}},
		sessiontest.User("hi"), sessiontest.Answer("hello"), session.Unknown{Type: "last-prompt"})
	recs[3].ID, recs[3].Link, recs[3].Raw = "", session.Absent, json.RawMessage(`{"type":"last-prompt","sessionId":"old"}`)
	if err := st.Append(t.Context(), "old", recs...); err != nil {
		t.Fatal(err)
	}
	st.Close()
	file := filepath.Join(home, "old.jsonl")
	typed(t, home, "sessions", "export", "old", "-o", file)
	for _, version := range []string{"0.73.1", "1.5.0"} {
		if diff := cmp.Diff([]string{"user hi", "assistant hello"}, openInPi(t, version, file)[0].Messages); diff != "" {
			t.Errorf("pi %s (-want +got):\n%s", version, diff)
		}
	}
}
