package inherit

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/inherit/source"
	"goclaw/internal/sqlx"
	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Owner returns the program that keeps its sessions in dir, or "" if no other
// than goclaw does, and the folder of all its sessions: for one that is inside
// of agents/<agent>, the folder that agents is in.
func Owner(dir string) (program, root string) {
	if state, ok := openclaw.StateOf(dir); ok {
		if p, _ := Owner(state); p != "" {
			return p, state
		}
		return OpenClaw, state // a folder that it is going to have
	}
	if _, err := os.Stat(filepath.Join(dir, openclaw.Config)); err == nil {
		return OpenClaw, dir
	}
	// A store of goclaw's own has a folder for what is not a log. What it holds
	// is goclaw's, unless one of the first logs says otherwise.
	_, err := os.Stat(filepath.Join(dir, ".goclaw"))
	return ownerOf(dir, err == nil), dir
}

// How many files are looked at to find out whose a folder is.
const (
	lookOwn   = 20
	lookOther = 500
)

// ownerOf returns the program whose transcripts are in dir.
func ownerOf(dir string, own bool) (program string) {
	look := lookOther
	if own {
		look = lookOwn
	}
	f := &finder{sources: newSources(nil), memo: NewMemo("")}
	depth := strings.Count(filepath.Clean(dir), string(filepath.Separator))
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read cannot be written to, either
		case e.IsDir() && (skipped[e.Name()] || strings.Count(path, string(filepath.Separator)) > depth+4):
			return filepath.SkipDir
		case e.IsDir() || !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), source.Ext):
			return nil
		}
		if look--; look < 0 {
			return filepath.SkipAll
		}
		if program = f.writer(path, own); program != "" {
			return filepath.SkipAll
		}
		return nil
	})
	return program
}

// writer returns the program that wrote a transcript, or "" if it may be goclaw.
// A file without a header may be anyone's; in a store of goclaw's own, files in
// claw0's form are its own.
func (f *finder) writer(path string, own bool) string {
	file := &source.File{Path: path, Problem: func(Problem) {}}
	id, archive, _ := source.ParseName(filepath.Base(path))
	file.ID, file.Archive = session.ID(source.Text(id)), archive
	var err error
	file.Sniffed, err = f.sniff(file)
	s := file.Sniffed
	if err != nil || s.Form == "" || s.Program == Goclaw || own && (s.Program == Claw0 || s.Version == 0) {
		return ""
	}
	if found, err := f.open(file); err == nil && len(found) > 0 {
		return found[0].Program
	}
	return s.Program
}

// MovedInto returns the database that OpenClaw has moved the sessions of its state
// folder into, and how many it has; "" if the folder still has them as files.
func MovedInto(state string) (database string, sessions int) {
	found, _ := filepath.Glob(filepath.Join(openclaw.GlobQuote(state), "agents", "*", "agent", "*.sqlite"))
	for _, path := range found {
		if program, n := DatabaseOwner(path); program == OpenClaw && n > 0 {
			if sessions += n; database == "" {
				database = path
			}
		}
	}
	return database, sessions
}

// goclawID is what a database of goclaw's own has as its application_id.
const goclawID = 0x676f636c

// DatabaseOwner returns whose database is at path, and how many sessions it has,
// without touching it: a program that is known, or "another program". It is ""
// for one of goclaw's own, for one that is empty, and for what is no database.
func DatabaseOwner(path string) (program string, n int) {
	head := make([]byte, 72)
	f, err := wholefile.Open(path)
	if err != nil {
		return "", 0
	}
	_, err = f.ReadAt(head, 0)
	f.Close()
	if err != nil || !source.IsDatabase(path) || binary.BigEndian.Uint32(head[68:]) == goclawID {
		return "", 0
	}
	d, err := source.OpenDatabase(path)
	if err != nil {
		return "", 0
	}
	defer d.Close()
	id := int64(0)
	err = d.Each("PRAGMA application_id", nil, func(s sqlx.Row) error { id = s.Int(0); return nil })
	if err != nil || id == goclawID || len(d.Tables) == 0 && id == 0 {
		return "", 0
	}
	find := &finder{sources: newSources(nil)}
	if found, err := find.open(&source.File{Path: path, DB: d}); err == nil && len(found) > 0 {
		return found[0].Program, len(found)
	}
	return "another program", 0
}
