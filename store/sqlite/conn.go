package sqlite

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
)

// maxWait is how long a connection waits for another process.
const maxWait = 30 * time.Second

func dial(path string, flags sqlite3.OpenFlag, pragmas string) (*sqlx.Conn, error) {
	return sqlx.Open(path, flags, func(c *sqlx.Conn) error {
		if err := c.BusyHandler(patience()); err != nil {
			return err
		}
		// The WAL stays when the last connection closes: it keeps its mode, and
		// is not made again each time.
		if _, err := c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true); err != nil {
			return err
		}
		return c.Exec(pragmas)
	})
}

// patience returns a busy handler. It asks again after a wait that grows from
// some microseconds, which is how long another's transaction takes, to some
// milliseconds.
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
