package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"goclaw/session"
)

// refresh brings l's view in line with its file. The caller holds l.mu. The
// error is errGone if there is no file.
//
// A file that is as it was costs one question to the system. One that has
// changed is read under the lock that appends are made under, so that no
// append is seen half done.
func (s *Store) refresh(ctx context.Context, l *log) error {
	path := s.where(l)
	st, err := s.disk.lstat(path)
	if err != nil {
		return gone(err)
	}
	if l.view.known && st.same(l.view.stat) {
		return nil
	}
	if !st.mode.IsRegular() {
		return fmt.Errorf("jsonl: %s is not a regular file", path)
	}
	unlock, err := s.flock(ctx, lockName(l.id))
	switch {
	case err == nil:
		defer unlock()
		if err := s.recover(l); err != nil {
			return err
		}
	case ctx.Err() != nil:
		return err
	case !errors.Is(err, fs.ErrPermission) && !readOnly(err):
		return err
	}
	f, err := s.disk.open(path, os.O_RDONLY)
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	return s.catchUp(ctx, l, f)
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	return err
}

// catchUp reads what l's view does not know yet of its file f.
func (s *Store) catchUp(ctx context.Context, l *log, f file) error {
	st, err := f.stat()
	if err != nil {
		return err
	}
	if !st.mode.IsRegular() {
		return fmt.Errorf("jsonl: %s is not a regular file", s.where(l))
	}
	if l.view.known && st.same(l.view.stat) {
		return nil
	}
	v := l.view
	if !v.continues(f, st) {
		v = view{info: session.Info{ID: l.id, KeepFrom: 1}, keep: mark{seq: 1, line: 1}, gen: st.generation()}
	} else if v.bare {
		v.next, v.bare = v.next+1, false
	}
	err = s.advance(ctx, &v, f, st.size)
	if err == errCrooked {
		v = view{outline: session.NewOutline(l.id), keep: mark{seq: 1, line: 1}, gen: v.gen}
		v.info = v.outline.Info
		err = s.advance(ctx, &v, f, st.size)
	}
	if err == nil {
		err = v.seal(f, st)
	}
	if err != nil {
		l.view = view{}
		return err
	}
	l.view = v
	s.changed(l, len(v.places))
	return nil
}

// errCrooked says that a log needs to be outlined.
var errCrooked = errors.New("jsonl: the log is not straight")

// advance counts the lines of f from v.next to the end.
func (s *Store) advance(ctx context.Context, v *view, f io.ReaderAt, size int64) error {
	begin := v.info.Last
	sc := s.scan("", f, mark{begin + 1, v.next, v.lines + 1}, size)
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
		if begin == 0 {
			v.version = sc.Version()
		}
		if !v.add(sc.Record(), m, s.finder(f, v, m)) {
			return errCrooked
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	if sc.Torn() && broken == sc.Line() {
		v.next, v.lines = sc.Offset(), sc.Line()-1
		return nil
	}
	v.next, v.lines, v.bare = sc.End(), sc.Line(), sc.Torn()
	return nil
}

// finder looks for ids among the records from v.keep up to end. They are few:
// what a context holds.
func (s *Store) finder(f io.ReaderAt, v *view, end mark) func(id string) (mark, bool) {
	return func(id string) (mark, bool) {
		if v.whole() || v.keep.off < 0 {
			return mark{}, false
		}
		sc := s.scan("", f, v.keep, end.off)
		for sc.Next() {
			if r := sc.Record(); sc.Damage() == nil && r.ID == id {
				return mark{r.Seq, sc.Offset(), sc.Line()}, true
			}
		}
		return mark{}, false
	}
}

// changed notes that l's projections are to be written, and how large the
// outline is that it has in memory. All outlines together may have so many
// records; the one in use may have more.
func (s *Store) changed(l *log, outlined int) {
	var cool []*log
	s.mu.Lock()
	l.unsaved = true
	s.later()
	if outlined > 0 {
		s.hot = slices.DeleteFunc(s.hot, func(h hot) bool { return h.log == l })
		s.hot = append(s.hot, hot{l, outlined})
		sum := 0
		for i := len(s.hot) - 1; i >= 0; i-- {
			if sum += s.hot[i].size; sum > maxHot && i < len(s.hot)-1 {
				for _, h := range s.hot[:i+1] {
					cool = append(cool, h.log)
				}
				s.hot = slices.Delete(s.hot, 0, i+1)
				break
			}
		}
	}
	s.mu.Unlock()
	for _, c := range cool {
		if c.mu.TryLock() { // whoever works on it puts it back
			c.view.outline, c.view.places = nil, nil
			c.mu.Unlock()
		}
	}
}

// hot is a log with an outline of size records in memory.
type hot struct {
	log  *log
	size int
}

// maxHot is how many records the outlines in memory may have, some 50 MB.
const maxHot = 1 << 18
