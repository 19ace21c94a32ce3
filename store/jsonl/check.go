package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"goclaw/session"
	"goclaw/store/internal/space"
)

// Check reads every log from its first byte to its last and reports what is
// wrong: damage with file and line, records that differ from their checksums, an
// index that differs from the log, files that are not read. It changes nothing. Problems of no session are reported
// with the id "".
//
// A sessions.json is compared with the logs only if the projections are
// read-only; otherwise this store is about to write it.
func (s *Store) Check(ctx context.Context, report func(session.ID, error)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if b, _, err := readFile(s.disk, s.proj.indexPath()); err == nil {
		if !otherVersion(string(b)) && !parseIndex(string(b), func(*entry) {}) {
			report("", fmt.Errorf("%s is damaged: %w", s.proj.indexPath(), session.ErrStale))
		}
	}
	if err := s.folder.sync(); err != nil {
		return err
	}
	live, err := s.folder.check(report)
	if err != nil {
		return err
	}
	for _, l := range s.folder.all() {
		err := s.checkLog(ctx, l, report)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == errGone:
			s.folder.forget(l)
		case err != nil:
			report(l.id, err)
		}
	}
	if s.proj.readOnly {
		s.proj.check(live, s.folder.saved(false), report)
	}
	return nil
}

// check reports files that are not read, and every sessions.json that cannot
// be. It returns the folders of logs.
func (f *folder) check(report func(session.ID, error)) ([]string, error) {
	f.looking.Lock()
	live, err := f.live()
	f.looking.Unlock()
	if err != nil {
		return nil, err
	}
	for _, dir := range live {
		for _, dir := range []string{dir, filepath.Join(dir, trash)} {
			if err := f.checkFiles(dir, report); err != nil {
				return nil, err
			}
		}
		name := f.path(f.layout.index(dir))
		if b, _, err := readFile(f.disk, name); err == nil {
			if _, err := parseTable(b); err != nil {
				report("", fmt.Errorf("%s cannot be read: %w: %w", name, err, session.ErrStale))
			}
		}
	}
	return live, nil
}

// checkFiles reports the files in the folder dir that are not read as logs.
func (f *folder) checkFiles(dir string, report func(session.ID, error)) error {
	list, err := f.disk.readDir(f.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		rel := filepath.Join(dir, e.Name())
		switch {
		case isLog(rel) && !e.Type().IsRegular():
			report("", fmt.Errorf("%s is not a regular file: it is not read", f.path(rel)))
		case isLog(rel), e.IsDir() && e.Name() == trash, byproduct(e.Name()):
		default:
			report("", fmt.Errorf("%s is no log: it is left alone", f.path(rel)))
		}
	}
	return err
}

// byproduct reports whether name is a file that OpenClaw or this store leaves
// beside the logs: an archive, a lock, a backup.
func byproduct(name string) bool {
	return name == indexName || strings.HasPrefix(name, indexName+".") || strings.Contains(name, ext+".")
}

// checkLog reads l and compares what the store knows of it with that.
func (s *Store) checkLog(ctx context.Context, l *log, report func(session.ID, error)) error {
	known := s.readSums(l.id) // before the log, which may grow
	return l.use(ctx, func() error {
		path := l.where()
		if first := s.folder.known(l.id); first != nil && first != l {
			report(l.id, fmt.Errorf("%s has the id of %s: it is not listed", path, first.where()))
			known = nil // these are the checksums of the other file
		}
		sess, headless, err := l.replay(ctx, known)
		if err != nil {
			return err
		}
		have := l.info()
		if headless {
			report(l.id, fmt.Errorf("%s has no header: that it is of %q is known from sessions.json only", path, have.Key))
		}
		for _, d := range sess.Damage {
			report(l.id, d)
		}
		if sess.Records == 0 {
			report(l.id, fmt.Errorf("%s has no records: it is not listed", path))
			return nil
		}
		sess.Trashed = have.Trashed
		if sess.Key == "" {
			sess.Key = have.Key // from sessions.json, for a log without a header
		}
		if !sameInfo(have, sess.Info) {
			report(l.id, fmt.Errorf("the index and %s differ: %s: %w", path, differ(have, sess.Info), session.ErrStale))
		}
		return nil
	})
}

// replay reads the whole log and compares it with its checksums and those known
// of lines of others. headless says that its first record is not a header. The
// caller holds mu.
func (l *log) replay(ctx context.Context, known []uint32) (sess *session.Session, headless bool, err error) {
	f, err := l.disk.open(l.where(), os.O_RDONLY)
	if err != nil {
		return nil, false, gone(err)
	}
	defer f.Close()
	all := l.checked(ctx, reader{file: f, name: l.where(), from: firstMark, size: l.view.stat.size, key: l.tableKey()}, known)
	sess, err = session.Replay(l.id, func(yield func(session.Record, error) bool) {
		for r, err := range all {
			if _, ok := r.Body.(session.Header); r.Seq == 1 && !ok {
				headless = true
			}
			if !yield(r, err) {
				return
			}
		}
	})
	return sess, headless, err
}

func sameInfo(a, b session.Info) bool {
	if !a.Created.Equal(b.Created) || !a.Updated.Equal(b.Updated) || !a.Trashed.Equal(b.Trashed) {
		return false
	}
	b.Created, b.Updated, b.Trashed = a.Created, a.Updated, a.Trashed
	return a == b
}

// differ says how the index and the log differ, the plainest difference first.
func differ(index, log session.Info) string {
	for _, c := range []struct {
		what       string
		index, log any
	}{
		{"records", index.Records, log.Records},
		{"key", index.Key, log.Key},
		{"title", index.Title, log.Title},
		{"turns", index.Turns, log.Turns},
		{"compactions", index.Compactions, log.Compactions},
		{"leaf", index.Leaf, log.Leaf},
		{"first record needed", index.KeepFrom, log.KeepFrom},
		{"model", index.ModelName(), log.ModelName()},
	} {
		if c.index != c.log {
			return fmt.Sprintf("%s: %v in the index, %v in the log", c.what, c.index, c.log)
		}
	}
	return fmt.Sprintf("%+v in the index, %+v in the log", index, log)
}

// Rebuild rebuilds the index and every sessions.json from the logs, which it
// does not touch. It returns how many sessions and files were not right.
func (s *Store) Rebuild(ctx context.Context) (changed int, err error) {
	defer func() { err = space.Wrap("jsonl", s.dir, err) }()
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := s.folder.sync(); err != nil {
		return 0, err
	}
	indexed := map[string]session.Info{}
	if b, _, err := readFile(s.disk, s.proj.indexPath()); err == nil {
		if !parseIndex(string(b), func(e *entry) {
			if !e.isTable() {
				indexed[e.rel] = e.view.info
			}
		}) {
			changed++
		}
	}
	var errs []error
	for _, l := range s.folder.all() {
		rel := l.at().rel
		was, ok := indexed[rel]
		delete(indexed, rel)
		l.mu.Lock()
		l.view = view{}
		err := l.refresh(ctx)
		if err == nil && (!ok || !sameInfo(was, l.view.info)) {
			changed++
		}
		l.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return changed, ctx.Err()
		case err == errGone:
			s.folder.forget(l)
			changed++
		case err != nil:
			errs = append(errs, err)
		}
		s.proj.stale(l.live)
	}
	changed += len(indexed) // of logs that are gone
	tables, err := s.proj.rewrite()
	return changed + tables, errors.Join(append(errs, err)...)
}
