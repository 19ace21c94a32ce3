package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// codesOf returns the vectors of messages as the file at path has them: by their
// chunk and their place in it.
func codesOf(t *testing.T, ix *Index) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := ix.messages.db.Each(func(r sqlx.Row) error {
		const size = 33
		for d := r.Bytes(1); len(d) > 0; d = d[min(size, len(d)):] {
			at := fmt.Sprintf("%d/%d", r.ColumnInt64(0), d[0])
			if _, ok := out[at]; ok || len(d) < size {
				t.Errorf("the vector at %s is there twice, or cut off", at)
			}
			out[at] = string(d[1:min(size, len(d))])
		}
		return nil
	}, "SELECT pos, data FROM recall_codes")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// holders returns the files below dir that hold one of texts.
func holders(t *testing.T, dir string, texts ...string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if slices.ContainsFunc(texts, func(s string) bool { return bytes.Contains(data, []byte(s)) }) {
			out = append(out, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForgottenByMeaning: what only its vector finds is found no more once it is
// redacted or purged, and no file holds its vector, nor, if purged, its words.
func TestForgottenByMeaning(t *testing.T) {
	const secret, question = "Our cat is allergic to poultry, so buy only the salmon food.", "feline dietary restriction"
	redact := func(t *testing.T, w *world) {
		s, err := session.Open(t.Context(), w, "a")
		if err != nil {
			t.Fatal(err)
		}
		b := session.Redaction{Targets: []session.Target{{ID: "a-8", Spans: []session.Span{{Field: "blocks.0", Start: 0, End: len(secret)}}}}}
		if _, err := session.Keep(t.Context(), w, s, s.Next(b, session.System{}), session.System{}); err != nil {
			t.Fatal(err)
		}
	}
	purge := func(t *testing.T, w *world) {
		err := errors.Join(w.Delete(t.Context(), "a"), w.ix.Prune(t.Context()), w.Purge(t.Context(), "a"))
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, forget := range map[string]func(*testing.T, *world){"redacted": redact, "purged": purge} {
		for _, store := range []string{"sqlite", "jsonl"} {
			t.Run(name+" in "+store, func(t *testing.T) {
				w := worlds[store](t, Options{Embedder: Local{}})
				say(t, w, "a", append(slices.Clone(chatter), "user: "+secret)...)
				say(t, w, "b", chatter...)
				embed := func() {
					t.Helper()
					if _, err := w.ix.Embed(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				embed()
				if got := find(t, w.ix, Query{Text: question}); !slices.Equal(got, []string{"a#8"}) {
					t.Fatalf("found %v, want a#8 by its vector", got)
				}
				n, err := w.ix.messages.db.Int("SELECT n FROM recall_sessions WHERE id = 'a'")
				if err != nil {
					t.Fatal(err)
				}
				vector := codesOf(t, w.ix)[fmt.Sprintf("%d/8", n<<32)]
				dir := filepath.Dir(w.path)
				if len(vector) != 32 || len(holders(t, dir, vector)) == 0 || len(holders(t, dir, "poultry")) == 0 {
					t.Fatal("the vector or the words were never in a file: the test tests nothing")
				}
				forget(t, w)
				if got := find(t, w.ix, Query{Text: question}); len(got) != 0 {
					t.Errorf("found %v", got)
				}
				if err := w.ix.Prune(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := holders(t, dir, vector); len(got) != 0 {
					t.Errorf("%v hold its vector", got)
				}
				if got := holders(t, dir, "poultry", "salmon"); name == "purged" && len(got) != 0 {
					t.Errorf("%v hold its words", got)
				}
				// Nor is it found by a vector that is made again, or by another process.
				embed()
				other := w.open()
				defer other.Close()
				for _, ix := range []*Index{w.ix, other} {
					if got := find(t, ix, Query{Text: question}); len(got) != 0 {
						t.Errorf("found %v after vectors were made again", got)
					}
				}
				missing(t, w.ix, 0)
				w.ix.Close()
				if got := holders(t, dir, vector); len(got) != 0 {
					t.Errorf("%v hold its vector again", got)
				}
			})
		}
	}
}

// TestForgottenNote: the vector of a note that is gone is in no file.
func TestForgottenNote(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- The user likes tea.\n- Miso the cat must not eat chicken.\n")
	w := worlds["sqlite"](t, Options{Embedder: Local{}, Workspace: dir})
	if n, err := w.ix.Embed(t.Context()); n != 2 || err != nil {
		t.Fatalf("made %d vectors, want 2: %v", n, err)
	}
	all := func() (out []string) {
		t.Helper()
		if err := w.ix.messages.db.Each(func(r sqlx.Row) error { out = append(out, string(r.Bytes(1))); return nil }, "SELECT hash, data FROM recall_notes"); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := all()
	write(t, dir+"/MEMORY.md", "- The user likes tea.\n")
	if got := find(t, w.ix, Query{Text: "feline dietary restriction"}); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	after := all()
	if len(before) != 2 || len(after) != 1 {
		t.Fatalf("%d vectors before, %d after", len(before), len(after))
	}
	if err := w.ix.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := before[0]
	if gone == after[0] {
		gone = before[1]
	}
	if got := holders(t, filepath.Dir(w.path), gone); len(got) != 0 {
		t.Errorf("%v hold its vector", got)
	}
}

// hashing is a model whose vectors follow from the text alone.
type hashing struct{ each func() }

func (hashing) Name() string { return "hashing" }

func (m hashing) Vectors(_ context.Context, texts []string) (out [][]float32, err error) {
	if m.each != nil {
		m.each()
	}
	for _, t := range texts {
		h := fnv.New64a()
		h.Write([]byte(t))
		r := rand.New(rand.NewPCG(h.Sum64(), 1))
		v := make([]float32, 16)
		for i := range v {
			v[i] = r.Float32() - 0.5
		}
		out = append(out, v)
	}
	return out, nil
}

// TestKilledEmbedding kills a process that makes vectors, again and again, at any
// moment: the next one continues, and in the end every message has the vector
// that it would have without that, once.
func TestKilledEmbedding(t *testing.T) {
	const messages, rounds = 1500, 8
	open := func(path string, m hashing) *Index {
		t.Helper()
		st, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		ix, err := Open(Options{Store: st, Path: path + "-index", Embedder: m})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ix.Close(); st.Close() })
		return ix
	}
	if path := os.Getenv("RECALL_KILL_EMBEDDING"); path != "" {
		left := 100 // then it waits to be killed: 8 messages each are not all of them
		ix := open(path, hashing{func() {
			fmt.Println("batch")
			time.Sleep(time.Millisecond)
			if left--; left == 0 {
				time.Sleep(time.Hour)
			}
		}})
		if _, err := ix.vectors.all(t.Context(), &pace{window: 256, batch: 8}); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	path, calm := filepath.Join(dir, "killed.db"), filepath.Join(dir, "calm.db")
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range messages {
		lines = append(lines, fmt.Sprintf("user: message %d about %s", i, strings.Repeat("harbours ", i%7)))
	}
	say(t, st, "a", lines[:1000]...)
	say(t, st, "b", lines[1000:]...)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || os.WriteFile(calm, data, 0o600) != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	had, interrupted := 0, 0
	for round := range rounds {
		cmd := exec.Command(exe, "-test.run=^TestKilledEmbedding$")
		cmd.Env = append(os.Environ(), "RECALL_KILL_EMBEDDING="+path)
		var out output
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun := 1
		if round%2 == 1 {
			begun = 40 // it has written the first 256
		}
		for end := time.Now().Add(time.Minute); out.count("batch") < begun && !out.has("PASS") && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(40_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		ix := open(path, hashing{})
		n := len(codesOf(t, ix))
		if n < had {
			t.Errorf("round %d: %d vectors are left of %d", round, n, had)
		}
		if had = n; n > 0 && n < messages {
			interrupted++
		}
		missing(t, ix, messages-n)
		ix.Close()
	}
	if interrupted == 0 {
		t.Error("no process was killed while it made vectors: the test tests nothing")
	}
	killed, once := open(path, hashing{}), open(calm, hashing{})
	if n, err := killed.Embed(t.Context()); n != messages-had || err != nil {
		t.Errorf("%d vectors were made in the end, want %d: %v", n, messages-had, err)
	}
	if n, err := once.Embed(t.Context()); n != messages || err != nil {
		t.Errorf("%d vectors were made at once, want %d: %v", n, messages, err)
	}
	got, want := codesOf(t, killed), codesOf(t, once)
	for at, v := range want {
		if got[at] != v {
			t.Fatalf("the vector at %s is not what it should be", at)
		}
	}
	if len(got) != messages || len(want) != messages {
		t.Errorf("%d vectors, and %d made at once, want %d", len(got), len(want), messages)
	}
}
