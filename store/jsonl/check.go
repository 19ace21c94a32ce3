package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"goclaw/session"
	"goclaw/store/internal/space"
)

// Check reads every log from its first byte to its last, and reports what is
// wrong: damage with file and line, an index that says something else than
// the log, files that are not read. It changes nothing. What belongs to no
// session is reported with the id "".
//
// A sessions.json is held against the logs if the store is still; any other is
// about to write it.
func (s *Store) Check(ctx context.Context, report func(session.ID, error)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if b, _, err := readFile(s.disk, s.indexPath()); err == nil {
		if !otherVersion(string(b)) && !parseIndex(string(b), func(*entry) {}) {
			report("", fmt.Errorf("%s is damaged: %w", s.indexPath(), session.ErrStale))
		}
	}
	if err := s.sync(); err != nil {
		return err
	}
	s.syncing.Lock()
	live, err := s.liveFolders()
	s.syncing.Unlock()
	if err != nil {
		return err
	}
	for _, dir := range live {
		if err := s.checkFolder(dir, report); err != nil {
			return err
		}
		if err := s.checkFolder(filepath.Join(dir, trash), report); err != nil {
			return err
		}
		name := s.path(s.layout.index(dir))
		if b, _, err := readFile(s.disk, name); err == nil {
			if _, err := parseTable(b); err != nil {
				report("", fmt.Errorf("%s cannot be read: %w: %w", name, err, session.ErrStale))
			}
		}
	}
	for _, l := range s.everything() {
		err := s.checkLog(ctx, l, report)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == errGone:
			s.forget(l)
		case err != nil:
			report(l.id, err)
		}
	}
	if s.still {
		tables := map[string][]saved{}
		for _, dir := range live {
			tables[s.layout.index(dir)] = nil
		}
		for _, sv := range s.saved(s.everything(), func(*log) bool { return false }) {
			name := s.layout.index(filepath.Dir(sv.live))
			tables[name] = append(tables[name], sv)
		}
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			if wrong := s.checkTable(name, tables[name]); wrong != "" {
				report("", fmt.Errorf("%s is not what the logs say: %s: %w", s.path(name), wrong, session.ErrStale))
			}
		}
	}
	return nil
}

