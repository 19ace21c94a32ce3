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
	"sync"
	"time"

	"goclaw/session"
)

// projection writes the files that are computed from the logs: the index and
// every sessions.json. Changes are written together, pause after the first, and
// when the store is closed.
type projection struct {
	*root
	readOnly bool
	pause    time.Duration
	logs     func() []saved // all logs; those that have changed are fresh once

	writing sync.Mutex

	mu      sync.Mutex // held for moments, never while a file is read or written
	tables  map[string]*table
	entries int  // in the index file
	lost    bool // the index has entries of logs that are gone
	changed bool // something is to be written
	timer   *time.Timer
	closed  bool
}

// table is the state of a sessions.json.
type table struct {
	stat   stat
	dirty  bool // it lacks a log, or has one too many
	behind bool // the times or totals of a row are old
}

// saved is a log as the projections have it.
type saved struct {
	entry
	live  string
	info  session.Info
	fresh bool // it has changed
	main  bool // of the files with its id, it is the one that counts
}

// touch has the projections written after the pause.
func (p *projection) touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = true
	if p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(p.pause, func() {
			p.mu.Lock()
			p.timer = nil
			p.mu.Unlock()
			_ = p.flush(false) // the flush of Close tries again and reports it
		})
	}
}

// stale notes that a log has come or gone beside the one at rel.
func (p *projection) stale(rel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table(p.layout.index(filepath.Dir(rel))).dirty = true
	p.changed = true
}

// table returns the state of the sessions.json name. The caller holds mu.
func (p *projection) table(name string) *table {
	t := p.tables[name]
	if t == nil {
		t = &table{}
		p.tables[name] = t
	}
	return t
}

// lose notes that a log is no longer where the index says.
func (p *projection) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
}

// keys returns the keys in the sessions.json of the folder dir. ok is false if
// the file is as it was the last time, unless more says that dir has new logs.
func (p *projection) keys(dir string, more bool) (keys map[session.ID]session.Key, ok bool) {
	name := p.layout.index(dir)
	st, err := p.disk.lstat(p.path(name))
	p.mu.Lock()
	t := p.tables[name]
	same := t != nil && (err != nil && t.stat == (stat{}) || err == nil && t.stat.same(st))
	p.mu.Unlock()
	if same && !more {
		return nil, false
	}
	var rows []row
	if err == nil && st.mode.IsRegular() {
		var b []byte
		if b, st, err = readFile(p.disk, p.path(name)); err == nil {
			rows, _ = parseTable(b) // a damaged one has no keys
		}
	}
	if err != nil {
		st = stat{}
	}
	keys = map[session.ID]session.Key{}
	if p.layout != Claw0New { // its rows have no key
		for _, r := range rows {
			keys[p.layout.sessionOf(r)] = session.Key(r.name)
		}
	}
	if t == nil || !t.stat.same(st) {
		p.mu.Lock()
		p.tables[name] = &table{stat: st, dirty: true}
		p.mu.Unlock()
		p.touch()
	}
	return keys, true
}

// close stops the timer and writes what has changed.
func (p *projection) close() error {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	return p.flush(true)
}

