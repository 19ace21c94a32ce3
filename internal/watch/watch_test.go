package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree shows every folder of root.
func tree(root string) func(see func(string, ...string)) {
	return func(see func(string, ...string)) {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				see(path)
			}
			return nil
		})
	}
}

// watching looks and waits in the background, and counts the looks.
type watching struct {
	*Watcher
	looks atomic.Int64
}

func watchOn(t *testing.T, w *Watcher, walk func(see func(string, ...string))) *watching {
	t.Helper()
	g := &watching{Watcher: w}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		for {
			w.Look(walk)
			g.looks.Add(1)
			if err := w.Wait(ctx, 30*time.Millisecond, 300*time.Millisecond); err != nil {
				done <- err
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait ended with %v", err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	g.await(t, 0, "the beginning")
	return g
}

// await waits for a look after those before, and returns how many there were
// when things were quiet again.
func (g *watching) await(t *testing.T, before int64, what string) int64 {
	t.Helper()
	for end := time.Now().Add(time.Minute); g.looks.Load() <= before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: no look followed", what)
		}
	}
	n := g.looks.Load()
	for range 20 {
		time.Sleep(150 * time.Millisecond)
		m := g.looks.Load()
		if m == n {
			break
		}
		n = m
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestChanges: whatever happens to files and folders is followed by a look,
// at once and not by the clock, which stands at an hour.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	in := func(p string) string { return filepath.Join(dir, p) }
	w := New()
	w.Every, w.Blind = time.Hour, time.Hour
	g := watchOn(t, w, tree(dir))
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"a new file", func() error { return os.WriteFile(in("a.md"), []byte("a"), 0o600) }},
		{"a change", func() error { return os.WriteFile(in("a.md"), []byte("ab"), 0o600) }},
		{"a save by renaming", func() error {
			return errors.Join(os.WriteFile(in("a.md.tmp"), []byte("abc"), 0o600), os.Rename(in("a.md.tmp"), in("a.md")))
		}},
		{"a new name", func() error { return os.Rename(in("a.md"), in("b.md")) }},
		{"a folder in a folder", func() error { return os.MkdirAll(in("x/y"), 0o700) }},
		{"a file in a new folder", func() error { return os.WriteFile(in("x/y/c.md"), []byte("c"), 0o600) }},
		{"a folder with a new name", func() error { return os.Rename(in("x"), in("z")) }},
		{"a file there", func() error { return os.WriteFile(in("z/y/d.md"), []byte("d"), 0o600) }},
		{"a folder of the old name", func() error { return os.MkdirAll(in("x/y"), 0o700) }},
		{"a file in that one", func() error { return os.WriteFile(in("x/y/e.md"), []byte("e"), 0o600) }},
		{"a folder that goes", func() error { return os.RemoveAll(in("z")) }},
		{"a file that goes", func() error { return os.Remove(in("b.md")) }},
		{"a folder that goes and comes", func() error { return errors.Join(os.RemoveAll(in("x")), os.MkdirAll(in("x/y"), 0o700)) }},
		{"and a file in it", func() error { return os.WriteFile(in("x/y/f.md"), []byte("f"), 0o600) }},
	} {
		before := g.looks.Load()
		must(t, c.do())
		g.await(t, before, c.what)
	}
}

// TestQuiet: a burst is followed by few looks (TestBurst knows how many), what
// does not matter by none, and where nothing happens nobody looks.
func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "memory"), 0o700))
	w := New()
	w.Every, w.Blind = time.Hour, time.Hour
	g := watchOn(t, w, func(see func(string, ...string)) {
		see(dir, "MEMORY.md")
		see(dir, "memory")
		see(filepath.Join(dir, "memory"))
	})
	before := g.looks.Load()
	for i := range 50 {
		must(t, os.WriteFile(filepath.Join(dir, "sessions.db-wal"), []byte(fmt.Sprint(i)), 0o600))
	}
	must(t, os.Chmod(filepath.Join(dir, "memory"), 0o750))
	time.Sleep(200 * time.Millisecond)
	if n := g.looks.Load(); n != before {
		t.Errorf("%d looks at what does not matter", n-before)
	}
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(dir, "memory", fmt.Sprintf("%d.md", i)), []byte("x"), 0o600))
	}
	after := g.await(t, before, "a burst")
	if after-before > 100 { // a machine that takes long to write them sees several bursts
		t.Errorf("%d looks at 300 files written at once", after-before)
	}
	must(t, os.WriteFile(filepath.Join(dir, "memory.md"), []byte("x"), 0o600))
	time.Sleep(100 * time.Millisecond)
	must(t, os.WriteFile(filepath.Join(dir, "MEMORY.md"), []byte("x"), 0o600))
	g.await(t, after, "a file by its name")
}

