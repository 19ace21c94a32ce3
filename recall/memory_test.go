//go:build unix

package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"goclaw/internal/watch"
	"goclaw/recall/internal/notes"
)

// counting is an embedder that is asked for something each time.
type counting struct {
	mu    sync.Mutex
	texts []string
}

func (c *counting) Name() string { return "counting" }
func (c *counting) Vectors(_ context.Context, texts []string) ([][]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, texts...)
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, float32(i)}
	}
	return out, nil
}
func (c *counting) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.texts...)
}

// notesAre waits until the index knows just these notes, each with a vector,
// in the database as well. No search takes place.
func notesAre(t *testing.T, ix *Index, what string, want ...string) {
	t.Helper()
	var got []string
	var vectors int64
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got = []string{}
		ix.mu.Lock()
		for _, f := range ix.memory.All {
			for i, n := range f.Notes {
				if ix.vectors.notes[f.Hashes[i]] != nil {
					got = append(got, f.Path+": "+n.Text)
				}
			}
		}
		vectors, _ = ix.messages.db.Int("SELECT count(*) FROM recall_notes")
		ix.mu.Unlock()
		if cmp.Equal(append([]string{}, want...), got) && int(vectors) == len(want) {
			return
		}
	}
	t.Errorf("%s: %d vectors of %d notes (-want +got):\n%s", what, vectors, len(want), cmp.Diff(want, got))
}

// TestWatched: what happens to memory files is in the index soon after, and
// has its vectors, without any search. Where the system does not tell of
// changes, the clock does.
func TestWatched(t *testing.T) {
	for name, w := range map[string]func() *watch.Watcher{
		"events": func() *watch.Watcher {
			w := watch.New()
			w.Every, w.Blind = time.Hour, time.Hour
			return w
		},
		"polling": func() *watch.Watcher {
			w := watch.Blind()
			w.Blind = 50 * time.Millisecond
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			dir := filepath.Join(t.TempDir(), "not", "yet")
			in := func(p string) string { return filepath.Join(dir, filepath.FromSlash(p)) }
			embed := &counting{}
			ix, err := Open(Options{Workspace: dir, Memory: []string{"notes/extra.md", "more"}, Embedder: embed})
			if err != nil {
				t.Fatal(err)
			}
			ix.background.watcher = w()
			ix.Background()
			ix.Background() // once is enough
			notesAre(t, ix, "nothing")

			write(t, in("memory/a.md"), "one\n")
			notesAre(t, ix, "the workspace comes, and memory/ in it", "memory/a.md: one")
			write(t, in("MEMORY.md"), "two\n")
			notesAre(t, ix, "MEMORY.md", "MEMORY.md: two", "memory/a.md: one")
			write(t, in("memory/x/y/b.md"), "three\n")
			notesAre(t, ix, "folders in memory/", "MEMORY.md: two", "memory/a.md: one", "memory/x/y/b.md: three")
			write(t, in("MEMORY.md.tmp~"), "two, saved by an editor\n")
			if err := os.Rename(in("MEMORY.md.tmp~"), in("MEMORY.md")); err != nil {
				t.Fatal(err)
			}
			notesAre(t, ix, "a save by renaming", "MEMORY.md: two, saved by an editor", "memory/a.md: one", "memory/x/y/b.md: three")
			if err := os.Rename(in("memory/x"), in("memory/z")); err != nil {
				t.Fatal(err)
			}
			notesAre(t, ix, "a folder with a new name", "MEMORY.md: two, saved by an editor", "memory/a.md: one", "memory/z/y/b.md: three")
			write(t, in("memory/z/y/b.md"), "four\n")
			notesAre(t, ix, "a change there", "MEMORY.md: two, saved by an editor", "memory/a.md: one", "memory/z/y/b.md: four")
			if err := os.RemoveAll(in("memory")); err != nil {
				t.Fatal(err)
			}
			notesAre(t, ix, "memory/ goes", "MEMORY.md: two, saved by an editor")
			write(t, in("memory/a.md"), "five\n")
			notesAre(t, ix, "and comes again", "MEMORY.md: two, saved by an editor", "memory/a.md: five")
			write(t, in("notes/extra.md"), "six\n")
			write(t, in("notes/other.md"), "not asked for\n")
			write(t, in("more/c.txt"), "seven\n")
			notesAre(t, ix, "paths of the configuration", "MEMORY.md: two, saved by an editor", "memory/a.md: five", "more/c.txt: seven", "notes/extra.md: six")
			if err := os.Remove(in("MEMORY.md")); err != nil {
				t.Fatal(err)
			}
			notesAre(t, ix, "a file goes", "memory/a.md: five", "more/c.txt: seven", "notes/extra.md: six")
			want := []string{"one", "two", "three", "two, saved by an editor", "four", "five", "six", "seven"}
			if got := embed.asked(); len(got) > len(want)+1 { // six and seven may come apart
				t.Errorf("%d texts were embedded, want %q, got %q", len(got), want, got)
			}
			if err := ix.Close(); err != nil {
				t.Error(err)
			}
			ix.Background() // too late: nothing begins
		})
	}
}

