package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/recall/internal/postings"
	"goclaw/session"
	"goclaw/store/jsonl"
	memstore "goclaw/store/memory"
	"goclaw/store/sqlite"
)

var start = time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)

// say appends messages to the log id: those that begin with "user: ",
// "assistant: " and "tool: " are said by those.
func say(t testing.TB, st session.Store, id string, lines ...string) {
	t.Helper()
	last := session.Seq(0)
	if in, err := session.Stat(t.Context(), st, session.ID(id)); err == nil {
		last = in.Last
	}
	var recs []session.Record
	if last == 0 {
		recs = append(recs, session.Record{Seq: 1, Time: start, Body: session.Header{Version: session.Version, ID: session.ID(id), Key: session.Key("main:cli:" + id)}})
		last = 1
	}
	for _, l := range lines {
		last++
		who, text, _ := strings.Cut(l, ": ")
		m := llm.UserText(text)
		switch who {
		case "assistant":
			m = llm.AssistantText(text)
		case "tool":
			m = llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Result(llm.ToolCall{ID: "c", Name: "bash"}, text)}}
		}
		at := start.Add(time.Duration(last) * time.Minute)
		r := session.Record{Seq: last, ID: fmt.Sprintf("%s-%d", id, last), Time: at, Body: session.Message{Message: m, At: at}}
		if last > 2 {
			r.Parent = fmt.Sprintf("%s-%d", id, last-1)
		}
		recs = append(recs, r)
	}
	if err := st.Append(t.Context(), session.ID(id), recs...); err != nil {
		t.Fatal(err)
	}
}

// world is a store with an index over it.
type world struct {
	session.Store
	ix   *Index
	path string // of the index
	open func() *Index
}

// worlds are the kinds of stores there are.
var worlds = map[string]func(t testing.TB, o Options) *world{
	"sqlite": func(t testing.TB, o Options) *world {
		dir := t.TempDir()
		st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
		if err != nil {
			t.Fatal(err)
		}
		o.Store, o.Path = st, filepath.Join(dir, "index.db")
		return newWorld(t, o)
	},
	"jsonl": func(t testing.TB, o Options) *world {
		dir := t.TempDir()
		st, err := jsonl.Open(filepath.Join(dir, "sessions"), jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Store, o.Path = st, filepath.Join(dir, "index.db")
		return newWorld(t, o)
	},
	"memory": func(t testing.TB, o Options) *world {
		o.Store = memstore.New()
		return newWorld(t, o)
	},
}

func newWorld(t testing.TB, o Options) *world {
	w := &world{Store: o.Store, path: o.Path}
	w.open = func() *Index {
		ix, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return ix
	}
	w.ix = w.open()
	t.Cleanup(func() { w.ix.Close(); w.Store.Close() })
	return w
}

// each runs f with every kind of store.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	for name, make := range worlds {
		t.Run(name, func(t *testing.T) { f(t, make(t, Options{})) })
	}
}

// find returns the citations of what a query finds, the best first.
func find(t testing.TB, ix *Index, q Query) []string {
	t.Helper()
	res, err := ix.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("%.60q: %v", q.Text, err)
	}
	for _, s := range res.Incomplete {
		t.Errorf("%.60q: incomplete: %s", q.Text, s)
	}
	out := []string{}
	for _, h := range res.Hits {
		out = append(out, h.Cite())
	}
	return out
}

// first checks that the best hit is want.
func first(t testing.TB, ix *Index, text, want string) {
	t.Helper()
	got := find(t, ix, Query{Text: text})
	if len(got) == 0 || got[0] != want {
		t.Errorf("%q found %v, want %s first", text, got, want)
	}
}

func TestFoundWhenAppended(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		say(t, w, "a", "user: the harbour opens at nine", "assistant: noted")
		first(t, w.ix, "when does the harbor open, harbour?", "a#2")
		for i := range 300 { // across the size from which on segments are written
			say(t, w, "b", fmt.Sprintf("user: number %d is called zebra%d", i, i))
			if i%37 == 0 {
				first(t, w.ix, fmt.Sprintf("zebra%d", i), fmt.Sprintf("b#%d", i+2))
			}
		}
		first(t, w.ix, "zebra299", "b#301")
		first(t, w.ix, "zebra0", "b#2")
		say(t, w, "b", "user: the last word is quokka")
		first(t, w.ix, "quokka", "b#302")
	})
}

