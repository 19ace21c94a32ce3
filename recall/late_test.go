package recall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"goclaw/session"
)

// scripted is a model that notes what it was asked.
type scripted struct {
	mu    sync.Mutex
	asked []string
	each  func() error // is called before each batch; nil: nothing
	lang  string       // texts with it are in a language that it does not know; "": none
}

func (m *scripted) Name() string { return "scripted" }

func (m *scripted) Knows(text string) bool { return m.lang == "" || !strings.Contains(text, m.lang) }

func (m *scripted) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	if m.each != nil {
		if err := m.each(); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out [][]float32
	for _, t := range texts {
		m.asked = append(m.asked, t)
		out = append(out, []float32{float32(len(t)), 1, -1, 2})
	}
	return out, ctx.Err()
}

// missing checks how many messages have no vector.
func missing(t *testing.T, ix *Index, want int) {
	t.Helper()
	if got, err := ix.Missing(t.Context()); got != want || err != nil {
		t.Errorf("%d messages have no vector, want %d: %v", got, want, err)
	}
}

// TestNewestFirst: the newest messages get their vectors first, whatever session
// they are in, and the short ones of those that are looked for at once.
func TestNewestFirst(t *testing.T) {
	for name, open := range worlds {
		t.Run(name, func(t *testing.T) {
			m := &scripted{}
			w := open(t, Options{Embedder: m})
			say(t, w, "old", "user: the first", "user: the second", "tool: output", "user: the third one")
			say(t, w, "new", "user: one", "user: two", "user: number three", "user: four", "user: five", "user: number six")
			if n, err := w.ix.vectors.all(t.Context(), &pace{window: 2, batch: 2}); n != 9 || err != nil {
				t.Fatalf("made %d vectors, want 9: %v", n, err)
			}
			want := []string{"five", "number six", "four", "the third one", "the second", "number three", "two", "the first", "one"}
			if !slices.Equal(m.asked, want) {
				t.Errorf("in the order\n%q, want\n%q", m.asked, want)
			}
			missing(t, w.ix, 0)
			say(t, w, "old", "user: one more")
			missing(t, w.ix, 1)
		})
	}
}

// TestEmbedInterrupted: what was made before an interruption is kept, and
// nothing is made twice.
func TestEmbedInterrupted(t *testing.T) {
	for _, name := range []string{"sqlite", "jsonl"} {
		t.Run(name, func(t *testing.T) {
			m := &scripted{}
			w := worlds[name](t, Options{Embedder: m})
			for s := range 3 {
				var lines []string
				for i := range 100 {
					lines = append(lines, fmt.Sprintf("user: message %d of %d", i, s))
				}
				say(t, w, fmt.Sprint("s", s), lines...)
			}
			ctx, cancel := context.WithCancel(t.Context())
			batches := 0
			m.each = func() error {
				if batches++; batches == 3 {
					cancel()
				}
				return ctx.Err()
			}
			n, err := w.ix.Embed(ctx)
			if n != 128 || !errors.Is(err, context.Canceled) {
				t.Errorf("made %d vectors before it was interrupted, want 128: %v", n, err)
			}
			missing(t, w.ix, 172)
			m.each = nil
			again := w.open()
			defer again.Close()
			if n, err := again.Embed(t.Context()); n != 172 || err != nil {
				t.Errorf("made %d vectors then, want 172: %v", n, err)
			}
			slices.Sort(m.asked)
			if n := len(slices.Compact(m.asked)); n != 300 || len(m.asked) != 300 {
				t.Errorf("%d texts were embedded, %d different ones, want 300", len(m.asked), n)
			}
			missing(t, w.ix, 0)
		})
	}
}

// TestEmbedFor: however little time each one has, searches make all vectors in
// the end.
func TestEmbedFor(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- The user likes tea.\n")
	m := &scripted{}
	w := worlds["sqlite"](t, Options{Embedder: m, Workspace: dir})
	say(t, w, "a", "user: one", "user: two", "user: three", "user: four", "user: five", "user: six", "user: seven")
	for _, want := range []int{1, 4, 3, 0} {
		if n, err := w.ix.EmbedFor(t.Context(), 0); n != want || err != nil {
			t.Errorf("made %d vectors, want %d: %v", n, want, err)
		}
	}
	missing(t, w.ix, 0)
}

// TestTwoEmbed: two processes that make vectors at the same time end with all of
// them, each once.
func TestTwoEmbed(t *testing.T) {
	m := &scripted{}
	w := worlds["sqlite"](t, Options{Embedder: m})
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("user: message %d", i))
	}
	say(t, w, "a", lines...)
	other := w.open()
	defer other.Close()
	var both sync.WaitGroup
	for _, ix := range []*Index{w.ix, other} {
		both.Go(func() {
			if _, err := ix.vectors.all(t.Context(), &pace{window: 50, batch: 7}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	missing(t, w.ix, 0)
	missing(t, other, 0)
	size, err := w.ix.messages.db.Int("SELECT sum(length(data)) FROM recall_codes")
	if size != 200*33 || err != nil {
		t.Errorf("the vectors have %d bytes, want %d: %v", size, 200*33, err)
	}
}

// TestUnknownLanguage: a text in a language that the model does not know gets no
// vector, and is not tried again.
func TestUnknownLanguage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/MEMORY.md", "- The user likes tea.\n- die Katze\n")
	m := &scripted{lang: "Katze"}
	w := worlds["sqlite"](t, Options{Embedder: m, Workspace: dir})
	say(t, w, "a", "user: die Katze schläft", "user: the cat sleeps", "user: die Katze isst")
	if n, err := w.ix.Embed(t.Context()); n != 2 || err != nil {
		t.Errorf("made %d vectors, want 2: %v", n, err)
	}
	missing(t, w.ix, 0)
	again := w.open()
	defer again.Close()
	if n, err := again.Embed(t.Context()); n != 0 || err != nil {
		t.Errorf("made %d vectors again: %v", n, err)
	}
	for _, c := range []struct {
		query string
		words bool
	}{{"the cat", false}, {"die Katze", true}} {
		res, err := again.Search(t.Context(), Query{Text: c.query})
		if err != nil || len(res.Hits) == 0 || res.Words != c.words || len(res.Incomplete) != 0 {
			t.Errorf("%s: %d hits, by words alone %v, want %v: %v %v", c.query, len(res.Hits), res.Words, c.words, res.Incomplete, err)
		}
	}
	if slices.ContainsFunc(m.asked, func(s string) bool { return !m.Knows(s) }) {
		t.Errorf("the model was asked %q", m.asked)
	}
}

// TestGoneMeanwhile: a session that is deleted while its vectors are made gets
// none.
func TestGoneMeanwhile(t *testing.T) {
	m := &scripted{}
	w := worlds["sqlite"](t, Options{Embedder: m})
	say(t, w, "a", "user: one", "user: two")
	say(t, w, "b", "user: three")
	m.each = func() error {
		m.each = nil
		return errors.Join(w.Delete(t.Context(), session.ID("a")), w.open().Prune(t.Context()))
	}
	if _, err := w.ix.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	missing(t, w.ix, 0)
	size, err := w.ix.messages.db.Int("SELECT sum(length(data)) FROM recall_codes")
	if size != 33 || err != nil {
		t.Errorf("the vectors have %d bytes, want %d: %v", size, 33, err)
	}
}
