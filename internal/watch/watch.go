// Package watch tells when folders may have changed: by the system's events
// where it sends any, and by the clock where it does not. What has changed is
// for its user to find out.
//
// A user looks, and waits, in turns:
//
//	for {
//		w.Look(func(see func(dir string, names ...string)) { ... })
//		if err := w.Wait(ctx, quiet, most); err != nil {
//			return err
//		}
//	}
package watch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often to look, unless a Watcher says otherwise: events get lost, and
// some file systems send none.
const (
	defaultEvery = 30 * time.Second
	defaultBlind = 2 * time.Second
)

// Watcher watches folders. Look and Wait are for one goroutine.
type Watcher struct {
	// Every is how often it is time to look where the system reports changes,
	// 0: every thirty seconds; Blind where it does not, 0: every two.
	Every, Blind time.Duration

	open  func() (source, error) // nil: there is nothing to ask
	src   source                 // nil: not open
	done  chan struct{}          // closed when nothing comes from src any more
	signs chan struct{}          // something may have changed

	miss bool // the last look showed a folder that cannot be watched

	mu   sync.Mutex
	dirs map[string]*folder // that src watches
}

// source is what a Watcher needs of fsnotify.
type source interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
	channels() (<-chan fsnotify.Event, <-chan error)
}

type notifier struct{ *fsnotify.Watcher }

func (n notifier) channels() (<-chan fsnotify.Event, <-chan error) { return n.Events, n.Errors }

// folder is a folder that is watched.
type folder struct {
	info  fs.FileInfo // of what was there when the watch began
	names []string    // entries that matter; none: all do
	shown bool        // by the current look
}

// New returns a Watcher that asks the system. Where it refuses (there are
// limits on how much is watched), it is asked again by every look.
func New() *Watcher {
	w := Blind()
	w.open = func() (source, error) {
		n, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		return notifier{n}, nil
	}
	return w
}

// Blind returns a Watcher that asks nothing of the system and goes by the
// clock alone.
func Blind() *Watcher {
	return &Watcher{dirs: map[string]*folder{}, signs: make(chan struct{}, 1)}
}

// Close ends it, and returns when nothing of it runs any more.
func (w *Watcher) Close() error {
	if w.src == nil {
		return nil
	}
	err := w.src.Close()
	<-w.done
	w.src = nil
	return err
}

// Look calls walk, which shows it the folders that matter from now on. A
// folder is shown before it is read: then nothing is missed that happens in
// between. If names are given, only changes of those entries matter.
func (w *Watcher) Look(walk func(see func(dir string, names ...string))) {
	select {
	case <-w.signs: // walk will see what that was
	default:
	}
	w.revive()
	// A watch is of a folder, whatever its name has become: it ends before the
	// folder is shown again under another one.
	w.drop(func(dir string, f *folder) bool {
		f.shown = false
		info, err := os.Stat(dir)
		return err != nil || !os.SameFile(info, f.info)
	})
	w.miss = false
	walk(w.see)
	w.drop(func(_ string, f *folder) bool { return !f.shown })
}

// drop no longer watches the folders that are not wanted.
func (w *Watcher) drop(unwanted func(dir string, f *folder) bool) {
	var gone []string
	w.mu.Lock()
	for dir, f := range w.dirs {
		if unwanted(dir, f) {
			gone = append(gone, dir)
			delete(w.dirs, dir)
		}
	}
	w.mu.Unlock()
	for _, dir := range gone {
		_ = w.src.Remove(dir) // it may have ended by itself
	}
}

// revive opens the source if there is none, or if it has died.
func (w *Watcher) revive() {
	if w.src != nil {
		select {
		case <-w.done:
			_ = w.Close()
			w.mu.Lock()
			clear(w.dirs)
			w.mu.Unlock()
		default:
			return
		}
	}
	if w.open == nil {
		return
	}
	src, err := w.open()
	if err != nil {
		return
	}
	w.src, w.done = src, make(chan struct{})
	events, errs := src.channels()
	go w.listen(events, errs, w.done)
}

func (w *Watcher) see(dir string, names ...string) {
	if w.src == nil {
		return
	}
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	if err != nil {
		return // what holds it tells when it comes
	}
	w.mu.Lock()
	f := w.dirs[dir]
	switch {
	case f != nil && f.shown && (len(f.names) == 0 || len(names) == 0):
		f.names = nil
	case f != nil && f.shown:
		f.names = append(f.names, names...)
	case f != nil:
		f.names, f.shown = slices.Clone(names), true
	}
	if f == nil {
		w.dirs[dir] = &folder{info: info, names: slices.Clone(names), shown: true}
	}
	w.mu.Unlock()
	if f != nil {
		return
	}
	// Not under the lock, which listen takes: a source may wait for its reader.
	if err := w.src.Add(dir); err != nil {
		w.mu.Lock()
		delete(w.dirs, dir)
		w.mu.Unlock()
		w.miss = w.miss || !errors.Is(err, fs.ErrNotExist)
	}
}

// listen takes what the source sends until it ends, so that it never waits.
func (w *Watcher) listen(events <-chan fsnotify.Event, errs <-chan error, done chan struct{}) {
	defer close(done)
	for events != nil || errs != nil {
		matters := true
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
			}
			matters = !ok || w.matters(e)
		case _, ok := <-errs: // some events were lost
			if !ok {
				errs = nil
			}
		}
		if matters {
			select {
			case w.signs <- struct{}{}:
			default:
			}
		}
	}
}

// matters reports whether an event is of something that was shown.
func (w *Watcher) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false // also sent when others read, or index
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.dirs[e.Name]; ok {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			delete(w.dirs, e.Name) // the watch has ended with it
		}
		return true
	}
	f := w.dirs[filepath.Dir(e.Name)]
	if f == nil {
		return false
	}
	return len(f.names) == 0 || slices.ContainsFunc(f.names, func(n string) bool { return strings.EqualFold(n, filepath.Base(e.Name)) })
}

// blind reports whether the system does not tell of everything.
func (w *Watcher) blind() bool {
	if w.src == nil {
		return true
	}
	select {
	case <-w.done:
		return true
	default:
	}
	return w.miss
}

// Wait returns when it is time to look: when something may have changed, and
// nothing more has for the time quiet, or at the latest most after the first
// sign; or when it is time to look anyway. It ends with ctx's error.
func (w *Watcher) Wait(ctx context.Context, quiet, most time.Duration) error {
	every, fallback := w.Every, defaultEvery
	if w.blind() {
		every, fallback = w.Blind, defaultBlind
	}
	if every <= 0 {
		every = fallback
	}
	clock := time.NewTimer(max(every, quiet))
	defer clock.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-clock.C:
		return nil
	case <-w.signs:
	}
	last, still := time.NewTimer(most), time.NewTimer(quiet)
	defer last.Stop()
	defer still.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-last.C:
			return nil
		case <-still.C:
			return nil
		case <-w.signs:
			still.Reset(quiet)
		}
	}
}
