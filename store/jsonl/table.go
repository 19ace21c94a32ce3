package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"goclaw/session"
	"goclaw/session/storekit"
)

// table is what is known of a sessions.json. It is written for other programs
// to read; from it, the store takes only the keys of logs that do not tell
// whose they are, as OpenClaw's do not.
type table struct {
	stat  stat
	dirty bool // which logs there are has changed
}

// row is one member of a sessions.json: its name and its value as they stand.
type row struct {
	name string
	val  []byte
}

// parseTable returns the members of a sessions.json, which may have comments.
func parseTable(b []byte) ([]row, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	if !json.Valid(b) {
		std, err := hujson.Standardize(b)
		if err != nil {
			return nil, err
		}
		b = std
	}
	all := gjson.ParseBytes(b)
	if !all.IsObject() {
		return nil, errors.New("not an object")
	}
	var rows []row
	all.ForEach(func(k, v gjson.Result) bool {
		rows = append(rows, row{k.String(), []byte(v.Raw)})
		return true
	})
	return rows, nil
}

// sessionOf returns the session that a row is about.
func (y Layout) sessionOf(r row) session.ID {
	switch y {
	case OpenClaw:
		return session.ID(gjson.GetBytes(r.val, "sessionId").String())
	case Claw0Old:
		return session.ID(gjson.GetBytes(r.val, "session_id").String())
	}
	return session.ID(r.name)
}

