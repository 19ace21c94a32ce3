package main

import (
	"context"
	"path/filepath"

	"goclaw/internal/config"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// indexAt says where the search index of st is: with the SQLite store in the
// database of the sessions (shared), with another one beside them.
func indexAt(c *config.Loaded, st session.Store) (path string, shared bool) {
	if _, ok := st.(*sqlite.Store); ok {
		return c.Session.Path, true
	}
	return filepath.Join(c.Home, "index.db"), false
}

// examineIndex returns what is wrong with the search index; if fix, it is made
// anew.
func (a *app) examineIndex(ctx context.Context, st session.Store, fix bool) ([]finding, error) {
	path, shared := indexAt(a.conf, st)
	wrong, err := recall.Examine(ctx, path, shared)
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
		out = append(out, finding{What: "search index", Problem: w, Hint: "goclaw doctor --fix makes it anew from the logs; so does the next search"})
	}
	return out, nil
}

// prune takes what was deleted out of a search index that lies beside the
// logs. One in the database of the logs has lost it already.
func (a *app) prune(ctx context.Context, st session.Store) error {
	if _, shared := indexAt(a.conf, st); shared {
		return nil
	}
	ix, err := a.index()
	if err != nil {
		return err
	}
	return ix.Prune(ctx)
}