func TestTrash(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		say(t, w, "keep", "user: the walrus sings")
		say(t, w, "gone", "user: the secretword7 sings")
		for i := range 300 {
			say(t, w, "many", fmt.Sprintf("user: filler %d", i))
		}
		first(t, w.ix, "secretword7", "gone#2")
		if err := w.Delete(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		if got := find(t, w.ix, Query{Text: "secretword7"}); len(got) != 0 {
			t.Errorf("in the trash, and found: %v", got)
		}
		first(t, w.ix, "walrus", "keep#2")
		first(t, w.ix, "filler 123", "many#125")
		if err := w.Restore(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		first(t, w.ix, "secretword7", "gone#2")
	})
}

// TestGoneFromTheFile looks into the database file, with no API between.
func TestGoneFromTheFile(t *testing.T) {
	w := worlds["sqlite"](t, Options{Embedder: Local{}})
	say(t, w, "gone", "user: the secretword7 sings")
	for i := range 300 {
		say(t, w, "many", fmt.Sprintf("user: filler %d", i))
	}
	first(t, w.ix, "secretword7", "gone#2")
	if _, err := w.ix.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := func(sql string) int64 {
		t.Helper()
		d, err := postings.Open(w.path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		n, err := d.Int(sql)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const term, codes = "SELECT count(*) FROM recall_terms WHERE instr(data, CAST('secretword' AS BLOB))", "SELECT count(*) FROM recall_codes c JOIN recall_sessions s ON c.pos >> 32 = s.n WHERE s.id = 'gone'"
	if rows(term) == 0 || rows(codes) == 0 {
		t.Fatal("the word was never in the index: the test tests nothing")
	}
	before := rows("SELECT count(*) FROM recall_codes")
	if err := w.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := w.ix.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := rows(term); n != 0 {
		t.Errorf("in the trash: %d rows of the index hold its word", n)
	}
	if n := rows("SELECT count(*) FROM recall_codes"); n != before-1 {
		t.Errorf("in the trash: %d chunks of vectors, want %d", n, before-1)
	}
	holds := func(word string) bool { // while others have the databases open
		t.Helper()
		log := filepath.Join(filepath.Dir(w.path), "sessions.db")
		for _, file := range []string{w.path, w.path + "-wal", log, log + "-wal"} {
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // the last one to close it removes the log

				t.Fatal(err)
			}
			if bytes.Contains(data, []byte(word)) {
				return true
			}
		}
		return false
	}
	if !holds("secretword7") || !holds("filler") {
		t.Fatal("the words were never in the file: the test tests nothing")
	}
	if err := w.Purge(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if holds("secretword7") {
		t.Error("purged, and its word is in the file")
	}
	first(t, w.ix, "filler 123", "many#125") // what was dropped with it is indexed again
	if n := rows("SELECT count(*) FROM recall_sessions WHERE id = 'gone'"); n != 0 {
		t.Errorf("purged, and still known")
	}
	w.ix.Close()
	w.Close()
	if holds("secretword7") {
		t.Error("closed, and its word is in the file again")
	}
	if !holds("filler") {
		t.Error("the others are gone as well")
	}
}

func TestNothingIsSyntax(t *testing.T) {
	w := worlds["sqlite"](t, Options{Embedder: Local{}})
	say(t, w, "a", "user: the harbour AND the tower", "user: 你好世界，今天天气很好", "user: ประเทศไทยสวยงาม", "user: 🎉🎉 party")
	for _, text := range []string{
		`"`, `'`, `"harbour`, `harbour AND`, `AND OR NOT`, `harbour*`, `*`, `NEAR(harbour tower, 5)`, `harbour NEAR/3 tower`, `a:b`, `-x`, `^x`, `(((`,
		`{}[]`, `%_`, `;DROP TABLE records;--`, "\x00", "\xff\xfe", "😀🎉", "", "   ", "?", "the", strings.Repeat("harbour ", 13_000), strings.Repeat("x", 100<<10),
	} {
		if _, err := w.ix.Search(t.Context(), Query{Text: text}); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	first(t, w.ix, `"harbour" AND (tower) NEAR*`, "a#2")
	first(t, w.ix, "天气", "a#3")
	first(t, w.ix, "世界今天", "a#3")
	first(t, w.ix, "ไทย", "a#4")
	first(t, w.ix, "PARTY!", "a#5")
}

func TestRanking(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	say(t, w, "tools", "tool: the parser fails in lexer.go with an unexpected token", "user: hm")
	say(t, w, "people", "user: the parser fails in lexer.go with an unexpected token today", "assistant: I see")
	first(t, w.ix, "why does the parser fail in lexer.go?", "people#2")

	say(t, w, "chat", "user: Ada: I bought a red bicycle", "assistant: Grace: I bought a red bicycle, too, and a bell")
	first(t, w.ix, "what did Grace buy, a bicycle?", "chat#3")
	first(t, w.ix, "what did Ada buy, a bicycle?", "chat#2")

	say(t, w, "context", "user: which pet do you have?", "assistant: A hedgehog.", "user: nice weather outside", "assistant: indeed, very sunny here")
	first(t, w.ix, "which pet?", "context#3")

	say(t, w, "dup1", "user: please restart the frobnicator service on host seven now")
	say(t, w, "dup2", "user: please restart the frobnicator service on host seven now!")
	res, err := w.ix.Search(t.Context(), Query{Text: "restart frobnicator"})
	if err != nil || len(res.Hits) != 1 || len(res.Hits[0].Also) != 1 {
		t.Errorf("near-duplicates: %+v, %v", res.Hits, err)
	}
}

// A word before a colon is a speaker only where a log is written that way, and
// a hit is what was said, unaltered.
func TestSpeakers(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	const warning = "Warning: do not restart the gateway before the backup"
	say(t, w, "plain", "user: "+warning, "assistant: Understood, I will wait for it", "user: Plan: the gateway moves on Monday", "assistant: Good, I will write it down")
	say(t, w, "other", "user: there was one more warning about the gateway backup", "assistant: which one?")
	say(t, w, "party", "user: Grace: I sold the harp", "assistant: Ada: I kept the harp", "user: Grace: what for?")
	best := func(w *world) Hit {
		res, err := w.ix.Search(t.Context(), Query{Text: "warning restart gateway backup"})
		if err != nil || len(res.Hits) == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.Hits[0]
	}
	got := best(w)
	if got.Text != warning || got.Role != User {
		t.Errorf("the hit is %q by %s, want %q by user", got.Text, got.Role, warning)
	}
	// With a comma the word cannot be taken for a name.
	comma := worlds["sqlite"](t, Options{})
	say(t, comma, "plain", "user: "+strings.Replace(warning, ":", ",", 1), "assistant: Understood, I will wait for it", "user: Plan, the gateway moves on Monday", "assistant: Good, I will write it down")
	say(t, comma, "other", "user: there was one more warning about the gateway backup", "assistant: which one?")
	say(t, comma, "party", "user: Grace: I sold the harp", "assistant: Ada: I kept the harp", "user: Grace: what for?")
	if want := best(comma).Score; math.Abs(got.Score-want) > 1e-6 {
		t.Errorf("a word before a colon scores %.3f, before a comma %.3f", got.Score, want)
	}
	first(t, w.ix, "Plan", "plain#4")
	first(t, w.ix, "what did Ada say of the harp?", "party#3")
	first(t, w.ix, "what did Grace say of the harp?", "party#2")
	lines, err := Around(t.Context(), w.Store, "party", 2, 0, 0)
	if err != nil || len(lines) != 1 || lines[0].Text != "Grace: I sold the harp" {
		t.Errorf("around: %+v, %v", lines, err)
	}
}

// Who looks for a word sees what holds it first; what only stands near it is
// marked as that.
func TestOwnWordsFirst(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	say(t, w, "a", "user: how many seats are there?", "assistant: there are 42 of them", "user: that is fine, book the room please", "assistant: done")
	say(t, w, "b", "user: port 42 is taken", "assistant: I take another one")
	res, err := w.ix.Search(t.Context(), Query{Text: "42 chairs"})
	if err != nil {
		t.Fatal(err)
	}
	near := 0
	for i, h := range res.Hits {
		holds := strings.Contains(h.Text, "42")
		if h.Near == holds {
			t.Errorf("hit %d, %q: near is %v", i+1, h.Text, h.Near)
		}
		if h.Near {
			near++
		} else if near > 0 {
			t.Errorf("hit %d, %q, comes after one that does not hold the word", i+1, h.Text)
		}
	}
	if near == 0 || near == len(res.Hits) {
		t.Errorf("%d of %d hits are near ones", near, len(res.Hits))
	}
}

func TestFilters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		say(t, w, "one", "user: the falcon landed", "assistant: the falcon is a bird")
		say(t, w, "two", "tool: falcon.log")
		for _, c := range []struct {
			q    Query
			want []string
		}{
			{Query{Session: "two"}, []string{"two#2"}},
			{Query{Key: "main:cli:two"}, []string{"two#2"}},
			{Query{Role: Output}, []string{"two#2"}},
			{Query{Role: Assistant}, []string{"one#3"}},
			{Query{Session: "one", Role: User}, []string{"one#2"}},
			{Query{Session: "one", Since: start.Add(3 * time.Minute)}, []string{"one#3"}},
			{Query{Session: "one", Until: start.Add(3 * time.Minute)}, []string{"one#2"}},
			{Query{Session: "one", Limit: 1, Role: User}, []string{"one#2"}},
			{Query{Memory: true}, []string{}},
		} {
			c.q.Text = "falcon"
			if d := cmp.Diff(c.want, find(t, w.ix, c.q)); d != "" {
				t.Errorf("%+v (-want +got):\n%s", c.q, d)
			}
		}
	})
}

