package inherit

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"goclaw/internal/watch"
	"goclaw/session"
)

// FollowOptions say how sources are followed. The zero value is fine, but without
// a Memo every look reads everything.
type FollowOptions struct {
	Find   FindOptions
	Import ImportOptions
	// Poll is how often to look for changes without an event. 0: every thirty
	// seconds, or every two if the system reports no changes.
	Poll time.Duration
	// Imported is called after each look that imported something or failed.
	Imported func(Report, error)
}

// settle is how long a source must be quiet before it is looked at: a program
// writes a turn in several pieces.
const settle = 150 * time.Millisecond

// Follow imports what the programs write in roots, as they write it, until ctx is
// done. It begins with what is there already. Where the system reports no changes,
// it looks now and then.
func Follow(ctx context.Context, st session.Store, roots []Root, o FollowOptions) error {
	w := watch.New()
	w.Every, w.Blind = o.Poll, o.Poll
	defer w.Close()
	for {
		begin := time.Now()
		w.Look(func(see func(dir string, names ...string)) { show(roots, o.Find, see) })
		rep, err := Look(ctx, st, roots, o)
		took := time.Since(begin)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.Imported != nil && (err != nil || rep.Records()+rep.Moved() > 0) {
			o.Imported(rep, err)
		}
		if errors.Is(err, session.ErrClosed) {
			return err
		}
		// Pause in proportion: a large source takes long to read.
		quiet := max(settle, 2*took)
		if err := w.Wait(ctx, quiet, quiet); err != nil {
			return err
		}
	}
}

// Look imports what is new in roots. If nothing has changed there, as far as the
// memo knows, the store is not even asked.
func Look(ctx context.Context, st session.Store, roots []Root, o FollowOptions) (all Report, err error) {
	o.Find.Memo = o.Import.Memo
	o.Import.following = true
	by := map[string][]string{}
	for _, r := range roots {
		by[r.From] = append(by[r.From], r.Path)
	}
	for _, from := range slices.Sorted(maps.Keys(by)) {
		o.Find.From = from
		rep, err := look(ctx, st, by[from], o)
		all.Outcomes, all.Took = append(all.Outcomes, rep.Outcomes...), all.Took+rep.Took
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func look(ctx context.Context, st session.Store, paths []string, o FollowOptions) (Report, error) {
	cat, err := Find(ctx, paths, o.Find)
	if err != nil {
		return Report{}, err
	}
	defer cat.Close()
	if o.Import.Memo != nil && o.Import.Memo.settled(cat) {
		return Report{}, nil
	}
	return Import(ctx, st, cat, o.Import)
}

// show shows the folders of roots that may hold transcripts. Of a program's
// folder that holds much else, only those with sessions.
func show(roots []Root, o FindOptions, see func(dir string, names ...string)) {
	f := &finder{o: o, c: &Catalogue{}, sources: newSources(o.Sources)}
	for _, r := range roots {
		p := r.Path
		fi, err := os.Stat(p)
		switch {
		case err != nil:
			continue
		case !fi.IsDir():
			see(filepath.Dir(p))
			continue
		}
		only := map[string][]string{} // what matters in a folder, if not everything does
		_ = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			if names, some := only[filepath.Dir(path)]; skipped[d.Name()] || some && path != p && !slices.Contains(names, d.Name()) {
				return filepath.SkipDir
			}
			see(path)
			if names, elsewhere, ok := f.inside(path); ok {
				only[path] = names
				for _, dir := range elsewhere {
					see(dir)
				}
			}
			return nil
		})
	}
}
