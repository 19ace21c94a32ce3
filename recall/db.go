package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
)

// schema is a projection: it can be dropped at any time and is made again.
//
// A session has what of it lies in segments counted in have, and the record
// up to which it has vectors in coded; gen is which writing of its log that
// was, where a log can be written anew. recall_in says which records of which
// session a segment holds. Whoever removes a session's row here removes its
// vectors and every segment with words of it; what else was in those is then
// behind, and is indexed again by the next search. The terms of a segment are
// packed into blocks; the row seg << 32 has the first term of each, and those
// that follow are the blocks.
const schema = `
CREATE TABLE IF NOT EXISTS recall_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS recall_sessions (
	n     INTEGER PRIMARY KEY AUTOINCREMENT,
	id    TEXT NOT NULL UNIQUE,
	have  INTEGER NOT NULL DEFAULT 0,
	coded INTEGER NOT NULL DEFAULT 0,
	gen   INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS recall_segments (
	seg   INTEGER PRIMARY KEY AUTOINCREMENT,
	size  INTEGER NOT NULL,
	words INTEGER NOT NULL,
	docs  BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS recall_in (
	session INTEGER NOT NULL,
	since   INTEGER NOT NULL,
	upto    INTEGER NOT NULL,
	seg     INTEGER NOT NULL,
	PRIMARY KEY (session, since)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS recall_in_seg ON recall_in (seg);
CREATE TABLE IF NOT EXISTS recall_terms (pos INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS recall_codes (pos INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS recall_notes (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS recall_forget AFTER DELETE ON recall_sessions BEGIN
	DELETE FROM recall_codes WHERE pos >= OLD.n << 32 AND pos < (OLD.n + 1) << 32;
	DELETE FROM recall_segments WHERE seg IN (SELECT seg FROM recall_in WHERE session = OLD.n);
END;
CREATE TRIGGER IF NOT EXISTS recall_drop AFTER DELETE ON recall_segments BEGIN
	DELETE FROM recall_terms WHERE pos >= OLD.seg << 32 AND pos < (OLD.seg + 1) << 32;
	UPDATE recall_sessions SET have = have - (SELECT sum(upto - since + 1) FROM recall_in WHERE seg = OLD.seg AND session = n)
		WHERE n IN (SELECT session FROM recall_in WHERE seg = OLD.seg);
	DELETE FROM recall_in WHERE seg = OLD.seg;
END;
`

// format is the version of what the tables hold.
const format = "8"

const dropAll = `
DROP TRIGGER IF EXISTS recall_trash; DROP TRIGGER IF EXISTS recall_purge;
DROP TRIGGER IF EXISTS recall_forget; DROP TRIGGER IF EXISTS recall_drop;
DROP TABLE IF EXISTS recall_meta; DROP TABLE IF EXISTS recall_sessions; DROP TABLE IF EXISTS recall_segments; DROP TABLE IF EXISTS recall_in;
DROP TABLE IF EXISTS recall_terms; DROP TABLE IF EXISTS recall_codes; DROP TABLE IF EXISTS recall_notes;
`

// RemoveFrom removes the index that versions before v0.2.0 kept in the database
// of the sessions at path. The index has a file of its own now.
func RemoveFrom(path string) error {
	d, err := connect(path, sqlite3.OPEN_READWRITE, func(d *db) error { return d.BusyTimeout(maxWait) })
	if err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	defer d.Close()
	n, err := d.Int("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'recall_*'")
	if err != nil || n == 0 {
		return err
	}
	if err := d.Exec("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	return d.Within(func() error { return d.Exec(dropAll) })
}

// db is one connection to the index.
type db struct{ *sqlx.Conn }

// maxWait is how long a search waits for another process that writes. The
// index can do without.
const maxWait = 5 * time.Second

// openDB opens the index at path, "" for one in memory. A file that is damaged
// is made again.
func openDB(path string) (*db, error) {
	if path == "" {
		path = ":memory:"
	} else {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		f.Close()
	}
	d, err := dial(path)
	if err != nil && path != ":memory:" && damaged(err) {
		if err := Remove(path); err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		d, err = dial(path)
	}
	if err != nil {
		return nil, fmt.Errorf("recall: the index in %s: %w", path, err)
	}
	return d, nil
}

// damaged reports whether err says that the file is no sound database.
func damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB)
}

// look opens what is at path for reading only.
func look(path string) (*db, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return connect(path, sqlite3.OPEN_READONLY, func(d *db) error { return d.BusyTimeout(maxWait) })
}

func dial(path string) (*db, error) {
	return connect(path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE, (*db).prepare)
}