// TestDamage: an index that cannot be read is rebuilt by the search that
// finds it so.
func TestDamage(t *testing.T) {
	for name, sql := range map[string]string{
		"docs":      "UPDATE recall_segments SET docs = x'ff00ff'",
		"terms":     "UPDATE recall_terms SET data = x'ff00ff' WHERE pos & 0xffffffff = 0",
		"postings":  "UPDATE recall_terms SET data = x'ffffff' WHERE pos & 0xffffffff > 0",
		"blocks":    "DELETE FROM recall_terms WHERE pos & 0xffffffff > 0",
		"all":       "DELETE FROM recall_terms",
		"format":    "UPDATE recall_meta SET value = 'another' WHERE name = 'format'",
		"segments":  "DROP TRIGGER recall_drop; DELETE FROM recall_segments",
		"table":     "DROP TABLE recall_segments",
		"lists":     "DROP TABLE recall_terms",
		"sessions":  "DROP TABLE recall_sessions",
		"trigger":   "DROP TRIGGER recall_forget",
		"claims":    "UPDATE recall_sessions SET have = have + 1; UPDATE recall_in SET upto = upto + 1",
		"miscounts": "UPDATE recall_sessions SET have = have - 1",
	} {
		t.Run(name, func(t *testing.T) {
			w := worlds["sqlite"](t, Options{})
			for i := range 300 {
				say(t, w, "a", fmt.Sprintf("user: filler %d", i))
			}
			first(t, w.ix, "filler 123", "a#125")
			if n, err := w.ix.messages.db.Int("SELECT count(*) FROM recall_segments"); n == 0 || err != nil {
				t.Fatalf("%d segments, %v: the test tests nothing", n, err)
			}
			if err := w.ix.messages.db.Exec(sql); err != nil {
				t.Fatal(err)
			}
			w.ix.Close()
			w.ix = w.open()
			first(t, w.ix, "filler 123", "a#125")
			if n, err := w.ix.messages.db.Int("SELECT count(*) FROM recall_segments"); n == 0 || err != nil {
				t.Errorf("%d segments after the repair, %v", n, err)
			}
		})
	}
}

