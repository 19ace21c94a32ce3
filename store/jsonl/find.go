package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
)

// sync makes every log known whose file has appeared since the last time.
// Files that have gone are noticed when they are used. It reads no more of a
// new file than its first record, and takes no lock of a log: it may be
// called while one is held.
func (s *Store) sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	live, err := s.liveFolders()
	if err != nil {
		return err
	}
	for _, dir := range live {
		more, err := s.look(dir)
		if err != nil {
			return err
		}
		if _, err := s.look(filepath.Join(dir, trash)); err != nil {
			return err
		}
		s.readTable(dir, more)
	}
	return nil
}

// liveFolders returns the folders that logs lie in. The caller holds syncing.
func (s *Store) liveFolders() ([]string, error) {
	if s.layout == Claw0Old {
		return []string{scripts}, nil
	}
	st, err := s.disk.lstat(s.path(agents))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if s.agents.current(st) {
		return s.agents.subs, nil
	}
	seen := folder{mtime: st.mtime, at: time.Now()}
	list, err := s.disk.readDir(s.path(agents))
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			seen.subs = append(seen.subs, filepath.Join(agents, e.Name(), sessions))
		}
	}
	s.agents = seen
	return seen.subs, nil
}

// current reports whether a folder that is now st has the names it had when
// it was read. Its time must be older than the reading by more than the clock
// of a file system ticks: within one tick, two changes look like one.
func (f *folder) current(st stat) bool {
	return f.mtime == st.mtime && st.mode.IsDir() && f.at.UnixNano()-st.mtime > int64(100*time.Millisecond)
}

// look registers the logs in the folder dir that are not known yet, and
// reports whether there were any. The caller holds syncing.
func (s *Store) look(dir string) (more bool, err error) {
	st, err := s.disk.lstat(s.path(dir))
	if err != nil {
		delete(s.folders, dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	if f := s.folders[dir]; f != nil && f.current(st) {
		return false, nil
	}
	seen := &folder{mtime: st.mtime, at: time.Now()}
	list, err := s.disk.readDir(s.path(dir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || st.mode.IsRegular() {
			err = nil
		}
		return false, err
	}
	var fresh []string
	s.mu.Lock()
	for _, e := range list {
		rel := dir + string(filepath.Separator) + e.Name()
		if s.files[rel] == nil && s.isLog(rel) && e.Type().IsRegular() {
			fresh = append(fresh, rel)
		}
	}
	s.mu.Unlock()
	for _, rel := range fresh {
		id, ok := s.peek(rel)
		if !ok {
			continue
		}
		s.mu.Lock()
		s.register(s.newLog(id, rel))
		s.mu.Unlock()
	}
	s.folders[dir] = seen
	return len(fresh) > 0, nil
}

// isLog reports whether rel is the name of a log, in the trash or not.
func (s *Store) isLog(rel string) bool {
	if filepath.Base(filepath.Dir(rel)) == trash {
		_, _, ok := fromTrash(rel)
		return ok
	}
	return strings.HasSuffix(rel, ext)
}

// peek returns the id of the log at rel: what its first record says, if that
// is a header, else what the file's name says.
func (s *Store) peek(rel string) (session.ID, bool) {
	f, err := s.disk.open(s.path(rel), os.O_RDONLY)
	if err != nil {
		// It cannot be read, but it is there: whoever needs it gets the error.
		return s.layout.named(filepath.Base(liveName(rel))), !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	st, err := f.stat()
	if err != nil || !st.mode.IsRegular() {
		return "", false
	}
	sc := s.scan("", f, firstMark, st.size)
	for sc.Next() {
		if sc.Damage() != nil {
			continue
		}
		if h, ok := sc.Record().Body.(session.Header); ok && h.ID != "" {
			return h.ID, true
		}
		break
	}
	return s.layout.named(filepath.Base(liveName(rel))), true
}

func liveName(rel string) string {
	if live, _, ok := fromTrash(rel); ok {
		return live
	}
	return rel
}

// locate looks for a log id that this process does not know of, and reports
// whether there is one now. It asks for the names that the id can have, and
// for what is new in the trash, so that beginning a session does not cost
// more the more there are.
func (s *Store) locate(id session.ID) (bool, error) {
	if s.layout == Claw0Old {
		if err := s.sync(); err != nil {
			return false, err
		}
	} else {
		s.syncing.Lock()
		defer s.syncing.Unlock()
		live, err := s.liveFolders()
		if err != nil {
			return false, err
		}
		for _, dir := range live {
			rel := filepath.Join(dir, storekit.FileName(string(id))+ext)
			if st, err := s.disk.lstat(s.path(rel)); err == nil && st.mode.IsRegular() {
				s.mu.Lock()
				s.register(s.newLog(id, rel))
				s.mu.Unlock()
			}
			if _, err := s.look(filepath.Join(dir, trash)); err != nil {
				return false, err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[id] != nil, nil
}
