package inherit

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Owner returns the program that keeps its sessions in dir, or "" if no other
// than goclaw does, and the folder of all its sessions: for one that is inside
// of agents/<agent>, the folder that agents is in.
func Owner(dir string) (program, root string) {
	seg := strings.Split(filepath.ToSlash(filepath.Clean(dir)), "/")
	for i := len(seg) - 2; i > 0; i-- {
		if seg[i] == "agents" && (i+2 == len(seg) || seg[i+2] == "sessions" || seg[i+2] == "agent") {
			root = filepath.FromSlash(strings.Join(seg[:i], "/"))
			if p, _ := Owner(root); p != "" {
				return p, root
			}
			return OpenClaw, root // a folder that it is going to have
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "openclaw.json")); err == nil {
		return OpenClaw, dir
	}
	// A store of goclaw's own has a folder for what is not a log. What it holds
	// is goclaw's, unless one of the first logs says otherwise.
	_, err := os.Stat(filepath.Join(dir, ".goclaw"))
	return ownerOf(dir, err == nil), dir
}

// How many files are looked at before a folder is nobody else's.
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
	depth := strings.Count(filepath.Clean(dir), string(filepath.Separator))
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read cannot be written to, either
		case e.IsDir() && (beside[e.Name()] || strings.Count(path, string(filepath.Separator)) > depth+4):
			return filepath.SkipDir
		case e.IsDir() || !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ext):
			return nil
		}
		if look--; look < 0 {
			return filepath.SkipAll
		}
		if program = writerOf(path, own); program != "" {
			return filepath.SkipAll
		}
		return nil
	})
	return program
}

// writerOf returns the program that wrote a transcript, or "" if it may be
// goclaw. Whose a file without a header is, nobody knows; in a store of goclaw's
// own, files in claw0's form are its own.
func writerOf(path string, own bool) string {
	t := &Transcript{Path: path}
	r, err := t.open()
	if err != nil {
		return ""
	}
	defer r.Close()
	s, err := sniff(r)
	switch {
	case err != nil || s.Form == "" || s.Program == Goclaw, own && (s.Program == Claw0 || s.Version == 0):
		return ""
	case s.Program != "":
		return s.Program
	case piName.MatchString(filepath.Base(path)):
		return Pi
	}
	return OpenClaw
}

// goclawID is what a database of goclaw's own has as its application_id.
const goclawID = 0x676f636c

// DatabaseOwner returns whose database is at path, and how many sessions it has,
// without touching it: OpenClaw, EarlierGoclaw, or "another program". It is ""
// for one of goclaw's own, for one that is empty, and for what is no database.
func DatabaseOwner(path string) (program string, n int) {
	head := make([]byte, 72)
	f, err := OpenFile(path)
	if err != nil {
		return "", 0
	}
	_, err = f.ReadAt(head, 0)
	f.Close()
	if err != nil || !strings.HasPrefix(string(head), magic) || binary.BigEndian.Uint32(head[68:]) == goclawID {
		return "", 0
	}
	d, err := openDatabase(path)
	if err != nil {
		return "", 0
	}
	defer d.close()
	id := int64(0)
	err = d.each("PRAGMA application_id", nil, func(s *sqlite3.Stmt) error { id = s.ColumnInt64(0); return nil })
	if err != nil || id == goclawID || len(d.tables) == 0 && id == 0 {
		return "", 0
	}
	var list []*Transcript
	program = "another program"
	if _, ok := d.earlier(); ok {
		program = EarlierGoclaw
		list, err = d.earlierSessions()
	} else if d.tables["transcript_events"] {
		program = OpenClaw
		list, err = d.list()
	}
	if err != nil {
		return program, 0
	}
	return program, len(list)
}
