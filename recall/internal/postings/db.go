package postings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
)

// schema is a projection: it can be dropped at any time and is rebuilt.
//
// recall_sessions counts in have how many records of a session are in segments;
// coded rises with its vectors and is never less than their number, gen is the
// version of its log. recall_in says which records of which session a segment
// holds. Removing a session's row removes its vectors and every segment with
// words of it; what else those held is then missing, and is indexed again by the
// next search. The terms of a segment are packed into blocks: the row seg << 32
// has the first term of each, and the rows that follow are the blocks.
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
const format = "11"

// pageSize is the size of the pages of a new file. There are a dozen tables, and
// one with a single row takes a page: with pages of the usual size, they would
// be larger than the text of a few sessions.
const pageSize = 2048

const dropAll = `
DROP TRIGGER IF EXISTS recall_trash; DROP TRIGGER IF EXISTS recall_purge;
DROP TRIGGER IF EXISTS recall_forget; DROP TRIGGER IF EXISTS recall_drop;
DROP TABLE IF EXISTS recall_meta; DROP TABLE IF EXISTS recall_sessions; DROP TABLE IF EXISTS recall_segments; DROP TABLE IF EXISTS recall_in;
DROP TABLE IF EXISTS recall_terms; DROP TABLE IF EXISTS recall_codes; DROP TABLE IF EXISTS recall_notes;
`

