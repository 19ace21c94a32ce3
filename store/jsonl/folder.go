package jsonl

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
)

// folder knows which files there are and which log each of them is.
type folder struct {
	*root
	proj    *projection
	changed func(*log) // see log

	// looking is held while folders are read. It is taken before mu, and
	// possibly while a log is held.
	looking sync.Mutex
	seen    map[string]*listing
	agents  listing

	// mu is held for moments, never while a file is read or written, and never
	// while waiting for a log.
	mu    sync.Mutex
	logs  map[session.ID]*log
	files map[string]*log // by path
}

// listing is the state of a folder when it was read.
type listing struct {
	mtime int64
	at    time.Time
	subs  []string // in the folder of agents: the folders of logs
}

func (f *folder) newLog(id session.ID, rel string) *log { return newLog(f.root, f.changed, id, rel) }

// known returns the log id, or nil if no file of it is known yet.
func (f *folder) known(id session.ID) *log {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs[id]
}

// find returns the log id, or nil if there is none.
func (f *folder) find(id session.ID) (*log, error) {
	if l := f.known(id); l != nil {
		return l, nil
	}
	err := f.sync()
	return f.known(id), err
}

// target returns the log id, or a new one that recs begin.
func (f *folder) target(id session.ID, recs []session.Record) (*log, error) {
	if l := f.known(id); l != nil {
		return l, nil
	}
	if recs[0].Seq != 1 { // it must exist, perhaps under another name
		if l, err := f.find(id); l != nil || err != nil {
			return l, err
		}
	}
	if err := storekit.CheckAppend(id, 0, recs); err != nil {
		return nil, err
	}
	h := recs[0].Body.(session.Header)
	return f.newLog(id, f.layout.place(h.Key, id)), nil
}

// all returns the log of every file, by path.
func (f *folder) all() []*log {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.files), func(a, b *log) int { return cmp.Compare(a.at().rel, b.at().rel) })
}

// listed returns the logs that count for their id, in the trash or not.
func (f *folder) listed(trash bool) []*log {
	f.mu.Lock()
	defer f.mu.Unlock()
	logs := make([]*log, 0, len(f.logs))
	for _, l := range f.logs {
		if l.trashed() == trash {
			logs = append(logs, l)
		}
	}
	return logs
}

// saved returns the known logs as the projections have them. If take, those
// that have changed count as saved afterwards.
func (f *folder) saved(take bool) (all []saved) {
	f.mu.Lock()
	logs := slices.Collect(maps.Values(f.files))
	f.mu.Unlock()
	for _, l := range logs {
		l.mu.Lock()
		if l.view.known {
			fresh := take && l.unsaved.Swap(false) // before at is read
			at := l.at()
			sv := saved{live: l.live, info: l.info(), fresh: fresh, main: f.known(l.id) == l}
			sv.entry = entry{rel: at.rel, id: l.id, key: at.key, view: l.view}
			if at.key == "" {
				sv.entry.key = l.view.info.Key // in case the log loses its header
			}
			sv.entry.view.outline, sv.entry.view.places, sv.entry.view.marks = nil, nil, nil
			all = append(all, sv)
		}
		l.mu.Unlock()
	}
	return all
}

// load takes an entry of the index. It is compared with the log when the log is
// used.
func (f *folder) load(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.files[e.rel]
	if l == nil || l.id != e.id {
		l = f.newLog(e.id, e.rel)
	}
	l.view, l.at().key = e.view, e.key // nobody else knows of it yet
	f.put(l)
}

// register makes l known.
func (f *folder) register(l *log) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(l)
}

// put makes l known. Of the files with one id, the one with the name of the id
// counts, else the first; a log in the trash counts least. The caller holds mu.
func (f *folder) put(l *log) {
	rel := l.at().rel
	if f.files[rel] != nil {
		return
	}
	f.files[rel] = l
	if old := f.logs[l.id]; old == nil || f.before(l, old) {
		f.logs[l.id] = l
	}
}

// before reports whether a counts for its id rather than b.
func (f *folder) before(a, b *log) bool {
	i, j := f.rank(a), f.rank(b)
	if i == 2 && j == 2 {
		return a.at().trashed.After(b.at().trashed)
	}
	return i < j || i == j && a.at().rel < b.at().rel
}

// rank orders files that have one id, the best first.
func (f *folder) rank(l *log) int {
	name := strings.TrimSuffix(filepath.Base(l.live), ext)
	switch {
	case l.trashed():
		return 2
	case name == storekit.FileName(string(l.id)), f.layout == Claw0Old && strings.HasSuffix(name, "_"+storekit.FileName(string(l.id))):
		return 0
	}
	return 1
}

// forget drops l, whose file is gone.
func (f *folder) forget(l *log) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rel := l.at().rel; f.files[rel] == l {
		delete(f.files, rel)
		f.proj.lose()
	}
	if f.logs[l.id] != l {
		return
	}
	delete(f.logs, l.id)
	if len(f.files) == len(f.logs) {
		return // each file has its own id
	}
	for _, other := range f.files {
		if other.id == l.id {
			delete(f.files, other.at().rel)
			f.put(other)
		}
	}
}

