package recall

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"goclaw/internal/memoryfiles"
	"goclaw/session"
)

// What is indexed of one memory file, and of all of them: it is held in
// memory.
const (
	maxFile   = 4 << 20 // bytes
	maxMemory = 32 << 20
)

// file is a memory file as it was when it was read.
type file struct {
	path   string // below the workspace, with slashes
	info   fs.FileInfo
	sum    [32]byte // of what was read
	young  bool     // it was written so shortly before that its time tells nothing
	dated  bool     // its name is a date, which is its time
	flaw   string   // what of it is not indexed
	notes  []note
	hashes [][16]byte
	seg    *segment
}

// memory is the memory files of a workspace. All of it is held in memory and
// looked at anew by every search: only files that have changed are read.
type memory struct {
	files map[string]*file
	order []*file // by path; the group of a doc is its file's place here
	flaws []string
	codes map[[16]byte]floats
	ready bool

	private func(path string) bool                        // nil: nothing is
	read    func(tree fs.FS, name string) ([]byte, error) // nil: readFile
}

// young is how long ago a file must have been written for its time to tell
// whether it was written since: clocks of file systems tick slowly.
const young = 2 * time.Second

// sync reads what has changed, and reports whether anything has. see, if
// there is one, is shown the folders that may change it.
func (m *memory) sync(root string, more []string, see func(dir string, names ...string)) (bool, error) {
	if see == nil {
		see = func(string, ...string) {}
	}
	w := walk{root: root, see: see, found: map[string]fs.FileInfo{}, links: map[string]bool{}}
	if w.above() {
		dir, err := os.OpenRoot(root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, err
		default:
			defer dir.Close()
			w.tree = dir.FS()
			w.all(more)
			w.once()
		}
	}
	changed := !m.ready
	for name := range m.files {
		if w.found[name] == nil {
			delete(m.files, name)
			changed = true
		}
	}
	names := make([]string, 0, len(w.found))
	for name := range w.found {
		names = append(names, name)
	}
	slices.Sort(names)
	room, left := int64(maxMemory), 0
	for _, name := range names {
		in := w.found[name]
		if room -= min(in.Size(), maxFile); room < 0 {
			left++
			if m.files[name] != nil {
				delete(m.files, name)
				changed = true
			}
			continue
		}
		got, err := m.file(w, name, in)
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone again
			got = nil
		case err != nil:
			w.flaw(name, err)
			got = nil
		}
		if got == m.files[name] {
			continue
		}
		changed = true
		if got == nil {
			delete(m.files, name)
			continue
		}
		if m.files == nil {
			m.files = map[string]*file{}
		}
		m.files[name] = got
	}
	if changed {
		m.arrange()
	}
	for _, f := range m.order {
		if f.flaw != "" {
			w.flaws = append(w.flaws, f.path+" "+f.flaw)
		}
	}
	if left > 0 {
		w.flaws = append(w.flaws, fmt.Sprintf("%d memory files were not read: there are more than %d MB of them", left, maxMemory>>20))
	}
	m.flaws, m.ready = w.flaws, true
	return changed, nil
}

var errPrivate = errors.New("it is private to the program")

// file returns the file name as it is now: the one that is known, if it has
// not changed.
func (m *memory) file(w walk, name string, in fs.FileInfo) (*file, error) {
	f := m.files[name]
	same := f != nil && f.info.Size() == in.Size() && f.info.ModTime().Equal(in.ModTime()) && os.SameFile(f.info, in)
	if same && !f.young {
		return f, nil
	}
	if m.private != nil && m.private(w.abs(name)) {
		return nil, errPrivate
	}
	read := m.read
	if read == nil {
		read = readFile
	}
	// The time of the files is the system's.
	isYoung := time.Since(in.ModTime()).Abs() < young
	data, err := read(w.tree, name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); f != nil && f.sum == sum && (f.dated || f.info.ModTime().Equal(in.ModTime())) {
		f.info, f.young = in, isYoung
		return f, nil
	}
	f = index(name, in, data)
	f.young = isYoung
	return f, nil
}

