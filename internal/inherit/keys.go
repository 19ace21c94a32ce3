package inherit

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"sync/atomic"

	"goclaw/internal/inherit/source"
	"goclaw/session"
)

// A transcript that was imported both ways has two logs. The one that was asked
// for last has its key, the other one the key with one of these suffixes.
const (
	straight = ":strict"
	repaired = ":healed" // the word in keys of v0.1
)

// strictID begins the ids of logs that hold what pi would show.
const strictID = "strict-"

// named is the id of the log of the session id, for this way of reading.
func (im *importer) named(id session.ID) session.ID {
	if im.o.Strict {
		return strictID + id
	}
	return id
}

// isStrict reports whether in holds what pi would show of its source.
func isStrict(in session.Info) bool {
	return strings.Contains(strings.TrimSuffix(string(in.ID), string(in.Origin.ID)), strictID)
}

// strictRef ends the name of a strict import.
const strictRef = "#strict"

// ref names t in the memo.
func (im *importer) ref(t *Transcript) string {
	if im.o.Strict {
		return t.Ref() + strictRef
	}
	return t.Ref()
}

// keyOf is the key of the log of t. A key that contains t's id contains the
// log's id instead.
func keyOf(t *Transcript, log session.ID) session.Key {
	if log == t.ID || t.ID == "" || !isOther(t, log) || strings.Contains(string(t.Key), string(log)) {
		return t.Key
	}
	return session.Key(strings.ReplaceAll(string(t.Key), string(t.ID), string(log)))
}

// isOther reports whether log is t's otherID. The reason why t is an archive,
// which is part of that id, may have changed since.
func isOther(t *Transcript, log session.ID) bool {
	_, tail, _ := strings.Cut(string(otherID(t)), "-")
	return strings.HasSuffix(string(log), "-"+tail)
}

// rekey gives logs the keys and marks that their owners use now. The log of a transcript
// that its owner no longer lists keeps its key, unless it would then be the
// current log of a key that the owner has given to another.
func (im *importer) rekey(ctx context.Context, out []Outcome) error {
	holder := map[session.Key]session.ID{}
	var moves, marks []func() error
	for i := range out {
		o := &out[i]
		if o.Transcript == nil || o.State == Failed || o.State == Left || o.State == Trashed || o.State == Purged || o.State == Deleted {
			continue
		}
		if o.Listed {
			holder[o.Key] = o.Log
		}
		logs := im.family(o)
		for in, key := range im.wanted(o, logs) {
			moves = append(moves, func() error { return im.move(ctx, logs[in], key, o) })
		}
		for _, in := range logs {
			if in.Origin.Mark != o.Mark() {
				marks = append(marks, func() error { return im.mark(ctx, in.ID, o) })
			}
		}
	}
	if err := atOnce(smallWorkers, moves); err != nil {
		return err
	}
	if err := atOnce(smallWorkers, marks); err != nil {
		return err
	}
	for i := range out {
		o := &out[i]
		if o.Transcript == nil || !o.Unlisted {
			continue
		}
		for _, in := range im.family(o) {
			by, ok := holder[im.logs[in.ID].Key]
			if !ok || by == in.ID {
				continue
			}
			now, err := session.Stat(ctx, im.st, by)
			if err != nil {
				return err
			}
			if !in.Newer(now) {
				continue
			}
			if err := im.move(ctx, in, keyOf(o.Transcript, in.ID), o); err != nil {
				return err
			}
		}
	}
	return nil
}

// family returns the logs that hold o's transcript, older ones included, those
// in the trash not.
func (im *importer) family(o *Outcome) (out []session.Info) {
	add := func(in session.Info) {
		if in.Origin.Program == o.Program && in.Trashed.IsZero() {
			out = append(out, in)
		}
	}
	for _, in := range im.families[origin{path: source.Text(o.Path), id: o.ID}] {
		if sameArchive(in, o.Transcript) {
			add(im.logs[in.ID])
		}
	}
	in, known := im.logs[o.Log]
	switch {
	case !known && o.Records > 0: // begun now
		in = session.Info{ID: o.Log, Key: keyOf(o.Transcript, o.Log), Origin: o.Origin()}
		im.logs[o.Log] = in
		add(in)
	case known && in.Origin.Path != source.Text(o.Path) && im.moved(o.Log): // it lay elsewhere
		add(in)
	}
	return out
}

// wanted returns the keys that logs, which all hold o's transcript, must get.
func (im *importer) wanted(o *Outcome, logs []session.Info) map[int]session.Key {
	var ways [2]bool
	way := func(in session.Info) int {
		if isStrict(in) {
			return 1
		}
		return 0
	}
	bare := func(in session.Info) session.Key {
		return session.Key(strings.TrimSuffix(string(in.Key), []string{repaired, straight}[way(in)]))
	}
	now := 0
	if im.o.Strict {
		now = 1
	}
	for i := len(logs) - 1; i >= 0; i-- {
		in := logs[i]
		ways[way(in)] = true
		// Follow does not choose a way of reading: the log that has the key
		// keeps it. A log that was begun just now has no records in logs.
		if im.o.following && in.Records > 0 && bare(in) == in.Key {
			now = way(in)
		}
	}
	want := map[int]session.Key{}
	for i, in := range logs {
		key := in.Key
		if o.Listed {
			key = keyOf(o.Transcript, in.ID)
		} else if ways[0] && ways[1] {
			key = bare(in)
		}
		if ways[0] && ways[1] && way(in) != now {
			key += session.Key([]string{repaired, straight}[way(in)])
		}
		if key != in.Key {
			want[i] = key
		}
	}
	return want
}

// move gives a log another key.
func (im *importer) move(ctx context.Context, in session.Info, key session.Key, o *Outcome) error {
	now, err := session.Stat(ctx, im.st, in.ID)
	if err != nil || now.Key == key {
		return err
	}
	id := fmt.Sprintf("goclaw.key.%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %d", key, now.Last)))
	r := session.Record{Seq: now.Last + 1, ID: id, Parent: now.Leaf, Side: true, Time: now.Updated, Body: session.Moved{Key: key}}
	if err := im.append(ctx, in.ID, r); err != nil {
		return err
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	if in.ID == o.Log {
		o.Was = now.Key
	}
	known := im.logs[in.ID]
	known.Key = key
	im.logs[in.ID] = known
	return nil
}

// mark gives a log the mark of its transcript: it was archived since, or an older
// version imported it without one.
func (im *importer) mark(ctx context.Context, id session.ID, o *Outcome) error {
	now, err := session.Stat(ctx, im.st, id)
	if err != nil || now.Origin.Mark == o.Mark() {
		return err
	}
	name := fmt.Sprintf("goclaw.mark.%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %d", o.Mark(), now.Last)))
	return im.append(ctx, id, session.Record{Seq: now.Last + 1, ID: name, Parent: now.Leaf, Side: true, Time: now.Updated, Body: session.Marked{Mark: o.Mark()}})
}

// atOnce does the work in parallel, since appends share a sync of the disk. It
// returns the first error, after which no more work is begun.
func atOnce(workers int, work []func() error) error {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		fail atomic.Pointer[error]
	)
	for range min(workers, len(work)) {
		wg.Go(func() {
			for fail.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(work) {
					return
				}
				if err := work[i](); err != nil {
					fail.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := fail.Load(); err != nil {
		return *err
	}
	return nil
}
