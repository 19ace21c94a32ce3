package inherit_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/inherit"
	"goclaw/session"
)

// TestOddNames: neither a name that is no text nor an id that no log can have
// loses a session, and each is known again.
func TestOddNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("names are text here")
	}
	src, home := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "caf\xe9", "one.jsonl"), header("one")+"\n"+userLine("m1", "", "one")+"\n")
	write(t, filepath.Join(src, "caf\xe8", "two.jsonl"), header("two")+"\n"+userLine("m1", "", "two")+"\n")
	write(t, filepath.Join(src, "na\xefve.jsonl"), userLine("m1", "", "no header")+"\n")
	write(t, filepath.Join(src, "nul.jsonl"), strings.Replace(header("n"), `"id":"n"`, `"id":"n\u0000n"`, 1)+"\n"+userLine("m1", "", "nul")+"\n")
	st := openStore(t, home)
	rep, cat := take(t, st, memo(t, home), false, src)
	if len(cat.Problems) > 0 || rep.Count(inherit.New) != 4 {
		t.Fatalf("%v, problems %v", states(rep), cat.Problems)
	}
	got := map[session.ID]string{}
	for in, err := range st.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[in.ID] = strings.TrimPrefix(in.Origin.Path, src+"/")
	}
	want := map[session.ID]string{"one": "caf%E9/one.jsonl", "two": "caf%E8/two.jsonl", "na%EFve": "na%EFve.jsonl", "nul": "nul.jsonl"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, m := range []*inherit.Memo{memo(t, home), nil} {
		if rep, _ := take(t, st, m, false, src); rep.Count(inherit.Unchanged) != 4 {
			t.Errorf("again: %v", states(rep))
		}
	}
}

// TestStrangers: a file with the name of a transcript that is none has a line of
// its own; many of them that lie anywhere have one together.
func TestStrangers(t *testing.T) {
	src := t.TempDir()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	write(t, filepath.Join(src, "good.jsonl"), header("good")+"\n")
	write(t, filepath.Join(src, "zeros.jsonl"), string(zeros))
	write(t, filepath.Join(src, "data.jsonl"), `{"a":1}`+"\n"+`{"a":2}`+"\n")
	write(t, filepath.Join(src, "zeros.jsonl.zst"), string(z.EncodeAll(zeros, nil)))
	write(t, filepath.Join(src, "notes.txt"), "nothing")
	find := func(path string) (said []string, n int) {
		t.Helper()
		cat, err := inherit.Find(t.Context(), []string{path}, inherit.FindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer cat.Close()
		for _, p := range cat.Problems {
			said = append(said, strings.TrimPrefix(p.String(), src+"/"))
		}
		return said, cat.Unread()
	}
	const lost, unknown = ": nothing but zeros, as a power failure leaves it: its content is lost", "data.jsonl: not a known kind of transcript: JSON lines with the fields a"
	got, n := find(src)
	if diff := cmp.Diff([]string{"zeros.jsonl" + lost, "zeros.jsonl.zst" + lost, unknown}, got); diff != "" || n != 3 {
		t.Errorf("%d unread\n%s", n, diff)
	}
	agent := filepath.Join(src, "agents", "main", "sessions")
	for i := range 15 {
		write(t, filepath.Join(src, "rows", fmt.Sprintf("r%02d.jsonl", i)), `{"a":1}`)
		write(t, filepath.Join(agent, fmt.Sprintf("s%02d.jsonl", i)), `{"a":1}`)
	}
	got, n = find(filepath.Join(src, "rows"))
	if diff := cmp.Diff([]string{"rows/r00.jsonl: not a known kind of transcript: JSON lines with the fields a (and 14 more files)"}, got); diff != "" || n != 1 {
		t.Errorf("%d unread\n%s", n, diff)
	}
	if got, n = find(agent); len(got) != 15 || n != 15 {
		t.Errorf("in an agent's folder: %q", got)
	}
}

// TestMissingTranscripts: an index that lists what is gone says so in one line.
func TestMissingTranscripts(t *testing.T) {
	src := t.TempDir()
	var b bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&b, `,"agent:main:k%04d": {"sessionId": "s%d"}`, i, i)
	}
	write(t, filepath.Join(src, "sessions.json"), "{"+b.String()[1:]+"}")
	write(t, filepath.Join(src, "s7.jsonl"), header("s7")+"\n")
	cat, err := inherit.Find(t.Context(), []string{src}, inherit.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	want := []inherit.Problem{{Path: filepath.Join(src, "sessions.json"), What: "agent:main:k0000 has no transcript (s0.jsonl is not there), nor have 998 more sessions"}}
	if diff := cmp.Diff(want, cat.Problems); diff != "" {
		t.Error(diff)
	}
}

// TestDatabaseWithoutAgent: a database that does not name its agent is read.
func TestDatabaseWithoutAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.sqlite")
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(`CREATE TABLE schema_meta (version INTEGER); CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT);
		INSERT INTO transcript_events VALUES ('d', 0, '` + header("d") + `')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	rep, cat := take(t, openStore(t, t.TempDir()), nil, false, path)
	if len(cat.Problems) > 0 || rep.Count(inherit.New) != 1 || rep.Outcomes[0].Key != "agent:main:recovered:d" {
		t.Errorf("%v, problems %v", rep.Outcomes, cat.Problems)
	}
}
