package jsonl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/internal/space"
)

// Append implements session.Store: one write and one sync.
//
// Several records take a batch file besides: they are written there first, so
// that whoever finds it after a crash can complete them.
func (s *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) (err error) {
	defer func() { err = space.Wrap("jsonl", s.dir, err) }()
	if err := s.enter(ctx); err != nil {
		return err
	}
	if len(recs) == 0 {
		return s.nothing(ctx, id)
	}
	for try := 0; try < 4; try++ {
		l, err := s.target(id, recs)
		if err != nil {
			return err
		}
		l.mu.Lock()
		err = s.append(ctx, l, recs)
		l.mu.Unlock()
		if err != errGone {
			return err
		}
		s.forget(l)
	}
	return notFound(id)
}

// nothing appends nothing, which fails where an append would.
func (s *Store) nothing(ctx context.Context, id session.ID) error {
	trashed := false
	err := s.with(ctx, id, func(l *log) error {
		trashed = !l.at().trashed.IsZero()
		return nil
	})
	switch {
	case trashed:
		return inTrash(id)
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return err
	}
	return storekit.CheckAppend(id, 0, nil)
}

func inTrash(id session.ID) error {
	return session.NotFound("session %q is in the trash", id)
}

// target returns the log id, or one that is to be begun by recs.
func (s *Store) target(id session.ID, recs []session.Record) (*log, error) {
	s.mu.Lock()
	l := s.logs[id]
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	if recs[0].Seq != 1 { // it must be there, perhaps under a name of its own
		if err := s.sync(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		l = s.logs[id]
		s.mu.Unlock()
		if l != nil {
			return l, nil
		}
	}
	if err := storekit.CheckAppend(id, 0, recs); err != nil {
		return nil, err
	}
	h := recs[0].Body.(session.Header)
	rel := s.layout.place(h.Key, id)
	return newLog(id, rel, ""), nil
}

// append adds recs to l, which the caller holds.
func (s *Store) append(ctx context.Context, l *log, recs []session.Record) error {
	unlock, err := s.flock(ctx, lockName(l.id))
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.recover(l); err != nil {
		return err
	}
	s.mu.Lock()
	known := s.logs[l.id] == l
	s.mu.Unlock()
	path, trashed := s.where(l), !l.at().trashed.IsZero()
	made := false
	f, err := s.disk.open(path, os.O_RDWR|os.O_APPEND)
	switch {
	case errors.Is(err, fs.ErrNotExist) && known:
		return errGone
	case errors.Is(err, fs.ErrNotExist):
		if other, err := s.locate(l.id); err != nil || other {
			return errOr(err, errGone)
		}
		if f, err = s.create(path); err != nil {
			return err
		}
		made = true
	case err != nil:
		return fmt.Errorf("jsonl: %w", err)
	}
	defer f.Close()
	err = s.add(ctx, l, f, path, trashed, recs)
	if err != nil && made {
		// Nothing was begun. If there are bytes, they could not be taken back.
		if st, e := f.stat(); e == nil && st.size == 0 {
			_ = s.disk.remove(path)
		}
	}
	return err
}

// add appends recs to the file f at path, which is l's.
func (s *Store) add(ctx context.Context, l *log, f file, path string, trashed bool, recs []session.Record) error {
	if err := s.catchUp(ctx, l, f); err != nil {
		return err
	}
	if trashed {
		return inTrash(l.id)
	}
	if err := storekit.CheckAppend(l.id, l.view.info.Last, recs); err != nil {
		return err
	}
	if v := l.view; v.version == 1 && v.info.Last > 0 {
		// Its lines are numbered by their place: what is added would be, too.
		return fmt.Errorf("session %q: %s is of version 1, which is read only; copy it to go on", l.id, path)
	}
	ls, err := s.encode(l, recs)
	if err != nil {
		return err
	}
	if err := s.write(l, f, path, ls); err != nil {
		return fmt.Errorf("jsonl: append to session %q: %w", l.id, err)
	}
	return nil
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// create makes the file of a new log, and its folder.
func (s *Store) create(path string) (file, error) {
	dir := filepath.Dir(path)
	if err := s.mkdir(dir); err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	f, err := s.disk.open(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	return f, nil
}

// lines are records as they are to be written, and as they will be read.
type lines struct {
	buf   []byte
	recs  []session.Record
	at    []int // where each begins in buf
	line  []int // and in which of its lines
	count int
}

// encode returns the lines of recs. It refuses what would not be read back as
// the record it is: an append that succeeds can be read.
func (s *Store) encode(l *log, recs []session.Record) (lines, error) {
	var ls lines
	for _, r := range recs {
		b, err := s.codec.Encode(r)
		if err != nil {
			return lines{}, fmt.Errorf("session %q: record %d: %w", l.id, r.Seq, err)
		}
		back, err := s.readBack(b)
		if err != nil || len(back) != 1 || back[0].ID != r.ID {
			return lines{}, fmt.Errorf("session %q: record %d cannot be read back from its line: %w", l.id, r.Seq,
				errOr(err, fmt.Errorf("it gives %d records", len(back))))
		}
		ls.at = append(ls.at, len(ls.buf))
		ls.line = append(ls.line, ls.count)
		ls.recs = append(ls.recs, back[0])
		ls.buf = append(append(ls.buf, b...), '\n')
		ls.count += bytes.Count(b, []byte("\n")) + 1
	}
	return ls, nil
}

// write appends ls to f, the file of l, whose view is up to date.
func (s *Store) write(l *log, f file, path string, ls lines) error {
	old := l.view.stat.size
	buf, begin := ls.buf, old
	torn := l.view.next < old
	if torn || l.view.bare {
		// What stands there stays, and ends here: nothing is glued onto it.
		buf, begin = append([]byte{'\n'}, buf...), old+1
	}
	batch := ""
	if ls.count > 1 {
		var err error
		if batch, err = s.writeBatch(l, old, buf); err != nil {
			return s.undo(l, f, batch, old, err)
		}
	}
	if n, err := f.Write(buf); err != nil || n < len(buf) {
		return s.undo(l, f, batch, old, errOr(err, fmt.Errorf("%d of %d bytes written", n, len(buf))))
	}
	if err := f.Sync(); err != nil {
		return s.undo(l, f, batch, old, err)
	}
	if old == 0 {
		if err := s.disk.syncDir(filepath.Dir(path)); err != nil {
			return s.undo(l, f, batch, old, err)
		}
	}
	// From here on the records are kept; whatever fails now is put right later.
	if batch != "" {
		_ = s.disk.remove(batch)
	}
	s.count(l, f, begin, int64(len(buf)), ls, torn)
	s.mu.Lock()
	s.register(l)
	if old == 0 {
		s.stale(l.live)
	}
	s.notify()
	s.mu.Unlock()
	return nil
}

// count adds ls, which begin in f at begin, to l's view.
func (s *Store) count(l *log, f file, begin, n int64, ls lines, torn bool) {
	v := l.view
	if h, ok := ls.recs[0].Body.(session.Header); ok && v.info.Last == 0 && s.layout == OpenClaw {
		v.version = h.Version
	}
	st, err := f.stat()
	if err != nil || st.ino != v.stat.ino || st.size != v.stat.size+n {
		return // another program has written too: what there is will be read
	}
	line := v.lines + 1
	if torn {
		line++
	}
	for i, r := range ls.recs {
		m := mark{off: begin + int64(ls.at[i]), line: line + ls.line[i]}
		if !v.add(r, m, s.finder(f, &v, m)) {
			l.view.known = false
			if s.catchUp(bgContext, l, f) != nil {
				l.view = view{}
			}
			return
		}
	}
	v.next, v.lines, v.bare = st.size, line-1+ls.count, false
	if v.seal(f, st) != nil {
		l.view = view{}
		return
	}
	l.view = v
	s.changed(l, len(v.places))
}

// undo takes back what a failed append has written, and returns why it failed.
// Only bytes of that append are removed: they were promised to nobody.
func (s *Store) undo(l *log, f file, batch string, old int64, why error) error {
	l.view.known = false
	if batch != "" && s.disk.remove(batch) != nil {
		if b, err := s.disk.open(batch, os.O_WRONLY); err == nil {
			_ = b.Truncate(0)
			b.Close()
		}
	}
	st, err := f.stat()
	if err != nil {
		return errors.Join(why, err)
	}
	if st.size > old {
		if err := f.Truncate(old); err != nil {
			return errors.Join(why, err)
		}
		if err := f.Sync(); err != nil {
			return errors.Join(why, err)
		}
	}
	return why
}

// A batch file says what is being appended to a log:
//
//	"goclaw batch 1\n", the log's size, its path's and the batch's length
//	(8 bytes each), path, batch, CRC-32C
const batchMagic = "goclaw batch 1\n"

func (s *Store) batchPath(id session.ID) string {
	return s.own(lockName(id) + ".batch")
}

// writeBatch makes buf, which is about to be written at the end of l, durable
// as a whole.
func (s *Store) writeBatch(l *log, old int64, buf []byte) (string, error) {
	rel := l.at().rel
	b := []byte(batchMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(old))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(rel)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(buf)))
	b = append(append(b, rel...), buf...)
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	name := s.batchPath(l.id)
	if err := writeFile(s.disk, name, b, true); err != nil {
		return name, err
	}
	return name, s.disk.syncDir(filepath.Dir(name))
}

// readBatch returns what a batch file says. ok is false if it was not
// finished: then nothing of it was written to the log.
func readBatch(b []byte) (rel string, old int64, buf []byte, ok bool) {
	const fixed = len(batchMagic) + 24
	if len(b) < fixed+4 || string(b[:len(batchMagic)]) != batchMagic {
		return "", 0, nil, false
	}
	end := len(b) - 4
	if checksum(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return "", 0, nil, false
	}
	n := b[len(batchMagic):]
	size, path, length := binary.LittleEndian.Uint64(n), binary.LittleEndian.Uint64(n[8:]), binary.LittleEndian.Uint64(n[16:])
	b = b[fixed:end]
	if path > uint64(len(b)) || length != uint64(len(b))-path {
		return "", 0, nil, false
	}
	return string(b[:path]), int64(size), b[path:], true
}

// recover completes or drops a batch that a crash has broken off. The caller has l
// locked against other processes.
func (s *Store) recover(l *log) error {
	name := s.batchPath(l.id)
	if _, err := s.disk.lstat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("jsonl: %w", err)
	}
	b, _, err := readFile(s.disk, name)
	if err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	if rel, old, buf, ok := readBatch(b); ok && filepath.IsLocal(rel) {
		if err := s.redo(s.path(rel), old, buf); err != nil {
			return fmt.Errorf("jsonl: complete an append to session %q: %w", l.id, err)
		}
	}
	if err := s.disk.remove(name); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// redo appends to the file path what is missing of buf, which belongs at old.
// If nothing of it is there, it was never begun, and whoever reads the log has
// seen it without: it is dropped. A file that is shorter, or has something
// else there, was changed by another program since: it is left alone.
func (s *Store) redo(path string, old int64, buf []byte) error {
	f, err := s.disk.open(path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.stat()
	if err != nil || st.size <= old || st.size >= old+int64(len(buf)) {
		return err
	}
	have := make([]byte, st.size-old)
	if _, err := f.ReadAt(have, old); err != nil {
		return err
	}
	same := 0
	for same < len(have) && have[same] == buf[same] {
		same++
	}
	if rest := have[same:]; len(rest) > 0 {
		// Some file systems leave zeros where a crash took the bytes.
		if len(bytes.Trim(rest, "\x00")) > 0 {
			return nil
		}
		if err := f.Truncate(old + int64(same)); err != nil {
			return err
		}
	}
	if _, err := f.Write(buf[same:]); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if old == 0 {
		return s.disk.syncDir(filepath.Dir(path))
	}
	return nil
}