// connect opens a connection and makes it ready.
func connect(path string, flags sqlite3.OpenFlag, ready func(*db) error) (*db, error) {
	c, err := sqlx.Open(path, flags, func(c *sqlx.Conn) error { return ready(&db{c}) })
	if err != nil {
		return nil, err
	}
	return &db{c}, nil
}

func (d *db) prepare() error {
	if err := d.BusyTimeout(maxWait); err != nil {
		return err
	}
	// Words of what was deleted must not stay in the file.
	if err := d.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY"); err != nil {
		return err
	}
	if ok, err := d.complete(); ok || err != nil {
		return err
	}
	return d.create(d.complete)
}

// complete reports whether everything is there, in the format of today. A
// part of it is none: it may claim what is not there any more.
func (d *db) complete() (bool, error) {
	want := map[string]bool{}
	for _, m := range created.FindAllStringSubmatch(schema, -1) {
		want[m[1]] = true
	}
	err := d.Each(func(s sqlx.Row) error { delete(want, s.ColumnText(0)); return nil }, "SELECT name FROM sqlite_schema")
	if err != nil || len(want) > 0 {
		return false, err
	}
	v, err := d.meta("format")
	return v == format, err
}

var created = regexp.MustCompile(`CREATE \w+ IF NOT EXISTS (\w+)`)

// create makes the tables, empty, unless another has done so.
func (d *db) create(done func() (bool, error)) error {
	return d.Within(func() error {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := d.Exec(dropAll + schema); err != nil {
			return err
		}
		return d.Run("INSERT OR REPLACE INTO recall_meta VALUES ('format', ?)", format)
	})
}

// rebuild makes the tables again, empty. If that cannot be done in the file, it
// is replaced by a new one.
func (d *db) rebuild(path string) (*db, error) {
	err := d.create(func() (bool, error) { return false, nil })
	if err == nil || path == "" || !damaged(err) {
		return d, err
	}
	d.Close()
	if err := Remove(path); err != nil {
		return d, err
	}
	n, err := openDB(path)
	if err != nil {
		return d, err
	}
	return n, nil
}

// Remove removes the index at path. The next one who opens it makes a new one.
func Remove(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// unwritable reports whether err says that nothing can be written now.
func unwritable(err error) bool {
	for _, code := range []sqlite3.ErrorCode{sqlite3.BUSY, sqlite3.READONLY, sqlite3.FULL, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.PERM} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, fs.ErrPermission)
}

// readable reads every row.
func (d *db) readable() error {
	for _, table := range []string{"recall_meta", "recall_sessions", "recall_segments", "recall_in", "recall_terms", "recall_codes", "recall_notes"} {
		err := d.Each(func(s sqlx.Row) error {
			for i := range s.ColumnCount() {
				s.ColumnRawBlob(i)
			}
			return nil
		}, "SELECT * FROM "+table)
		if err != nil {
			return err
		}
	}
	return nil
}

// contradictions returns what the tables say of each other that is not true,
// "" if there is nothing.
func (d *db) contradictions() (string, error) {
	have, in, segs := map[int64]int64{}, map[int64]int64{}, map[int64]bool{}
	err := d.Each(func(s sqlx.Row) error { segs[s.ColumnInt64(0)] = true; return nil }, "SELECT seg FROM recall_segments")
	if err != nil {
		return "", err
	}
	err = d.Each(func(s sqlx.Row) error { have[s.ColumnInt64(0)] = s.ColumnInt64(1); return nil }, "SELECT n, have FROM recall_sessions")
	if err != nil {
		return "", err
	}
	lost := 0
	err = d.Each(func(s sqlx.Row) error {
		in[s.ColumnInt64(0)] += s.ColumnInt64(2) - s.ColumnInt64(1) + 1
		if !segs[s.ColumnInt64(3)] {
			lost++
		}
		return nil
	}, "SELECT session, since, upto, seg FROM recall_in")
	if err != nil {
		return "", err
	}
	if lost > 0 {
		return fmt.Sprintf("%d parts of sessions lie in segments that are not there", lost), nil
	}
	for n, want := range in {
		if have[n] != want {
			return fmt.Sprintf("session %d has %d records in it, and %d by its count", n, want, have[n]), nil
		}
	}
	for n, got := range have {
		if got != in[n] {
			return fmt.Sprintf("session %d has %d records in it, and %d by its count", n, in[n], got), nil
		}
	}
	return "", nil
}

func (d *db) meta(name string) (v string, err error) {
	err = d.Each(func(s sqlx.Row) error { v = s.ColumnText(0); return nil }, "SELECT value FROM recall_meta WHERE name = ?", name)
	return v, err
}

// interrupted lets ctx end what the connection does.
func (d *db) interrupted(ctx context.Context) func() {
	d.SetInterrupt(ctx)
	return func() { d.SetInterrupt(context.Background()) }
}
