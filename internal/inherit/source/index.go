package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"goclaw/internal/json5"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Entry is what an index says about a session.
type Entry struct {
	Key   string `json:"k,omitempty"`
	ID    string `json:"i"`
	File  string `json:"f,omitempty"` // the name of its transcript, if it says
	Title string `json:"t,omitempty"`
	Away  bool   `json:"a,omitempty"` // the user has archived it
}

// Index is a sessions.json: the list that a program keeps of its sessions.
type Index struct {
	Path       string
	Dir        string // where its transcripts are
	Program    string // that wrote it, if it has entries
	Unreadable bool
	Entries    []Entry

	byName map[string]int
	byID   map[string]int
	met    map[int]bool
}

// How large an index may be: an entry has some kilobytes. One that was edited by
// hand is read as a whole.
const (
	maxIndex = 1 << 30
	maxJSON5 = 16 << 20
)

// NewIndex returns an index of what is known already.
func NewIndex(path, dir, program string, entries []Entry) *Index {
	ix := &Index{Path: path, Dir: dir, Program: program, Entries: entries, byName: map[string]int{}, byID: map[string]int{}, met: map[int]bool{}}
	for i, e := range entries {
		if e.File != "" {
			ix.byName[e.File] = i
		}
		ix.byID[e.ID] = i
	}
	return ix
}

// ReadIndex reads the index at path, whose transcripts are in dir: JSON entry by
// entry, since most of one is of no use here, else JSON5.
func ReadIndex(path, dir string, listers []Lister) (*Index, error) {
	f, err := wholefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() > maxIndex {
		return nil, fmt.Errorf("an index of %d bytes", fi.Size())
	}
	program, entries, err := readEntries(bufio.NewReader(f), listers)
	if err != nil {
		data, err := wholefile.Read(path, maxJSON5)
		if err != nil {
			return nil, err
		}
		if data, err = json5.Standardize(data); err != nil {
			return nil, err
		}
		if program, entries, err = readEntries(bytes.NewReader(data), listers); err != nil {
			return nil, err
		}
	}
	return NewIndex(path, dir, program, entries), nil
}

// readEntries reads the entries of an object. One that no program knows is
// skipped; of entries with one key the last counts.
func readEntries(r io.Reader, listers []Lister) (program string, out []Entry, err error) {
	dec := json.NewDecoder(r)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", nil, errors.Join(errors.New("not an object"), err)
	}
	found := map[string]Entry{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return "", nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return "", nil, err
		}
		key, _ := t.(string)
		delete(found, key)
		for _, l := range listers {
			if e, ok := l.Entry(key, raw); ok {
				program, found[key] = l.Program(), e
				break
			}
		}
	}
	if _, err := dec.Token(); err != nil {
		return "", nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return "", nil, errors.New("something after the index")
	}
	for _, e := range found {
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return a.Key < b.Key || a.Key == b.Key && a.ID < b.ID
	})
	return program, out, nil
}

// BaseName is filepath.Base for the paths of any system; a home may have moved.
func BaseName(path string) string {
	if path == "" {
		return ""
	}
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// Find returns the entry of a transcript by the name of its file, else by its
// id.
func (ix *Index) Find(name string, id session.ID) (Entry, bool) {
	i, ok := ix.byName[name]
	if !ok {
		i, ok = ix.byID[string(id)]
	}
	if !ok {
		stem, _, _ := ParseName(name)
		i, ok = ix.byID[stem]
	}
	if !ok {
		return Entry{}, false
	}
	ix.met[i] = true
	return ix.Entries[i], true
}

// Missing says how many sessions of the index have no transcript, and names one.
// ok is false if there are none.
func (ix *Index) Missing() (p Problem, ok bool) {
	n, one := 0, ""
	for i, e := range ix.Entries {
		if ix.met[i] {
			continue
		}
		name := cmp.Or(e.File, e.ID+Ext)
		if _, err := os.Stat(filepath.Join(ix.Dir, name)); err == nil {
			continue // not to be read, which was said
		}
		if n++; n == 1 {
			one = fmt.Sprintf("%s has no transcript (%s is not there)", cmp.Or(e.Key, e.ID), name)
		}
	}
	switch n {
	case 0:
		return p, false
	case 1:
	case 2:
		one += ", nor has 1 more session"
	default:
		one += fmt.Sprintf(", nor have %d more sessions", n-1)
	}
	return Problem{Path: ix.Path, What: one}, true
}

// Ext ends the names of transcripts.
const Ext = ".jsonl"

// ParseName reads the name of a transcript: the session's id, and why it is
// an archive, if it is one.
func ParseName(name string) (id, archive string, ok bool) {
	name = strings.TrimSuffix(name, ".zst")
	i := strings.LastIndex(name, Ext)
	if i <= 0 {
		return "", "", false
	}
	stem, rest := name[:i], name[i+len(Ext):]
	switch {
	case rest == "":
		if k := strings.Index(stem, ".checkpoint."); k > 0 {
			stem, archive = stem[:k], "checkpoint"
		}
	case strings.HasSuffix(rest, ".lock"), strings.HasSuffix(rest, ".tmp"), rest[0] != '.':
		return "", "", false
	case strings.HasPrefix(rest, ".imported-"), rest == ".migrated":
		archive = "migrated"
	default:
		archive, _, _ = strings.Cut(rest[1:], ".")
		if strings.HasPrefix(archive, "pre-doctor") {
			archive = "bak"
		}
		if !slices.Contains([]string{"deleted", "reset", "bak"}, archive) {
			return "", "", false
		}
	}
	if k := strings.Index(stem, "-topic-"); k > 0 {
		stem = stem[:k]
	}
	if k := strings.IndexByte(stem, '_'); k > 0 && strings.Contains(stem[:k], "T") {
		stem = stem[k+1:]
	}
	return stem, archive, true
}
