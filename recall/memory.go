package recall

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// note is a piece of a memory file: a list item, a paragraph, a few lines of
// code, or a heading.
type note struct {
	line, lines int // the first one is 1
	heading     string
	isHeading   bool
	text        string
}

// maxNote is how many bytes a note has at most, unless one line is longer.
const maxNote = 1200

// maxFile is how many bytes of a memory file are indexed.
const maxFile = 8 << 20

var (
	headingLine = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*\s*$`)
	itemLine    = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,9}[.)])\s+`)
	fenceLine   = regexp.MustCompile("^\\s*(```|~~~)")
)

// splitNotes splits Markdown at headings, list items, empty lines and size.
func splitNotes(text string) []note {
	var out []note
	var headings [6]string
	var cur note
	var body []string
	size, fenced := 0, false
	end := func() {
		if t := strings.TrimSpace(strings.Join(body, "\n")); t != "" {
			cur.text, cur.lines = t, len(body)
			out = append(out, cur)
		}
		body, size = nil, 0
	}
	path := func() string {
		var p []string
		for _, h := range headings {
			if h != "" {
				p = append(p, h)
			}
		}
		return strings.Join(p, " > ")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if fenceLine.MatchString(line) {
			fenced = !fenced
		}
		if m := headingLine.FindStringSubmatch(line); m != nil && !fenced {
			end()
			headings[len(m[1])-1] = m[2]
			clear(headings[len(m[1]):])
			out = append(out, note{line: n, lines: 1, heading: path(), isHeading: true, text: m[2]})
			continue
		}
		switch {
		case strings.TrimSpace(line) == "" && !fenced:
			end()
			continue
		case itemLine.MatchString(line) && !fenced, size > 0 && size+len(line) > maxNote:
			end()
		}
		if len(body) == 0 {
			cur = note{line: n, heading: path()}
		}
		body = append(body, line)
		size += len(line) + 1
	}
	end()
	return out
}

// file is a memory file as it was when it was read.
type file struct {
	path   string // below the workspace, with slashes
	mod    time.Time
	size   int64
	notes  []note
	docs   []doc
	terms  []map[string]uint32
	hashes [][16]byte
}

// memory is the memory files of a workspace. All of it is held in memory and
// looked at anew by every search: only files that have changed are read.
type memory struct {
	files map[string]*file
	seg   *segment
	order []*file // by group
	at    []noteAt
	codes map[[16]byte]floats
}

// noteAt says which note a doc of the segment is.
type noteAt struct {
	file *file
	note int
}

var dateName = regexp.MustCompile(`(\d{4})-(\d{2})-(\d{2})`)

// sync reads what has changed, and reports whether anything has.
func (m *memory) sync(root string, more []string) (bool, error) {
	found := map[string]fs.FileInfo{}
	dir, err := os.OpenRoot(root)
	if os.IsNotExist(err) {
		changed := len(m.files) > 0
		m.files = nil
		m.build()
		return changed, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	tree := dir.FS()
	for _, p := range append([]string{"MEMORY.md", "memory"}, more...) {
		p = path.Clean(filepath.ToSlash(p))
		err := fs.WalkDir(tree, p, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // what cannot be looked at is not there
			}
			ext := strings.ToLower(path.Ext(name))
			if ext != ".md" && ext != ".markdown" && ext != ".txt" {
				return nil
			}
			if in, err := fs.Stat(tree, name); err == nil && in.Mode().IsRegular() {
				found[name] = in
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	changed := m.seg == nil
	for name := range m.files {
		if found[name] == nil {
			delete(m.files, name)
			changed = true
		}
	}
	for name, in := range found {
		if f := m.files[name]; f != nil && f.size == in.Size() && f.mod.Equal(in.ModTime()) {
			continue
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			continue // gone again
		}
		if m.files == nil {
			m.files = map[string]*file{}
		}
		m.files[name] = readNotes(name, in, data)
		changed = true
	}
	if changed {
		m.build()
	}
	return changed, nil
}

func readNotes(name string, in fs.FileInfo, data []byte) *file {
	f := &file{path: name, mod: in.ModTime(), size: in.Size()}
	if !utf8.Valid(data) {
		data = []byte(strings.ToValidUTF8(string(data), "�"))
	}
	at := f.mod
	if d := dateName.FindString(path.Base(name)); d != "" {
		if t, err := time.Parse(time.DateOnly, d); err == nil {
			at = t
		}
	}
	f.notes = splitNotes(string(data[:min(len(data), maxFile)]))
	var lex lexer
	for _, n := range f.notes {
		terms := map[string]uint32{}
		d := lex.digest(said{role: User, at: at, text: n.text}, func(t string, _ *sense) { terms[t]++ })
		d.seq = uint32(n.line)
		f.docs, f.terms = append(f.docs, d), append(f.terms, terms)
		sum := sha256.Sum256([]byte(n.text))
		f.hashes = append(f.hashes, [16]byte(sum[:16]))
	}
	return f
}

// build makes the segment of all files.
func (m *memory) build() {
	m.order, m.at = nil, nil
	for _, f := range m.files {
		m.order = append(m.order, f)
	}
	slices.SortFunc(m.order, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	b := newBuilder()
	for g, f := range m.order {
		for i, d := range f.docs {
			d.group = uint32(g)
			b.put(d, f.terms[i])
			m.at = append(m.at, noteAt{f, i})
		}
	}
	m.seg = b.segment()
}

// hit reports whether the note at i is found as such: a heading is only where
// nothing stands below it, else what stands there is found by it.
func (m *memory) hit(i int) bool {
	at := m.at[i]
	n := at.file.notes[at.note]
	if !n.isHeading {
		return true
	}
	return at.note+1 == len(at.file.notes) || at.file.notes[at.note+1].isHeading
}