// checkTable holds the sessions.json name against logs, and says what is wrong
// with it. A row that has only fallen behind is as it should be: it is written
// when who has appended to the log closes the store.
func (s *Store) checkTable(name string, logs []saved) string {
	b, _, err := readFile(s.disk, s.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	rows, err := parseTable(b)
	if err != nil {
		return "" // reported as what cannot be read
	}
	have := map[string]row{}
	for _, r := range rows {
		have[r.name] = r
	}
	want, err := parseTable(s.layout.merge(rows, logs, s.dir))
	if err != nil {
		return err.Error()
	}
	records := func(r row) int64 { return gjson.GetBytes(r.val, "goclaw.records").Int() }
	missing, wrong := 0, 0
	for _, w := range want {
		h, ok := have[w.name]
		delete(have, w.name)
		switch {
		case !ok:
			missing++
		case bytes.Equal(h.val, w.val):
		case s.layout.sessionOf(h) != s.layout.sessionOf(w), records(h) >= records(w):
			wrong++
		}
	}
	var says []string
	for _, c := range []struct {
		n    int
		what string
	}{{missing, "missing"}, {wrong, "wrong"}, {len(have), "of a log that is gone"}} {
		if c.n > 0 {
			says = append(says, fmt.Sprintf("%d of %d rows %s", c.n, len(want), c.what))
		}
	}
	return strings.Join(says, ", ")
}

// everything returns every file's log, by path.
func (s *Store) everything() []*log {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := make([]*log, 0, len(s.files))
	for _, l := range s.files {
		logs = append(logs, l)
	}
	slices.SortFunc(logs, func(a, b *log) int { return strings.Compare(a.at().rel, b.at().rel) })
	return logs
}

// checkFolder reports what lies in the folder dir and is no log.
func (s *Store) checkFolder(dir string, report func(session.ID, error)) error {
	list, err := s.disk.readDir(s.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		rel := filepath.Join(dir, e.Name())
		switch {
		case s.isLog(rel) && !e.Type().IsRegular():
			report("", fmt.Errorf("%s is not a regular file: it is not read", s.path(rel)))
		case s.isLog(rel), e.IsDir() && e.Name() == trash, byproduct(e.Name()):
		default:
			report("", fmt.Errorf("%s is no log: it is left alone", s.path(rel)))
		}
	}
	return nil
}

// byproduct reports whether a name is one of those that OpenClaw and this
// store leave beside the logs: archives, locks, backups.
func byproduct(name string) bool {
	return name == indexName || strings.HasPrefix(name, indexName+".") || strings.Contains(name, ext+".")
}

// checkLog reads l and holds what the store says of it against that.
func (s *Store) checkLog(ctx context.Context, l *log, report func(session.ID, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	first := s.logs[l.id]
	s.mu.Unlock()
	path := l.where()
	if first != nil && first != l {
		report(l.id, fmt.Errorf("%s has the id of %s: it is not listed", path, first.where()))
	}
	f, err := s.disk.open(path, os.O_RDONLY)
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	key := l.tableKey()
	sc := s.scan(path, f, firstMark, l.view.stat.size)
	headless := false
	sess, err := session.Replay(l.id, func(yield func(session.Record, error) bool) {
		for sc.Next() {
			if err := ctx.Err(); err != nil {
				yield(session.Record{}, err)
				return
			}
			r, err := sc.Record(), error(nil)
			if d := sc.Damage(); d != nil {
				err = d
			}
			h, ok := r.Body.(session.Header)
			if r.Seq == 1 && err == nil && !ok {
				headless = true
			}
			if ok && r.Seq == 1 && key != "" {
				h.Key = key
				r.Body = h
			}
			if !yield(r, err) {
				return
			}
		}
		if sc.Err() != nil {
			yield(session.Record{}, sc.Err())
		}
	})
	if err != nil {
		return err
	}
	if headless {
		report(l.id, fmt.Errorf("%s has no header: that it is of %q is known from sessions.json only", path, l.info().Key))
	}
	for _, d := range sess.Damage {
		report(l.id, d)
	}
	if sess.Records == 0 {
		report(l.id, fmt.Errorf("%s has no records: it is not listed", path))
		return nil
	}
	have := l.info()
	sess.Trashed = have.Trashed
	if sess.Key == "" {
		sess.Key = have.Key // from sessions.json, for a log without a header
	}
	if !sameInfo(have, sess.Info) {
		report(l.id, fmt.Errorf("the index and %s differ: %s: %w", path, differ(have, sess.Info), session.ErrStale))
	}
	return nil
}

func sameInfo(a, b session.Info) bool {
	if !a.Created.Equal(b.Created) || !a.Updated.Equal(b.Updated) || !a.Trashed.Equal(b.Trashed) {
		return false
	}
	b.Created, b.Updated, b.Trashed = a.Created, a.Updated, a.Trashed
	return a == b
}

// differ says in what the index and the log differ, the plainest thing first.
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

// Rebuild makes the index and every sessions.json anew from the logs, which it
// does not touch, and returns how many sessions and files were not told of as
// they are.
func (s *Store) Rebuild(ctx context.Context) (changed int, err error) {
	defer func() { err = space.Wrap("jsonl", s.dir, err) }()
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := s.sync(); err != nil {
		return 0, err
	}
	on := map[string]session.Info{}
	if b, _, err := readFile(s.disk, s.indexPath()); err == nil {
		if !parseIndex(string(b), func(e *entry) {
			if filepath.Base(e.rel) != indexName {
				on[e.rel] = e.view.info
			}
		}) {
			changed++
		}
	}
	var errs []error
	for _, l := range s.everything() {
		l.mu.Lock()
		l.view = view{}
		err := l.refresh(ctx)
		rel := l.at().rel
		e, ok := on[rel]
		delete(on, rel)
		if err == nil && (!ok || !sameInfo(e, l.view.info)) {
			changed++
		}
		l.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return changed, ctx.Err()
		case err == errGone:
			s.forget(l)
			changed++
		case err != nil:
			errs = append(errs, err)
		}
	}
	changed += len(on) // of logs that are gone
	tables, err := s.rewrite()
	return changed + tables, errors.Join(append(errs, err)...)
}

// rewrite writes all projections, whether or not they seem to be good, and
// returns how many sessions.json were not.
func (s *Store) rewrite() (int, error) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	logs := s.everything()
	s.mu.Lock()
	s.lost = true
	for _, l := range logs {
		s.stale(l.live)
	}
	for _, t := range s.tables {
		t.dirty = true
	}
	s.mu.Unlock()
	return s.project(logs, true)
}
