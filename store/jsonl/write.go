package jsonl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"goclaw/session"
	"goclaw/session/storekit"
)

// append adds recs to the log: one write and one sync. begun says that the log
// was empty before. elsewhere reports whether the log of a file that does not
// exist has moved; then the error is errGone, else the file is made. The caller
// holds mu.
func (l *log) append(ctx context.Context, recs []session.Record, elsewhere func() (bool, error)) (begun bool, err error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := l.recover(); err != nil {
		return false, err
	}
	made := false
	f, err := l.disk.open(l.where(), os.O_RDWR|os.O_APPEND)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if moved, err := elsewhere(); err != nil || moved {
			return false, cmp.Or(err, errGone)
		}
		if f, err = l.create(l.where()); err != nil {
			return false, err
		}
		made = true
	case err != nil:
		return false, fmt.Errorf("jsonl: %w", err)
	}
	defer f.Close()
	begun, err = l.add(ctx, f, recs)
	if err != nil && made {
		// Nothing was appended. If the file has bytes, removing them failed.
		if st, e := f.stat(); e == nil && st.size == 0 {
			_ = l.disk.remove(l.where())
		}
	}
	return begun, err
}

// add appends recs to f, the open file.
func (l *log) add(ctx context.Context, f file, recs []session.Record) (begun bool, err error) {
	if err := l.catchUp(ctx, f); err != nil {
		return false, err
	}
	if l.trashed() {
		return false, inTrash(l.id)
	}
	if err := storekit.CheckAppend(l.id, l.view.info.Last, recs); err != nil {
		return false, err
	}
	if v := l.view; v.version == 1 && v.info.Last > 0 {
		// Version 1 numbers lines by their place: it would number new ones, too.
		return false, fmt.Errorf("session %q: %s is of version 1, which is read only; copy it to go on", l.id, l.where())
	}
	ls, err := l.encode(recs)
	if err != nil {
		return false, err
	}
	begun = l.view.stat.size == 0
	if err := l.write(f, ls); err != nil {
		return false, fmt.Errorf("jsonl: append to session %q: %w", l.id, err)
	}
	return begun, nil
}

// create makes the file of a new log, and its folder.
func (r *root) create(path string) (file, error) {
	if err := r.mkdir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	f, err := r.disk.open(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	return f, nil
}

// lines are records as they are written, and as they will be read.
type lines struct {
	buf   []byte
	recs  []session.Record
	at    []mark // of each record, from the beginning of buf
	count int
}

// encode returns the lines of recs. It refuses a record that would not be read
// back as it is: an append that succeeds can be read.
func (l *log) encode(recs []session.Record) (ls lines, err error) {
	for _, r := range recs {
		b, err := l.codec.Encode(r)
		if err != nil {
			return lines{}, fmt.Errorf("session %q: record %d: %w", l.id, r.Seq, err)
		}
		back, err := l.decode(b)
		if err != nil || len(back) != 1 || back[0].ID != r.ID {
			return lines{}, fmt.Errorf("session %q: record %d cannot be read back from its line: %w", l.id, r.Seq,
				cmp.Or(err, fmt.Errorf("it gives %d records", len(back))))
		}
		ls.at = append(ls.at, mark{off: int64(len(ls.buf)), line: ls.count})
		ls.recs = append(ls.recs, back[0])
		ls.buf = append(append(ls.buf, b...), '\n')
		ls.count += bytes.Count(b, []byte("\n")) + 1
	}
	return ls, nil
}

// write appends ls to f, the open file. The view is up to date.
//
// Several lines are first written to a batch file, so that whoever finds it
// after a crash can complete them.
func (l *log) write(f file, ls lines) error {
	old := l.view.stat.size
	buf, begin := ls.buf, old
	cut := l.view.next < old // the last line is incomplete
	if cut || l.view.open {
		// The last line stays as it is, and ends here.
		buf, begin = append([]byte{'\n'}, buf...), old+1
	}
	batch := ""
	if ls.count > 1 {
		var err error
		if batch, err = l.writeBatch(old, buf); err != nil {
			return l.undo(f, batch, old, err)
		}
	}
	if n, err := f.Write(buf); err != nil || n < len(buf) {
		return l.undo(f, batch, old, cmp.Or(err, fmt.Errorf("%d of %d bytes written", n, len(buf))))
	}
	if err := f.Sync(); err != nil {
		return l.undo(f, batch, old, err)
	}
	if err := l.reachable(f); err != nil {
		return l.undo(f, batch, old, err)
	}
	// From here on the records are durable, and no failure changes that.
	if batch != "" {
		_ = l.disk.remove(batch)
	}
	_ = l.addSums(ls.buf, old == 0) // without them, lines of others are not checked
	l.count(f, begin, int64(len(buf)), ls, cut)
	return nil
}

// reachable makes the name of f, the open file, durable: this process may be the
// first to come to that. It returns an error if another file has the name by
// now, or none.
func (l *log) reachable(f file) error {
	path := l.where()
	mine, err := f.stat()
	if err != nil {
		return err
	}
	if dir := filepath.Dir(path); !l.named || mine.ino != l.view.stat.ino {
		if err := l.disk.syncDir(dir); err != nil {
			return err
		}
		if err := l.durable(dir); err != nil {
			return err
		}
		l.named = true
	}
	now, err := l.disk.lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.ino != mine.ino {
		return &session.MovedError{Path: path}
	}
	return err
}

// count adds ls, which begin in f at begin, to the view. n bytes were written.
func (l *log) count(f file, begin, n int64, ls lines, cut bool) {
	v := l.view
	if h, ok := ls.recs[0].Body.(session.Header); ok && v.info.Last == 0 && l.layout == OpenClaw {
		v.version = h.Version
	}
	st, err := f.stat()
	if err != nil || st.ino != v.stat.ino || st.size != v.stat.size+n {
		return // another program has written as well: the file will be read
	}
	line := v.lines + 1
	if cut {
		line++
	}
	for i, r := range ls.recs {
		m := mark{off: begin + ls.at[i].off, line: line + ls.at[i].line}
		if !v.add(r, m, l.finder(f, &v, m)) {
			l.view.known = false
			if l.catchUp(context.Background(), f) != nil {
				l.view = view{}
			}
			return
		}
	}
	v.next, v.lines, v.open = st.size, line-1+ls.count, false
	if v.seal(f, st) != nil {
		l.view = view{}
		return
	}
	l.view = v
	l.changed(l)
}

// undo removes the bytes of a failed append and its batch file, and returns
// why it failed.
func (l *log) undo(f file, batch string, old int64, why error) error {
	l.view.known = false
	if batch != "" && l.disk.remove(batch) != nil {
		if b, err := l.disk.open(batch, os.O_WRONLY); err == nil {
			_ = b.Truncate(0)
			b.Close()
		}
	}
	st, err := f.stat()
	if err == nil && st.size > old {
		if err = f.Truncate(old); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return errors.Join(why, err)
	}
	return why
}
