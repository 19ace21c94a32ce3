package recall

import (
	"context"
	"time"

	"goclaw/internal/watch"
)

// How long nothing must have changed before memory files are looked at, and
// how long that is waited for at most: editors and models write in bursts.
const (
	settle     = 100 * time.Millisecond
	settleMost = time.Second
)

// backgroundPause is how often it is looked for messages without vectors.
const backgroundPause = 2 * time.Second

// Background keeps the index up to date until Close: memory files are read
// when they change, and vectors are made of what has none, and of what comes.
func (ix *Index) Background() {
	ix.begin.Lock()
	defer ix.begin.Unlock()
	select {
	case <-ix.shut:
		return
	default:
	}
	if ix.begun {
		return
	}
	ix.begun = true
	ctx, cancel := context.WithCancel(context.Background())
	ix.work.Go(func() {
		<-ix.shut
		cancel()
	})
	if ix.o.Embedder != nil {
		ix.work.Go(func() { ix.embedOn(ctx) })
	}
	if ix.o.Workspace != "" {
		ix.work.Go(func() { ix.watchMemory(ctx) })
	}
}

// embedOn embeds messages until ctx is done.
func (ix *Index) embedOn(ctx context.Context) {
	for {
		// A failure is seen by the next search, which says what is missing.
		_, _ = ix.embedMessages(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backgroundPause):
		}
	}
}

// watchMemory reads memory files that change, and embeds their notes at once:
// they do not wait behind a long past that has no vectors yet.
func (ix *Index) watchMemory(ctx context.Context) {
	w := ix.watcher
	if w == nil {
		w = watch.New()
	}
	defer w.Close()
	for {
		w.Look(func(see func(dir string, names ...string)) {
			ix.mu.Lock()
			defer ix.mu.Unlock()
			// The next search says what cannot be read.
			_, _ = ix.memory.sync(ix.o.Workspace, ix.o.Memory, see)
		})
		_, _ = ix.embedMemory(ctx)
		if w.Wait(ctx, settle, settleMost) != nil {
			return
		}
	}
}

// embedMemory embeds all notes that have no vector.
func (ix *Index) embedMemory(ctx context.Context) (made int, err error) {
	if ix.o.Embedder == nil || ix.o.Workspace == "" {
		return 0, nil
	}
	ix.embedding.Lock()
	defer ix.embedding.Unlock()
	for {
		n, err := ix.embedNotes(ctx)
		made += n
		if n == 0 || err != nil {
			return made, err
		}
	}
}
