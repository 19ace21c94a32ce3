package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"goclaw/internal/sqlx"
	"goclaw/session"
)

// A database is three files: itself, its write-ahead log and the file for shared
// memory.
var suffixes = [...]string{"", "-wal", "-shm"}

// places is which files a store has open. What is written to a file that was
// since removed, renamed or replaced can be reached by nobody.
type places struct {
	paths [len(suffixes)]string
	infos [len(suffixes)]fs.FileInfo // nil: nothing is known of it
}

// look returns the files of the database path that there are.
func look(path string) (p places) {
	for i, suffix := range suffixes {
		p.paths[i] = path + suffix
		// Lstat: a link to where the file was moved does not bring along its
		// write-ahead log.
		p.infos[i], _ = os.Lstat(p.paths[i])
	}
	return p
}

// check returns an error if one of the files is not where it was. The database
// must not be empty.
func (p *places) check() error {
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

// opened notes which files c, the first connection, has open. They are those
// that were there before and after it opened them.
func (d *database) opened(c *sqlx.Conn, before places) error {
	if d.readOnly {
		return nil
	}
	if _, err := c.Int("SELECT count(*) FROM sqlite_schema"); err != nil && !unreadable(err) { // opens all
		return d.wrap(err)
	}
	d.places = look(d.path)
	return before.check()
}

// resolve returns the absolute path of the file that path leads to, which need
// not exist. SQLite keeps the write-ahead log next to that file.
func resolve(path string) (string, error) {
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

// walHeader is the size of a write-ahead log without pages.
const walHeader = 32

// orphaned returns an error if the database is missing or empty and its
// write-ahead log has pages. SQLite would remove the log, and with it records
// that were acknowledged.
func (d *database) orphaned() error {
	wal := d.logSize()
	if wal <= walHeader {
		return nil
	}
	// Another process may just have created both: look again.
	what := "is missing"
	switch st, err := os.Stat(d.path); {
	case err == nil && st.Size() > 0:
		return nil
	case err == nil:
		what = "is empty"
	case !errors.Is(err, fs.ErrNotExist):
		return nil // the caller reports it
	}
	return fmt.Errorf("sqlite: %s %s, but %s-wal has %d bytes of records: nothing was changed; move the database back, "+
		"or goclaw doctor %s --repair-to NEW saves what the -wal file has; with that file moved away an empty store begins", d.path, what, d.path, wal, d.path)
}
