// Package lock locks files against other processes. The kernel releases a lock
// when its process ends, however it ends: there are no stale locks.
package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"goclaw/internal/wholefile"
	"goclaw/session"
)

// note is the content of a file locked by Try.
type note struct {
	Who   string    `json:"who"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Wait locks the file path, which it makes if need be, and waits while another
// process or another caller has it. It polls, so it is meant for locks that are
// held for moments.
func Wait(ctx context.Context, path string) (unlock func(), err error) {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		f, err := lock(path)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() { f.Unlock() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Try locks the file path, which it makes together with its folder if need be,
// and writes who has it into the file. If it is locked, in this process or
// elsewhere, the error is a *session.HeldError without a name.
//
// release removes the file, so that files do not pile up. It may be called
// again.
func Try(path, who string) (release func(), err error) {
	for unnamed := 0; ; {
		f, err := lock(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
				f, err = lock(path)
			}
		}
		if err != nil {
			return nil, err
		}
		if f != nil {
			if err := write(path, note{who, os.Getpid(), time.Now().UTC()}); err != nil {
				f.Unlock()
				return nil, fmt.Errorf("lock: %w", err)
			}
			return sync.OnceFunc(func() {
				// Removed while it is locked, which lock notices. Where a locked
				// file cannot be removed it stays, one for each name.
				os.Remove(path)
				f.Unlock()
			}), nil
		}
		b, err := wholefile.Read(path, wholefile.Small)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was released
		}
		var n note
		if err == nil && json.Unmarshal(b, &n) == nil {
			return nil, &session.HeldError{Who: n.Who, PID: n.PID, Since: n.Since}
		}
		if unnamed++; unnamed > 20 {
			return nil, &session.HeldError{Who: "another process"}
		}
		time.Sleep(time.Millisecond) // its holder is about to write the note
	}
}

// lock tries to lock the file path. It returns nil if another has it, or if the
// file was removed in between: a file without a name locks nothing.
func lock(path string) (*flock.Flock, error) {
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("lock %s: %s, not a file: remove it", path, wholefile.KindOf(fi.Mode()))
	}
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, nil
	}
	mine, err := f.Stat()
	if err == nil {
		var now fs.FileInfo
		if now, err = os.Lstat(path); err == nil && os.SameFile(mine, now) {
			return f, nil
		}
	}
	f.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, nil
}

// write replaces the content of the file path with n, in one write.
func write(path string, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}
