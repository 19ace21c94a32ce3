package notes

import (
	"context"
	"sync"
	"time"

	"goclaw/internal/watch"
)

// How long nothing must have changed before memory files are looked at, and
// how long that is waited for at most: editors and models write in bursts.
const (
	settle     = 100 * time.Millisecond
	settleMost = time.Second
)

// Watch keeps m up to date until ctx is done. It holds lock while it reads
// files, and calls then after that. What cannot be read is reported by the
// next search.
func (m *Files) Watch(ctx context.Context, w *watch.Watcher, lock sync.Locker, then func()) {
	defer w.Close()
	for {
		w.Look(func(see func(dir string, names ...string)) {
			lock.Lock()
			defer lock.Unlock()
			_ = m.Sync(see)
		})
		then()
		if w.Wait(ctx, settle, settleMost) != nil {
			return
		}
	}
}
