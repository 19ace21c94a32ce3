// Package recall searches what was said: in the messages of all
// sessions, and in the memory files of a workspace.
//
// The ranking is BM25 over words and their stems with the neighbouring
// messages as context, speakers and dates understood, together with vectors
// from a model that is part of the program (package embed) or any other
// Embedder. A query is text: nothing in it is syntax.
//
// The index is a projection in a separate file: segments of postings, each
// written in one transaction. What no segment holds yet is read from the log by
// every search. So a message can be found as soon as it is appended, and a
// process that is killed leaves nothing to repair. When a session goes into the
// trash, every segment with its words goes; the rest of those segments is
// indexed again.
package recall

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goclaw/internal/watch"
	"goclaw/recall/internal/notes"
	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/vectors"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Options say what is searched.
type Options struct {
	// Store holds the transcripts; nil: there are none.
	Store session.Store
	// Path is the file of the index, made if it is missing; "": in memory. It
	// holds nothing else.
	Path string
	// Workspace is the folder of the memory files; "": there are none. Memory
	// names more files and folders of it than MEMORY.md and memory/.
	Workspace string
	Memory    []string
	// Beside are workspaces of other programs. Their memory files are found and
	// read as well.
	Beside []Workspace
	// MemorySearch are the settings of memory_search in the sessions of an agent;
	// nil: the zero value for all.
	MemorySearch func(agent string) MemorySearch
	// Private reports whether a file of the workspace must not be read; nil:
	// none.
	Private func(path string) bool
	// Embedder makes vectors; nil: words alone decide.
	Embedder Embedder
	// Now is the current time. "Yesterday" is understood by it, and tools give
	// times in its zone.
	Now func() time.Time
	// Progress is called while much is indexed: how many of how many records.
	Progress func(done, total int)
	// Embedded is called while vectors of messages are made: how many of how
	// many.
	Embedded func(made, total int)
}

// Workspace is a folder with memory files. Name is what they are called by
// beside ours, such as "~/.openclaw/workspace"; Memory names more of them than
// MEMORY.md and memory/.
type Workspace struct {
	Path, Name string
	Memory     []string
}

// Index searches. It may be used by many goroutines.
type Index struct {
	o Options

	mu       sync.Mutex // of messages, memory and vectors
	messages *transcripts
	memory   notes.Files
	vectors  embedding
	codes    vectors.Codes // of the messages

	holding
	background background
}

// Open opens the index. It reads nothing yet.
func Open(o Options) (*Index, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Store != nil {
		o.Store = storekit.Redacted(o.Store)
	}
	t, err := openTranscripts(o.Store, o.Path)
	if err != nil {
		return nil, err
	}
	ix := &Index{o: o, messages: t, memory: notes.Files{Private: o.Private}}
	if o.Workspace != "" {
		ix.memory.Folders = append(ix.memory.Folders, notes.Folder{Root: o.Workspace, More: o.Memory})
		for _, w := range o.Beside {
			ix.memory.Folders = append(ix.memory.Folders, notes.Folder{Root: w.Path, Name: strings.TrimSuffix(w.Name, "/") + "/", More: w.Memory})
		}
	}
	ix.vectors = embedding{ix: ix, model: o.Embedder, patience: patience, slack: slack}
	ix.background.stop = make(chan struct{})
	t.progress, t.rebuilt = o.Progress, ix.vectors.reset
	if err := ix.vectors.reset(); err != nil {
		t.db.Close()
		return nil, err
	}
	return ix, nil
}

// Close ends what runs in the background and closes the index.
func (ix *Index) Close() error {
	ix.background.end() // before the lock is waited for
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.messages.db == nil {
		return nil
	}
	ix.codes.Close()
	err := ix.messages.db.Close()
	ix.messages.db = nil
	return err
}

// lock locks an index that is open, and lets ctx interrupt it. The caller
// calls unlock.
func (ix *Index) lock(ctx context.Context) (unlock func(), err error) {
	ix.mu.Lock()
	if ix.messages.db == nil {
		ix.mu.Unlock()
		return nil, session.ErrClosed
	}
	ix.messages.db.SetInterrupt(ctx)
	return func() {
		ix.messages.db.SetInterrupt(context.Background())
		ix.mu.Unlock()
	}, nil
}

// Sync brings the index up to date, as every search does.
func (ix *Index) Sync(ctx context.Context) error { return ix.sync(ctx, false) }

