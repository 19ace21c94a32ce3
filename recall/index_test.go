package recall

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"goclaw/recall/internal/postings"
	"goclaw/session"
	memstore "goclaw/store/memory"
	"goclaw/store/sqlite"
	"goclaw/store/storetest"
)

// TestReadParts: what is read at once is bounded, and nothing is left out or
// read twice.
func TestReadParts(t *testing.T) {
	st := memstore.New()
	long := strings.Repeat("word ", partBytes/15) // a third
	var lines []string
	for range 7 {
		lines = append(lines, "user: "+long)
	}
	for range 2 * partSize {
		lines = append(lines, "user: short")
	}
	say(t, st, "s", lines...)
	last := session.Seq(1 + len(lines))
	for _, from := range []session.Seq{1, 2, 9} {
		next, n, largest := from, 0, 0
		err := readSaid(t.Context(), st, postings.Part{ID: "s", N: 4, From: from, To: last}, func(p postings.Part, ss []said, _ bool) error {
			if p.From != next || p.To < p.From || p.N != 4 {
				t.Errorf("from %d: the records %d to %d come after %d", from, p.From, p.To, next-1)
			}
			next = p.To + 1
			size := 0
			for _, s := range ss {
				size += len(s.text)
			}
			n, largest = n+len(ss), max(largest, size)
			return nil
		})
		want := len(lines)
		if from == 9 {
			want -= 7
		}
		if err != nil || next != last+1 || n != want || largest > partBytes+len(long) {
			t.Errorf("from %d: read up to %d, %d messages, at most %d bytes at once, %v; want %d and %d", from, next-1, n, largest, err, last, want)
		}
	}
}

// BenchmarkBuild measures how fast texts become postings.
func BenchmarkBuild(b *testing.B) {
	var all []said
	size := int64(0)
	for r := range storetest.Conversation(1, 4000) {
		if s, ok := speak(r); ok {
			all = append(all, s)
			size += int64(len(s.text))
		}
	}
	b.SetBytes(size)
	bl := &postings.Builder{}
	for b.Loop() {
		if bl.Full() {
			bl = &postings.Builder{}
		}
		for _, s := range all {
			bl.Add(s.doc(1), s.text, s.speaker)
		}
	}
}