// move moves the file of l to rel. The caller holds l.
func (f *folder) move(l *log, rel string, trashed time.Time) error {
	from, to := l.where(), f.path(rel)
	if err := f.mkdir(filepath.Dir(to)); err != nil {
		return err
	}
	if err := f.disk.rename(from, to); err != nil {
		return err
	}
	f.mu.Lock()
	at := *l.at()
	if f.files[at.rel] == l {
		delete(f.files, at.rel)
	}
	at.rel, at.trashed = rel, trashed
	l.spot.Store(&at)
	f.files[rel] = l
	f.mu.Unlock()
	l.unsaved.Store(true)
	f.proj.lose()
	f.proj.stale(l.live)
	f.proj.touch()
	if err := f.disk.syncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return f.disk.syncDir(filepath.Dir(from))
}

// sync finds the logs whose files have appeared since the last time. Files that
// are gone are noticed when they are used. It reads no more of a new file than
// its first record and takes no lock of a log: it may be called while one is
// held.
func (f *folder) sync() error {
	f.looking.Lock()
	defer f.looking.Unlock()
	live, err := f.live()
	if err != nil {
		return err
	}
	for _, dir := range live {
		more, err := f.look(dir)
		if err != nil {
			return err
		}
		if _, err := f.look(filepath.Join(dir, trash)); err != nil {
			return err
		}
		if keys, ok := f.proj.keys(dir, more); ok {
			f.setKeys(dir, keys)
		}
	}
	return nil
}

// setKeys gives the logs of the folder dir the keys of its sessions.json.
func (f *folder) setKeys(dir string, keys map[session.ID]session.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.files {
		if at := *l.at(); at.key != keys[l.id] && filepath.Dir(l.live) == dir {
			at.key = keys[l.id]
			l.spot.Store(&at)
			l.unsaved.Store(true)
			f.proj.touch()
		}
	}
}

// live returns the folders of logs that are not in the trash. The caller holds
// looking.
func (f *folder) live() ([]string, error) {
	if f.layout == Claw0Old {
		return []string{scripts}, nil
	}
	st, err := f.disk.lstat(f.path(agents))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.agents.current(st) {
		return f.agents.subs, nil
	}
	seen := listing{mtime: st.mtime, at: time.Now()}
	list, err := f.disk.readDir(f.path(agents))
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			seen.subs = append(seen.subs, filepath.Join(agents, e.Name(), sessions))
		}
	}
	f.agents = seen
	return seen.subs, nil
}

// current reports whether a folder, now in the state st, has the names that it
// had when it was read. It must have been read some time after its last change:
// within one tick of the file system's clock, two changes look like one.
func (l *listing) current(st stat) bool {
	return l.mtime == st.mtime && st.mode.IsDir() && l.at.UnixNano()-st.mtime > int64(100*time.Millisecond)
}

// look registers the new logs in the folder dir and reports whether there were
// any. The caller holds looking.
func (f *folder) look(dir string) (more bool, err error) {
	st, err := f.disk.lstat(f.path(dir))
	if err != nil {
		delete(f.seen, dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	if l := f.seen[dir]; l != nil && l.current(st) {
		return false, nil
	}
	seen := &listing{mtime: st.mtime, at: time.Now()}
	list, err := f.disk.readDir(f.path(dir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || st.mode.IsRegular() {
			err = nil
		}
		return false, err
	}
	var found []string
	f.mu.Lock()
	for _, e := range list {
		rel := dir + string(filepath.Separator) + e.Name()
		if f.files[rel] == nil && isLog(rel) && e.Type().IsRegular() {
			found = append(found, rel)
		}
	}
	f.mu.Unlock()
	for _, rel := range found {
		if id, ok := f.idOf(rel); ok {
			f.register(f.newLog(id, rel))
		}
	}
	f.seen[dir] = seen
	return len(found) > 0, nil
}

// idOf returns the id of the log at rel: that of its first record, if it is a
// header, else that of the file's name. ok is false if there is no such file.
func (f *folder) idOf(rel string) (id session.ID, ok bool) {
	live := rel
	if was, _, ok := fromTrash(rel); ok {
		live = was
	}
	id = f.layout.named(filepath.Base(live))
	file, err := f.disk.open(f.path(rel), os.O_RDONLY)
	if err != nil {
		return id, !errors.Is(err, fs.ErrNotExist) // whoever reads it gets the error
	}
	defer file.Close()
	st, err := file.stat()
	if err != nil || !st.mode.IsRegular() {
		return "", false
	}
	for sc := f.scan("", file, firstMark, st.size); sc.Next(); {
		if sc.Damage() != nil {
			continue
		}
		if h, ok := sc.Record().Body.(session.Header); ok && h.ID != "" {
			return h.ID, true
		}
		break
	}
	return id, true
}

// locate looks for the log id, of which no file is known, and reports whether
// there is one. It looks for the names that the id can have and for new files
// in the trash, so that the cost of a new session does not grow with their
// number.
func (f *folder) locate(id session.ID) (bool, error) {
	if f.layout == Claw0Old {
		l, err := f.find(id)
		return l != nil, err
	}
	f.looking.Lock()
	defer f.looking.Unlock()
	live, err := f.live()
	if err != nil {
		return false, err
	}
	for _, dir := range live {
		rel := filepath.Join(dir, storekit.FileName(string(id))+ext)
		if st, err := f.disk.lstat(f.path(rel)); err == nil && st.mode.IsRegular() {
			f.register(f.newLog(id, rel))
		}
		if _, err := f.look(filepath.Join(dir, trash)); err != nil {
			return false, err
		}
	}
	return f.known(id) != nil, nil
}
