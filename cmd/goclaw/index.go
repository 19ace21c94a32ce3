package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"goclaw/internal/config"
	"goclaw/recall"
)

// indexAt says where the search index is: index.db in goclaw's home, or beside
// a database of sessions that lies elsewhere.
func indexAt(c *config.Loaded) string {
	path := c.Session.Path
	if c.Session.Store != "sqlite" || path == filepath.Join(c.Home, "sessions.db") {
		return filepath.Join(c.Home, "index.db")
	}
	return strings.TrimSuffix(path, ".db") + ".index.db"
}

// examineIndex returns what is wrong with the search index; if fix, it is made
// again.
func (a *app) examineIndex(ctx context.Context, fix bool) ([]finding, error) {
	wrong, err := recall.Examine(ctx, indexAt(a.conf))
	if err != nil || len(wrong) == 0 {
		return nil, err
	}
	if fix {
		ix, err := a.index()
		if err != nil {
			return nil, err
		}
		return nil, ix.Rebuild(ctx)
	}
	var out []finding
	for _, w := range wrong {
		out = append(out, finding{What: "search index", Problem: w, Hint: "goclaw doctor --fix makes it again from the logs; so does the next search"})
	}
	return out, nil
}

// prune takes the words of deleted sessions out of the search index. An index
// that cannot be written, because the disk is full, is removed: the next search
// makes a new one.
func (a *app) prune(ctx context.Context) error {
	path := indexAt(a.conf)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ix, err := a.index()
	if err == nil {
		err = ix.Prune(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return recall.Remove(path)
}
