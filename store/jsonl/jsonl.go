// Package jsonl is a session.Store in a folder of plain files: one .jsonl for
// each session, a line for each record, in a layout that OpenClaw or claw0
// reads as well. `tail -f` shows a conversation as it goes on.
//
// The logs are the truth. sessions.json is written for the other programs,
// and .goclaw/index remembers what each log adds up to; both are written now
// and then, never with an append, and whatever they say is held against the
// logs. Lost, empty, stale or corrupt, they are made anew.
//
// A log is only ever appended to: by one process at a time, under a lock, in
// one write that is on the medium before Append returns. Other programs may
// append to it, replace it or cut it at any time; that is noticed. A line
// that is torn stays where it is, closed off by a line end, and is reported
// as damage.
package jsonl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/internal/hold"
)

// Options are how a store is kept. The zero value is good.
type Options struct {
	Layout Layout
	Clock  session.Clock // says when a log was deleted; nil is the clock on the wall

	// Still leaves sessions.json and the index as they are, for who came to
	// look: only Rebuild writes them.
	Still bool
}

// Store is a folder of logs.
type Store struct {
	*root
	still bool
	pause time.Duration // how long projections wait for more changes
	load  sync.Once

	// syncing is held by whoever looks for files. It is taken before mu, and
	// possibly while a log is held.
	syncing sync.Mutex
	folders map[string]*folder
	agents  folder

	// mu is held for moments, never while something is read or written, and
	// never while a log is being waited for.
	mu      sync.Mutex
	logs    map[session.ID]*log
	files   map[string]*log   // by path
	tables  map[string]*table // the sessions.json
	entries int               // in the index file
	lost    bool              // the index has entries of logs that are gone
	grown   chan struct{}     // closed and replaced when a log may have grown
	closed  bool
	done    chan struct{}
	timer   *time.Timer

	flushing sync.Mutex
	outlines outlines
}

// folder is what was seen of a folder, and when.
type folder struct {
	mtime int64
	at    time.Time
	subs  []string // of the folder of agents: where logs lie
}

// Open opens the store in dir, and makes it if there is none.
func Open(dir string, opts Options) (*Store, error) { return open(dir, opts, osDisk{}) }

func open(dir string, opts Options, d disk) (*Store, error) {
	if opts.Layout < OpenClaw || opts.Layout > Claw0Old {
		return nil, fmt.Errorf("jsonl: there is no layout %d", int(opts.Layout))
	}
	if opts.Clock == nil {
		opts.Clock = session.System{}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	r := &root{dir: dir, layout: opts.Layout, codec: opts.Layout.form().Codec(), clock: opts.Clock, disk: d}
	if err := r.mkdir(r.own("")); err != nil { // durable: batch files rely on it
		// What cannot be written to can still be read.
		if st, e := d.lstat(dir); e != nil || st.mode.IsRegular() {
			return nil, fmt.Errorf("jsonl: %w", err)
		}
	}
	return &Store{
		root: r, still: opts.Still, pause: 2 * time.Second,
		folders: map[string]*folder{}, logs: map[session.ID]*log{}, files: map[string]*log{},
		tables: map[string]*table{},
		grown:  make(chan struct{}), done: make(chan struct{}),
	}, nil
}

var bgContext = context.Background()

// enter begins every method.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return session.ErrClosed
	}
	s.load.Do(s.loadIndex)
	return nil
}

// Close brings the projections up to date, unless the store is still. It may be
// called again.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	return s.flush(true)
}

// Path returns the file of the log id, in the trash or not.
func (s *Store) Path(id session.ID) (string, bool) {
	s.load.Do(s.loadIndex)
	l, err := s.find(id)
	if l == nil || err != nil {
		return "", false
	}
	return l.where(), true
}

// register makes l known. Of files with one id, the one that has the name of
// the id counts, else the first; a log in the trash counts least. The caller
// holds mu.
func (s *Store) register(l *log) {
	rel := l.at().rel
	if s.files[rel] != nil {
		return
	}
	s.files[rel] = l
	if old := s.logs[l.id]; old == nil || s.before(l, old) {
		s.logs[l.id] = l
	}
}

// before reports whether a is rather the log of its id than b.
func (s *Store) before(a, b *log) bool {
	i, j := s.rank(a), s.rank(b)
	if i == 2 && j == 2 {
		return a.at().trashed.After(b.at().trashed)
	}
	return i < j || i == j && a.at().rel < b.at().rel
}

// rank orders files that claim one id, the best first.
func (s *Store) rank(l *log) int {
	name := strings.TrimSuffix(filepath.Base(l.live), ext)
	switch {
	case !l.at().trashed.IsZero():
		return 2
	case name == storekit.FileName(string(l.id)), s.layout == Claw0Old && strings.HasSuffix(name, "_"+storekit.FileName(string(l.id))):
		return 0
	}
	return 1
}

// forget drops l, whose file is gone.
func (s *Store) forget(l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rel := l.at().rel; s.files[rel] == l {
		delete(s.files, rel)
		s.lost = true
	}
	if s.logs[l.id] != l {
		return
	}
	delete(s.logs, l.id)
	if len(s.files) == len(s.logs) {
		return // each file had an id of its own
	}
	for _, other := range s.files {
		if other.id == l.id {
			delete(s.files, other.at().rel)
			s.register(other)
		}
	}
}

// known returns the log id, or nil if no file of it is known.
func (s *Store) known(id session.ID) *log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[id]
}

// find returns the log id, or nil if there is none.
func (s *Store) find(id session.ID) (*log, error) {
	if l := s.known(id); l != nil {
		return l, nil
	}
	err := s.sync()
	return s.known(id), err
}

func notFound(id session.ID) error { return session.NotFound("there is no session %q", id) }
func inTrash(id session.ID) error  { return session.NotFound("session %q is in the trash", id) }

// with calls f with the log id held and up to date. If its file is gone, it
// is looked for once more.
func (s *Store) with(ctx context.Context, id session.ID, f func(*log) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	for range 4 {
		l, err := s.find(id)
		if err != nil {
			return err
		}
		if l == nil {
			break
		}
		err = l.use(ctx, func() error { return f(l) })
		if err != errGone {
			return err
		}
		s.forget(l)
	}
	return notFound(id)
}

// newLog returns the log id at rel.
func (s *Store) newLog(id session.ID, rel string) *log { return newLog(s.root, s.changed, id, rel) }

// changed notes that the projections of l are to be written, and limits the
// memory of outlines. The caller holds l.mu.
func (s *Store) changed(l *log) {
	l.unsaved.Store(true)
	s.mu.Lock()
	s.later()
	s.mu.Unlock()
	s.outlines.use(l)
}

// Lock implements session.Store.
func (s *Store) Lock(ctx context.Context, name, who string) (func(), error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if h := s.foreignHold(session.ID(name)); h != nil {
		return nil, h
	}
	release, err := hold.Try(s.own("hold-"+storekit.FileName(name)+".lock"), who)
	var h *session.HeldError
	if errors.As(err, &h) {
		h.Name = name
	}
	return release, err
}

// notify wakes who waits for growth. The caller holds mu.
func (s *Store) notify() {
	close(s.grown)
	s.grown = make(chan struct{})
}

// Wait implements session.Waiter. Growth by this store is seen at once, that
// by others within 50 ms.
func (s *Store) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		s.mu.Lock()
		grown := s.grown
		s.mu.Unlock()
		more := false
		err := s.with(ctx, id, func(l *log) error {
			more = l.view.info.Last > after
			return nil
		})
		if more || err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		tick.Reset(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return session.ErrClosed
		case <-grown:
		case <-tick.C:
		}
	}
}
