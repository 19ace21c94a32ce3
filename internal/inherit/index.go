package inherit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/session"
)

// entry is what an index tells of a session.
type entry struct {
	Key   string `json:"k,omitempty"`
	ID    string `json:"i"`
	File  string `json:"f,omitempty"` // the name of its transcript, if it says
	Title string `json:"t,omitempty"`
}

// index is a sessions.json.
type index struct {
	path    string
	dir     string // where its transcripts are
	stat    stat
	claw0   bool
	torn    bool // it could not be read
	entries []entry
	byName  map[string]int
	byID    map[string]int
	met     map[int]bool
}

// index returns the index that tells of the file at path, or nil.
func (f *finder) index(path string) *index {
	dir := filepath.Dir(path)
	places := []string{filepath.Join(dir, "sessions.json")}
	if b := filepath.Base(dir); b == "sessions" || b == "transcripts" {
		places = append(places, filepath.Join(filepath.Dir(dir), "sessions.json"))
	}
	for _, p := range places {
		ix, ok := f.indices[p]
		if !ok {
			ix = f.readIndex(p, dir)
			f.indices[p] = ix
			if ix != nil {
				f.order = append(f.order, p)
			}
		}
		if ix != nil {
			return ix
		}
	}
	return nil
}

// How large an index may be: an entry has some kilobytes. One that was edited by
// hand is read as a whole.
const (
	maxIndex = 1 << 30
	maxJSON5 = 16 << 20
)

func (f *finder) readIndex(path, dir string) *index {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s, not an index: its transcripts are taken without their keys", kindOf(fi.Mode()))
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.problem(path, err)
		}
		return nil
	}
	ix := &index{path: path, dir: dir, stat: statOf(fi), met: map[int]bool{}}
	if m, ok := f.memo.index(path); ok && m.Stat == ix.stat {
		ix.entries, ix.claw0 = m.Entries, m.Claw0
	} else {
		if fi.Size() > maxIndex {
			f.problem(path, fmt.Errorf("an index of %d bytes", fi.Size()))
			ix.torn = true
			return ix
		}
		if err := ix.read(path); err != nil {
			ix.torn = true
			p := unread(path, err)
			p.What = "the index cannot be read, its transcripts are taken without their keys: " + p.What
			f.c.Problems = append(f.c.Problems, p)
		} else {
			f.memo.setIndex(path, memoIndex{Stat: ix.stat, Claw0: ix.claw0, Entries: ix.entries})
		}
	}
	ix.byName, ix.byID = map[string]int{}, map[string]int{}
	for i, e := range ix.entries {
		if e.File != "" {
			ix.byName[e.File] = i
		}
		ix.byID[e.ID] = i
	}
	return ix
}

// rawEntry has the fields of all programs.
type rawEntry struct {
	SessionID   string `json:"sessionId"`
	SessionFile string `json:"sessionFile"`
	Label       string `json:"label"`
	DisplayName string `json:"displayName"`
	Subject     string `json:"subject"`

	Claw0Key  string          `json:"session_key"`
	Claw0ID   string          `json:"session_id"`
	Claw0File string          `json:"transcript_file"`
	CreatedAt json.RawMessage `json:"created_at"`
}

// read reads the index at path: JSON entry by entry, since most of one is of no
// use here, else JSON5.
func (ix *index) read(path string) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	found := map[string]rawEntry{}
	if err := decodeIndex(bufio.NewReader(f), found); err != nil {
		data, err := readFile(path, maxJSON5)
		if err != nil {
			return err
		}
		if data, err = fromJSON5(data); err != nil {
			return err
		}
		clear(found)
		if err := decodeIndex(bytes.NewReader(data), found); err != nil {
			return err
		}
	}
	for key, e := range found {
		switch {
		case e.SessionID != "":
			ix.entries = append(ix.entries, e.openClaw(key))
		case e.Claw0ID != "":
			ix.claw0 = true
			ix.entries = append(ix.entries, entry{Key: or(e.Claw0Key, key), ID: e.Claw0ID, File: base(e.Claw0File)})
		case e.CreatedAt != nil:
			ix.claw0 = true
			ix.entries = append(ix.entries, entry{ID: key, Title: e.Label})
		}
	}
	sortEntries(ix.entries)
	return nil
}