// TestDamagedFile: an index of its own that is no database is rebuilt.
func TestDamagedFile(t *testing.T) {
	w := worlds["jsonl"](t, Options{})
	say(t, w, "a", "user: the harbour opens at nine")
	first(t, w.ix, "harbour", "a#2")
	w.ix.Close()
	if err := os.WriteFile(w.path, bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(w.path + "-wal")
	w.ix = w.open()
	first(t, w.ix, "harbour", "a#2")
}

// TestLocked: what cannot be written is searched as it is, and the result
// says so.
func TestLocked(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	for i := range 300 {
		say(t, w, "a", fmt.Sprintf("user: filler %d", i))
	}
	if err := w.ix.messages.db.Exec("PRAGMA query_only = ON"); err != nil {
		t.Fatal(err)
	}
	res, err := w.ix.Search(t.Context(), Query{Text: "filler 123"})
	if err != nil || len(res.Hits) == 0 || res.Hits[0].Cite() != "a#125" || len(res.Incomplete) != 1 {
		t.Errorf("got %d hits, incomplete %q, %v", len(res.Hits), res.Incomplete, err)
	}
}

// TestKilled kills a process that appends and indexes, again and again, at
// any moment. Everything that it said was appended must be found.
func TestKilled(t *testing.T) {
	if path := os.Getenv("RECALL_KILL"); path != "" {
		killMe(t, path)
		return
	}
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const enough = 100
	said := 0
	for round := range rounds {
		cmd := exec.Command(exe, "-test.run=^TestKilled$", "-test.v")
		cmd.Env = append(os.Environ(), "RECALL_KILL="+path, fmt.Sprintf("RECALL_ROUND=%d", round))
		var out output
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A third of them are killed at any moment, the others once they have
		// said enough: on a busy machine that takes longer.
		for end := time.Now().Add(time.Minute); round%3 > 0 && out.count("said ") < enough && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(900)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		st, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		ix, err := Open(Options{Store: st, Path: path + "-index"})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.b.String(), "\n") {
			word, ok := strings.CutPrefix(strings.TrimSpace(line), "said ")
			if !ok || !strings.HasSuffix(word, ".") {
				continue
			}
			word = strings.TrimSuffix(word, ".")
			if said++; said%17 != 0 {
				continue
			}
			if got := find(t, ix, Query{Text: word, Limit: 1}); len(got) != 1 {
				t.Errorf("round %d: %s was appended and is not found", round, word)
			}
		}
		if n, err := ix.messages.db.Int(`SELECT count(*) FROM recall_sessions r WHERE have != coalesce((SELECT sum(upto - since + 1) FROM recall_in WHERE session = r.n), 0)`); n != 0 || err != nil {
			t.Errorf("round %d: %d sessions are counted wrong, %v", round, n, err)
		}
		ix.Close()
		st.Close()
	}
	if said < enough {
		t.Errorf("%d messages were appended in all", said)
	}
}

