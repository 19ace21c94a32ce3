package inherit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"goclaw/session"
)

// Following says how sources are followed. The zero value is fine, apart from
// Memo, without which every look reads everything.
type Following struct {
	Find Options
	Take Taking
	// Poll is how often it is looked for what no event told of. 0: every
	// thirty seconds, or every two where the system cannot tell.
	Poll time.Duration
	// Taken is told of every look that has taken something, or has failed.
	Taken func(Report, error)
}

// settle is how long a source must be quiet before it is looked at: a program
// writes a turn in several pieces.
const settle = 150 * time.Millisecond

// Follow takes what the programs write in paths, as they write it, until ctx
// is done. What is there already is taken first. Where the system cannot tell
// of changes, it looks now and then.
func Follow(ctx context.Context, st session.Store, paths []string, o Following) error {
	w := &watch{told: map[string]bool{}}
	if fw, err := fsnotify.NewWatcher(); err == nil {
		w.Watcher = fw
		defer fw.Close()
	}
	poll := o.Poll
	if poll == 0 {
		poll = 30 * time.Second
	}
	o.Find.Memo = o.Take.Memo
	for {
		begin := time.Now()
		missed := w.add(paths)
		rep, err := look(ctx, st, paths, o)
		took := time.Since(begin)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.Taken != nil && (err != nil || rep.Records() > 0) {
			o.Taken(rep, err)
		}
		if errors.Is(err, session.ErrClosed) {
			return err
		}
		every := poll
		if missed && o.Poll == 0 {
			every = 2 * time.Second
		}
		if err := w.wait(ctx, every); err != nil {
			return err
		}
		// A large source is not read without a pause.
		if !pause(ctx, max(settle, 2*took)) {
			return ctx.Err()
		}
		w.drain()
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// look takes what is new now.
func look(ctx context.Context, st session.Store, paths []string, o Following) (Report, error) {
	cat, err := Find(ctx, paths, o.Find)
	if err != nil {
		return Report{}, err
	}
	defer cat.Close()
	return Take(ctx, st, cat, o.Take)
}

// watch is told of changes, if the system can.
type watch struct {
	*fsnotify.Watcher
	told map[string]bool
}

// add watches the folders of paths, and reports whether some could not be.
func (w *watch) add(paths []string) (missed bool) {
	if w.Watcher == nil {
		return true
	}
	see := func(dir string) {
		if !w.told[dir] {
			if w.Add(dir) == nil {
				w.told[dir] = true
			} else {
				missed = true
			}
		}
	}
	for _, p := range paths {
		fi, err := os.Stat(p)
		switch {
		case err != nil:
			continue
		case !fi.IsDir():
			see(filepath.Dir(p))
			continue
		}
		state := false
		if fi, err := os.Stat(filepath.Join(p, "agents")); err == nil {
			state = fi.IsDir()
		}
		_ = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				missed = true
				return nil
			case !d.IsDir():
				return nil
			case beside[d.Name()], state && filepath.Dir(path) == p && d.Name() != "agents" && d.Name() != "sessions" && d.Name() != "transcripts":
				return filepath.SkipDir
			}
			see(path)
			return nil
		})
	}
	return missed
}

// wait returns when something may have changed.
func (w *watch) wait(ctx context.Context, poll time.Duration) error {
	var events chan fsnotify.Event
	var errs chan error
	if w.Watcher != nil {
		events, errs = w.Events, w.Errors
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case e := <-events:
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			delete(w.told, e.Name) // a folder of that name may come again
		}
	case <-errs: // some were lost
	case <-time.After(poll):
	}
	return nil
}

// drain forgets what the look to come will see.
func (w *watch) drain() {
	if w.Watcher == nil {
		return
	}
	for {
		select {
		case <-w.Events:
		default:
			return
		}
	}
}
