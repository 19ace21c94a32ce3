package recall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// schema is a projection: it can be dropped at any time and is made again.
//
// A session has what of it lies in segments counted in have, and the record
// up to which it has vectors in coded. recall_in says which records of which
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
	coded INTEGER NOT NULL DEFAULT 0
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

// shared ties the index to the table of sessions in the same database: what
// goes into the trash or is purged leaves the index in the same transaction.
const shared = `
CREATE TRIGGER IF NOT EXISTS recall_trash AFTER UPDATE OF trashed ON sessions WHEN NEW.trashed IS NOT NULL BEGIN
	DELETE FROM recall_sessions WHERE id = OLD.id;
END;
CREATE TRIGGER IF NOT EXISTS recall_purge AFTER DELETE ON sessions BEGIN
	DELETE FROM recall_sessions WHERE id = OLD.id;
END;
`

// format is the version of what the tables hold.
const format = "4"

const dropAll = `
DROP TRIGGER IF EXISTS recall_trash; DROP TRIGGER IF EXISTS recall_purge;
DROP TRIGGER IF EXISTS recall_forget; DROP TRIGGER IF EXISTS recall_drop;
DROP TABLE IF EXISTS recall_meta; DROP TABLE IF EXISTS recall_sessions; DROP TABLE IF EXISTS recall_segments; DROP TABLE IF EXISTS recall_in;
DROP TABLE IF EXISTS recall_terms; DROP TABLE IF EXISTS recall_codes; DROP TABLE IF EXISTS recall_notes;
`

// db is one connection to the index.
type db struct {
	*sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

const maxWait = 30 * time.Second

// openDB opens the index at path, "" for one in memory. A file of its own
// that is damaged is made anew.
func openDB(path string, isShared bool) (*db, error) {
	if path == "" {
		path = ":memory:"
	} else if !isShared {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		f.Close()
	}
	d, err := dial(path, isShared)
	if err != nil && !isShared && path != ":memory:" && damaged(err) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(path + suffix)
		}
		d, err = dial(path, isShared)
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

func dial(path string, isShared bool) (*db, error) {
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	if err != nil {
		return nil, err
	}
	d := &db{Conn: c, stmts: map[string]*sqlite3.Stmt{}}
	if err := d.prepare(isShared); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *db) prepare(isShared bool) error {
	if err := d.BusyTimeout(maxWait); err != nil {
		return err
	}
	if isShared {
		if _, err := d.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true); err != nil {
			return err
		}
	} else if err := d.Exec("PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	// Words of what was deleted shall not stay in the file.
	if err := d.Exec("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY"); err != nil {
		return err
	}
	has, err := d.int("SELECT count(*) FROM sqlite_schema WHERE name IN ('recall_meta', 'recall_drop', 'recall_purge')")
	if err != nil {
		return err
	}
	want := int64(2)
	if isShared {
		want = 3
	}
	if has == want {
		if v, err := d.meta("format"); err != nil || v == format {
			return err
		}
	}
	return d.within(func() error {
		if v, err := d.meta("format"); has > 0 && (err != nil || v != format) {
			if err := d.Exec(dropAll); err != nil {
				return err
			}
		}
		if err := d.Exec(schema); err != nil {
			return err
		}
		if isShared {
			if err := d.Exec(shared); err != nil {
				return err
			}
		}
		return d.exec("INSERT OR REPLACE INTO recall_meta VALUES ('format', ?)", format)
	})
}

func (d *db) meta(name string) (v string, err error) {
	err = d.each(func(s *sqlite3.Stmt) error { v = s.ColumnText(0); return nil }, "SELECT value FROM recall_meta WHERE name = ?", name)
	return v, err
}

// within does f in a transaction that writes.
func (d *db) within(f func() error) error {
	if err := d.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = d.Exec("COMMIT")
	}
	if err != nil && !d.GetAutocommit() {
		err = errors.Join(err, d.Exec("ROLLBACK"))
	}
	return err
}

func (d *db) close() error {
	for _, s := range d.stmts {
		s.Close()
	}
	return d.Close()
}

// query prepares and binds: int, int64, string and []byte.
func (d *db) query(sql string, args ...any) (*sqlite3.Stmt, error) {
	s := d.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = d.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		d.stmts[sql] = s
	}
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case int:
			err = s.BindInt64(i+1, int64(a))
		case int64:
			err = s.BindInt64(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			err = s.BindBlob(i+1, a)
		default:
			err = fmt.Errorf("recall: a %T cannot be bound", a)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (d *db) exec(sql string, args ...any) error {
	s, err := d.query(sql, args...)
	if err != nil {
		return err
	}
	return s.Exec()
}

func (d *db) each(f func(s *sqlite3.Stmt) error, sql string, args ...any) error {
	s, err := d.query(sql, args...)
	if err != nil {
		return err
	}
	for s.Step() {
		if err := f(s); err != nil {
			s.Reset()
			return err
		}
	}
	return s.Reset()
}

func (d *db) int(sql string, args ...any) (n int64, err error) {
	err = d.each(func(s *sqlite3.Stmt) error { n = s.ColumnInt64(0); return nil }, sql, args...)
	return n, err
}

// blob returns a copy of the first column of the first row, nil if there is
// none.
func (d *db) blob(sql string, args ...any) (b []byte, err error) {
	err = d.each(func(s *sqlite3.Stmt) error { b = append([]byte{}, s.ColumnRawBlob(0)...); return nil }, sql, args...)
	return b, err
}

// interrupted lets ctx end what the connection does.
func (d *db) interrupted(ctx context.Context) func() {
	d.SetInterrupt(ctx)
	return func() { d.SetInterrupt(context.Background()) }
}
