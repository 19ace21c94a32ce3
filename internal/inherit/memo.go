package inherit

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
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
	path string
	mu   sync.Mutex
	data memoData
	dirt bool
	seen source.Stat // of the file, when it was read or written last
}

type memoData struct {
	Version  int                  `json:"version"`
	Search   string               `json:"search,omitempty"` // how far the import of all known places is
	Indices  map[string]memoIndex `json:"indices"`
	Files    map[string]memoFile  `json:"files"`
	Imported map[string]imported  `json:"taken"` // by Transcript.Ref
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