// readFile reads as much of a file as is indexed.
func readFile(tree fs.FS, name string) ([]byte, error) {
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// whole cuts off the line that a file was cut in.
func whole(data []byte, size int64) []byte {
	if int64(len(data)) < size {
		if i := bytes.LastIndexByte(data, '\n'); i > len(data)/2 {
			return data[:i+1]
		}
	}
	return data
}

// index makes what is searched of a file.
func index(name string, in fs.FileInfo, data []byte) *file {
	f := &file{path: name, info: in, sum: sha256.Sum256(data)}
	at := in.ModTime()
	if day, ok := memoryfiles.Day(name); ok {
		at, f.dated = day, true
	}
	text, ok := textOf(whole(data, in.Size()))
	switch {
	case !ok:
		f.flaw = "was not read: it is no text"
	case int64(len(data)) < in.Size() && len(data) == maxFile:
		f.flaw = fmt.Sprintf("was read in part: the first %d of %d MB", maxFile>>20, in.Size()>>20)
	}
	f.notes = splitNotes(text)
	b := newBuilder()
	for _, n := range f.notes {
		b.add(0, said{seq: session.Seq(n.line), role: User, speaker: n.subject(), at: at, text: n.text})
		sum := sha256.Sum256([]byte(n.text))
		f.hashes = append(f.hashes, [16]byte(sum[:16]))
	}
	f.seg = pack(b)
	return f
}

// pack makes a segment that takes little room: most files are small, and
// there may be many.
func pack(b *builder) *segment {
	var data []byte
	terms := slices.Sorted(maps.Keys(b.lex.terms))
	at := make([]uint32, 0, len(terms)+1)
	for _, t := range terms {
		at = append(at, uint32(len(data)))
		data = append(binary.AppendUvarint(data, uint64(len(t))), t...)
		data = b.lex.terms[t].append(data)
	}
	at = append(at, uint32(len(data)))
	data = slices.Clip(data)
	entry := func(i int) (term string, list []byte) {
		e := data[at[i]:at[i+1]]
		n, size := binary.Uvarint(e)
		e = e[size:]
		return string(e[:n]), e[n:]
	}
	return &segment{docs: slices.Clip(b.docs), words: b.words, postings: func(t string) ([]byte, error) {
		i := sort.Search(len(at)-1, func(i int) bool { e, _ := entry(i); return e >= t })
		if i < len(at)-1 {
			if e, list := entry(i); e == t {
				return list, nil
			}
		}
		return nil, nil
	}}
}

// arrange puts the files into their order.
func (m *memory) arrange() {
	m.order = m.order[:0:0]
	for _, f := range m.files {
		m.order = append(m.order, f)
	}
	slices.SortFunc(m.order, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	for g, f := range m.order {
		for i := range f.seg.docs {
			f.seg.docs[i].group = uint32(g)
		}
	}
}

// segments are those of all files, in their order.
func (m *memory) segments() []*segment {
	out := make([]*segment, len(m.order))
	for i, f := range m.order {
		out[i] = f.seg
	}
	return out
}

// maxFlaws is how many files are named that are missing.
const maxFlaws = 4

// incomplete says, in sentences, what is not indexed.
func (m *memory) incomplete() []string {
	if n := len(m.flaws) - maxFlaws; n > 0 {
		return append(slices.Clone(m.flaws[:maxFlaws]), fmt.Sprintf("%d more memory files were not read, or in part", n))
	}
	return m.flaws
}

// hit reports whether note i of a file is found as such: a heading is only
// where nothing stands below it, else what stands there is found by it.
func (f *file) hit(i int) bool {
	return !f.notes[i].isHeading || i+1 == len(f.notes) || f.notes[i+1].isHeading
}

// since reports whether a doc of f is of a time, or of a later one. A file of
// a day is so if any of that day is.
func (f *file) since(d doc, t time.Time) bool {
	if f.dated {
		t = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	}
	return d.time >= t.Unix()
}

// walk finds memory files. What is hidden is none, and what lies outside the
// workspace is none either, also if a link leads there.
type walk struct {
	root  string
	tree  fs.FS // of root
	see   func(dir string, names ...string)
	found map[string]fs.FileInfo
	links map[string]bool // of those found, what a link leads to
	dirs  []fs.FileInfo   // that were entered
	flaws []string
}

// above shows the folder that tells when the workspace comes, and reports
// whether it is there.
func (w *walk) above() bool {
	for {
		if _, err := os.Stat(w.root); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		dir := w.root
		for {
			up := filepath.Dir(dir)
			if up == dir {
				return false
			}
			if _, err := os.Stat(up); err == nil {
				w.see(up, filepath.Base(dir))
				break
			}
			dir = up
		}
		if _, err := os.Stat(dir); err != nil {
			return false
		}
		// It has come before it was shown.
	}
}

// all walks through MEMORY.md, memory/ and more.
func (w *walk) all(more []string) {
	w.path(memoryfiles.Main, false)
	w.path(memoryfiles.Dir, false)
	for _, p := range more {
		if rel, err := filepath.Rel(w.root, p); err == nil && filepath.IsAbs(p) {
			p = rel
		}
		p = path.Clean(filepath.ToSlash(p))
		if !fs.ValidPath(p) {
			w.flaws = append(w.flaws, p+" was not read: it lies outside the workspace")
			continue
		}
		w.path(p, true)
	}
}

// path walks through p. named says that it is asked for whatever its name is.
func (w *walk) path(p string, named bool) {
	for i := 0; p != "." && i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		w.see(w.abs(path.Dir(p[:i])), path.Base(p[:i]))
		if i < len(p) {
			if _, err := fs.Stat(w.tree, p[:i]); err != nil {
				break
			}
		}
	}
	in, err := os.Lstat(w.abs(p))
	w.entry(p, named, err == nil && in.Mode()&fs.ModeSymlink != 0)
}

func (w *walk) abs(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

// entry takes a file, or what is in a folder.
func (w *walk) entry(name string, named, link bool) {
	wanted := named || memoryfiles.IsText(name)
	in, err := fs.Stat(w.tree, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		out, e := os.Stat(w.abs(name))
		switch {
		case errors.Is(e, fs.ErrNotExist): // a link to nothing
		case e == nil && (wanted || out.IsDir()):
			w.flaws = append(w.flaws, name+" was not read: it is a link that leads out of the workspace")
		case wanted:
			w.flaw(name, err)
		}
	case in.IsDir():
		w.dir(name, in, link)
	case wanted && in.Mode().IsRegular():
		w.find(name, in, link)
	}
}

func (w *walk) find(name string, in fs.FileInfo, link bool) {
	if w.found[name] = in; link {
		w.links[name] = true
	}
}

// once drops what a link leads to and is found without it, or by the link
// before.
func (w *walk) once() {
	type looks struct { // of one file: the same
		size int64
		time time.Time
	}
	if len(w.links) == 0 {
		return
	}
	alike := map[looks][]fs.FileInfo{}
	of := func(in fs.FileInfo) looks { return looks{in.Size(), in.ModTime()} }
	for name, in := range w.found {
		if !w.links[name] {
			alike[of(in)] = append(alike[of(in)], in)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.links)) {
		in := w.found[name]
		if slices.ContainsFunc(alike[of(in)], func(o fs.FileInfo) bool { return os.SameFile(o, in) }) {
			delete(w.found, name)
		}
		alike[of(in)] = append(alike[of(in)], in)
	}
}

// dir takes what is in a folder. One that a link leads to is entered once.
func (w *walk) dir(name string, in fs.FileInfo, linked bool) {
	if linked && slices.ContainsFunc(w.dirs, func(d fs.FileInfo) bool { return os.SameFile(d, in) }) {
		return
	}
	w.dirs = append(w.dirs, in)
	w.see(w.abs(name))
	entries, err := fs.ReadDir(w.tree, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.flaw(name, err)
	}
	for _, e := range entries {
		n, link := e.Name(), e.Type()&fs.ModeSymlink != 0
		switch {
		case strings.HasPrefix(n, ".") || n == "node_modules":
		case e.Type().IsRegular() && memoryfiles.IsText(n): // there are many of these
			if in, err := e.Info(); err == nil {
				w.find(path.Join(name, n), in, linked)
			}
		case e.IsDir() || link:
			w.entry(path.Join(name, n), false, link || linked)
		}
	}
}

// flaw notes what cannot be read.
func (w *walk) flaw(name string, err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	w.flaws = append(w.flaws, fmt.Sprintf("%s cannot be read: %v", name, err))
}