// flush writes what has changed. Only the last flush writes a sessions.json in
// which nothing but times and totals would change.
func (p *projection) flush(last bool) error {
	if p.readOnly {
		return nil
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	work := (p.changed || last && (p.lost || p.behind())) && (last || !p.closed)
	p.mu.Unlock()
	if !work {
		return nil
	}
	_, err := p.write(last)
	if denied(err) {
		return nil // nothing can be written there
	}
	return err
}

// behind reports whether a row of a sessions.json is old. The caller holds mu.
func (p *projection) behind() bool {
	for _, t := range p.tables {
		if t.behind {
			return true
		}
	}
	return false
}

// rewrite writes everything and returns how many sessions.json have changed.
func (p *projection) rewrite() (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	p.lost = true
	for _, t := range p.tables {
		t.dirty = true
	}
	p.mu.Unlock()
	return p.write(true)
}

// write writes every sessions.json that is due, and then the index, which
// describes their state. It returns how many sessions.json have changed. The
// caller holds writing.
func (p *projection) write(last bool) (wrote int, err error) {
	p.mu.Lock()
	p.changed = false
	p.mu.Unlock()
	all := p.logs()
	rows, due := p.due(all, last)
	var errs []error
	for name := range due {
		did, err := p.writeTable(name, rows[name])
		if did {
			wrote++
		}
		if err != nil {
			errs = append(errs, err)
			p.mu.Lock()
			p.tables[name], p.changed = &table{dirty: true}, true // try again next time
			p.mu.Unlock()
		}
	}
	var changed, entries []entry
	for _, sv := range all {
		entries = append(entries, sv.entry)
		if sv.fresh {
			changed = append(changed, sv.entry)
		}
	}
	p.mu.Lock()
	for name, t := range p.tables {
		e := entry{rel: name, view: view{stat: t.stat}}
		entries = append(entries, e)
		if due[name] {
			changed = append(changed, e)
		}
	}
	if p.lost && last {
		p.entries, p.lost = tooMany, false
		if len(changed) == 0 {
			changed = entries
		}
	}
	p.mu.Unlock()
	if err := p.saveIndex(changed, entries); err != nil {
		errs = append(errs, err)
	}
	return wrote, errors.Join(errs...)
}

// due returns the logs in each sessions.json, and which of these are to be
// written.
func (p *projection) due(all []saved, last bool) (rows map[string][]saved, due map[string]bool) {
	rows, due = map[string][]saved{}, map[string]bool{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sv := range all {
		name := p.layout.index(filepath.Dir(sv.live))
		rows[name] = append(rows[name], sv)
		if sv.fresh {
			p.table(name).behind = true
		}
	}
	for name, t := range p.tables {
		if t.dirty || t.behind && last {
			due[name] = true
			t.dirty, t.behind = false, false
		}
	}
	return rows, due
}

// writeTable brings the sessions.json name in line with logs and reports
// whether that changed it. The entries of other programs stay.
func (p *projection) writeTable(name string, logs []saved) (bool, error) {
	unlock, err := p.lockTable(name)
	if err != nil {
		return false, err
	}
	defer unlock()
	path := p.path(name)
	old, st, err := readFile(p.disk, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	rows, damaged := parseTable(old)
	b := p.layout.merge(rows, logs, p.dir)
	wrote := !bytes.Equal(b, old) && (len(logs) > 0 || len(old) > 0)
	if wrote {
		if damaged != nil { // a person may want to look at it
			if err := p.disk.rename(path, fmt.Sprintf("%s.bak.%d", path, time.Now().UnixMilli())); err != nil {
				return false, err
			}
		}
		if err := p.mkdir(filepath.Dir(path)); err != nil {
			return false, err
		}
		if err := replaceFile(p.disk, path, b, true); err != nil {
			return false, err
		}
		if st, err = p.disk.lstat(path); err != nil {
			return false, err
		}
	}
	p.mu.Lock()
	p.tables[name] = &table{stat: st}
	p.mu.Unlock()
	return wrote, nil
}

func (p *projection) indexPath() string { return p.own("index") }

// load reads the index and calls f with each entry of a log, of which the last
// for a path counts.
func (p *projection) load(f func(*entry)) {
	b, _, err := readFile(p.disk, p.indexPath())
	if err != nil {
		return // the logs have it all
	}
	entries, tables := 0, map[string]*table{}
	clean := parseIndex(string(b), func(e *entry) {
		entries++
		if e.isTable() {
			tables[e.rel] = &table{stat: e.view.stat}
		} else {
			f(e)
		}
	})
	if !clean {
		entries = tooMany
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries, p.tables = entries, tables
}

// tooMany is a number of entries at which the index is rewritten.
const tooMany = 1 << 30

// saveIndex adds the changed entries to the index, or writes all if the file
// has more old entries than good ones.
func (p *projection) saveIndex(changed, all []entry) error {
	if len(changed) == 0 {
		return nil
	}
	unlock, err := p.lock(context.Background(), "index")
	if err != nil {
		return err
	}
	defer unlock()
	_, err = p.disk.lstat(p.indexPath())
	p.mu.Lock()
	n := p.entries + len(changed)
	p.mu.Unlock()
	if err != nil || n > 2*len(all)+64 {
		n = len(all)
		err = replaceFile(p.disk, p.indexPath(), appendEntries([]byte(indexMagic), all), false)
	} else {
		err = p.appendIndex(appendEntries(nil, changed))
	}
	if err == nil {
		p.mu.Lock()
		p.entries = n
		p.mu.Unlock()
	}
	return err
}

func (p *projection) appendIndex(b []byte) error {
	f, err := p.disk.open(p.indexPath(), os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(b)
	return err
}

// check reports each sessions.json of the folders live that differs from logs.
func (p *projection) check(live []string, logs []saved, report func(session.ID, error)) {
	tables := map[string][]saved{}
	for _, dir := range live {
		tables[p.layout.index(dir)] = nil
	}
	for _, sv := range logs {
		name := p.layout.index(filepath.Dir(sv.live))
		tables[name] = append(tables[name], sv)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if wrong := p.checkTable(name, tables[name]); wrong != "" {
			report("", fmt.Errorf("%s is not what the logs say: %s: %w", p.path(name), wrong, session.ErrStale))
		}
	}
}

// checkTable describes how the sessions.json name differs from logs. A row that
// is only old is right: it is written when the store that has appended to the
// log is closed.
func (p *projection) checkTable(name string, logs []saved) string {
	b, _, err := readFile(p.disk, p.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	rows, err := parseTable(b)
	if err != nil {
		return "" // reported as a file that cannot be read
	}
	have := map[string]row{}
	for _, r := range rows {
		have[r.name] = r
	}
	want, err := parseTable(p.layout.merge(rows, logs, p.dir))
	if err != nil {
		return err.Error()
	}
	records := func(r row) int {
		t := r.fields()
		return t.Int(t.Get(t.Get(0, "goclaw"), "records"))
	}
	missing, wrong := 0, 0
	for _, w := range want {
		h, ok := have[w.name]
		delete(have, w.name)
		switch {
		case !ok:
			missing++
		case bytes.Equal(h.val, w.val):
		case p.layout.sessionOf(h) != p.layout.sessionOf(w), records(h) >= records(w):
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
