package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/internal/wholefile"
	"goclaw/session"
	"goclaw/store/sqlite/internal/files"
)

// Sum is what a database holds: two with the same Sum have the same records.
type Sum struct {
	Sessions int    `json:"sessions"` // those in the trash as well
	Trashed  int    `json:"trashed"`
	Records  int    `json:"records"`
	SHA256   string `json:"sha256"` // of all records in order, and of which sessions are in the trash
}

// Backup writes a copy of the database to the new file path, as it is at one
// moment, while other processes may write. It returns what is in the copy, after
// it has compared the copy with the original, record by record.
func (r *readers) Backup(ctx context.Context, path string) (sum Sum, err error) {
	if r.db.byPage() {
		return sum, fmt.Errorf("sqlite: %s is damaged, or of an older version: open it once where it can be written", r.db.path)
	}
	if err := files.Touch(path); err != nil {
		return sum, fmt.Errorf("sqlite: %w", err)
	}
	err = r.lend(ctx, func(c *sqlx.Conn) error {
		if err := c.Run("BEGIN"); err != nil { // one moment for the sum and for the copy
			return err
		}
		if sum, err = summarise(c); err != nil {
			return err
		}
		return copyPages(ctx, c, path)
	})
	if err == nil {
		err = settleCopy(path)
	}
	if err != nil {
		return sum, err
	}
	got, err := Summarise(ctx, path)
	if err == nil && got != sum {
		err = fmt.Errorf("sqlite: the copy %s differs from %s: %d sessions with %d records instead of %d with %d", path, r.db.path, got.Sessions, got.Records, sum.Sessions, sum.Records)
	}
	return sum, err
}

// copyPages copies the database of c to the empty file path.
func copyPages(ctx context.Context, c *sqlx.Conn, path string) error {
	b, err := c.BackupInit("main", uri(path, nil))
	if err != nil {
		return err
	}
	defer b.Close()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = b.Step(1000); err != nil {
			return err
		}
	}
	return b.Close()
}

// settleCopy leaves of a copy only the file path, which is durable then.
func settleCopy(path string) error {
	c, err := sqlx.Open(uri(path, nil), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI, func(c *sqlx.Conn) error {
		_, err := c.Text("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: %s: %w", path, err)
	}
	if err := c.Close(); err != nil { // the last connection removes the write-ahead log
		return fmt.Errorf("sqlite: %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// Summarise reads all of the database path, which nobody writes to, and returns
// what it holds. Damage is an error.
func Summarise(ctx context.Context, path string) (sum Sum, err error) {
	d := &database{path: path, readOnly: true, still: true}
	c, v, err := d.first()
	if err != nil {
		return sum, err
	}
	defer c.Close()
	if v < 3 {
		return sum, fmt.Errorf("sqlite: %s has schema %d, which no backup has", path, v)
	}
	c.SetInterrupt(ctx)
	found, err := findings(c)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("sqlite: %s is damaged: %s", path, found[0])
	}
	if err == nil {
		sum, err = summarise(c)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return sum, err
}

func summarise(c *sqlx.Conn) (sum Sum, err error) {
	h := sha256.New()
	err = c.Each(func(r sqlx.Row) error {
		sum.Sessions++
		if r.Text(2) != "" {
			sum.Trashed++
		}
		text(h, r.Int(0), []byte(r.Text(1)))
		text(h, int64(len(r.Text(2))), nil)
		return nil
	}, "SELECT n, id, trashed FROM sessions ORDER BY n")
	if err != nil {
		return sum, err
	}
	err = c.Each(func(r sqlx.Row) error {
		sum.Records++
		text(h, r.Int(0), r.Bytes(1))
		return nil
	}, "SELECT pos, data FROM records ORDER BY pos")
	sum.SHA256 = hex.EncodeToString(h.Sum(nil))
	return sum, err
}

// text adds a number and a text to h, so that no two sequences of them are the
// same bytes.
func text(h hash.Hash, n int64, b []byte) {
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], uint64(n))
	binary.LittleEndian.PutUint64(head[8:], uint64(len(b)))
	h.Write(head[:])
	h.Write(b)
}

func uri(path string, q url.Values) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	return u.String()
}

// Replace puts the database file, which nobody has open, in the place of the one
// at path, and returns where that one is now: nothing is deleted, "" if there
// was none. It refuses if another process has the database at path open.
func Replace(path, file, aside string) (was string, err error) {
	if path, err = files.Resolve(path); err != nil {
		return "", fmt.Errorf("sqlite: %w", err)
	}
	release, err := alone(path)
	if err != nil {
		return "", err
	}
	defer release()
	// The database first: without it, its write-ahead log is left alone.
	for _, suffix := range files.Suffixes {
		if _, err := os.Lstat(path + suffix); err != nil {
			continue
		}
		if err := os.Rename(path+suffix, aside+suffix); err != nil {
			return was, fmt.Errorf("sqlite: %w", err)
		}
		was = aside
	}
	d := &database{path: path, syncDir: wholefile.SyncDir}
	if err := d.named(); err != nil {
		return was, err
	}
	if err := os.Rename(file, path); err != nil {
		return was, fmt.Errorf("sqlite: %w", err)
	}
	return was, d.named()
}

// inUse is the session.ErrHeld of a database.
type inUse struct{ path string }

func (e *inUse) Error() string {
	return "sqlite: another process has " + e.path + " open: end it and try again"
}

func (e *inUse) Unwrap() error { return session.ErrHeld }

// alone makes sure that no other process has the database path open, and keeps
// them out until release is called. A damaged database can be open elsewhere.
func alone(path string) (release func(), err error) {
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return func() {}, nil
	}
	c, err := dial(uri(path, nil), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI, "PRAGMA locking_mode = EXCLUSIVE")
	if err != nil {
		return func() {}, nil
	}
	if err = c.BusyTimeout(0); err == nil {
		err = c.Exec("BEGIN IMMEDIATE; ROLLBACK")
	}
	if errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED) {
		c.Close()
		return nil, &inUse{path}
	}
	return func() { c.Close() }, nil
}