// output is what a process writes, while it writes.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) has(text string) bool { return o.count(text) > 0 }

func (o *output) count(text string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Count(o.b.String(), text)
}

// killMe appends and indexes until it is killed.
func killMe(t *testing.T, path string) {
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ix, err := Open(Options{Store: st, Path: path + "-index"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if err := ix.Sync(context.Background()); err != nil {
				fmt.Println("sync:", err)
			}
		}
	}()
	id := "round" + os.Getenv("RECALL_ROUND")
	for i := 0; ; i++ {
		var lines []string
		for j := range 20 {
			lines = append(lines, fmt.Sprintf("user: %sword%dx%d and some other words", id, i, j))
		}
		say(t, st, id, lines...)
		for j := range 20 {
			fmt.Printf("said %sword%dx%d.\n", id, i, j)
		}
	}
}

func TestEmbed(t *testing.T) {
	each := func(name string) {
		t.Run(name, func(t *testing.T) {
			w := worlds[name](t, Options{Embedder: Local{}})
			say(t, w, "a", "user: my puppy was ill and the vet gave him pills", "assistant: the stock market fell", "tool: ok")
			res, err := w.ix.Search(t.Context(), Query{Text: "puppy"})
			if err != nil || res.Vectors != 0 {
				t.Errorf("before: vectors %v, %v", res.Vectors, err)
			}
			if n, err := w.ix.Embed(t.Context()); n != 2 || err != nil {
				t.Errorf("made %d vectors, want 2: %v", n, err)
			}
			if n, err := w.ix.Embed(t.Context()); n != 0 || err != nil {
				t.Errorf("made %d vectors again: %v", n, err)
			}
			say(t, w, "a", "user: one more")
			if n, err := w.ix.Embed(t.Context()); n != 1 || err != nil {
				t.Errorf("made %d vectors, want 1: %v", n, err)
			}
			res, err = w.ix.Search(t.Context(), Query{Text: "puppy"})
			if err != nil || res.Vectors < 0.6 {
				t.Errorf("after: vectors %v, %v", res.Vectors, err)
			}
		})
	}
	for name := range worlds {
		each(name)
	}
}