// TestBackgroundEnds: closing while everything is under way ends it all.
func TestBackgroundEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", strings.Repeat("- a note\n", 200))
	for range 20 {
		ix, err := Open(Options{Workspace: dir, Embedder: Local{}})
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(ix.Background)
		both.Go(func() {
			if err := ix.Close(); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
	}
}

// TestHold: while somebody holds the background, it makes no vectors of messages.
func TestHold(t *testing.T) {
	m := &counting{}
	w := worlds["sqlite"](t, Options{Embedder: m})
	release := w.ix.Hold()
	say(t, w, "a", "user: the lighthouse is white")
	if err := w.ix.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.ix.Background()
	time.Sleep(50 * time.Millisecond) // it has begun
	if got := m.asked(); len(got) > 0 {
		t.Errorf("vectors of %q were made", got)
	}
	release()
	for end := time.Now().Add(time.Minute); len(m.asked()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no vectors were made after that")
		}
	}
}

// TestWrittenJustNow: what a search finds is what the files are, however
// shortly before they were written, also where size and time do not tell.
func TestWrittenJustNow(t *testing.T) {
	dir := t.TempDir()
	ix, err := Open(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	at := time.Now()
	for i := range 50 {
		write(t, dir+"/MEMORY.md", fmt.Sprintf("The word is zebra%02d.\n", i))
		if err := os.Chtimes(dir+"/MEMORY.md", at, at); err != nil {
			t.Fatal(err)
		}
		first(t, ix, fmt.Sprintf("zebra%02d", i), "MEMORY.md:1")
	}
	// An old time that is kept by a copy.
	at = at.Add(-time.Hour)
	for _, word := range []string{"apple", "grape"} {
		write(t, dir+"/new", "The word is "+word+".\n")
		if err := errors.Join(os.Chtimes(dir+"/new", at, at), os.Rename(dir+"/new", dir+"/MEMORY.md")); err != nil {
			t.Fatal(err)
		}
		first(t, ix, word, "MEMORY.md:1")
	}
}

// TestReadWhileWritten searches, reads and writes a file at the same time, and
// it is always one of the texts that it was.
func TestReadWhileWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "zebra 0\n")
	ix, err := Open(Options{Workspace: dir, Embedder: Local{}})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	ix.Background()
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if text, _, err := ix.File("MEMORY.md", 1, 1); err != nil || !strings.HasPrefix(text, "zebra ") {
				t.Errorf("read %q, %v", text, err)
				return
			}
		}
	})
	for i := range 30 {
		write(t, dir+"/next", fmt.Sprintf("zebra %d\n", i))
		if err := os.Rename(dir+"/next", dir+"/MEMORY.md"); err != nil {
			t.Fatal(err)
		}
		first(t, ix, fmt.Sprintf("zebra %d", i), "MEMORY.md:1")
	}
	close(stop)
	all.Wait()
}

