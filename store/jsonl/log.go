package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
)

// log is one file. In this process, whoever works on it holds mu; a lock file
// keeps other processes out.
type log struct {
	*root
	id      session.ID
	live    string     // its path, or where it belongs if it is in the trash
	changed func(*log) // called with mu held when view has changed

	mu    sync.Mutex
	view  view
	named bool // the name of the file is durable

	spot    atomic.Pointer[spot] // replaced by the holder of folder.mu
	unsaved atomic.Bool          // the projections do not have it as it is
}

// spot is what is known of a log besides its contents.
type spot struct {
	rel     string
	trashed time.Time   // zero unless in the trash
	key     session.Key // from sessions.json, for a log that has none
}

// newLog returns the log id at rel, of which nothing else is known.
func newLog(r *root, changed func(*log), id session.ID, rel string) *log {
	l := &log{root: r, changed: changed, id: id, live: rel}
	at := spot{rel: rel}
	if live, when, ok := fromTrash(rel); ok {
		l.live, at.trashed = live, when
	}
	l.spot.Store(&at)
	return l
}

func (l *log) at() *spot { return l.spot.Load() }

func (l *log) trashed() bool { return !l.at().trashed.IsZero() }

// where returns the path of the file.
func (l *log) where() string { return l.path(l.at().rel) }

// lockName is the name of the log id's lock and batch files.
func lockName(id session.ID) string { return "log-" + storekit.FileName(string(id)) }

// lock keeps other processes from writing the log.
func (l *log) lock(ctx context.Context) (unlock func(), err error) {
	return l.root.lock(ctx, lockName(l.id))
}

// errGone says that a log's file is not where it was.
var errGone = errors.New("jsonl: the file is gone")

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	return err
}

// info returns the list row. The caller holds mu.
func (l *log) info() session.Info {
	in, at := l.view.info, l.at()
	in.Trashed = at.trashed
	if l.view.keyless {
		in.Key = at.key
	}
	return in
}

// use calls f with the log held and up to date.
func (l *log) use(ctx context.Context, f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(ctx); err != nil {
		return err
	}
	return f()
}

// refresh brings view up to date with the file. The caller holds mu. The error
// is errGone if there is no file.
//
// An unchanged file costs one lstat. A changed one is read under the lock that
// appends take, so that no append is seen half done.
func (l *log) refresh(ctx context.Context) error {
	path := l.where()
	st, err := l.disk.lstat(path)
	if err != nil {
		return gone(err)
	}
	if l.view.known && st.same(l.view.stat) {
		return nil
	}
	if !st.mode.IsRegular() {
		return fmt.Errorf("jsonl: %s is not a regular file", path)
	}
	unlock, err := l.lock(ctx)
	switch {
	case err == nil:
		defer unlock()
		if err := l.recover(); err != nil {
			return err
		}
	case ctx.Err() != nil || !denied(err):
		return err
	}
	f, err := l.disk.open(path, os.O_RDONLY)
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	return l.catchUp(ctx, f)
}

// catchUp reads the part of the file f that view does not know yet.
func (l *log) catchUp(ctx context.Context, f file) error {
	st, err := f.stat()
	if err != nil {
		return err
	}
	if !st.mode.IsRegular() {
		return fmt.Errorf("jsonl: %s is not a regular file", l.where())
	}
	if l.view.known && st.same(l.view.stat) {
		return nil
	}
	v := l.view
	if !v.continues(f, st) {
		v = view{info: session.Info{ID: l.id, KeepFrom: 1}, keep: firstMark, gen: st.generation()}
	} else if v.open {
		v.next, v.open = v.next+1, false
	}
	err = l.advance(ctx, &v, f, st.size)
	if err == errBent {
		v = view{outline: session.NewOutline(l.id), keep: firstMark, gen: v.gen}
		v.info = v.outline.Info
		err = l.advance(ctx, &v, f, st.size)
	}
	if err == nil {
		err = v.seal(f, st)
	}
	if err != nil {
		l.view = view{}
		return err
	}
	l.view = v
	l.changed(l)
	return nil
}

// errBent says that a log does not simply continue: it must be outlined.
var errBent = errors.New("jsonl: the log is not a straight line")

// advance adds the lines of f from v.next to the end.
func (r *root) advance(ctx context.Context, v *view, f io.ReaderAt, size int64) error {
	last := v.info.Last
	sc := r.scan("", f, mark{last + 1, v.next, v.lines + 1}, size)
	broken := 0
	for sc.Next() {
		if sc.Damage() != nil {
			broken = sc.Line()
			continue
		}
		if v.info.Last%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		m := mark{off: sc.Offset(), line: sc.Line()}
		if last == 0 {
			v.version = sc.Version()
		}
		if !v.add(sc.Record(), m, r.finder(f, v, m)) {
			return errBent
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	if sc.Unended() && broken == sc.Line() {
		v.next, v.lines = sc.Offset(), sc.Line()-1
		return nil
	}
	v.next, v.lines, v.open = sc.End(), sc.Line(), sc.Unended()
	return nil
}

// finder looks for ids among the records from v.keep to end. These are few:
// the ones in a context.
func (r *root) finder(f io.ReaderAt, v *view, end mark) func(id string) (mark, bool) {
	return func(id string) (mark, bool) {
		if v.readWhole() || v.keep.off < 0 {
			return mark{}, false
		}
		sc := r.scan("", f, v.keep, end.off)
		for sc.Next() {
			if rec := sc.Record(); sc.Damage() == nil && rec.ID == id {
				return mark{rec.Seq, sc.Offset(), sc.Line()}, true
			}
		}
		return mark{}, false
	}
}

// reader is an open log and the part of it to read.
type reader struct {
	file file
	name string
	from mark
	size int64
	key  session.Key // for a log that has none
}

// reader opens the log for the records after seq after. Later appends are not
// part of it. again says that the file is not what the view says: the log must
// be read again. The caller holds mu.
func (l *log) reader(after session.Seq) (r reader, again bool, err error) {
	v := &l.view
	if v.info.Last == 0 && v.stat.size == 0 {
		return r, false, notFound(l.id)
	}
	r = reader{name: l.where(), from: v.start(after), size: v.stat.size, key: l.tableKey()}
	if r.file, err = l.disk.open(r.name, os.O_RDONLY); err != nil {
		return r, false, gone(err)
	}
	st, err := r.file.stat()
	if err == nil && st.ino == v.stat.ino && st.size >= v.stat.size && v.beginsAt(r.file, r.from) {
		return r, false, nil
	}
	r.file.Close()
	l.view = view{}
	return r, true, err
}

// tableKey returns the key in sessions.json, if the log has none. The caller
// holds mu.
func (l *log) tableKey() session.Key {
	if !l.view.keyless {
		return ""
	}
	return l.at().key
}
