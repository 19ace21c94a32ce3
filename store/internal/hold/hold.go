// Package hold makes one process the only hand of something, by a locked
// file. The kernel lets go of the lock when the process ends, however it
// ends: there are no stale locks to break.
package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"goclaw/session"
)

// note is what a held file says.
type note struct {
	Who   string    `json:"who"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Try locks the file path, making it and its folder if need be, and says in
// it who has it. If another has it, in this process or elsewhere, the error
// is a *session.HeldError without a name.
//
// release removes the file, so that files do not pile up; calling it again
// is harmless.
func Try(path, who string) (release func(), err error) {
	for i := 0; ; i++ {
		release, err := try(path, who)
		switch {
		case err == errSilent && i >= 20:
			return nil, &session.HeldError{Who: "another process"}
		case err == errSilent:
			time.Sleep(time.Millisecond)
		case err != errGone:
			return release, err
		}
	}
}

var (
	// errGone says that the file was removed: its lock holds nothing.
	errGone = errors.New("hold: the file was removed")
	// errSilent says that the file does not say who has it, or not yet.
	errSilent = errors.New("hold: the file says nothing")
)

func try(path, who string) (func(), error) {
	f := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	ok, err := f.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("hold: %w", err)
		}
		ok, err = f.TryLock()
	}
	if err != nil {
		return nil, fmt.Errorf("hold: lock %s: %w", path, err)
	}
	if !ok {
		return nil, holder(path)
	}
	if !same(f, path) {
		f.Unlock()
		return nil, errGone
	}
	if err := write(path, note{who, os.Getpid(), time.Now().UTC()}); err != nil {
		f.Unlock()
		return nil, fmt.Errorf("hold: %w", err)
	}
	return sync.OnceFunc(func() {
		// Removed while it is still locked: whoever opened it before finds out
		// by same. Where a locked file cannot be removed it stays, one for
		// each name.
		os.Remove(path)
		f.Unlock()
	}), nil
}

// same reports whether path still names the file that f has locked.
func same(f *flock.Flock, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(mine, now)
}

// write says n in the file path in one write, over what a dead holder said.
func write(path string, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// holder reads who has path.
func holder(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	var n note
	if err != nil || json.Unmarshal(b, &n) != nil {
		return errSilent
	}
	return &session.HeldError{Who: n.Who, PID: n.PID, Since: n.Since}
}
