package inherit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"goclaw/session"
)

// Memo remembers how far each source was taken, so that taking it again costs
// what is new. It is a projection: without it every source is read and held
// against its log again, with the same result. It never claims more than the
// store has.
type Memo struct {
	path string
	mu   sync.Mutex
	data memoData
	dirt bool
}

type memoData struct {
	Version int                  `json:"version"`
	Indices map[string]memoIndex `json:"indices"`
	Files   map[string]memoFile  `json:"files"`
	Taken   map[string]taken     `json:"taken"` // by Transcript.ref
}

type memoIndex struct {
	Stat    stat    `json:"s"`
	Claw0   bool    `json:"c,omitempty"`
	Entries []entry `json:"e"`
}

type memoFile struct {
	Stat  stat    `json:"s"`
	Sniff sniffed `json:"w"`
}

// taken is how far a transcript was taken.
type taken struct {
	Log    session.ID  `json:"id"`
	Stat   stat        `json:"s"`
	Pos    position    `json:"p"`
	Last   session.Seq `json:"last"` // of the log, when Pos was reached
	Title  string      `json:"t,omitempty"`
	Copy   bool        `json:"copy,omitempty"` // the log is another source's, which has all of it
	Strict bool        `json:"strict,omitempty"`
	Damage int         `json:"damage,omitempty"`
}

const memoVersion = 2

// NewMemo returns an empty memo that is saved at path, or nowhere.
func NewMemo(path string) *Memo {
	m := &Memo{path: path}
	m.data = memoData{Version: memoVersion, Indices: map[string]memoIndex{}, Files: map[string]memoFile{}, Taken: map[string]taken{}}
	return m
}

// OpenMemo reads the memo at path. One that is not there, or cannot be read,
// is empty.
func OpenMemo(path string) (*Memo, error) {
	m := NewMemo(path)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		m.dirt = true
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	var d memoData
	if json.Unmarshal(data, &d) == nil && d.Version == memoVersion && d.Indices != nil && d.Files != nil && d.Taken != nil {
		m.data = d
	}
	return m, nil
}

// Save writes the memo, whole or not at all.
func (m *Memo) Save() error {
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
	return replaceFile(m.path, data)
}

// replaceFile writes a file, whole or not at all.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func (m *Memo) sniffed(path string, st stat) (sniffed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.data.Files[path]
	return f.Sniff, ok && f.Stat == st
}

func (m *Memo) setSniffed(path string, st stat, s sniffed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Files[path] = memoFile{st, s}
	m.dirt = true
}

func (m *Memo) index(path string) (memoIndex, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.data.Indices[path]
	return i, ok
}

func (m *Memo) setIndex(path string, i memoIndex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Indices[path] = i
	m.dirt = true
}

func (m *Memo) taken(ref string) (taken, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.data.Taken[ref]
	return t, ok
}

func (m *Memo) setTaken(ref string, t taken) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.Taken[ref] = t
	m.dirt = true
}