// fails is an embedder that cannot be asked.
type fails struct{}

func (fails) Name() string { return "fails" }
func (fails) Vectors(context.Context, []string) ([][]float32, error) {
	return nil, errors.New("no route")
}

func TestWithoutEmbeddings(t *testing.T) {
	w := worlds["sqlite"](t, Options{Embedder: fails{}})
	say(t, w, "a", "user: the harbour opens at nine")
	res, err := w.ix.Search(t.Context(), Query{Text: "harbour"})
	if err != nil || len(res.Hits) != 1 || len(res.Incomplete) != 1 || !strings.Contains(res.Incomplete[0], "words only") {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestEndpoint(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}`)
	}))
	defer srv.Close()
	got, err := Endpoint{URL: srv.URL + "/v1", Model: "m", Key: "k"}.Vectors(t.Context(), []string{"a", "b"})
	if d := cmp.Diff([][]float32{{1, 0}, {0, 1}}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := (Endpoint{URL: srv.URL + "/v1", Model: "m"}).Vectors(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "who are you?") {
		t.Errorf("refused: %v", err)
	}
	if _, err := (Endpoint{URL: srv.URL + "/v1", Model: "m", Key: "k"}).Vectors(t.Context(), []string{"a", "b", "c"}); err == nil {
		t.Error("two vectors for three texts were taken")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOneOfTwo: a question that names one person asks for what is said of that
// one, not for what passes between two.
func TestOneOfTwo(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", `- Ada writes compilers.
- Ada praised Grace for her sailing, and for her sailing boat.
- Grace paints.
- Ada has a garden.
- Ada goes sailing with her aunt on most weekends of the summer.
- Grace has a cat.
`)
	ix, err := Open(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	first(t, ix, "Does Ada like sailing?", "MEMORY.md:5")
	first(t, ix, "What did Ada say of Grace's sailing?", "MEMORY.md:2")
}

func TestMemoryFiles(t *testing.T) {
	dir := t.TempDir()
	ix, err := Open(Options{Workspace: dir, Memory: []string{"notes/extra.md"}, Embedder: Local{}})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if got := find(t, ix, Query{Text: "anything"}); len(got) != 0 {
		t.Errorf("an empty workspace has %v", got)
	}
	write(t, dir+"/memory/2026-08-02.md", "# 2026-08-02\n\n## Travel\n\n- The locker code is 4711.\n- The Berlin trip\n  moved to October.\n")
	write(t, dir+"/MEMORY.md", "The user likes tea.\n\nShe plays the cello.\n")
	write(t, dir+"/notes/extra.md", "extra giraffe\n")
	write(t, dir+"/notes/other.md", "other giraffe\n")
	write(t, dir+"/secret.txt", "giraffe\n")
	first(t, ix, "what is the locker code?", "memory/2026-08-02.md:5")
	first(t, ix, "October trip", "memory/2026-08-02.md:6")
	first(t, ix, "cello", "MEMORY.md:3")
	first(t, ix, "travel", "memory/2026-08-02.md:5") // by its heading
	if d := cmp.Diff([]string{"notes/extra.md:1"}, find(t, ix, Query{Text: "giraffe"})); d != "" {
		t.Errorf("giraffe (-want +got):\n%s", d)
	}
	if n, err := ix.Embed(t.Context()); n != 6 || err != nil { // a date alone has none
		t.Errorf("%d vectors, want 6: %v", n, err)
	}
	// Only what has changed is read.
	before := ix.memory.All[0]
	write(t, dir+"/memory/2026-08-02.md", "# 2026-08-02\n\n- The locker code is 1234 now, not what it was.\n")
	first(t, ix, "locker", "memory/2026-08-02.md:3")
	if ix.memory.All[0] != before {
		t.Error("a file that has not changed was read again")
	}
	if err := os.Remove(dir + "/memory/2026-08-02.md"); err != nil {
		t.Fatal(err)
	}
	if got := find(t, ix, Query{Text: "locker 1234"}); len(got) != 0 {
		t.Errorf("deleted, and found: %v", got)
	}
	if n, err := ix.messages.db.Int("SELECT count(*) FROM recall_notes"); n != 3 || err != nil {
		t.Errorf("%d vectors are left, want 3: %v", n, err)
	}
}

func TestSnippet(t *testing.T) {
	text := strings.Repeat("nothing here at all. ", 40) + "The harbour\nopens at nine. " + strings.Repeat("and more of it. ", 40)
	s, marks := Hit{Text: text}.Snippet("when does the harbour open?", 120)
	if !strings.Contains(s, "The harbour opens at nine.") || len(s) > 140 {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	var got []string
	for _, m := range marks {
		got = append(got, s[m[0]:m[1]])
	}
	if d := cmp.Diff([]string{"harbour", "opens"}, got); d != "" {
		t.Errorf("marks (-want +got):\n%s", d)
	}
	if s, _ := (Hit{Text: "kurz"}).Snippet("x", 100); s != "kurz" {
		t.Errorf("%q", s)
	}
}

func TestTools(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/memory/2026-08-02.md", "# Monday\n\n- The locker code is 4711.\n")
	w := worlds["sqlite"](t, Options{Workspace: dir, Now: func() time.Time { return start.AddDate(0, 0, 7) }})
	say(t, w, "a", "user: my favourite colour is teal", "assistant: noted, teal it is", "user: what is my favourite colour?")
	tools := map[string]Tool{}
	for _, tool := range w.ix.Tools() {
		if tool.Mutates(llm.ToolCall{}) {
			t.Errorf("%s changes something", tool.Spec().Name)
		}
		tools[tool.Spec().Name] = tool
	}
	for _, c := range []struct{ tool, args, want string }{
		{"memory_search", `{"query":"locker code"}`, `memory/2026-08-02.md:3  - The locker code is 4711. [Monday]`},
		{"memory_search", `{"query":"elephants"}`, `no note in the memory files fits`},
		{"memory_get", `{"file":"memory/2026-08-02.md","from":3}`, `- The locker code is 4711.`},
		{"memory_get", `{"file":"memory/2026-08-02.md:3"}`, `- The locker code is 4711.`},
		{"memory_get", `{"file":"memory/2026-08-02.md:3","from":1,"lines":1}`, "# Monday\n[lines 1 to 1 of 3]"},
		{"memory_search", `{"query":" "}`, `the query is empty: say what to look for`},
		{"session_search", `{"query":""}`, `the query is empty: say what to look for`},
		{"memory_get", `{"file":"../x"}`, `"../x" is not a memory file; there are memory/2026-08-02.md`},
		{"session_search", `{"query":"what is my favourite colour?","limit":1}`, `a#2  2026-08-01 10:02 user: my favourite colour is teal`},
		{"session_search", `{"query":"teal","since":"2027-01-01"}`, `nothing that was said fits`},
		{"session_search", `{"query":"teal","since":"soon"}`, `since takes a date like 2026-08-01, a time like 2026-08-01 15:04, or how long ago like 12h, 7d or 3w, not "soon"`},
		{"session_read", `{"session":"a#3","messages":1}`, "a#2  2026-08-01 10:02 user: my favourite colour is teal\na#3  2026-08-01 10:03 assistant: noted, teal it is\na#4  2026-08-01 10:04 user: what is my favourite colour?"},
		{"session_read", `{"session":"main:cli:a","around":"a-2","messages":1}`, "a#2  2026-08-01 10:02 user: my favourite colour is teal\na#3  2026-08-01 10:03 assistant: noted, teal it is"},
		{"session_read", `{"session":"a","around":"99"}`, `session main:cli:a has no record "99", the last one is 4`},
	} {
		res, err := tools[c.tool].Run(t.Context(), llm.ToolCall{ID: "1", Name: c.tool, Args: []byte(c.args)})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, res.Text()); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.tool, c.args, d)
		}
	}
	// A line that is too long is cut, not dropped.
	write(t, dir+"/memory/2026-08-03.md", "# Long\n\n"+strings.Repeat("tide ", 10_000)+"\nshort\n")
	long, err := tools["memory_get"].Run(t.Context(), llm.ToolCall{Args: []byte(`{"file":"memory/2026-08-03.md","from":3}`)})
	if err != nil || !strings.HasPrefix(long.Text(), "tide tide") || !strings.Contains(long.Text(), " of 50000 bytes of line 3]") || len(long.Text()) > maxResult+200 {
		t.Errorf("a long line is read as %d bytes: %.60q (%v)", len(long.Text()), long.Text(), err)
	}
	// Results are bounded.
	for i := range 60 {
		say(t, w, "long", fmt.Sprintf("user: giraffe %d %s", i, strings.Repeat(fmt.Sprintf("word%d ", i), 600)))
	}
	res, err := tools["session_search"].Run(t.Context(), llm.ToolCall{Args: []byte(`{"query":"giraffe","limit":50}`)})
	if err != nil || len(res.Text()) > maxResult+200 || !strings.Contains(res.Text(), "more did not fit") {
		t.Errorf("%d bytes, %v", len(res.Text()), err)
	}
}

