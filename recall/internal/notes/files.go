// Package notes reads the memory files of a workspace: it finds them, splits
// them into notes, and keeps up with changes.
package notes

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/internal/memoryfiles"
	"goclaw/internal/text"
	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/vectors"
	"goclaw/recall/internal/words"
)

// What is indexed of one memory file, and of all of them: it is held in
// memory.
const (
	MaxFile   = 4 << 20 // bytes
	maxMemory = 32 << 20
)

// File is a memory file as it was when it was read.
type File struct {
	Path   string // as it is shown, with slashes: below the workspace, or below the name of another folder
	Notes  []Note
	Hashes []vectors.Hash // of the notes
	Seg    *postings.Segment
	Dated  bool // it is named after a day, which is its time

	in    *Folder
	name  string // below it
	info  fs.FileInfo
	sum   [32]byte // of what was read
	young bool     // it was written so recently that its time tells nothing
	flaw  string   // what of it is not indexed
}

// Folder is a workspace with memory files.
type Folder struct {
	Root string   // where it is
	Name string   // what the names of its files begin with: "", or one that ends in a slash
	More []string // files and folders beside those that every workspace has
}

// Files are the memory files of our workspace, which is the first folder, and
// of others. All of them are held in memory and looked at by every search: only
// files that have changed are read. They are for one goroutine at a time.
type Files struct {
	Folders []Folder
	Private func(path string) bool // reports whether a file must not be read; nil: none

	All  []*File                                       // by path; the group of a doc is its file's place here
	Read func(tree fs.FS, name string) ([]byte, error) // nil: ReadFile

	files map[string]*File
	flaws []string
	ready bool
}

// young is how long ago a file must have been written for its time to tell
// whether it was written since: clocks of file systems tick slowly.
const young = 2 * time.Second

// Sync reads what has changed. see, if it is not nil, is shown the folders in
// which a change matters.
func (m *Files) Sync(see func(dir string, names ...string)) error {
	changed := !m.ready
	room, left := int64(maxMemory), 0
	now := map[string]*File{}
	var flaws []string
	for i := range m.Folders {
		w, err := m.Folders[i].walk(see)
		if err != nil && i == 0 {
			return err
		}
		if err != nil { // the others are not our own
			w.flaw("", err)
		}
		for _, name := range slices.Sorted(maps.Keys(w.found)) {
			in := w.found[name]
			if room -= min(in.Size(), MaxFile); room < 0 {
				left++
				continue
			}
			f, err := m.file(w, name, in)
			switch {
			case errors.Is(err, fs.ErrNotExist): // gone again
			case err != nil:
				w.flaw(name, err)
			default:
				now[f.Path] = f
			}
		}
		flaws = append(flaws, w.flaws...)
	}
	if changed || !maps.Equal(now, m.files) {
		m.files = now
		m.arrange()
	}
	for _, f := range m.All {
		if f.flaw != "" {
			flaws = append(flaws, f.Path+" "+f.flaw)
		}
	}
	if left > 0 {
		flaws = append(flaws, fmt.Sprintf("%d memory files were not read: there are more than %d MB of them", left, maxMemory>>20))
	}
	m.flaws, m.ready = flaws, true
	return nil
}

// walk finds the memory files that there are in a folder.
func (d *Folder) walk(see func(dir string, names ...string)) (*walk, error) {
	if see == nil {
		see = func(string, ...string) {}
	}
	w := &walk{in: d, see: see, found: map[string]fs.FileInfo{}, links: map[string]bool{}}
	if !w.above() {
		return w, nil
	}
	dir, err := os.OpenRoot(d.Root)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return w, err
	}
	defer dir.Close()
	w.tree = dir.FS()
	w.all()
	w.unlink()
	return w, nil
}

var errPrivate = errors.New("it is private to the program")

// file returns the file name as it is now: the known one if it has not
// changed.
func (m *Files) file(w *walk, name string, in fs.FileInfo) (*File, error) {
	f := m.files[w.in.Name+name]
	same := f != nil && f.info.Size() == in.Size() && f.info.ModTime().Equal(in.ModTime()) && os.SameFile(f.info, in)
	if same && !f.young {
		return f, nil
	}
	if m.Private != nil && m.Private(w.abs(name)) {
		return nil, errPrivate
	}
	// The times of files are by the system's clock.
	isYoung := time.Since(in.ModTime()).Abs() < young
	data, err := m.read(w.in, name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); f != nil && f.sum == sum && (f.Dated || f.info.ModTime().Equal(in.ModTime())) {
		f.info, f.young = in, isYoung
		return f, nil
	}
	f = index(w.in.Name+name, in, data)
	f.in, f.name, f.young = w.in, name, isYoung
	return f, nil
}

// read reads a file of a folder. It does not leave the folder.
func (m *Files) read(in *Folder, name string) ([]byte, error) {
	root, err := os.OpenRoot(in.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if m.Read != nil {
		return m.Read(root.FS(), name)
	}
	return ReadFile(root.FS(), name)
}

// ReadFile reads as much of a file as is indexed.
func ReadFile(tree fs.FS, name string) ([]byte, error) {
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile))
}

// whole drops the line that a file of this size was cut in.
func whole(data []byte, size int64) []byte {
	if int64(len(data)) < size {
		if i := bytes.LastIndexByte(data, '\n'); i > len(data)/2 {
			return data[:i+1]
		}
	}
	return data
}

