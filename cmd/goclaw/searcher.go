package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"goclaw/internal/inherit"
	"goclaw/internal/permits"
	"goclaw/internal/progress"
	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/tool"
)

// searcher has the search index.
type searcher struct {
	*env
	stores    *stores.Stores
	ix        *recall.Index // nil until something is searched for
	indexing  *progress.Bar // of records; nil until the index is opened
	embedding *progress.Bar // of the vectors that the user waits for; nil: nobody does
	importing bool          // the progress of an import is shown, not that of the index
}

// hasIndex reports whether there is a search index. Versions before v0.5.0 kept that
// of a PostgreSQL in index.db: it is removed before the first of its own is made,
// unless the home has another store that may use it.
func (x *searcher) hasIndex() bool {
	there := func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	has, home := there(x.conf.IndexPath()), x.conf.Home
	old := filepath.Join(home, "index.db")
	if x.conf.Session.Store == "postgres" && !has && there(old) && !there(filepath.Join(home, "sessions.db")) && !there(filepath.Join(home, "sessions")) {
		if err := recall.Remove(old); err != nil {
			x.warn("could not remove the old search index: %s", transcript.Problem(err))
		}
	}
	return has
}

// index opens the search index once.
func (x *searcher) index() (*recall.Index, error) {
	if x.ix != nil {
		return x.ix, nil
	}
	st, err := x.stores.Open()
	if err != nil {
		return nil, err
	}
	c := x.conf
	x.indexing = newBar(x.env)
	o := recall.Options{
		Store: stores.Redacted(st), Path: c.IndexPath(), Workspace: c.Memory, Memory: slices.Concat(c.Search.Memory, c.Agents.Defaults.MemorySearch.ExtraPaths), Now: time.Now,
		Beside: beside(x.env), MemorySearch: func(agent string) recall.MemorySearch { return memorySearch(c, agent) },
		Private: func(path string) bool { return permits.Fence(c).Check(path) != nil },
		Progress: func(done, total int) {
			switch {
			case x.importing:
			case done >= total:
				x.indexing.End()
			default:
				x.indexing.Count("indexing", done, total, "records")
			}
		},
		Embedded: x.embedded,
	}
	switch c.Search.Embeddings {
	case "builtin":
		o.Embedder = recall.Local{}
	case "endpoint":
		o.Embedder = recall.Endpoint{URL: c.Search.BaseURL, Model: c.Search.Model, Key: c.Search.APIKey}
	}
	if c.Session.Store == "sqlite" {
		// It is tried each time: the last attempt may have failed.
		if err := recall.RemoveFrom(c.Session.Path); err != nil {
			x.warn("could not remove the old search index from the database: %s", transcript.Problem(err))
		}
	}
	x.hasIndex() // or removes an old one
	ix, err := recall.Open(o)
	if err != nil {
		return nil, err
	}
	x.ix = ix
	return ix, nil
}

// embedded shows how many vectors are made, if somebody waits for them.
func (x *searcher) embedded(made, total int) {
	if x.embedding != nil {
		x.embedding.Count("making vectors", made, total, "")
	}
}

// indexed imports cat as stores.Take does, and indexes it meanwhile if it is much. What
// cannot be indexed is indexed by the next search, which says why it cannot.
func (x *searcher) indexed(ctx context.Context, st stores.Store, cat *inherit.Catalogue, o inherit.ImportOptions, show bool) (inherit.Report, error) {
	x.importing = true
	if os.Getenv("GOGC") == "" {
		defer inherit.Frugally()()
	}
	bulk := recall.NewBulk(ctx, x.index)
	rep, err := x.stores.Take(ctx, st, cat, o, show, bulk.Grown)
	_ = bulk.Wait()
	x.importing = false
	return rep, err
}

// manyMissing is from how many messages without vectors on an import says so:
// fewer are made by the next searches.
const manyMissing = 500

// hint says how vectors of what was imported are made, if it was much.
func (x *searcher) hint(ctx context.Context) {
	if x.ix == nil {
		return
	}
	if n, err := x.ix.Missing(ctx); err == nil && n >= manyMissing {
		x.warn("goclaw search finds them by words; to find them by meaning too, goclaw search --index makes vectors of up to %s", transcript.Count(n, "message"))
	}
}

// addTools lets the model search memory files and past conversations. Without
// an index the conversation continues without them.
func (x *searcher) addTools(tools *tool.Set) error {
	ix, err := x.index()
	if err != nil {
		x.warn("the model cannot search: %s", transcript.Problem(err))
		return nil
	}
	for _, t := range ix.Tools() {
		if err := tools.Add(t); err != nil {
			return err
		}
	}
	return nil
}

// examine returns what is wrong with the search index. If fix, it is rebuilt.
func (x *searcher) examine(ctx context.Context, fix bool) ([]finding, error) {
	wrong, err := recall.Examine(ctx, x.conf.IndexPath())
	if err != nil || len(wrong) == 0 {
		return nil, err
	}
	if fix {
		ix, err := x.index()
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(ix.InMemory(), ix.Rebuild(ctx))
	}
	var out []finding
	for _, w := range wrong {
		out = append(out, finding{What: "search index", Problem: w, Hint: "goclaw doctor --fix rebuilds it from the logs; so does the next search"})
	}
	return out, nil
}

// renew brings the search index up to date with redactions, if there is one.
func (x *searcher) renew(ctx context.Context) error {
	path := x.conf.IndexPath()
	if !x.hasIndex() {
		return nil
	}
	ix, err := x.index()
	if err == nil {
		err = ix.InMemory()
	}
	if err == nil {
		_, _, err = ix.Count(ctx)
	}
	if err == nil {
		err = ix.Prune(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return recall.Remove(path)
}

// prune takes the words of deleted sessions out of the search index. An index
// that cannot be written, because the disk is full, is removed: the next search
// makes a new one.
func (x *searcher) prune(ctx context.Context) error {
	path := x.conf.IndexPath()
	if !x.hasIndex() {
		return nil
	}
	ix, err := x.index()
	if err == nil {
		err = errors.Join(ix.InMemory(), ix.Prune(ctx))
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return recall.Remove(path)
}