// TestEcho: what was looked up is not found instead of what was said.
func TestEcho(t *testing.T) {
	for _, name := range []string{"memory_search", "session_read"} {
		call := llm.ToolCall{ID: "c", Name: name, Args: []byte(`{"query":"x"}`)}
		for _, m := range []llm.Message{
			{Role: llm.Assistant, Blocks: []llm.Block{call}},
			{Role: llm.User, Blocks: []llm.Block{llm.Result(call, "found")}},
		} {
			if s, ok := speak(session.Record{Body: session.Message{Message: m}}); ok {
				t.Errorf("%s says %q", name, s.text)
			}
		}
	}
}

// TestTogether searches, appends, deletes and embeds at the same time.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "The user likes tea.\n")
	w := worlds["sqlite"](t, Options{Embedder: Local{}, Workspace: dir})
	w.ix.Background()
	done := make(chan error, 3)
	for g := range 2 {
		go func() {
			for i := range 20 {
				if _, err := w.ix.Search(t.Context(), Query{Text: fmt.Sprintf("tea word%d", i*g)}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	go func() {
		for i := range 20 {
			say(t, w, fmt.Sprintf("s%d", i%4), fmt.Sprintf("user: word%d", i))
			if i%4 == 3 {
				if err := w.Delete(t.Context(), "s3"); err != nil {
					done <- err
					return
				}
				if err := w.Restore(t.Context(), "s3"); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	first(t, w.ix, "word7", "s3#3")
	if err := w.ix.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.ix.Search(t.Context(), Query{Text: "word7"}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
