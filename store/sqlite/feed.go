package sqlite

import (
	"context"
	"strconv"
	"sync"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/sqlite/internal/rescue"
)

// feed is a connection that stays open as long as the store: without one, other
// programs would remove the write-ahead log when they close theirs. It never
// writes, so that its data_version changes with every write of any other
// connection.
type feed struct {
	mu sync.Mutex
	c  *sqlx.Conn
}

// version returns a number that changes with every write.
func (f *feed) version() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.c == nil { // SQLite does not open the database: nobody can write to it
		return "", nil
	}
	v, err := f.c.Int("PRAGMA data_version")
	return strconv.FormatInt(v, 10), err
}

func (f *feed) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.c
	if f.c = nil; c == nil {
		return nil
	}
	return c.Close()
}

// Changes implements storekit.Feed. It returns all logs if anything was written.
func (s *Store) Changes(ctx context.Context, since string) (storekit.Changes, error) {
	ch := storekit.Changes{}
	// The version comes first: what is written meanwhile is reported twice, not
	// never.
	err := s.usable(ctx)
	if err == nil {
		ch.Now, err = s.feed.version()
	}
	if err != nil || ch.Now != "" && ch.Now == since {
		return ch, s.wrap(err)
	}
	ch.All = true
	add := func(id session.ID, last session.Seq) { ch.Logs = append(ch.Logs, storekit.Change{ID: id, Last: last}) }
	err = s.query(ctx, func(c *sqlx.Conn) error {
		return c.Each(func(r sqlx.Row) error { add(session.ID(r.Text(0)), session.Seq(r.Int(1))); return nil },
			"SELECT id, last FROM sessions WHERE trashed IS NULL")
	}, func(d *rescue.Database) error {
		ch.Logs = nil
		for _, l := range d.Sessions {
			if in := d.Info(l); in.Trashed.IsZero() {
				add(in.ID, in.Last)
			}
		}
		return nil
	})
	return ch, err
}
