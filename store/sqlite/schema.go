package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
)

// appID marks the file as goclaw's: "gocl".
const appID = 0x676f636c

// schemaVersion is the version of the databases that this program writes:
//
//	1  has a table inbox; settle puts what is in it in place
//	2  has the older names of two columns
//	3  has no column for checksums
//	4  schema
//
// A process of schema 3 that has the database open while it is brought up to
// date goes on writing records without a checksum; it refuses to open it again.
const schemaVersion = 4

// rename brings a database of version 1 or 2 to the names of version 3.
const rename = `
ALTER TABLE sessions RENAME COLUMN folds TO compactions;
ALTER TABLE sessions RENAME COLUMN crook TO last_bend;
`

// addChecksums brings a database of an older version to version 4. It writes no
// row: older records have no checksum.
const addChecksums = "ALTER TABLE records ADD COLUMN crc32c INTEGER"

// A record's pos is made of its session's number and its own, so that the
// records of a session are adjacent without another index. session and seq are
// computed from it. crc32c is the checksum of data, NULL if the record was
// written by an older version.
const schema = `
CREATE TABLE sessions (
	n                 INTEGER PRIMARY KEY AUTOINCREMENT,
	id                TEXT NOT NULL UNIQUE,
	key               TEXT NOT NULL,
	title             TEXT NOT NULL,
	created           TEXT NOT NULL,
	updated           TEXT NOT NULL,
	trashed           TEXT,
	records           INTEGER NOT NULL,
	last              INTEGER NOT NULL,
	compactions       INTEGER NOT NULL,
	turns             INTEGER NOT NULL,
	provider          TEXT NOT NULL,
	model             TEXT NOT NULL,
	thinking          TEXT NOT NULL,
	used              INTEGER NOT NULL,
	spent_input       INTEGER NOT NULL,
	spent_output      INTEGER NOT NULL,
	spent_cache_read  INTEGER NOT NULL,
	spent_cache_write INTEGER NOT NULL,
	leaf              TEXT NOT NULL,
	keep_from         INTEGER NOT NULL,
	last_bend         INTEGER NOT NULL,
	parent            TEXT NOT NULL,
	cwd               TEXT NOT NULL,
	origin_program    TEXT NOT NULL,
	origin_path       TEXT NOT NULL,
	origin_key        TEXT NOT NULL,
	origin_id         TEXT NOT NULL,
	origin_seq        INTEGER NOT NULL
);
CREATE INDEX sessions_key ON sessions (key);
CREATE TABLE records (
	pos     INTEGER PRIMARY KEY,
	session INTEGER GENERATED ALWAYS AS (pos >> 32) VIRTUAL REFERENCES sessions (n),
	seq     INTEGER GENERATED ALWAYS AS (pos & 4294967295) VIRTUAL,
	id      TEXT NOT NULL,
	parent  TEXT NOT NULL,
	type    TEXT NOT NULL,
	time    TEXT NOT NULL,
	data    BLOB NOT NULL,
	crc32c  INTEGER
);
CREATE INDEX records_id ON records (session, id);
`

// pos returns the position of the record seq of session n.
func pos(n, seq int64) int64 { return n<<32 | seq }

// maxSeq is the largest number of a record in a session.
const maxSeq = 1<<32 - 1

// version returns the version of the schema, 0 for an empty database, or an
// error if this program cannot use the database.
func version(c *sqlx.Conn, path string) (int, error) {
	app, err := c.Int("PRAGMA application_id")
	if err != nil {
		return 0, foreign(path, err)
	}
	v, err := c.Int("PRAGMA user_version")
	if err != nil {
		return 0, foreign(path, err)
	}
	switch {
	case app == appID && int(v) <= schemaVersion:
		return int(v), nil
	case app == appID:
		return 0, fmt.Errorf("sqlite: %s has schema %d, this version knows up to %d: a newer goclaw wrote it", path, v, schemaVersion)
	}
	if tables, err := c.Int("SELECT count(*) FROM sqlite_schema"); err != nil {
		return 0, foreign(path, err)
	} else if tables > 0 || v != 0 || app != 0 {
		err := fmt.Errorf("sqlite: %s is a database of another program", path)
		if HasRecords(path) {
			err = &DamagedError{path, fmt.Errorf("its header says %#x instead of goclaw's mark", app), "is damaged"}
		}
		return 0, err
	}
	return 0, nil
}

// complete returns an error if the schema lacks what a database of goclaw's has.
func complete(c *sqlx.Conn, path string) error {
	for _, sql := range []string{"SELECT n, id, key FROM sessions LIMIT 0", "SELECT pos, data FROM records LIMIT 0"} {
		if err := c.Run(sql); err != nil && errors.Is(err, sqlite3.ERROR) {
			return &DamagedError{path, err, "is damaged"}
		}
	}
	return nil
}

// foreign explains why a file cannot be opened.
func foreign(path string, err error) error {
	st, statErr := os.Stat(path)
	switch {
	case errors.Is(err, sqlite3.NOTADB) && HasRecords(path):
		return &DamagedError{path, err, "is damaged"}
	case errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("sqlite: %s is not an SQLite database", path)
	case statErr == nil && st.IsDir():
		return fmt.Errorf("sqlite: %s is a folder", path)
	case statErr != nil:
		return fmt.Errorf("sqlite: %w", statErr)
	}
	if unreadable(err) {
		return &DamagedError{path, err, "is damaged"}
	}
	return fmt.Errorf("sqlite: open %s: %w", path, err)
}

// migrate brings the database up to date in one transaction. Other processes may
// do the same at the same time.
func migrate(c *sqlx.Conn, path string) error {
	return c.Within(func() error {
		v, err := version(c, path)
		if err != nil || v == schemaVersion {
			return err
		}
		switch v {
		case 0:
			err = c.Exec(schema)
		case 1, 2:
			err = c.Exec(rename)
		}
		if err == nil && v > 0 {
			err = c.Exec(addChecksums)
		}
		if err == nil && v == 1 {
			err = settle(c, path)
		}
		if err == nil {
			err = c.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", appID, schemaVersion))
		}
		if err != nil {
			what := fmt.Sprintf("cannot be brought from schema %d to %d", v, schemaVersion)
			if unreadable(err) || errors.Is(err, sqlite3.ERROR) {
				return &DamagedError{path, err, what}
			}
			err = fmt.Errorf("sqlite: %s %s: %w", path, what, err)
		}
		return err
	})
}
