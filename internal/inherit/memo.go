package inherit

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Memo remembers how far each source was imported, so that the next import reads
// only what is new. It is a projection: without it every source is read and
// compared with its log again, with the same result. It never claims more than
// the store has.
type Memo struct {
	path  string
	mu    sync.Mutex
	data  memoData
	dirt  bool
	given bool        // Given was changed here
	seen  source.Stat // of the file, when it was read or written last
}

type memoData struct {
	Version  int                  `json:"version"`
	Search   string               `json:"search,omitempty"` // how far the import of all known places is
	Indices  map[string]memoIndex `json:"indices"`
	Files    map[string]memoFile  `json:"files"`
	Imported map[string]imported  `json:"taken"` // by Transcript.Ref
	// Given are the paths that the user asked for, and the program that was
	// said to have written them; "": it was found out.
	Given map[string]string `json:"given,omitempty"`
	// Told are the troubles that the user was told of, by path.
	Told map[string]string `json:"told,omitempty"`
}

type memoIndex struct {
	Stat    source.Stat    `json:"s"`
	Program string         `json:"p,omitempty"`
	Claw0   bool           `json:"c,omitempty"` // what was written before there was Program
	Entries []source.Entry `json:"e"`
}

// program is the one that wrote the index.
func (m memoIndex) program() string {
	if m.Claw0 {
		return Claw0
	}
	return m.Program
}

type memoFile struct {
	Stat    source.Stat    `json:"s"`
	Sniff   source.Sniffed `json:"w"`
	Version int            `json:"v,omitempty"` // sniffVersion, when it was remembered
}

// sniffVersion grows when the first lines of files tell more than they did.
const sniffVersion = 1

// imported is how far a transcript was imported.
type imported struct {
	Log    session.ID      `json:"id"`
	Stat   source.Stat     `json:"s"`
	Pos    source.Position `json:"p"`
	Last   session.Seq     `json:"last"` // of the log, when Pos was reached
	Title  string          `json:"t,omitempty"`
	Copy   bool            `json:"copy,omitempty"` // the log is another source's, which has all of it
	Strict bool            `json:"strict,omitempty"`
	Damage int             `json:"damage,omitempty"`
}

const memoVersion = 2

// How far the first import of everything is.
const (
	begun    = "begun"
	finished = "finished"
)

// NewMemo returns an empty memo that is saved at path, or nowhere.
func NewMemo(path string) *Memo {
	m := &Memo{path: path}
	m.data = memoData{Version: memoVersion, Indices: map[string]memoIndex{}, Files: map[string]memoFile{}, Imported: map[string]imported{}}
	return m
}

// OpenMemo reads the memo at path. One that is not there, or cannot be read,
// is empty.
func OpenMemo(path string) (*Memo, error) {
	m := NewMemo(path)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		m.dirt = true
		return m, nil
	}
	d, ok, err := m.file()
	if err != nil {
		return nil, err
	}
	if ok {
		m.data = d
	}
	return m, nil
}

// maxMemo is how large the file of a Memo may be: it has a line or two for each
// file that was imported.
const maxMemo = 256 << 20

// file reads the file, if it has changed since it was read or written last.
func (m *Memo) file() (d memoData, ok bool, err error) {
	fi, err := os.Stat(m.path)
	if m.path == "" || errors.Is(err, fs.ErrNotExist) || err == nil && source.StatOf(fi) == m.seen {
		return d, false, nil
	}
	var data []byte
	if err == nil {
		data, err = wholefile.Read(m.path, maxMemo)
	}
	if err != nil {
		return d, false, err
	}
	m.seen = source.StatOf(fi)
	ok = json.Unmarshal(data, &d) == nil && d.Version == memoVersion && d.Indices != nil && d.Files != nil && d.Imported != nil
	return d, ok, nil
}

// refresh reads what another process has remembered meanwhile. Only one process
// may import at a time.
func (m *Memo) refresh() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok, err := m.file()
	if err != nil || !ok {
		return err
	}
	maps.Copy(d.Files, m.data.Files)
	maps.Copy(d.Indices, m.data.Indices)
	if m.data.Search == begun && d.Search == "" {
		d.Search = begun
	}
	if m.given {
		d.Given = m.data.Given
	}
	d.Told = m.data.Told
	m.data = d
	return nil
}

// Begin remembers at once that the import of all known places has begun, so that
// the next start continues it if this one is killed before Finish.
func (m *Memo) Begin() error {
	m.search(begun)
	return m.save()
}

// Finish remembers that all known places were imported.
func (m *Memo) Finish() error {
	m.search(finished)
	return m.save()
}

// Begun reports whether the import of all known places has begun.
func (m *Memo) Begun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Search != ""
}