// readTable takes the keys from the sessions.json of the folder dir, if it or
// the logs in dir are not those of last time. The caller holds syncing.
func (s *Store) readTable(dir string, more bool) {
	name := s.layout.index(dir)
	st, err := s.disk.lstat(s.path(name))
	s.mu.Lock()
	t := s.tables[name]
	s.mu.Unlock()
	if t != nil && (err != nil && t.stat == (stat{}) || err == nil && t.stat.same(st)) && !more {
		return
	}
	var rows []row
	if err == nil && st.mode.IsRegular() {
		var b []byte
		if b, st, err = readFile(s.disk, s.path(name)); err == nil {
			rows, _ = parseTable(b) // what cannot be read says nothing
		}
	}
	if err != nil {
		st = stat{}
	}
	keys := map[session.ID]session.Key{}
	if s.layout != Claw0New { // whose rows have no key
		for _, r := range rows {
			keys[s.layout.sessionOf(r)] = session.Key(r.name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.files {
		if at := *l.at(); at.key != keys[l.id] && filepath.Dir(l.live) == dir {
			at.key = keys[l.id]
			l.spot.Store(&at)
			l.unsaved.Store(true)
		}
	}
	if t == nil || !t.stat.same(st) {
		s.tables[name] = &table{stat: st, dirty: true}
		s.later()
	}
}

// stale notes that another set of logs lies beside the one at rel. The caller
// holds mu.
func (s *Store) stale(rel string) {
	name := s.layout.index(filepath.Dir(rel))
	if s.tables[name] == nil {
		s.tables[name] = &table{}
	}
	s.tables[name].dirty = true
}

// later has the projections written in a while. The caller holds mu.
func (s *Store) later() {
	if s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(s.pause, func() {
			s.mu.Lock()
			s.timer = nil
			s.mu.Unlock()
			_ = s.flush(false) // Close tries again, and says so
		})
	}
}

// flush writes the projections of what has changed. Only the last flush
// writes a sessions.json in which nothing but times would change.
func (s *Store) flush(last bool) error {
	if s.still {
		return nil
	}
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.mu.Lock()
	if s.closed && !last {
		s.mu.Unlock()
		return nil
	}
	logs := make([]*log, 0, len(s.files))
	work := s.lost && last
	for _, l := range s.files {
		logs = append(logs, l)
		work = work || l.unsaved.Load()
	}
	for _, t := range s.tables {
		work = work || t.dirty
	}
	s.mu.Unlock()
	if !work {
		return nil
	}
	_, err := s.project(logs, last)
	if denied(err) {
		err = nil // nothing can be written there, and nothing was
	}
	return err
}

// saved is a log as the projections have it.
type saved struct {
	entry
	live  string
	info  session.Info
	fresh bool
	main  bool // counts for its id
}

// saved returns the logs of which something is known. Fresh, which is called
// with mu held, says whether a log has changed.
func (s *Store) saved(logs []*log, fresh func(*log) bool) (all []saved) {
	for _, l := range logs {
		l.mu.Lock()
		if l.view.known {
			at := l.at()
			sv := saved{live: l.live, info: l.info()}
			sv.entry = entry{rel: at.rel, id: l.id, key: at.key, view: l.view}
			if at.key == "" {
				sv.entry.key = l.view.info.Key // in case the log loses its header
			}
			s.mu.Lock()
			sv.fresh = fresh(l)
			sv.main = s.logs[l.id] == l
			s.mu.Unlock()
			sv.entry.view.outline, sv.entry.view.places, sv.entry.view.marks = nil, nil, nil
			all = append(all, sv)
		}
		l.mu.Unlock()
	}
	return all
}

// project writes every sessions.json that is not as it should be, and then the
// index, in this order: what the index says of a sessions.json must be so. It
// returns how many sessions.json it has written.
func (s *Store) project(logs []*log, last bool) (wrote int, err error) {
	all := s.saved(logs, func(l *log) bool { return l.unsaved.Swap(false) })
	folders := map[string][]saved{}
	due := map[string]bool{}
	for _, sv := range all {
		name := s.layout.index(filepath.Dir(sv.live))
		folders[name] = append(folders[name], sv)
		due[name] = due[name] || sv.fresh && last
	}
	s.mu.Lock()
	for name, t := range s.tables {
		due[name] = due[name] || t.dirty
		t.dirty = false
	}
	s.mu.Unlock()
	var errs []error
	for name, yes := range due {
		if !yes {
			continue
		}
		did, err := s.writeTable(name, folders[name])
		if did {
			wrote++
		}
		if err != nil {
			errs = append(errs, err)
			s.mu.Lock()
			s.tables[name] = &table{dirty: true} // again next time
			s.mu.Unlock()
		}
	}
	var changed, entries []entry
	for _, sv := range all {
		entries = append(entries, sv.entry)
		if sv.fresh {
			changed = append(changed, sv.entry)
		}
	}
	s.mu.Lock()
	for name, t := range s.tables {
		e := entry{rel: name, view: view{stat: t.stat}}
		entries = append(entries, e)
		if due[name] {
			changed = append(changed, e)
		}
	}
	if s.lost && last {
		s.entries, s.lost = 1<<30, false
		if len(changed) == 0 {
			changed = entries
		}
	}
	s.mu.Unlock()
	if err := s.saveIndex(changed, entries); err != nil {
		errs = append(errs, err)
	}
	return wrote, errors.Join(errs...)
}

// writeTable brings the sessions.json name in line with logs, and reports
// whether there was anything to do. What other programs have put there stays.
func (s *Store) writeTable(name string, logs []saved) (bool, error) {
	unlock, err := s.lockTable(name)
	if err != nil {
		return false, err
	}
	defer unlock()
	path := s.path(name)
	old, st, err := readFile(s.disk, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	rows, bad := parseTable(old)
	b := s.layout.merge(rows, logs, s.dir)
	wrote := !bytes.Equal(b, old) && (len(logs) > 0 || len(old) > 0)
	if wrote {
		if bad != nil { // a person may want to look at it
			if err := s.disk.rename(path, fmt.Sprintf("%s.bak.%d", path, s.clock.Now().UnixMilli())); err != nil {
				return false, err
			}
		}
		if err := s.mkdir(filepath.Dir(path)); err != nil {
			return false, err
		}
		if err := replaceFile(s.disk, path, b, true); err != nil {
			return false, err
		}
		if st, err = s.disk.lstat(path); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	s.tables[name] = &table{stat: st}
	s.mu.Unlock()
	return wrote, nil
}

// merge returns the text of a sessions.json that tells of logs, given the
// rows that it has.
func (y Layout) merge(rows []row, logs []saved, dir string) []byte {
	want := map[string]saved{} // by the name of the row
	dead := map[session.ID]bool{}
	here := map[session.ID]string{} // under which name
	for _, l := range logs {
		if !l.main || l.info.Records == 0 {
			continue
		}
		if !l.info.Trashed.IsZero() {
			dead[l.id] = true
			continue
		}
		name := string(l.info.Key)
		if y == Claw0New {
			name = string(l.id)
		}
		here[l.id] = name
		if name == "" {
			continue
		}
		if w, ok := want[name]; !ok || later(l.info, w.info) {
			want[name] = l
		}
	}
	var out []row
	for _, r := range rows {
		id := y.sessionOf(r)
		l, ok := want[r.name]
		delete(want, r.name)
		switch {
		case ok && (id == l.id || dead[id] || y.updated(r).Before(l.info.Updated)):
			out = append(out, y.row(r, l, dir))
		case dead[id], gjson.GetBytes(r.val, "goclaw").Exists() && here[id] != r.name:
			// The log is in the trash, or was ours and is no more, or has
			// another key now.
		default:
			out = append(out, r)
		}
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, y.row(row{name: name}, want[name], dir))
	}
	b := []byte("{")
	for i, r := range out {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n  "...)
		b = append(append(append(b, quote(r.name)...), ": "...), r.val...)
	}
	if len(out) > 0 {
		b = append(b, '\n')
	}
	return append(b, "}\n"...)
}

func later(a, b session.Info) bool {
	if a.Newer(b) || b.Newer(a) {
		return a.Newer(b)
	}
	return a.ID < b.ID
}

// updated returns when a row says that its session was used last.
func (y Layout) updated(r row) time.Time {
	switch y {
	case OpenClaw:
		return time.UnixMilli(gjson.GetBytes(r.val, "updatedAt").Int())
	case Claw0New:
		t, _ := time.Parse(time.RFC3339, gjson.GetBytes(r.val, "last_active").String())
		return t
	}
	t, _ := time.Parse(time.RFC3339, gjson.GetBytes(r.val, "updated_at").String())
	return t
}

// fields returns what the row of l says.
func (y Layout) fields(l saved, dir string) []field {
	const iso = "2006-01-02T15:04:05.000000+00:00"
	in, name := l.info, filepath.Base(l.live)
	var fs []field
	switch y {
	case OpenClaw:
		fs = []field{{"sessionId", in.ID}, {"updatedAt", in.Updated.UnixMilli()}, {"sessionFile", nil}}
		if name != string(in.ID)+ext { // else OpenClaw finds it by its id
			fs[2].val = filepath.Join(dir, l.live)
		}
	case Claw0New:
		fs = []field{{"label", in.Title}, {"created_at", in.Created.UTC().Format(iso)}, {"last_active", in.Updated.UTC().Format(iso)}, {"message_count", l.view.lines}}
	case Claw0Old:
		fs = []field{{"session_key", in.Key}, {"session_id", in.ID}, {"created_at", in.Created.UTC().Format(iso)},
			{"updated_at", in.Updated.UTC().Format(iso)}, {"message_count", in.Turns}, {"transcript_file", name}}
	}
	own := struct {
		Title   string `json:"title,omitempty"`
		Model   string `json:"model,omitempty"`
		Turns   int    `json:"turns"`
		Records int    `json:"records"`
		Folds   int    `json:"folds,omitempty"`
		Used    int    `json:"usedTokens,omitempty"`
	}{in.Title, in.ModelName(), in.Turns, in.Records, in.Compactions, in.Used}
	return append(fs, field{"goclaw", own})
}

type field struct {
	name string
	val  any // nil: none
}

// row returns r, saying what l is now.
func (y Layout) row(r row, l saved, dir string) row {
	fields := y.fields(l, dir)
	if r.val == nil || !gjson.ParseBytes(r.val).IsObject() {
		var b bytes.Buffer
		sep := "{"
		for _, f := range fields {
			if f.val == nil {
				continue
			}
			fmt.Fprintf(&b, "%s\n    %s: %s", sep, quote(f.name), quote(f.val))
			sep = ","
		}
		b.WriteString("\n  }")
		return row{r.name, b.Bytes()}
	}
	foreign := !gjson.GetBytes(r.val, "goclaw").Exists()
	for _, f := range fields {
		has := gjson.GetBytes(r.val, f.name)
		var val []byte
		var err error
		switch {
		case f.name == "label" && has.String() != "" && f.val == "":
			continue // the name that claw0 gave it
		case f.name == "sessionFile" && foreign && filepath.Base(has.String()) == filepath.Base(l.live):
			continue
		case f.val == nil && !has.Exists(), f.val != nil && has.Raw == string(quote(f.val)):
			continue
		case f.val == nil:
			val, err = sjson.DeleteBytes(r.val, f.name)
		default:
			val, err = sjson.SetRawBytes(r.val, f.name, quote(f.val))
		}
		if err == nil {
			r.val = val
		}
	}
	return r
}

// quote returns v as JSON.
func quote(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("null") // strings and numbers only: there is no other case
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// lockTable keeps other programs from writing the sessions.json name: those
// of ours by a locked file, OpenClaw by the kind of file that it looks for.
func (s *Store) lockTable(name string) (func(), error) {
	unlock, err := s.flock(bgContext, "table-"+strings.ReplaceAll(storekit.FileName(name), "%2f", "_"))
	if err != nil || s.layout != OpenClaw {
		return unlock, err
	}
	path := s.path(name) + ".lock"
	for range 200 {
		f, err := s.disk.open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err == nil {
			_, err = fmt.Fprintf(f, "{\"pid\":%d,\"startedAt\":%d}", os.Getpid(), time.Now().UnixMilli())
			f.Close()
			return func() {
				_ = s.disk.remove(path)
				unlock()
			}, err
		}
		if !errors.Is(err, fs.ErrExist) {
			if errors.Is(err, fs.ErrNotExist) { // no folder, so no other program
				return unlock, nil
			}
			unlock()
			return nil, err
		}
		if s.leftBehind(path) {
			_ = s.disk.remove(path)
			continue
		}
		time.Sleep(10 * time.Millisecond)
	}
	unlock()
	return nil, fmt.Errorf("jsonl: another program has %s locked", s.path(name))
}

// leftBehind reports whether the lock file path is of a process that is no
// more, or too old to be of any. One of this process is: of ours, there can
// be only one at a time, and it is about to be made. One that says nothing is
// being written, or its writer has died.
func (s *Store) leftBehind(path string) bool {
	b, st, err := readFile(s.disk, path)
	if err != nil {
		return false
	}
	var note struct {
		PID int `json:"pid"`
	}
	age := time.Since(time.Unix(0, st.mtime))
	if json.Unmarshal(b, &note) != nil || note.PID <= 0 {
		return age > 100*time.Millisecond
	}
	return age > 30*time.Second || note.PID == os.Getpid() || !alive(note.PID)
}