// RemoveFrom removes the index that versions before v0.2.0 kept in the database
// of the sessions at path. The index is a separate file now.
func RemoveFrom(path string) error {
	d, err := connect(path, sqlite3.OPEN_READWRITE, func(d *DB) error { return d.BusyTimeout(maxWait) })
	if errors.Is(err, syscall.EROFS) { // it stays, and so does all else
		return nil
	}
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

// DB is one connection to the file of the index.
type DB struct{ *sqlx.Conn }

// maxWait is how long a search waits for another process that writes. After
// that it searches without writing.
const maxWait = 5 * time.Second

// Open opens the index at path, "" for one in memory. A damaged file is made
// again.
func Open(path string) (*DB, error) {
	if path == "" {
		path = ":memory:"
	}
	d, err := open(path)
	if err != nil && path != ":memory:" && Damaged(err) {
		if err := Remove(path); err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		d, err = open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("recall: the index in %s: %w", path, err)
	}
	return d, nil
}

// open opens the index at path, and creates it. SQLite would let everybody read
// what it creates.
func open(path string) (*DB, error) {
	if path == ":memory:" {
		return dial(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	f.Close()
	d, err := dial(path)
	for _, end := range []string{"-wal", "-shm"} {
		_ = os.Chmod(path+end, 0o600) // another user's stay as they are
	}
	return d, err
}

// Damaged reports whether err says that the file is not a sound database.
func Damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB)
}

// Broken reports whether err is damage of the index, which can be rebuilt.
func Broken(err error) bool {
	return errors.Is(err, errDocs) || errors.Is(err, errPostings) || Damaged(err)
}

// Look opens the index at path for reading only.
func Look(path string) (*DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return connect(path, sqlite3.OPEN_READONLY, func(d *DB) error { return d.BusyTimeout(maxWait) })
}

func dial(path string) (*DB, error) {
	return connect(path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE, (*DB).prepare)
}

// connect opens a connection and makes it ready.
func connect(path string, flags sqlite3.OpenFlag, ready func(*DB) error) (*DB, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // opening a FIFO would wait
		return nil, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	c, err := sqlx.Open(path, flags, func(c *sqlx.Conn) error { return ready(&DB{c}) })
	if err != nil {
		return nil, err
	}
	return &DB{c}, nil
}

func (d *DB) prepare() error {
	if err := d.BusyTimeout(maxWait); err != nil {
		return err
	}
	// Deleted words must not stay in the file.
	if err := d.Exec(fmt.Sprint("PRAGMA page_size = ", pageSize, "; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY")); err != nil {
		return err
	}
	if ok, err := d.complete(); ok || err != nil {
		return err
	}
	return d.create(d.complete)
}

// complete reports whether everything is there, in today's format. An index
// with a part missing may claim to hold what it does not.
func (d *DB) complete() (bool, error) {
	want := map[string]bool{}
	for _, m := range created.FindAllStringSubmatch(schema, -1) {
		want[m[1]] = true
	}
	err := d.Each(func(s sqlx.Row) error { delete(want, s.ColumnText(0)); return nil }, "SELECT name FROM sqlite_schema")
	if err != nil || len(want) > 0 {
		return false, err
	}
	v, err := d.Meta("format")
	return v == format, err
}

var created = regexp.MustCompile(`CREATE \w+ IF NOT EXISTS (\w+)`)

// create makes the tables, empty, unless another process has made them.
func (d *DB) create(done func() (bool, error)) error {
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

// Rebuild creates the tables again, empty. A file in which that is impossible is
// replaced by a new one.
func (d *DB) Rebuild(path string) (*DB, error) {
	err := d.create(func() (bool, error) { return false, nil })
	if err == nil || path == "" || !Damaged(err) {
		return d, err
	}
	d.Close()
	if err := Remove(path); err != nil {
		return d, err
	}
	n, err := Open(path)
	if err != nil {
		return d, err
	}
	return n, nil
}

// Remove removes the index at path. Opening it again makes a new one.
func Remove(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Unwritable reports whether err says that nothing can be written now.
func Unwritable(err error) bool {
	for _, code := range []sqlite3.ErrorCode{sqlite3.BUSY, sqlite3.READONLY, sqlite3.FULL, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.PERM} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, fs.ErrPermission)
}

// Readable reads every row.
func (d *DB) Readable() error {
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

// Contradictions returns how the tables contradict each other, "" if they do
// not.
func (d *DB) Contradictions() (string, error) {
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
		return fmt.Sprintf("%d parts of sessions are in segments that are missing", lost), nil
	}
	for n, want := range in {
		if have[n] != want {
			return fmt.Sprintf("session %d has %d records in segments, but claims %d", n, want, have[n]), nil
		}
	}
	for n, got := range have {
		if got != in[n] {
			return fmt.Sprintf("session %d has %d records in segments, but claims %d", n, in[n], got), nil
		}
	}
	return "", nil
}

// Meta returns what is noted under name, "" if nothing is.
func (d *DB) Meta(name string) (string, error) {
	return d.Text("SELECT value FROM recall_meta WHERE name = ?", name)
}

// SetMeta notes value under name.
func (d *DB) SetMeta(name, value string) error {
	return d.Run("INSERT OR REPLACE INTO recall_meta VALUES (?, ?)", name, value)
}

// Size returns how many bytes of the file are in use.
func (d *DB) Size() (int64, error) {
	return d.Int("SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size")
}

// Examine returns what is wrong with the index at path, in sentences. It
// changes nothing. A missing index is not wrong: the first search makes it.
func Examine(ctx context.Context, path string) (wrong []string, err error) {
	d, err := Look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("recall: the index in %s: %w", path, err)
	}
	defer d.Close()
	d.SetInterrupt(ctx)
	switch n, err := d.Int("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'recall_*'"); {
	case Damaged(err):
		return []string{err.Error()}, nil
	case err != nil || n == 0:
		return nil, err
	}
	switch ok, err := d.complete(); {
	case err != nil:
		return []string{err.Error()}, ctx.Err()
	case !ok:
		return []string{"a part of it is missing or has another version"}, nil
	}
	if err := d.Readable(); err != nil {
		return []string{err.Error()}, ctx.Err()
	}
	contradiction, err := d.Contradictions()
	if err != nil {
		return nil, err
	}
	if contradiction != "" {
		wrong = append(wrong, contradiction)
	}
	segs := map[int64]*Segment{}
	if _, err := d.Refresh(segs); err != nil {
		return append(wrong, err.Error()), ctx.Err()
	}
	for _, id := range slices.Sorted(maps.Keys(segs)) {
		if err := d.examine(segs[id]); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong, ctx.Err()
}