// TestBlind: without events it is looked by the clock.
func TestBlind(t *testing.T) {
	w := Blind()
	w.Every, w.Blind = time.Hour, 20*time.Millisecond
	for range 3 {
		w.Look(func(see func(string, ...string)) { see(t.TempDir()) })
		must(t, w.Wait(t.Context(), time.Millisecond, time.Millisecond))
	}
	must(t, w.Close())
}

// fake is a source that a test directs.
type fake struct {
	limit  int // how many folders it watches
	added  map[string]bool
	events chan fsnotify.Event
	errs   chan error
	closed bool
}

func newFake(limit int) *fake {
	return &fake{limit: limit, added: map[string]bool{}, events: make(chan fsnotify.Event), errs: make(chan error)}
}

func (f *fake) Add(dir string) error {
	if len(f.added) >= f.limit {
		return syscall.ENOSPC
	}
	f.added[dir] = true
	return nil
}
func (f *fake) Remove(dir string) error { delete(f.added, dir); return nil }
func (f *fake) Close() error {
	if !f.closed {
		f.closed = true
		close(f.events)
		close(f.errs)
	}
	return nil
}
func (f *fake) channels() (<-chan fsnotify.Event, <-chan error) { return f.events, f.errs }

// TestBurst: there is one look after a burst, when it has been quiet for the
// time given, and at the latest when that of the most has passed.
func TestBurst(t *testing.T) {
	const quiet, most = 30 * time.Millisecond, 300 * time.Millisecond
	for name, c := range map[string]struct {
		events int
		apart  time.Duration
		looks  []time.Duration // since the first event
	}{
		"short":         {11, 10 * time.Millisecond, []time.Duration{130 * time.Millisecond}},
		"long":          {46, 10 * time.Millisecond, []time.Duration{most, 480 * time.Millisecond}},
		"one by one":    {2, 100 * time.Millisecond, []time.Duration{quiet, 130 * time.Millisecond}},
		"all of a jump": {300, 0, []time.Duration{quiet}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w, src := Blind(), newFake(9)
				w.Every = time.Hour
				w.open = func() (source, error) { return src, nil }
				walk := func(see func(string, ...string)) { see(dir) }
				w.Look(walk)
				ctx, cancel := context.WithCancel(t.Context())
				begin := time.Now()
				var looks []time.Duration
				done := make(chan struct{})
				go func() {
					defer close(done)
					for w.Wait(ctx, quiet, most) == nil {
						looks = append(looks, time.Since(begin))
						w.Look(walk)
					}
				}()
				for i := range c.events {
					if i > 0 {
						time.Sleep(c.apart)
					}
					src.events <- fsnotify.Event{Name: filepath.Join(dir, fmt.Sprint(i)), Op: fsnotify.Write}
				}
				time.Sleep(10 * most)
				cancel()
				<-done
				must(t, w.Close())
				if !slices.Equal(looks, c.looks) {
					t.Errorf("looks after %v, want %v", looks, c.looks)
				}
			})
		})
	}
}

// TestLimits: where the system refuses to watch, the clock takes over until
// it no longer does.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	w := Blind()
	w.Every, w.Blind = time.Hour, time.Millisecond
	defer func() { w.Close() }()
	src, refuse := newFake(1), errors.New("too many")
	w.open = func() (source, error) {
		if refuse != nil {
			return nil, refuse
		}
		return src, nil
	}
	check := func(what string, blind bool, watched int) {
		t.Helper()
		w.Look(tree(dir))
		if got := w.blind(); got != blind || len(src.added) != watched {
			t.Errorf("%s: blind %v with %d folders watched, want %v with %d", what, got, len(src.added), blind, watched)
		}
		if blind {
			must(t, w.Wait(t.Context(), time.Millisecond, time.Millisecond))
		}
	}
	check("no watcher is to be had", true, 0)
	refuse = nil
	check("one folder too many", true, 1)
	src.limit = 2
	check("there is room again", false, 2)
	must(t, os.Remove(filepath.Join(dir, "sub")))
	check("a folder is gone", false, 1)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Wait(ctx, time.Millisecond, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing has happened, and Wait ended with %v", err)
	}
	src.errs <- fsnotify.ErrEventOverflow
	must(t, w.Wait(t.Context(), time.Millisecond, time.Millisecond))

	dead := src
	dead.Close()
	<-w.done
	src = newFake(9)
	refuse = errors.New("no more")
	check("it has died", true, 0)
	refuse = nil
	check("and is alive again", false, 1)
}
