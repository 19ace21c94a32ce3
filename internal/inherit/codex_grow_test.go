package inherit_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/session"
)

// codexHome are the files of Codex in which the user went back in a thread, and
// then forked it.
func codexHome(t *testing.T) (dir string, thread, rewound, fork []byte) {
	t.Helper()
	dir = filepath.Join(realPrograms(t), "codex/0.166.0/sessions/2026/11/15")
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return dir, read(codexThread), read(codexRewound), read(codexFork)
}

const (
	codexThread  = "rollout-2026-11-15T12-44-30-01a1df3c-dc5b-7d60-b192-d6d30f15181c.jsonl"
	codexRewound = "rollout-2026-11-15T12-46-09-01a1df3c-dc5b-7d60-b192-d6d30f15181c_01a1df3e-5ec8-79a2-ad51-0a9a54586157.jsonl"
	codexFork    = "rollout-2026-11-15T12-47-04-01a1df3f-3574-7472-a626-95f423f2b591.jsonl"
)

// TestCodexRewound: the user went back in a thread. Its key stands for the
// branch that goes on; the log has the other one too, and no file of the thread
// becomes a session of its own, whichever of them is named.
func TestCodexRewound(t *testing.T) {
	ctx := context.Background()
	dir, thread, rewound, _ := codexHome(t)
	for _, paths := range [][]string{{dir}, {filepath.Join(dir, codexThread)}, {filepath.Join(dir, codexRewound)}, {filepath.Join(dir, codexRewound), dir}} {
		st := openStore(t, t.TempDir())
		take(t, st, nil, false, paths...)
		in, err := session.Current(ctx, st, "codex:proj:01a1df3c-dc5b-7d60-b192-d6d30f15181c")
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(ctx, st, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		sent := strings.Join(lines(s, ""), "\n")
		if strings.Contains(sent, "@@t7 after abort") || !strings.HasSuffix(sent, "assistant Answer t10.") {
			t.Errorf("%v: the thread goes on in what was thrown away:\n%s", paths, sent)
		}
		if s.Title != "Codex renamed" {
			t.Errorf("%v: the title is %q", paths, s.Title)
		}
		want := slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(thread)+string(rewound)), "\n"))
		got := slices.DeleteFunc(sourceLines(t, st, in.ID), func(line string) bool { return strings.Contains(line, `"goclaw.title.`) })
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("%v: lines in the log (-want +got):\n%s", paths, diff)
		}
		for in, err := range st.List(ctx, session.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(in.Origin.Path), "01a1df3e-5ec8") {
				t.Errorf("%v: %s is a session of its own", paths, in.Origin.Path)
			}
		}
	}
}

