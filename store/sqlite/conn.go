package sqlite

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
)

// maxWait is how long a connection waits for another process to finish writing.
const maxWait = 30 * time.Second

func dial(path string, flags sqlite3.OpenFlag, pragmas string) (*sqlx.Conn, error) {
	return sqlx.Open(path, flags, func(c *sqlx.Conn) error {
		if err := c.BusyHandler(patience()); err != nil {
			return err
		}
		// The WAL stays when the last connection closes, and keeps its mode.
		if _, err := c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true); err != nil {
			return err
		}
		return c.Exec(pragmas)
	})
}

// patience returns a busy handler. It waits for some microseconds first, about
// as long as a transaction takes, and later for a few milliseconds.
func patience() func(context.Context, int) bool {
	var begin time.Time
	return func(ctx context.Context, count int) bool {
		if count == 0 {
			begin = time.Now()
		} else if time.Since(begin) > maxWait {
			return false
		}
		wait := 20 * time.Microsecond << min(count/2, 7)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
			return true
		}
	}
}
