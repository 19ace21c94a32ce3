package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"goclaw/internal/pages"
)

// KeepLog copies the database path and its write-ahead log if SQLite would drop
// records from it: it reads a log up to the first damaged frame, and writes over
// the rest. Power failures leave such logs too, so the database is opened all the
// same. It returns the path of the copy, "" if there is none.
func KeepLog(path string, syncDir func(dir string) error) (name string, err error) {
	if LogSize(path) <= LogHeader {
		return "", nil
	}
	for range 3 { // another process may just be writing the frame
		f, err := pages.Open(path)
		if err != nil {
			return "", nil // opening it says why
		}
		drops := f.Drops()
		if err := f.Close(); err != nil || !drops {
			return "", nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	name = fmt.Sprintf("%s.damaged-%s", path, time.Now().UTC().Format("20060102-150405.000"))
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(name+end, path+end); err != nil {
			return "", fmt.Errorf("%s-wal is damaged, and cannot be copied before it is used: %w", path, err)
		}
	}
	return name, syncDir(filepath.Dir(name))
}

// copyFile writes a durable copy of the file from.
func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		_ = os.Remove(to) // half a copy is none
	}
	return err
}