// TestCodexPast: the past of a fork is found wherever Codex keeps it, packed or
// not. Without it, the fork is what its own file says, and the import says so.
func TestCodexPast(t *testing.T) {
	ctx := context.Background()
	_, thread, rewound, fork := codexHome(t)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := func(files map[string][]byte) (string, string) {
		home := t.TempDir()
		for name, data := range files {
			write(t, filepath.Join(home, name), string(data))
		}
		st := openStore(t, t.TempDir())
		rep, cat := take(t, st, nil, false, home)
		if len(cat.Problems) > 0 {
			t.Errorf("problems: %v", cat.Problems)
		}
		const id = "01a1df3f-3574-7472-a626-95f423f2b591"
		s, err := session.Open(ctx, st, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rep.Outcomes {
			if o.Log == id {
				return strings.Join(lines(s, ""), "\n"), o.Note
			}
		}
		return "", ""
	}
	day := "sessions/2026/11/15/"
	want, note := sent(map[string][]byte{day + codexThread: thread, day + codexRewound: rewound, day + codexFork: fork})
	if n := strings.Count(want, "user "); n < 8 || note != "" {
		t.Fatalf("%d messages of the user, note %q:\n%s", n, note, want)
	}
	for name, files := range map[string]map[string][]byte{
		"archived": {"archived_sessions/" + codexThread: thread, "archived_sessions/" + codexRewound: rewound, day + codexFork: fork},
		"packed":   {day + codexThread + ".zst": z.EncodeAll(thread, nil), "archived_sessions/" + codexRewound + ".zst": z.EncodeAll(rewound, nil), day + codexFork: fork},
		"flat":     {codexThread: thread, codexRewound: rewound, codexFork: fork},
	} {
		got, note := sent(files)
		if diff := cmp.Diff(want, got); diff != "" || note != "" {
			t.Errorf("%s: note %q, context (-want +got):\n%s", name, note, diff)
		}
	}
	got, note := sent(map[string][]byte{day + codexFork: fork})
	if !strings.HasPrefix(got, "user @@t11 in fork") || !strings.Contains(note, "a missing file (rollout 01a1df3e-5ec8") {
		t.Errorf("without its past: note %q, context:\n%s", note, got)
	}
	// The newest file of a thread without its first.
	if got, note = sent(map[string][]byte{day + codexRewound: rewound, day + codexFork: fork}); !strings.HasPrefix(got, "user @@t9 after rewind") || !strings.HasSuffix(got, "Answer t11.") {
		t.Errorf("with half of its past: note %q, context:\n%s", note, got)
	}
}

// TestCodexGrows: the files of a thread in which the user went back, and of its
// fork, are imported while Codex writes them: after lines, and at any byte
// of some. Nothing is lost and nothing doubled, and in the end the logs read as
// if they had been imported at once.
func TestCodexGrows(t *testing.T) {
	ctx := context.Background()
	_, thread, rewound, fork := codexHome(t)
	home := t.TempDir()
	dir := filepath.Join(home, "sessions/2026/11/15")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	st := openStore(t, t.TempDir())
	m := inherit.NewMemo("")
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, file := range []struct {
		name string
		data []byte
	}{{codexThread, thread}, {codexRewound, rewound}, {codexFork, fork}} {
		var cuts []int
		for at := range lineEnds(file.data) {
			if rnd.IntN(10) > 0 && file.name == codexThread || rnd.IntN(2) > 0 && at > 30_000 {
				continue // some are enough
			}
			cuts = append(cuts, at)
			if next := bytes.IndexByte(file.data[at:], '\n'); next > 0 && rnd.IntN(5) == 0 {
				cuts = append(cuts, at+1+rnd.IntN(next))
			}
		}
		for i, cut := range append(cuts, len(file.data)) {
			if err := os.WriteFile(filepath.Join(dir, file.name), file.data[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if rnd.IntN(3) == 0 {
				m = inherit.NewMemo("")
			}
			rep, _ := take(t, st, m, false, home)
			for _, o := range rep.Outcomes {
				if o.State != inherit.Grown && o.State != inherit.Unchanged && (o.State != inherit.New || i > 1) || o.Damaged > 0 {
					t.Fatalf("%s, %d bytes: %s is %s, %d damaged, %v", file.name, cut, o.Log, o.State, o.Damaged, o.Err)
				}
			}
		}
	}
	whole := openStore(t, t.TempDir())
	take(t, whole, nil, false, home)
	if n := len(dump(t, st)); n != 2 {
		t.Errorf("%d logs, want 2", n)
	}
	// What the fork has of the thread's first file, and of the second.
	past := string(thread[:209483]) + string(rewound[:43897])
	for id, text := range map[session.ID]string{
		"01a1df3c-dc5b-7d60-b192-d6d30f15181c": string(thread) + string(rewound),
		"01a1df3f-3574-7472-a626-95f423f2b591": past + string(fork),
	} {
		want := slices.Sorted(strings.SplitSeq(strings.TrimSpace(text), "\n"))
		for _, store := range []session.Store{whole, st} {
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(sourceLines(t, store, id)))); diff != "" {
				t.Errorf("%s: lines in the log (-want +got):\n%s", id, diff)
			}
		}
		a, err := session.Replay(id, whole.Read(ctx, id, 0))
		if err != nil {
			t.Fatal(err)
		}
		b, err := session.Open(ctx, st, id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(a, ""), lines(b, "")); diff != "" {
			t.Errorf("%s: context (-at once +in steps):\n%s", id, diff)
		}
		if a.Leaf != b.Leaf || a.Turns != b.Turns || a.Spent != b.Spent || a.Updated != b.Updated {
			t.Errorf("%s: at once %v %v %v %v, in steps %v %v %v %v", id, a.Leaf, a.Turns, a.Spent, a.Updated, b.Leaf, b.Turns, b.Spent, b.Updated)
		}
	}
}

// lineEnds yields where each line ends.
func lineEnds(data []byte) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i, c := range data {
			if c == '\n' && !yield(i+1) {
				return
			}
		}
	}
}

// TestExamineCodexThread: a finding names that file of a thread which it is in.
func TestExamineCodexThread(t *testing.T) {
	dir, thread, rewound, _ := codexHome(t)
	write(t, filepath.Join(dir, codexThread), string(thread)+"{broken\n")
	write(t, filepath.Join(dir, codexRewound), string(rewound)+"{broken too\n")
	x, err := doctor.Examine(t.Context(), found(t, filepath.Join(dir, codexRewound)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range x.Findings {
		got = append(got, fmt.Sprintf("%s:%d", filepath.Base(f.Path), f.Line))
	}
	want := []string{fmt.Sprintf("%s:%d", codexThread, bytes.Count(thread, []byte("\n"))+1), fmt.Sprintf("%s:%d", codexRewound, bytes.Count(rewound, []byte("\n"))+1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, x.Findings)
	}
}
