package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/pages"
	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/store/internal/space"
	"goclaw/store/sqlite/internal/files"
)

// database is the file of a Store and what is known of it.
type database struct {
	path     string
	readOnly bool
	denied   error  // why it is read-only although it was not opened so
	vfs      string // the SQLite VFS; "": the operating system
	free     func(dir string) (bytes int64, ok bool)
	syncDir  func(dir string) error // makes the names in a folder durable
	places   files.Places           // of a database that can be written
	still    bool                   // no process writes to it: SQLite reads it without shared memory
	older    int                    // its older schema, if it stays as it is; else 0
	cut      bool                   // it is damaged so that SQLite does not open it
	copied   func(path string)      // is told where a copy was made before SQLite drops records; nil: nobody
	doubted  func(err error)        // is told that it is damaged, and opened for reading; nil: nobody
}

// first opens the first connection and returns the version of the schema.
func (d *database) first() (c *sqlx.Conn, v int, err error) {
	if c, err = d.reader(); err != nil {
		return nil, 0, foreign(d.path, err)
	}
	// Another process may be creating it: version needs one snapshot.
	if err = c.Run("BEGIN"); err == nil {
		v, err = version(c, d.path)
		if err == nil && v > 0 {
			err = complete(c, d.path)
		}
		err = errors.Join(err, c.Run("ROLLBACK"))
	}
	if err != nil {
		c.Close()
	}
	return c, v, err
}

// byPage reports whether the database can only be read page by page.
func (d *database) byPage() bool { return d.cut || d.older != 0 }

// marked reports whether the header of the file is that of a database of
// goclaw's.
func (d *database) marked() bool {
	f, err := pages.Open(d.path)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Header != nil && binary.BigEndian.Uint32(f.Header[68:]) == appID
}

// prepare creates the files that are missing, and keeps what SQLite would drop.
func (d *database) prepare() error {
	denied, err := files.Prepare(d.path, d.readOnly)
	if denied != nil {
		d.readOnly, d.denied, d.vfs = true, denied, readVFS
	}
	if err == nil && !d.readOnly {
		var kept string
		if kept, err = files.KeepLog(d.path, d.syncDir); kept != "" && err == nil && d.copied != nil {
			d.copied(kept)
		}
	}
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// opened notes which files c, the first connection, has open. They are those
// that were there before and after it opened them.
func (d *database) opened(c *sqlx.Conn, before files.Places) error {
	if d.readOnly {
		return nil
	}
	if _, err := c.Int("SELECT count(*) FROM sqlite_schema"); err != nil && !unreadable(err) { // opens all
		return d.wrap(err)
	}
	d.places = files.Look(d.path)
	return before.Check()
}

// create sets the journal mode, creates the tables or brings them up to date, and
// syncs the folder.
func (d *database) create(c *sqlx.Conn) error {
	// Other processes may be doing the same, and SQLite does not wait here.
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		mode, err := c.Text("PRAGMA journal_mode = WAL")
		if err == nil && mode == "wal" {
			break
		}
		if err == nil {
			return fmt.Errorf("sqlite: %s cannot have a write-ahead log (its journal is %q): is it on a network drive?", d.path, mode)
		}
		if !errors.Is(err, sqlite3.BUSY) || time.Since(begin) > maxWait {
			return foreign(d.path, err)
		}
	}
	if err := files.Side(d.path); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if err := migrate(c, d.path); err != nil {
		return err
	}
	return d.named()
}

// named makes the names of the files durable. SQLite leaves it to its VFS to do
// so for the write-ahead log, and the driver's syncs the log instead.
func (d *database) named() error {
	if err := d.syncDir(filepath.Dir(d.path)); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// pragmas are set on every connection.
const pragmas = "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 33554432; PRAGMA wal_autocheckpoint = 0"

// reader opens a connection for reading.
func (d *database) reader() (*sqlx.Conn, error) {
	flags := sqlite3.OPEN_READWRITE
	if d.readOnly {
		flags = sqlite3.OPEN_READONLY
	}
	return d.dial(flags, pragmas+"; PRAGMA cache_size = -4000")
}

func (d *database) dial(flags sqlite3.OpenFlag, pragmas string) (*sqlx.Conn, error) {
	q := url.Values{}
	if d.vfs != "" {
		q.Set("vfs", d.vfs)
	}
	if d.still {
		q.Set("immutable", "1")
	}
	return dial(uri(d.path, q), flags|sqlite3.OPEN_URI, pragmas)
}

func (d *database) writable() error {
	if d.denied != nil {
		return fmt.Errorf("sqlite: %s can be read and not written: %w", d.path, d.denied)
	}
	if d.readOnly {
		return fmt.Errorf("sqlite: %s is open for reading only", d.path)
	}
	return nil
}

// wrap adds the path of the file to an error of SQLite.
func (d *database) wrap(err error) error {
	if errors.Is(err, session.ErrFull) {
		return err
	}
	if d.full(err) {
		return &space.Error{Store: "sqlite", Path: d.path, Err: err}
	}
	var e *sqlite3.Error
	var code sqlite3.ErrorCode
	var more sqlite3.ExtendedErrorCode
	var known *DamagedError
	if unreadable(err) && !errors.As(err, &known) {
		return &DamagedError{Path: d.path, Err: err}
	}
	if errors.As(err, &e) || errors.As(err, &code) || errors.As(err, &more) {
		return fmt.Errorf("sqlite: %s: %w", d.path, err)
	}
	return err
}

// full reports whether err means that the disk is full.
func (d *database) full(err error) bool {
	switch {
	case errors.Is(err, sqlite3.FULL), space.Full(err):
		return true
	case errors.Is(err, sqlite3.IOERR): // SQLite does not always say why
		free, ok := d.free(filepath.Dir(d.path))
		return ok && free < 64<<10
	}
	return false
}
