package wholefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// patience is how long Update waits for others that update the same file. Each
// needs a moment only. Tests wait longer.
var patience = 10 * time.Second

// Update replaces the file path with what change makes of its content, which is
// nil if there is no such file. Updates of one file wait for each other, in this
// process and in others, so that none is lost; path+".lock" is the lock and
// stays. If change returns nil, the file is left as it is.
func Update(path string, change func(old []byte) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 2*time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer lock.Unlock()
	old, err := Read(path, Small)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := change(old)
	if err != nil || data == nil {
		return err
	}
	return Write(path, data)
}
