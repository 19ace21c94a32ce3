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
