package sqlite

import (
	"context"
	"strconv"
	"sync"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/storekit"
)

// feed is a connection that never writes, so that its data_version changes with
// every write of any other connection.
type feed struct {
	mu sync.Mutex
	c  *sqlx.Conn
}

// version returns a number that changes with every write.
func (f *feed) version(s *Store) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.c == nil {
		var err error
		if f.c, err = s.reader(); err != nil {
			return "", foreign(s.path, err)
		}
	}
	v, err := f.c.Int("PRAGMA data_version")
	return strconv.FormatInt(v, 10), s.wrap(err)
}

func (f *feed) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.c == nil {
		return nil
	}
	return f.c.Close()
}

// Changes implements storekit.Feed. It returns all logs if anything was written.
func (s *Store) Changes(ctx context.Context, since string) (storekit.Changes, error) {
	ch := storekit.Changes{}
	// The version comes first: what is written meanwhile is reported twice, not
	// never.
	err := s.lend(ctx, func(*sqlx.Conn) (err error) { ch.Now, err = s.feed.version(s); return err })
	if err != nil || ch.Now == since {
		return ch, err
	}
	ch.All = true
	if s.late == nil {
		err = s.lend(ctx, func(c *sqlx.Conn) error {
			return c.Each(func(r sqlx.Row) error {
				ch.Logs = append(ch.Logs, storekit.Change{ID: session.ID(r.Text(0)), Last: session.Seq(r.Int(1))})
				return nil
			}, "SELECT id, last FROM sessions WHERE trashed IS NULL")
		})
		if !unreadable(err) {
			return ch, err
		}
	}
	ch.Logs = nil
	for in, err := range s.List(ctx, session.Query{}) {
		if err != nil {
			return storekit.Changes{}, err
		}
		ch.Logs = append(ch.Logs, storekit.Change{ID: in.ID, Last: in.Last})
	}
	return ch, nil
}