// sync is Sync. more says that it is called again soon.
func (ix *Index) sync(ctx context.Context, more bool) error {
	unlock, err := ix.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	t := ix.messages
	t.more = more
	err = t.sync(ctx)
	if !more {
		t.builder = nil
	}
	return err
}

// Rebuild rebuilds the index from the logs.
func (ix *Index) Rebuild(ctx context.Context) error {
	unlock, err := ix.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ix.messages.rebuild(); err != nil {
		return err
	}
	return ix.messages.sync(ctx)
}

// Prune takes what is no longer in the store out of the index, and its words
// out of the file.
func (ix *Index) Prune(ctx context.Context) error {
	unlock, err := ix.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if ix.o.Store != nil {
		if _, err := ix.messages.follow(ctx); err != nil {
			return err
		}
		if _, err := ix.messages.forget(); err != nil {
			return err
		}
	}
	return ix.messages.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

// Count returns how many messages and notes the index holds.
func (ix *Index) Count(ctx context.Context) (messages, notes int, err error) {
	unlock, err := ix.lock(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	if err := ix.messages.sync(ctx); err != nil {
		return 0, 0, err
	}
	for _, s := range ix.messages.segments() {
		messages += len(s.Docs)
	}
	if ix.o.Workspace != "" {
		err = ix.memory.Sync(nil)
	}
	for _, f := range ix.memory.All {
		notes += len(f.Notes)
	}
	return messages, notes, err
}

// InMemory returns why the index is in memory, and not in its file; nil if it is
// in its file, or has none.
func (ix *Index) InMemory() error { return ix.messages.inMemory }

// Size returns how many bytes of the index's file are in use.
func (ix *Index) Size() (int64, error) {
	unlock, err := ix.lock(context.Background())
	if err != nil {
		return 0, err
	}
	defer unlock()
	return ix.messages.db.Size()
}

// Examine returns what is wrong with the index at path, in sentences. It
// changes nothing. A missing index is not wrong: the first search makes it.
func Examine(ctx context.Context, path string) (wrong []string, err error) {
	return postings.Examine(ctx, path)
}

// Remove removes the index at path. Opening it again makes a new one.
func Remove(path string) error { return postings.Remove(path) }

// RemoveFrom removes the index that versions before v0.2.0 kept in the database
// of the sessions at path. The index is a separate file now.
func RemoveFrom(path string) error { return postings.RemoveFrom(path) }

// background is the work that Background starts and Close ends.
type background struct {
	mu      sync.Mutex // before stop is closed, or work is added
	begun   bool
	ended   bool
	stop    chan struct{}
	work    sync.WaitGroup
	watcher *watch.Watcher // of the memory files; nil: a new one
}

// backgroundPause is how often messages without vectors are looked for.
const backgroundPause = 2 * time.Second

// Background keeps the index up to date until Close: memory files are read
// when they change, and vectors are made for messages and notes without any.
func (ix *Index) Background() {
	b := &ix.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun || b.ended {
		return
	}
	b.begun = true
	ctx, cancel := context.WithCancel(context.Background())
	b.work.Go(func() {
		<-b.stop
		cancel()
	})
	if ix.o.Embedder != nil {
		b.work.Go(func() { ix.vectors.keepUp(ctx) })
	}
	if ix.o.Workspace != "" {
		w := b.watcher
		if w == nil {
			w = watch.New()
		}
		// Notes do not wait for a long past that has no vectors yet.
		b.work.Go(func() {
			ix.memory.Watch(ctx, w, &ix.mu, func() { _, _ = ix.vectors.ofNotes(ctx, &pace{batch: 64}) })
		})
	}
}

// holding counts those for whose sake Background waits.
type holding struct{ held atomic.Int32 }

// Hold keeps Background from making vectors of messages, which takes a processor
// for itself, until release is called: somebody waits for something else.
func (h *holding) Hold() (release func()) {
	h.held.Add(1)
	return func() { h.held.Add(-1) }
}

// end ends the work, and waits for its end.
func (b *background) end() {
	b.mu.Lock()
	if !b.ended {
		b.ended = true
		close(b.stop)
	}
	b.mu.Unlock()
	b.work.Wait()
}

// table is the vectors in the index's file.
func (ix *Index) table() vectors.Table {
	return vectors.Table{DB: ix.messages.db, Codes: &ix.codes}
}