// TestDamagedLog: where it is the log that cannot be read, the index stays,
// finds what else there is, and says what it cannot show.
func TestDamagedLog(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	for _, id := range []string{"a", "b", "c"} {
		var lines []string
		for i := range 300 {
			lines = append(lines, fmt.Sprintf("user: %s says word%d%s and goes on for a while, so that pages are full", id, i, id))
		}
		say(t, w, id, lines...)
	}
	first(t, w.ix, "word150b", "b#152")
	segments := func() int64 {
		n, err := w.ix.messages.db.Int("SELECT count(*) FROM recall_segments")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := segments()
	w.ix.Close()
	w.Close()
	file := filepath.Join(filepath.Dir(w.path), "sessions.db")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	spoiled := 0
	for at := page; at < len(data); at += page {
		// A leaf of the table of records, which is where whole lines are.
		if p := data[at : at+page]; p[0] == 0x0d && bytes.Contains(p, []byte("says word150b and")) {
			for i := range p {
				p[i] = 0xff
			}
			spoiled++
		}
	}
	if spoiled == 0 {
		t.Fatal("no page holds the line: the test tests nothing")
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if w.ix, err = Open(Options{Store: st, Path: w.path}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		first(t, w.ix, "word151a", "a#153")
		res, err := w.ix.Search(t.Context(), Query{Text: "word150b"})
		if err != nil || len(res.Incomplete) == 0 {
			t.Errorf("what cannot be read: %v, %v", res.Incomplete, err)
		}
		for _, h := range res.Hits {
			if h.Session == "b" && h.Seq == 152 {
				t.Errorf("%s was found in a page that is not there", h.Cite())
			}
		}
	}
	if n := segments(); n != before {
		t.Errorf("%d segments, were %d: a damaged log has cost the index", n, before)
	}
	if wrong, err := Examine(t.Context(), w.path); len(wrong) > 0 || err != nil {
		t.Errorf("the index is said to be wrong: %q, %v", wrong, err)
	}
}

// TestExamine: what the doctor asks.
func TestExamine(t *testing.T) {
	for name, sql := range map[string]string{
		"lists":  "UPDATE recall_terms SET data = x'01611f' WHERE pos & 0xffffffff > 0",
		"docs":   "UPDATE recall_segments SET docs = x'ff'",
		"claims": "UPDATE recall_sessions SET have = have + 1",
		"lost":   "DROP TRIGGER recall_drop; DELETE FROM recall_segments",
	} {
		w := worlds["sqlite"](t, Options{})
		for i := range 300 {
			say(t, w, "a", fmt.Sprintf("user: filler %d", i))
		}
		first(t, w.ix, "filler 123", "a#125")
		if wrong, err := Examine(t.Context(), w.path); len(wrong) > 0 || err != nil {
			t.Fatalf("%s: before: %q, %v", name, wrong, err)
		}
		if err := w.ix.messages.db.Exec(sql); err != nil {
			t.Fatal(err)
		}
		if wrong, err := Examine(t.Context(), w.path); len(wrong) == 0 || err != nil {
			t.Errorf("%s: %q, %v", name, wrong, err)
		}
		if err := w.ix.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if wrong, err := Examine(t.Context(), w.path); len(wrong) > 0 || err != nil {
			t.Errorf("%s: rebuilt: %q, %v", name, wrong, err)
		}
		first(t, w.ix, "filler 123", "a#125")
	}
}

// TestAnythingInItsPlace: whatever is where the index should be, everything is
// found, and the answer says that there is no index.
func TestAnythingInItsPlace(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a folder":       func(path string) error { return os.MkdirAll(path+"/x", 0o700) },
		"a link":         func(path string) error { return os.Symlink(path+"/nowhere", path) },
		"a link to self": func(path string) error { return os.Symlink(path, path) },
		"a folder of a log": func(path string) error {
			return os.MkdirAll(path+"-wal/x", 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			st := memstore.New()
			say(t, st, "a", "user: the ferry leaves at ten")
			ix, err := Open(Options{Store: st, Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer ix.Close()
			res, err := ix.Search(t.Context(), Query{Text: "ferry"})
			if err != nil || len(res.Hits) != 1 || len(res.Incomplete) != 1 || !strings.Contains(res.Incomplete[0], path) {
				t.Errorf("%d hits, incomplete %q, %v", len(res.Hits), res.Incomplete, err)
			}
			if ix.InMemory() == nil {
				t.Error("the index claims to be in its file")
			}
		})
	}
}

// TestInMemory: an index that can be neither made nor written is made in memory,
// for as long as it is open, and the answer says so.
func TestInMemory(t *testing.T) {
	dir := t.TempDir()
	st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	say(t, st, "a", "user: the ferry leaves at ten")
	path := filepath.Join(dir, "index.db")
	other, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ix, err := Open(Options{Store: st, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	res, err := ix.Search(t.Context(), Query{Text: "ferry"})
	if err != nil || len(res.Hits) != 1 || len(res.Incomplete) != 1 {
		t.Errorf("%d hits, incomplete %q, %v", len(res.Hits), res.Incomplete, err)
	}
}

// TestPrune: the words of what is gone are not in the file of an index that
// lies beside the logs.
func TestPrune(t *testing.T) {
	w := worlds["jsonl"](t, Options{})
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("user: secretword%d", i))
	}
	say(t, w, "gone", lines...)
	first(t, w.ix, "secretword7", "gone#9")
	holds := func() bool {
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(w.path + suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte("secretword")) {
				return true
			}
		}
		return false
	}
	if !holds() {
		t.Fatal("the word was never in the index: the test tests nothing")
	}
	if err := w.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := w.ix.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holds() {
		t.Error("the word is still in the file")
	}
}

// TestWrittenAgain: what another program has put in the place of a log is
// found, and what was there before is not.
func TestWrittenAgain(t *testing.T) {
	w := worlds["jsonl"](t, Options{})
	say(t, w, "other", "user: this stays")
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("user: oldword%d", i))
	}
	say(t, w, "a", lines...)
	first(t, w.ix, "oldword150", "a#152")
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(w.path), "sessions", "agents", "*", "sessions", "a.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q, %v", logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logs[0]+".new", bytes.ReplaceAll(data, []byte("oldword"), []byte("newword")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(logs[0]+".new", logs[0]); err != nil {
		t.Fatal(err)
	}
	first(t, w.ix, "newword150", "a#152")
	res, err := w.ix.Search(t.Context(), Query{Text: "oldword150"})
	if err != nil || len(res.Hits) > 0 {
		t.Errorf("what is no longer there is found: %v, %v", res.Hits, err)
	}
	// One that only grows is not indexed again.
	n, err := w.ix.messages.db.Int("SELECT n FROM recall_sessions WHERE id = 'a'")
	if err != nil {
		t.Fatal(err)
	}
	say(t, w, "a", "user: and so on")
	w.ix.Close()
	w.ix = w.open()
	first(t, w.ix, "and so on", "a#302")
	if again, err := w.ix.messages.db.Int("SELECT n FROM recall_sessions WHERE id = 'a'"); again != n || err != nil {
		t.Errorf("session %d is now %d, %v", n, again, err)
	}
}

// TestRemoveFrom: an index in the database of the sessions, as older versions
// kept it, is removed from there, and the sessions stay.
func TestRemoveFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	say(t, st, "a", "user: the ferry leaves at ten")
	in, err := postings.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	old, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	// The triggers of the older version.
	err = old.Exec(`
CREATE TRIGGER recall_trash AFTER UPDATE OF trashed ON sessions WHEN NEW.trashed IS NOT NULL BEGIN
	DELETE FROM recall_sessions WHERE id = OLD.id;
END;
CREATE TRIGGER recall_purge AFTER DELETE ON sessions BEGIN
	DELETE FROM recall_sessions WHERE id = OLD.id;
END;`)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RemoveFrom(path); err != nil {
			t.Fatal(err)
		}
	}
	d, err := postings.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if n, err := d.Int("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'recall_*' OR sql LIKE '%recall_%'"); n != 0 || err != nil {
		t.Errorf("%d tables and triggers are left, %v", n, err)
	}
	say(t, st, "a", "user: and comes back at noon")
	if err := st.Delete(t.Context(), "a"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := st.Restore(t.Context(), "a"); err != nil {
		t.Errorf("restore: %v", err)
	}
}