// incomplete returns what a search in memory files says is missing.
func incomplete(t *testing.T, ix *Index, text string) (cites, missing []string) {
	t.Helper()
	res, err := ix.Search(t.Context(), Query{Text: text, Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range res.Hits {
		cites = append(cites, h.Cite())
	}
	return cites, res.Incomplete
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// TestLinks: links are followed inside the workspace, and not out of it.
func TestLinks(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	write(t, out+"/secret.md", "giraffe outside\n")
	write(t, dir+"/projects/p.md", "giraffe of a project\n")
	write(t, dir+"/.hidden.md", "giraffe\n")
	write(t, dir+"/memory/.trash/old.md", "giraffe\n")
	write(t, dir+"/memory/real.md", "giraffe of mine\n")
	link(t, "../projects", dir+"/memory/projects")
	link(t, "..", dir+"/memory/projects2/up") // into itself
	link(t, out+"/secret.md", dir+"/memory/out.md")
	link(t, out, dir+"/memory/outside")
	link(t, out+"/nothing.md", dir+"/memory/nothing.md")
	link(t, "gone.md", dir+"/memory/.#real.md")
	link(t, "loop.md", dir+"/memory/loop.md")
	write(t, dir+"/MEMORY.md", "- giraffes, at length: one that the tests look for, and once only, whatever leads there\n")
	link(t, "../MEMORY.md", dir+"/memory/ok.md")
	link(t, "../MEMORY.md", dir+"/memory/again.md")
	write(t, dir+"/other.txt", "giraffes elsewhere\n")
	link(t, "../other.txt", dir+"/memory/a.md")
	link(t, "../other.txt", dir+"/memory/b.md")
	ix, err := Open(Options{Workspace: dir, Memory: []string{"../" + filepath.Base(out), dir + "/projects"}})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	cites, missing := incomplete(t, ix, "giraffe")
	want := []string{
		"memory/loop.md cannot be read: too many levels of symbolic links",
		"memory/out.md was not read: it is a link that leads out of the workspace",
		"memory/outside was not read: it is a link that leads out of the workspace",
		"../" + filepath.Base(out) + " was not read: it lies outside the workspace",
	}
	if d := cmp.Diff(want, missing); d != "" {
		t.Errorf("incomplete (-want +got):\n%s", d)
	}
	slices.Sort(cites)
	if d := cmp.Diff([]string{"MEMORY.md:1", "memory/a.md:1", "memory/real.md:1", "projects/p.md:1"}, cites); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
	if n := len(ix.memory.All); n != 4 {
		t.Errorf("%d files are searched, want 4", n)
	}
	// MEMORY.md may be one itself.
	if err := os.Remove(dir + "/MEMORY.md"); err != nil {
		t.Fatal(err)
	}
	link(t, "memory/real.md", dir+"/MEMORY.md")
	cites, _ = incomplete(t, ix, "giraffe")
	slices.Sort(cites)
	if d := cmp.Diff([]string{"memory/a.md:1", "memory/real.md:1", "projects/p.md:1"}, cites); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
	if _, _, err := ix.File("memory/out.md", 1, 0); err == nil || err.Error() != want[1] {
		t.Errorf("reading it: %v", err)
	}
}

// TestUnreadable: a file that cannot be read, is no text or too large is said
// to be missing, and costs no other one.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/memory/good.md", "giraffe\n")
	write(t, dir+"/memory/locked.md", "a giraffe behind bars\n")
	write(t, dir+"/memory/picture.md", "giraffe\x00\x01\x02")
	write(t, dir+"/memory/huge.md", "giraffe at the beginning\n")
	if err := os.Truncate(dir+"/memory/huge.md", 3<<30); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/memory/pipe.md", 0o600); err != nil {
		t.Fatal(err)
	}
	ix, err := Open(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	ix.memory.Read = func(tree fs.FS, name string) ([]byte, error) {
		if name == "memory/locked.md" {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
		return notes.ReadFile(tree, name)
	}
	cites, missing := incomplete(t, ix, "giraffe")
	if d := cmp.Diff([]string{"memory/good.md:1"}, cites); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
	want := []string{
		"memory/locked.md cannot be read: permission denied",
		"memory/huge.md was not read: it is not text",
		"memory/picture.md was not read: it is not text",
	}
	if d := cmp.Diff(want, missing); d != "" {
		t.Errorf("incomplete (-want +got):\n%s", d)
	}
	ix.memory.Read = nil // it can be read again
	if cites, missing = incomplete(t, ix, "giraffe"); len(cites) != 2 || len(missing) != 2 {
		t.Errorf("found %v, incomplete %v", cites, missing)
	}
	for i := range 9 {
		write(t, fmt.Sprintf("%s/memory/picture%d.md", dir, i), "\x00")
	}
	if _, missing = incomplete(t, ix, "giraffe"); len(missing) != notes.MaxFlaws+1 || missing[notes.MaxFlaws] != "7 more memory files were not read, or in part" {
		t.Errorf("incomplete: %q", missing)
	}
}

// TestHuge: of a large file the beginning is indexed, in bounded memory, and
// what is not is said.
func TestHuge(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := 0; b.Len() < notes.MaxFile+1<<20; i++ {
		fmt.Fprintf(&b, "- note %d is about word%d and some others\n", i, i%5000)
	}
	write(t, dir+"/memory/huge.md", "the first is a walrus\n\n"+b.String()+"the last is a quokka\n")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ix, err := Open(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	cites, missing := incomplete(t, ix, "walrus")
	if len(cites) == 0 || cites[0] != "memory/huge.md:1" {
		t.Errorf("found %v", cites)
	}
	if d := cmp.Diff([]string{"memory/huge.md was read in part: the first 4.0 MB of 5.0 MB"}, missing); d != "" {
		t.Errorf("incomplete (-want +got):\n%s", d)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 12*notes.MaxFile {
		t.Errorf("%d MB are held for %d MB of text", grown>>20, notes.MaxFile>>20)
	} else {
		t.Logf("%d MB are held for %d MB of text", grown>>20, notes.MaxFile>>20)
	}
	_, total, err := ix.File("memory/huge.md", 1, 1)
	if err != nil || total < 1000 {
		t.Errorf("%d lines, %v", total, err)
	}
	if _, _, err := ix.File("memory/huge.md", total+1, 1); err == nil || !strings.Contains(err.Error(), "was read in part") {
		t.Errorf("after what was read: %v", err)
	}
}

// TestEncodings: a mark at the beginning is no part of the text, and what
// Windows' editor writes is read.
func TestEncodings(t *testing.T) {
	dir := t.TempDir()
	wide := []byte{0xff, 0xfe}
	for _, c := range "# Wide\r\n\r\nthe falcon\r\n" {
		wide = append(wide, byte(c), 0)
	}
	write(t, dir+"/memory/wide.md", string(wide))
	write(t, dir+"/memory/marked.md", "\xef\xbb\xbf# Marked\r\n\r\nthe walrus\r\n")
	write(t, dir+"/memory/latin.md", "caf\xe9 and the quokka\n")
	ix, err := Open(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for _, c := range []struct{ query, cite, heading, read string }{
		{"falcon", "memory/wide.md:3", "Wide", "the falcon"},
		{"walrus", "memory/marked.md:3", "Marked", "the walrus"},
		{"quokka", "memory/latin.md:1", "", "caf\uFFFD and the quokka"},
	} {
		res, err := ix.Search(t.Context(), Query{Text: c.query})
		if err != nil || len(res.Hits) != 1 || res.Hits[0].Cite() != c.cite || res.Hits[0].Heading != c.heading {
			t.Errorf("%s: %+v, %v", c.query, res.Hits, err)
			continue
		}
		if text, _, err := ix.File(res.Hits[0].File, res.Hits[0].Line, 1); text != c.read || err != nil {
			t.Errorf("%s: read %q, %v, want %q", c.query, text, err, c.read)
		}
	}
}