// decodeIndex reads the entries of an object. One of another shape is passed
// over.
func decodeIndex(r io.Reader, into map[string]rawEntry) error {
	dec := json.NewDecoder(r)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not an object"), err)
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		var e rawEntry
		var shape *json.UnmarshalTypeError
		if err := dec.Decode(&e); err != nil && !errors.As(err, &shape) {
			return err
		}
		key, _ := t.(string)
		into[key] = e
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("something behind the index")
	}
	return nil
}

// openClaw reads an entry of OpenClaw. Its display name is often only the key
// again.
func (e rawEntry) openClaw(key string) entry {
	title := e.Label
	for _, t := range []string{e.DisplayName, e.Subject} {
		if title == "" && !strings.HasSuffix(key, ":"+t) {
			title = t
		}
	}
	return entry{Key: key, ID: strings.TrimSpace(e.SessionID), File: base(strings.TrimSpace(e.SessionFile)), Title: strings.TrimSpace(title)}
}

// base is filepath.Base for the paths of any system; a home may have moved.
func base(path string) string {
	if path == "" {
		return ""
	}
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// find returns the entry of a transcript by the name of its file, else by its
// id.
func (ix *index) find(name string, id session.ID) (entry, bool) {
	i, ok := ix.byName[name]
	if !ok {
		i, ok = ix.byID[string(id)]
	}
	if !ok {
		stem, _, _ := parseName(name)
		i, ok = ix.byID[stem]
	}
	if !ok {
		return entry{}, false
	}
	ix.met[i] = true
	return ix.entries[i], true
}

// missing says how many sessions of an index have no transcript, and names one.
func (f *finder) missing(ix *index) {
	n, one := 0, ""
	for i, e := range ix.entries {
		if ix.met[i] {
			continue
		}
		name := or(e.File, e.ID+ext)
		if _, err := os.Stat(filepath.Join(ix.dir, name)); err == nil {
			continue // not to be read, which was said
		}
		if n++; n == 1 {
			one = fmt.Sprintf("%s has no transcript (%s is not there)", or(e.Key, e.ID), name)
		}
	}
	switch n {
	case 0:
		return
	case 1:
	case 2:
		one += ", nor has 1 more session"
	default:
		one += fmt.Sprintf(", nor have %d more sessions", n-1)
	}
	f.c.Problems = append(f.c.Problems, Problem{Path: ix.path, What: one})
}

// codexName returns the name of a session of Codex, which keeps them in a list
// beside the folder of its sessions: of names for one session the last counts.
func (f *finder) codexName(path, id string) string {
	home := filepath.Dir(path)
	for b := filepath.Base(home); b != "sessions" && b != "archived_sessions"; b = filepath.Base(home) {
		if home == filepath.Dir(home) {
			return ""
		}
		home = filepath.Dir(home)
	}
	list := filepath.Join(filepath.Dir(home), "session_index.jsonl")
	names, ok := f.names[list]
	if !ok {
		names = map[string]string{}
		f.names[list] = names
		data, err := readFile(list, maxJSON5)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p := unread(list, err)
			p.What, p.Unread = "the names of the sessions cannot be read: "+p.What, false
			f.c.Problems = append(f.c.Problems, p)
		}
		for line := range bytes.Lines(data) {
			var e struct {
				ID   string `json:"id"`
				Name string `json:"thread_name"`
			}
			if json.Unmarshal(line, &e) == nil && strings.TrimSpace(e.Name) != "" {
				names[e.ID] = strings.TrimSpace(e.Name)
			}
		}
	}
	return names[id]
}

func sortEntries(es []entry) {
	slices.SortFunc(es, func(a, b entry) int { return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.ID, b.ID)) })
}