// index makes what is searched of a file.
func index(name string, in fs.FileInfo, data []byte) *File {
	f := &File{Path: name, info: in, sum: sha256.Sum256(data)}
	at := in.ModTime()
	if day, ok := memoryfiles.Day(name); ok {
		at, f.Dated = day, true
	}
	said, ok := textOf(whole(data, in.Size()))
	switch {
	case !ok:
		f.flaw = "was not read: it is not text"
	case int64(len(data)) < in.Size() && len(data) == MaxFile:
		f.flaw = fmt.Sprintf("was read in part: the first %s of %s", text.Bytes(MaxFile), text.Bytes(in.Size()))
	}
	f.Notes = split(said)
	about := subjects(f.Notes)
	var b postings.Builder
	for _, n := range f.Notes {
		d := postings.Doc{Seq: uint32(n.Line), Flags: postings.User}.At(at.Unix())
		if ends, mostly := words.Asks(n.Text); mostly {
			d.Flags |= postings.MostlyAsks
		} else if ends {
			d.Flags |= postings.Asks
		}
		if n.namesOthers(about) {
			d.Flags |= postings.Others
		}
		b.Add(d, n.Text, n.subject())
		sum := sha256.Sum256([]byte(n.Text))
		f.Hashes = append(f.Hashes, vectors.Hash(sum[:]))
	}
	f.Seg = b.Segment()
	return f
}

// arrange puts the files into their order.
func (m *Files) arrange() {
	m.All = slices.SortedFunc(maps.Values(m.files), func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	for g, f := range m.All {
		for i := range f.Seg.Docs {
			f.Seg.Docs[i].Group = uint32(g)
		}
	}
}

// Segments returns those of all files, in their order.
func (m *Files) Segments() []*postings.Segment {
	out := make([]*postings.Segment, len(m.All))
	for i, f := range m.All {
		out[i] = f.Seg
	}
	return out
}

// MaxFlaws is how many files are named that are missing.
const MaxFlaws = 4

// Incomplete says, in sentences, what is not indexed.
func (m *Files) Incomplete() []string {
	if n := len(m.flaws) - MaxFlaws; n > 0 {
		return append(slices.Clone(m.flaws[:MaxFlaws]), fmt.Sprintf("%d more memory files were not read, or in part", n))
	}
	return m.flaws
}

// IsHit reports whether note i of a file is found as such. A heading is found
// only if it has no text below it; otherwise that text is found.
func (f *File) IsHit(i int) bool {
	return !f.Notes[i].isHeading || i+1 == len(f.Notes) || f.Notes[i+1].isHeading
}

// Within reports whether note i of f is of a time from since on, and before
// until; a zero time sets no limit. A file of a day counts if any time of that
// day does.
func (f *File) Within(i int, since, until time.Time) bool {
	at := f.Seg.Docs[i].Time()
	if !since.IsZero() {
		if f.Dated {
			since = time.Date(since.Year(), since.Month(), since.Day(), 0, 0, 0, 0, time.UTC)
		}
		if at < since.Unix() {
			return false
		}
	}
	return until.IsZero() || at < until.Unix()
}

// Time returns the time of note i of f: a day in UTC, or when the file was
// written, in the given zone.
func (f *File) Time(i int, zone *time.Location) time.Time {
	at := time.Unix(f.Seg.Docs[i].Time(), 0).UTC()
	if f.Dated {
		return at
	}
	return at.In(zone)
}

// errOutside says that a path is no memory file.
var errOutside = errors.New("not a memory file")

// Lines returns lines of a memory file as it is now, from is 1 for the first,
// and how many lines it has. Only memory files can be read.
func (m *Files) Lines(name string, from, lines int) (text string, total int, err error) {
	if err := m.Sync(nil); err != nil {
		return "", 0, err
	}
	clean := path.Clean(filepath.ToSlash(name))
	f := m.files[clean]
	if f == nil {
		return "", 0, m.unknown(name, clean)
	}
	data, err := m.read(f.in, f.name)
	if err != nil {
		return "", 0, err
	}
	content, ok := textOf(whole(data, f.info.Size()))
	if !ok {
		return "", 0, fmt.Errorf("%s is not text", clean)
	}
	all := linesOf(content)
	from = max(from, 1)
	if from > max(len(all), 1) {
		if f.flaw != "" {
			return "", len(all), fmt.Errorf("%s has %d lines that were read; it %s", clean, len(all), f.flaw)
		}
		return "", len(all), fmt.Errorf("%s has %d lines", clean, len(all))
	}
	if lines <= 0 || lines > len(all)-from+1 {
		lines = len(all) - from + 1
	}
	return strings.Join(all[from-1:from-1+lines], "\n"), len(all), nil
}

// unknown says why there is no memory file of this name.
func (m *Files) unknown(name, clean string) error {
	for _, s := range m.flaws {
		if strings.HasPrefix(s, clean+" ") {
			return errors.New(s)
		}
	}
	hint := ""
	if n := len(m.All); n > 0 {
		var near []string
		for _, f := range m.All[max(0, n-8):] {
			near = append(near, f.Path)
		}
		hint = "; there are " + strings.Join(near, ", ")
	}
	return fmt.Errorf("%q is %w%s", name, errOutside, hint)
}
