package inherit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/session"
	"goclaw/watch"
)

// FollowOptions says how sources are followed. The zero value is fine, apart from
// Memo, without which every look reads everything.
type FollowOptions struct {
	Find   FindOptions
	Import ImportOptions
	// Poll is how often it is looked for what no event told of. 0: every
	// thirty seconds, or every two where the system cannot tell.
	Poll time.Duration
	// Taken is told of every look that has taken something, or has failed.
	Taken func(Report, error)
}

// settle is how long a source must be quiet before it is looked at: a program
// writes a turn in several pieces.
const settle = 150 * time.Millisecond

// Follow takes what the programs write in paths, as they write it, until ctx
// is done. What is there already is taken first. Where the system cannot tell
// of changes, it looks now and then.
func Follow(ctx context.Context, st session.Store, paths []string, o FollowOptions) error {
	w := watch.New()
	w.Every, w.Blind = o.Poll, o.Poll
	defer w.Close()
	o.Find.Memo = o.Import.Memo
	o.Import.following = true
	for {
		begin := time.Now()
		w.Look(func(see func(dir string, names ...string)) { show(paths, see) })
		rep, err := look(ctx, st, paths, o)
		took := time.Since(begin)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.Taken != nil && (err != nil || rep.Records()+rep.Moved() > 0) {
			o.Taken(rep, err)
		}
		if errors.Is(err, session.ErrClosed) {
			return err
		}
		// A large source is not read without a pause.
		quiet := max(settle, 2*took)
		if err := w.Wait(ctx, quiet, quiet); err != nil {
			return err
		}
	}
}

// look takes what is new now.
func look(ctx context.Context, st session.Store, paths []string, o FollowOptions) (Report, error) {
	cat, err := Find(ctx, paths, o.Find)
	if err != nil {
		return Report{}, err
	}
	defer cat.Close()
	return Import(ctx, st, cat, o.Import)
}

// show shows the folders of paths that may hold transcripts.
func show(paths []string, see func(dir string, names ...string)) {
	for _, p := range paths {
		fi, err := os.Stat(p)
		switch {
		case err != nil:
			continue
		case !fi.IsDir():
			see(filepath.Dir(p))
			continue
		}
		state := false
		if fi, err := os.Stat(filepath.Join(p, "agents")); err == nil {
			state = fi.IsDir()
		}
		_ = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir():
				return nil
			case beside[d.Name()], state && filepath.Dir(path) == p && !slices.Contains(source.SessionFolders, d.Name()):
				return filepath.SkipDir
			}
			see(path)
			return nil
		})
	}
}
