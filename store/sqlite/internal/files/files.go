// Package files knows the files of an SQLite database on the disk: which there
// are, whether they can be written, and whether they are still those that were
// opened. It does not use SQLite.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"goclaw/internal/wholefile"
	"goclaw/session"
)

// Suffixes of the three files of a database: itself, its write-ahead log and the
// file for shared memory.
var Suffixes = [...]string{"", "-wal", "-shm"}

// LogHeader is the size of a write-ahead log without pages.
const LogHeader = 32

// LogSize returns the size of the write-ahead log of the database path, 0 if
// there is none.
func LogSize(path string) int64 {
	st, err := os.Stat(path + "-wal")
	if err != nil {
		return 0
	}
	return st.Size()
}

// Denied reports whether err means that there is no permission to write.
func Denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Prepare creates the files of the database path that are missing, because
// SQLite would create them with the mode that the umask allows. If there is no
// permission to write, denied says so. With readOnly it creates nothing.
func Prepare(path string, readOnly bool) (denied, err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		if err := orphaned(path); err != nil {
			return nil, err
		}
	}
	switch {
	case err == nil && st.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	case err == nil && !st.Mode().IsRegular(): // opening a FIFO would wait for ever
		return nil, fmt.Errorf("%s is not a file", path)
	case errors.Is(err, fs.ErrNotExist) && !readOnly:
		if err := wholefile.Mkdir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		return nil, Touch(path)
	case err != nil:
		return nil, err
	case st.Size() == 0 || readOnly: // an empty database has no log
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		f.Close()
		err = Side(path)
	}
	if Denied(err) {
		return err, nil
	}
	return nil, err
}

// Side creates the write-ahead log and the file for shared memory.
func Side(path string) error {
	return cmp.Or(Touch(path+"-wal"), Touch(path+"-shm"))
}

// Touch creates the file path if it is missing.
func Touch(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Places is which files a store has open. What is written to a file that was
// since removed, renamed or replaced can be reached by nobody.
type Places struct {
	paths [len(Suffixes)]string
	infos [len(Suffixes)]fs.FileInfo // nil: nothing is known of it
}

// Look returns the files of the database path that there are.
func Look(path string) (p Places) {
	for i, suffix := range Suffixes {
		p.paths[i] = path + suffix
		// Lstat: a link to where the file was moved does not bring along its
		// write-ahead log.
		p.infos[i], _ = os.Lstat(p.paths[i])
	}
	return p
}

// Check returns an error if one of the files is not where it was. The database
// must not be empty.
func (p *Places) Check() error {
	for i, was := range p.infos {
		if was == nil {
			continue
		}
		now, err := os.Lstat(p.paths[i])
		if err != nil || !os.SameFile(was, now) || i == 0 && now.Size() == 0 {
			return &session.MovedError{Path: p.paths[i]}
		}
	}
	return nil
}

// OnlyDatabase forgets the files beside the database.
func (p *Places) OnlyDatabase() { p.infos[1], p.infos[2] = nil, nil }

// Resolve returns the absolute path of the file that path leads to, which need
// not exist. SQLite keeps the write-ahead log next to that file.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil
}

// orphaned returns an error if the database is missing or empty and its
// write-ahead log has pages. SQLite would remove the log, and with it records
// that were acknowledged.
func orphaned(path string) error {
	wal := LogSize(path)
	if wal <= LogHeader {
		return nil
	}
	// Another process may just have created both: look again.
	what := "is missing"
	switch st, err := os.Stat(path); {
	case err == nil && st.Size() > 0:
		return nil
	case err == nil:
		what = "is empty"
	case !errors.Is(err, fs.ErrNotExist):
		return nil // the caller reports it
	}
	return fmt.Errorf("%s %s, but %s-wal has %d bytes of records: nothing was changed; move the database back, "+
		"or goclaw doctor %s --repair-to NEW saves what the -wal file has; with that file moved away an empty store begins", path, what, path, wal, path)
}