// Finished reports whether all known places were imported, according to the memo
// at path. It reads only the beginning of the file.
func Finished(path string) bool {
	f, err := wholefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	dec := json.NewDecoder(io.LimitReader(f, 512))
	for want := range slices.Values([]json.Token{json.Delim('{'), "version", float64(memoVersion), "search", finished}) {
		if t, err := dec.Token(); err != nil || t != want {
			return false
		}
	}
	return true
}

func (m *Memo) search(how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data.Search != how && m.data.Search != finished {
		m.data.Search, m.dirt = how, true
	}
}

// save writes the memo, whole or not at all.
func (m *Memo) save() error {
	m.mu.Lock()
	if m.path == "" || !m.dirt {
		m.mu.Unlock()
		return nil
	}
	data, err := json.Marshal(m.data)
	m.dirt = false
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if err := wholefile.Write(m.path, data); err != nil {
		return err
	}
	if fi, err := os.Stat(m.path); err == nil {
		m.mu.Lock()
		m.seen = source.StatOf(fi)
		m.mu.Unlock()
	}
	return nil
}

// Give remembers that the user asked for what is in paths, which from has
// written ("": any program): it is followed from now on.
func (m *Memo) Give(paths []string, from string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if have, ok := m.data.Given[source.Text(abs)]; err != nil || ok && have == from {
			continue
		}
		if m.data.Given == nil {
			m.data.Given = map[string]string{}
		}
		m.data.Given[source.Text(abs)] = from
		m.given, m.dirt = true, true
	}
}

// Root is a place that is followed.
type Root struct{ Path, From string }

// Roots returns what is followed: what was given, and those of places, where
// programs keep their sessions, in which something was imported before there was
// Give. What nobody asked for is not among them.
func (m *Memo) Roots(places []string) (out []Root) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(m.data.Given)) {
		path, ok := source.FromText(p)
		if !ok {
			path = p
		}
		out = append(out, Root{path, m.data.Given[p]})
	}
	for _, p := range places {
		if _, ok := m.data.Given[source.Text(p)]; ok {
			continue
		}
		for ref := range m.data.Imported {
			rest, ok := strings.CutPrefix(ref, source.Text(p))
			if ok && (rest == "" || rest[0] == filepath.Separator || rest[0] == '#') && !strings.HasSuffix(ref, strictRef) {
				out = append(out, Root{Path: p})
				break
			}
		}
	}
	return out
}

// Troubles says which roots are gone or cannot be read, once for each trouble.
// What was imported from them stays.
func (m *Memo) Troubles(roots []Root) (out []string) {
	m.mu.Lock()
	for _, r := range roots {
		why := ""
		f, err := os.Open(r.Path)
		switch {
		case err == nil:
			f.Close()
		case errors.Is(err, fs.ErrNotExist):
			why = r.Path + " is gone: what was imported from it stays"
		default:
			why = "what is written in " + r.Path + " is not imported: " + source.Unreadable(r.Path, err).What
		}
		path := source.Text(r.Path)
		if m.data.Told[path] == why {
			continue
		}
		if m.data.Told == nil {
			m.data.Told = map[string]string{}
		}
		m.data.Told[path], m.dirt = why, true
		if why == "" {
			delete(m.data.Told, path)
		} else {
			out = append(out, why)
		}
	}
	m.mu.Unlock()
	_ = m.save() // else the user is told again
	return out
}

// settled reports whether all of c was imported, as far as the memo knows, and
// nothing has changed since.
func (m *Memo) settled(c *Catalogue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.dirt && !slices.ContainsFunc(c.Transcripts, func(t *Transcript) bool {
		have, ok := m.data.Imported[t.Ref()]
		return !ok || have.Stat != t.Stat || t.Title != "" && t.Title != have.Title && !have.Copy
	})
}

func (m *Memo) sniffed(path string, st source.Stat) (source.Sniffed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.data.Files[source.Text(path)]
	return f.Sniff, ok && f.Stat == st && f.Version == sniffVersion
}

func (m *Memo) setSniffed(path string, st source.Stat, s source.Sniffed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Files[source.Text(path)] = memoFile{st, s, sniffVersion}
	m.dirt = true
}

func (m *Memo) index(path string) (memoIndex, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.data.Indices[source.Text(path)]
	return i, ok
}

func (m *Memo) setIndex(path string, i memoIndex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Indices[source.Text(path)] = i
	m.dirt = true
}

func (m *Memo) imported(ref string) (imported, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.data.Imported[ref]
	return t, ok
}

func (m *Memo) setImported(ref string, t imported) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Imported[ref] = t
	m.dirt = true
}
