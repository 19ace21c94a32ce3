package recall

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"goclaw/session"
)

func TestTerms(t *testing.T) {
	for _, group := range [][]string{
		{"film", "films", "movie", "movies"},
		{"child", "children", "kid", "kids"},
		{"mother", "mothers", "mom", "moms"},
		{"decide", "decided", "decision", "decisions"},
		{"went", "go", "goes", "going"},
		{"colour", "colors", "color"},
		{"Café", "cafe", "cafés"},
	} {
		for _, w := range group[1:] {
			if got, want := term(w), term(group[0]); got != want {
				t.Errorf("%s is found by %q, %s by %q", w, got, group[0], want)
			}
		}
	}
	for _, pair := range [][2]string{{"found", "founded"}, {"doc", "doctor"}, {"cut", "cat"}} {
		if a, b := term(pair[0]), term(pair[1]); a == b {
			t.Errorf("%s and %s are both found by %q", pair[0], pair[1], a)
		}
	}
}

func TestAsking(t *testing.T) {
	const both = flagAsks | flagOnlyAsks
	for text, want := range map[string]uint8{
		"":                  0,
		"It works.":         0,
		"Does it work?":     both,
		"Does it work? \"":  both,
		"Hi! Does it work?": both,
		"动了吗？":              both,
		"The parser was rewritten on Monday and is twice as fast. And you?": flagAsks,
		"Why was the parser rewritten on Monday, of all days? Hm.":          flagOnlyAsks,
		"Does it work? [attached: machine.jpg, 120 KB]":                     both,
		"It works. [why?]": 0,
	} {
		if got := asking(text); got != want {
			t.Errorf("%q: got %b, want %b", text, got, want)
		}
	}
}

func TestSubject(t *testing.T) {
	for text, want := range map[string]string{
		"- Ada writes compilers for a living": "Ada",
		"2. **Ada**: compilers":               "Ada",
		"Ada's compiler is fast":              "Ada's",
		"The engineer Ada writes compilers":   "Ada",
		"compilers are what Ada writes":       "Ada",
		"what is written here says Ada":       "",
		"the quick brown fox and Ada":         "",
		"":                                    "",
	} {
		if got := (note{text: text}).subject(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := (note{text: "Ada", isHeading: true}).subject(); got != "" {
		t.Errorf("a heading has the subject %q", got)
	}
}

// TestEvidence holds what speaks for a message beside its words.
func TestEvidence(t *testing.T) {
	w := worlds["sqlite"](t, Options{})
	say(t, w, "tells", "user: the harvest of quinces was poor in the north this year, I fear. How is yours?", "user: quinces?")
	first(t, w.ix, "quinces", "tells#2")
}

func TestSubjects(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "memory"), 0o700); err != nil {
		t.Fatal(err)
	}
	notes := "# Notes\n\n- Ada told Grace about the sailing course in May\n- Grace told Ada about the sailing course in June\n"
	if err := os.WriteFile(filepath.Join(dir, "memory", "2026-07-01.md"), []byte(notes), 0o600); err != nil {
		t.Fatal(err)
	}
	ix, err := Open(Options{Workspace: dir, Now: func() time.Time { return time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	first(t, ix, "what did Ada tell about sailing?", "memory/2026-07-01.md:3")
	first(t, ix, "what did grace tell about sailing?", "memory/2026-07-01.md:4")
}

// slow is a model that is asked, and answers when it is told to.
type slow struct{ asked, answer chan struct{} }

func (slow) Name() string { return "slow" }

func (s slow) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	s.asked <- struct{}{}
	<-s.answer
	return make([][]float32, len(texts)), nil
}

// TestSlowModel searches, and closes, while another search waits for its
// vector.
func TestSlowModel(t *testing.T) {
	m := slow{make(chan struct{}), make(chan struct{})}
	w := worlds["sqlite"](t, Options{Embedder: m})
	say(t, w, "a", "user: the lighthouse is white")
	search := func() chan error {
		done := make(chan error, 1)
		go func() {
			_, err := w.ix.Search(context.Background(), Query{Text: "lighthouse"})
			done <- err
		}()
		<-m.asked
		return done
	}
	one, two := search(), search()
	m.answer <- struct{}{}
	m.answer <- struct{}{}
	for _, done := range []chan error{one, two} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	three := search()
	if err := w.ix.Close(); err != nil {
		t.Error(err)
	}
	m.answer <- struct{}{}
	if err := <-three; !errors.Is(err, session.ErrClosed) {
		t.Errorf("a search of what was closed in the meantime: %v", err)
	}
}

func cites(t *testing.T, ix *Index, text string) (out []string) {
	t.Helper()
	res, err := ix.Search(t.Context(), Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range res.Hits {
		out = append(out, h.Cite())
		out = append(out, h.Also...)
	}
	return out
}

// at is the place of a citation; behind all if it is missing.
func at(hits []string, cite string) int {
	for i, h := range hits {
		if h == cite {
			return i
		}
	}
	return len(hits)
}
