// Package recall finds again what was said: in the transcripts of all
// sessions, and in the memory files of a workspace.
//
// The ranking is BM25 over words and their stems with the neighbouring
// messages as context, speakers and dates understood, together with vectors
// from a model that is part of the program (package embed) or any other
// Embedder. A query is text: nothing in it is syntax.
//
// The index is a projection in a file of its own: segments of postings, made of
// what was appended, each written in one transaction.
// What no segment holds yet is read from the log itself by every search, so
// that a message can be found from the moment on that it is appended, and a
// process that is killed leaves nothing to repair but a segment to be written
// later. A session that goes into the trash takes every segment with its
// words along; the rest of those is indexed again.
package recall

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"goclaw/internal/sqlx"
	"goclaw/internal/watch"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Options say what is searched.
type Options struct {
	// Store holds the transcripts; nil: there are none.
	Store session.Store
	// Path is the file of the index, made if it is missing; "": in memory. It
	// holds nothing else.
	Path string
	// Workspace is the folder of the memory files; "": there are none. Memory
	// names more files and folders of it than MEMORY.md and memory/.
	Workspace string
	Memory    []string
	// Private reports whether a file of the workspace must not be read; nil:
	// none is.
	Private func(path string) bool
	// Embedder makes vectors; nil: words alone decide.
	Embedder Embedder
	// Now is the time that "yesterday" is understood by, and its zone the one
	// that tools speak in.
	Now func() time.Time
	// Progress is told while much is indexed: how many of how many records.
	Progress func(done, total int)
	// Embedded is told while vectors are made: how many were.
	Embedded func(made int)
}

// Index searches. It may be used by many goroutines.
type Index struct {
	o Options

	mu      sync.Mutex
	db      *db
	logs    map[session.ID]storekit.Change // of the store, up to position
	now     string                         // the position in the store's changes
	version int64                          // of the database, as tail and segs know it
	fresh   bool                           // they know it
	segs    map[int64]*segment
	tail    *segment
	ids     map[uint32]session.ID // by group
	behind  int                   // records that could not be written to segments
	unread  map[session.ID]error  // logs that could not be read, or not to their end
	checked bool                  // that what the tables say of each other is true
	aside   error                 // why the index is not where it belongs, but in memory
	memory  memory
	codes   map[int64][]byte // chunks read, for one search

	patience time.Duration // with a model that is asked for a question's vector

	shut chan struct{}
	once sync.Once // closes shut
	work sync.WaitGroup

	begin     sync.Mutex     // before shut is closed, or work is added
	begun     bool           // Background
	watcher   *watch.Watcher // of the memory files; nil: a new one
	embedding sync.Mutex     // of notes: not twice at the same time
}

// Sizes of segments. What is behind is searched as it is until it is worth a
// segment; small segments are joined when there are many.
const (
	flushAt  = 256       // records
	maxDocs  = 128 << 10 // messages in a segment
	maxBytes = 6 << 20   // of postings in a segment: what building it takes of memory is bounded
	maxSmall = 8         // segments of one size
)

// Open opens the index. It reads nothing yet.
func Open(o Options) (*Index, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d, aside := openDB(o.Path)
	if unwritable(aside) {
		// What is there cannot be used, and nothing can be written: the logs
		// can be read.
		var err error
		if d, err = openDB(""); err != nil {
			return nil, err
		}
	} else if aside != nil {
		return nil, aside
	}
	ix := &Index{o: o, db: d, segs: map[int64]*segment{}, ids: map[uint32]session.ID{}, unread: map[session.ID]error{}, shut: make(chan struct{}), aside: aside, patience: patience}
	ix.memory.private = o.Private
	if o.Embedder != nil {
		if err := ix.model(); err != nil {
			d.Close()
			return nil, err
		}
	}
	return ix, nil
}

// model drops the vectors of another model.
func (ix *Index) model() error {
	name := ix.o.Embedder.Name()
	if have, err := ix.db.meta("model"); err != nil || have == name {
		return err
	}
	return ix.db.Within(func() error {
		if err := ix.db.dropVectors(); err != nil {
			return err
		}
		return ix.db.Run("INSERT OR REPLACE INTO recall_meta VALUES ('model', ?)", name)
	})
}

// Close ends what runs in the background and closes the index.
func (ix *Index) Close() error {
	// Whoever works holds the lock: it is told to end before it is waited for.
	ix.once.Do(func() {
		ix.begin.Lock()
		defer ix.begin.Unlock()
		close(ix.shut)
	})
	ix.work.Wait()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return nil
	}
	err := ix.db.Close()
	ix.db = nil
	return err
}

// Sync brings the index up to date, as every search does.
func (ix *Index) Sync(ctx context.Context) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.sync(ctx)
}

// lag is a session with records that no segment holds.
type lag struct {
	id         session.ID
	n          int64 // 0: not known yet
	last, have session.Seq
	gen        int64
}

// sync makes segs and tail what the log is now.
func (ix *Index) sync(ctx context.Context) error {
	if ix.db == nil {
		return session.ErrClosed
	}
	if ix.o.Store == nil {
		return nil
	}
	defer ix.db.interrupted(ctx)()
	changed, err := ix.follow(ctx)
	if err != nil {
		return err
	}
	version, err := ix.db.Int("PRAGMA data_version")
	if err != nil {
		return err
	}
	if ix.fresh && !changed && version == ix.version {
		return nil
	}
	ix.version = version
	if err := ix.check(); err != nil {
		return err
	}
	ix.unread = map[session.ID]error{}
	lags, err := ix.lags()
	if err != nil {
		return err
	}
	total := 0
	for _, l := range lags {
		total += int(l.last - l.have)
	}
	ix.behind = 0
	if total >= flushAt {
		switch err := ix.flush(ctx, lags, total); {
		case unwritable(err):
			ix.behind = total // searched as it is
		case err != nil:
			return err
		default:
			if lags, err = ix.lags(); err != nil {
				return err
			}
		}
	}
	if err := ix.loadSegments(); err != nil {
		return err
	}
	b := newBuilder()
	slices.SortFunc(lags, func(a, b lag) int { return int(a.n - b.n) })
	for _, l := range lags {
		err := ix.gaps(l, func(from, to session.Seq) error {
			if err := ix.read(ctx, b, l, from, to); err != nil {
				return ix.unreadable(ctx, l.id, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	ix.tail = b.segment()
	ix.fresh = true
	return nil
}

// follow asks the store what changed, and reports whether anything did.
func (ix *Index) follow(ctx context.Context) (changed bool, err error) {
	ch, err := storekit.ChangesOf(ctx, ix.o.Store, ix.now)
	if err != nil {
		return false, err
	}
	ix.now = ch.Now
	if ch.All || ix.logs == nil {
		ix.logs = make(map[session.ID]storekit.Change, len(ch.Logs))
	}
	for _, l := range ch.Logs {
		if l.Gone {
			delete(ix.logs, l.ID)
		} else {
			ix.logs[l.ID] = l
		}
	}
	return ch.All || len(ch.Logs) > 0, nil
}

// known returns the sessions that the index has heard of.
func (ix *Index) known() (map[session.ID]lag, error) {
	known := map[session.ID]lag{}
	err := ix.db.Each(func(s sqlx.Row) error {
		id := session.ID(s.ColumnText(1))
		known[id] = lag{id: id, n: s.ColumnInt64(0), have: session.Seq(s.ColumnInt64(2)), gen: s.ColumnInt64(3)}
		return nil
	}, "SELECT n, id, have, gen FROM recall_sessions")
	return known, err
}

// forget removes from the index what is in the trash, purged, or another log
// under the same id, and reports whether there was any.
func (ix *Index) forget(known map[session.ID]lag) (bool, error) {
	var gone []int64
	for id, l := range known {
		now, ok := ix.logs[id]
		if !ok || l.have > now.Last || l.gen != int64(now.Written) {
			gone = append(gone, l.n)
		}
	}
	if len(gone) == 0 {
		return false, nil
	}
	ix.fresh = false
	return true, ix.db.Within(func() error {
		for _, n := range gone {
			if err := ix.db.Run("DELETE FROM recall_sessions WHERE n = ?", n); err != nil {
				return err
			}
		}
		return nil
	})
}

// lags returns the sessions that are not in the trash and have records that
// no segment holds. Each has a number afterwards.
func (ix *Index) lags() ([]lag, error) {
	known, err := ix.known()
	if err != nil {
		return nil, err
	}
	// Segments go with their words, and others may have been in them.
	forgot, err := ix.forget(known)
	if err == nil && forgot {
		known, err = ix.known()
	}
	if err != nil {
		return nil, err
	}
	var out []lag
	for id, now := range ix.logs {
		if l := known[id]; l.have < now.Last {
			l.id, l.last, l.gen = id, now.Last, int64(now.Written)
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b lag) int { return cmp.Compare(a.id, b.id) })
	// Those that are new get a number, in one transaction; where nothing can
	// be written, for this search only.
	if slices.ContainsFunc(out, func(l lag) bool { return l.n == 0 }) {
		_ = ix.db.Within(func() error {
			for i := range out {
				if out[i].n != 0 {
					continue
				}
				if err := ix.db.Run("INSERT OR IGNORE INTO recall_sessions (id, gen) VALUES (?, ?)", string(out[i].id), out[i].gen); err != nil {
					return err
				}
				var err error
				if out[i].n, err = ix.db.Int("SELECT n FROM recall_sessions WHERE id = ?", string(out[i].id)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for i := range out {
		if out[i].n == 0 {
			out[i].n = 1<<31 + int64(i)
		}
		ix.ids[uint32(out[i].n)] = out[i].id
	}
	return out, nil
}

// gaps calls f for the records of l that no segment holds.
func (ix *Index) gaps(l lag, f func(from, to session.Seq) error) error {
	var gaps [][2]session.Seq
	at := session.Seq(0)
	err := ix.db.Each(func(s sqlx.Row) error {
		since, upto := session.Seq(s.ColumnInt64(0)), session.Seq(s.ColumnInt64(1))
		if since > at+1 {
			gaps = append(gaps, [2]session.Seq{at + 1, since - 1})
		}
		at = max(at, upto)
		return nil
	}, "SELECT since, upto FROM recall_in WHERE session = ? ORDER BY since", l.n)
	if err != nil {
		return err
	}
	if at < l.last {
		gaps = append(gaps, [2]session.Seq{at + 1, l.last})
	}
	for _, g := range gaps {
		if err := f(g[0], g[1]); err != nil {
			return err
		}
	}
	return nil
}

// unreadable notes that the log id cannot be read on, because of err. What
// lies behind is not indexed, and the next one who looks tries again. It
// returns an error if it is ctx that has ended.
func (ix *Index) unreadable(ctx context.Context, id session.ID, err error) error {
	if ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
		return err
	}
	ix.unread[id] = err
	return nil
}

// read adds the records from to to of l to b.
func (ix *Index) read(ctx context.Context, b *builder, l lag, from, to session.Seq) error {
	return readSaid(ctx, ix.o.Store, part{l, from, to}, func(_ part, said []said) error {
		for _, s := range said {
			b.add(uint32(l.n), s)
		}
		return nil
	})
}

// part is a range of records in a segment.
type part struct {
	lag
	from, to session.Seq
}

// What is read at once: it is all in memory.
const (
	partSize  = 1024      // records
	partBytes = 256 << 10 // of text; one record may have as much
)

// readSaid calls f for one part of p after the other, with what its records
// say. What cannot be read says nothing.
func readSaid(ctx context.Context, st session.Store, p part, f func(p part, said []said) error) error {
	var out []said
	size := 0
	for r, err := range st.Read(ctx, p.id, p.from-1) {
		var d *session.Damage
		switch {
		case errors.As(err, &d):
			continue
		case errors.Is(err, session.ErrNotFound): // purged in the meantime
			return f(p, out)
		case err != nil:
			return err
		case r.Seq >= p.to:
			if s, ok := speak(r); ok && r.Seq == p.to {
				out = append(out, s)
			}
			return f(p, out)
		}
		if s, ok := speak(r); ok {
			out = append(out, s)
			size += len(s.text)
		}
		if r.Seq-p.from >= partSize || size >= partBytes {
			if err := f(part{p.lag, p.from, r.Seq}, out); err != nil {
				return err
			}
			p.from, out, size = r.Seq+1, nil, 0
		}
	}
	return f(p, out)
}

// flush writes what is behind into segments. The log is read beside.
func (ix *Index) flush(ctx context.Context, lags []lag, total int) error {
	slices.SortFunc(lags, func(a, b lag) int { return int(a.n - b.n) })
	var todo []part
	for _, l := range lags {
		err := ix.gaps(l, func(from, to session.Seq) error {
			todo = append(todo, part{l, from, to})
			return nil
		})
		if err != nil {
			return err
		}
	}
	type answer struct {
		part
		said []said
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	read := make(chan answer, 4)
	go func() {
		defer close(read)
		send := func(a answer) error {
			select {
			case read <- a:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, p := range todo {
			err := readSaid(ctx, ix.o.Store, p, func(p part, said []said) error { return send(answer{p, said, nil}) })
			if err != nil && send(answer{part: p, err: err}) != nil {
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range read { // wait for the reader
		}
	}()
	b, parts, done := newBuilder(), []part(nil), 0
	write := func() error {
		err := ix.write(b, parts)
		b, parts = newBuilder(), nil
		if ix.o.Progress != nil {
			ix.o.Progress(done, total)
		}
		return err
	}
	for a := range read {
		if a.err != nil {
			if err := ix.unreadable(ctx, a.id, a.err); err != nil {
				return err
			}
			continue
		}
		for _, s := range a.said {
			b.add(uint32(a.n), s)
		}
		done += int(a.to - a.from + 1)
		parts = addPart(parts, a.part)
		if b.full() {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(parts) > 0 {
		if err := write(); err != nil {
			return err
		}
	}
	return ix.join(ctx)
}

// addPart adds p, to the last one if it goes on there.
func addPart(parts []part, p part) []part {
	if n := len(parts); n > 0 && parts[n-1].n == p.n && parts[n-1].to+1 == p.from {
		parts[n-1].to = p.to
		return parts
	}
	return append(parts, p)
}

// errTaken says that another process has indexed the same.
var errTaken = errors.New("recall: indexed by another")

// write writes one segment.
func (ix *Index) write(b *builder, parts []part) error {
	err := ix.db.Within(func() error {
		for _, p := range parts {
			if err := ix.free(p); err != nil {
				return err
			}
		}
		return ix.insert(b, parts)
	})
	if errors.Is(err, errTaken) {
		return nil // what is still behind is seen by the next one who looks
	}
	return err
}

// free checks that p is still to be indexed.
func (ix *Index) free(p part) error {
	taken, err := ix.db.Int(`SELECT count(*) FROM recall_in WHERE session = ? AND since <= ? AND upto >= ?`, p.n, int64(p.to), int64(p.from))
	if err != nil {
		return err
	}
	known, err := ix.db.Int("SELECT count(*) FROM recall_sessions WHERE n = ?", p.n)
	if err != nil {
		return err
	}
	if taken > 0 || known == 0 {
		return errTaken
	}
	return nil
}

func (ix *Index) insert(b *builder, parts []part) error {
	if err := ix.db.Run("INSERT INTO recall_segments (size, words, docs) VALUES (?, ?, ?)", len(b.docs), b.words, encodeDocs(b.docs)); err != nil {
		return err
	}
	seg := ix.db.LastInsertRowID()
	var firsts []byte
	pos := seg << 32
	err := b.blocks(func(first string, data []byte) error {
		firsts = append(binary.AppendUvarint(firsts, uint64(len(first))), first...)
		pos++
		return ix.db.Run("INSERT INTO recall_terms VALUES (?, ?)", pos, data)
	})
	if err != nil {
		return err
	}
	if err := ix.db.Run("INSERT INTO recall_terms VALUES (?, ?)", seg<<32, firsts); err != nil {
		return err
	}
	for _, p := range parts {
		if err := ix.db.Run("INSERT INTO recall_in VALUES (?, ?, ?, ?)", p.n, int64(p.from), int64(p.to), seg); err != nil {
			return err
		}
		if err := ix.db.Run("UPDATE recall_sessions SET have = have + ? WHERE n = ?", int64(p.to-p.from+1), p.n); err != nil {
			return err
		}
	}
	return nil
}

// join makes one segment of those of one size, where there are many: of those
// with fewer than 2048 docs, and of those with fewer than 16384. A posting is
// a word or more, and takes a byte or two: by its words a segment is bounded.
func (ix *Index) join(ctx context.Context) error {
	for _, limit := range []int{2048, 16384} {
		var segs []int64
		size, words := 0, 0
		err := ix.db.Each(func(s sqlx.Row) error {
			docs, n := int(s.ColumnInt64(1)), int(s.ColumnInt64(2))
			if size+docs <= maxDocs && words+n <= maxBytes {
				segs, size, words = append(segs, s.ColumnInt64(0)), size+docs, words+n
			}
			return nil
		}, "SELECT seg, size, words FROM recall_segments WHERE size < ? AND words < ? ORDER BY seg", limit, maxBytes/maxSmall)
		if err != nil {
			return err
		}
		if len(segs) < maxSmall {
			continue
		}
		if err := ix.rewrite(ctx, segs); err != nil {
			return err
		}
	}
	return nil
}

// rewrite indexes again, as one segment, what lies in segs.
func (ix *Index) rewrite(ctx context.Context, segs []int64) error {
	var parts []part
	for _, seg := range segs {
		err := ix.db.Each(func(s sqlx.Row) error {
			parts = append(parts, part{lag{id: session.ID(s.ColumnText(1)), n: s.ColumnInt64(0)}, session.Seq(s.ColumnInt64(2)), session.Seq(s.ColumnInt64(3))})
			return nil
		}, "SELECT session, id, since, upto FROM recall_in JOIN recall_sessions ON n = session WHERE seg = ?", seg)
		if err != nil {
			return err
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		if a.n != b.n {
			return int(a.n - b.n)
		}
		return int(a.from - b.from)
	})
	joined := parts[:0:0]
	b := newBuilder()
	for _, p := range parts {
		if err := ix.read(ctx, b, p.lag, p.from, p.to); err != nil {
			return ix.unreadable(ctx, p.id, err) // they stay as they are
		}
		joined = addPart(joined, p)
	}
	err := ix.db.Within(func() error {
		for _, seg := range segs {
			if n, err := ix.db.Int("SELECT count(*) FROM recall_segments WHERE seg = ?", seg); err != nil {
				return err
			} else if n == 0 {
				return errTaken
			}
			if err := ix.db.Run("DELETE FROM recall_segments WHERE seg = ?", seg); err != nil {
				return err
			}
		}
		for _, p := range joined {
			if err := ix.free(p); err != nil {
				return err
			}
		}
		return ix.insert(b, joined)
	})
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// loadSegments makes segs those that are in the database.
func (ix *Index) loadSegments() error {
	there := map[int64]bool{}
	var add []int64
	err := ix.db.Each(func(s sqlx.Row) error {
		seg := s.ColumnInt64(0)
		there[seg] = true
		if ix.segs[seg] == nil {
			add = append(add, seg)
		}
		return nil
	}, "SELECT seg FROM recall_segments")
	if err != nil {
		return err
	}
	for seg := range ix.segs {
		if !there[seg] {
			delete(ix.segs, seg)
		}
	}
	for _, seg := range add {
		if err := ix.loadSegment(seg); err != nil {
			return err
		}
	}
	if len(add) > 0 {
		return ix.db.Each(func(s sqlx.Row) error {
			ix.ids[uint32(s.ColumnInt64(0))] = session.ID(s.ColumnText(1))
			return nil
		}, "SELECT n, id FROM recall_sessions")
	}
	return nil
}

func (ix *Index) loadSegment(seg int64) error {
	var docs []doc
	words := 0
	err := ix.db.Each(func(s sqlx.Row) (err error) {
		words = int(s.ColumnInt64(0))
		docs, err = decodeDocs(s.ColumnRawBlob(1))
		return err
	}, "SELECT words, docs FROM recall_segments WHERE seg = ?", seg)
	if err != nil {
		return &segmentError{seg, err}
	}
	data, err := ix.db.Blob("SELECT data FROM recall_terms WHERE pos = ?", seg<<32)
	if err != nil {
		return err
	}
	firsts, err := decodeFirsts(data)
	if data == nil {
		err = errPostings
	}
	if err != nil {
		return &segmentError{seg, err}
	}
	ix.segs[seg] = &segment{seg: seg, docs: docs, words: words, postings: func(t string) ([]byte, error) {
		n, ok := slices.BinarySearch(firsts, t)
		if ok {
			n++
		}
		if n == 0 {
			return nil, nil
		}
		block, err := ix.db.Blob("SELECT data FROM recall_terms WHERE pos = ?", seg<<32|int64(n))
		if err != nil {
			return nil, err
		}
		if len(block) == 0 {
			return nil, &segmentError{seg, errPostings}
		}
		list, err := listOf(block, t)
		if err != nil {
			return nil, &segmentError{seg, err}
		}
		return list, nil
	}}
	return nil
}

// segmentError is damage of one segment.
type segmentError struct {
	seg int64
	err error
}

func (e *segmentError) Error() string {
	return fmt.Sprintf("segment %d of the index: %v", e.seg, e.err)
}
func (e *segmentError) Unwrap() error { return e.err }

// repair drops segments that cannot be read: what they held is behind, and is
// indexed again. If it is not known which they are, all are made again; if
// everything of the index can be read, it is not what is damaged.
func (ix *Index) repair(err error) error {
	var se *segmentError
	ix.fresh = false
	clear(ix.segs)
	if errors.As(err, &se) {
		return ix.db.Within(func() error { return ix.db.Run("DELETE FROM recall_segments WHERE seg = ?", se.seg) })
	}
	if ix.db.readable() == nil {
		return err
	}
	return ix.rebuild()
}

// rebuild makes the index empty: all of it is behind.
func (ix *Index) rebuild() error {
	ix.fresh, ix.checked, ix.memory.codes = false, false, nil
	clear(ix.segs)
	clear(ix.ids)
	d, err := ix.db.rebuild(ix.o.Path)
	if err != nil {
		return err
	}
	ix.db = d
	if ix.o.Embedder == nil {
		return nil
	}
	return ix.model()
}

// check holds what the tables say of each other against each other, once: a
// session that claims to be in segments that are not there would never be
// found, nor missed.
func (ix *Index) check() error {
	if ix.checked {
		return nil
	}
	wrong, err := ix.db.contradictions()
	if err == nil && wrong != "" {
		err = ix.rebuild()
	}
	if unwritable(err) {
		return &contradictionError{wrong}
	}
	ix.checked = err == nil
	return err
}

// contradictionError is what cannot be mended now.
type contradictionError struct{ wrong string }

func (e *contradictionError) Error() string { return "the index contradicts itself: " + e.wrong }

// Examine returns what is wrong with the index at path, in sentences. It
// changes nothing. What is not there is not wrong: the first search makes it.
func Examine(ctx context.Context, path string) (wrong []string, err error) {
	d, err := look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("recall: the index in %s: %w", path, err)
	}
	defer d.Close()
	defer d.interrupted(ctx)()
	switch n, err := d.Int("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'recall_*'"); {
	case damaged(err):
		return []string{err.Error()}, nil
	case err != nil || n == 0:
		return nil, err
	}
	switch ok, err := d.complete(); {
	case err != nil:
		return []string{err.Error()}, ctx.Err()
	case !ok:
		return []string{"a part of it is missing, or of another version"}, nil
	}
	if err := d.readable(); err != nil {
		return []string{err.Error()}, ctx.Err()
	}
	w, err := d.contradictions()
	if err != nil {
		return nil, err
	}
	if w != "" {
		wrong = append(wrong, w)
	}
	ix := &Index{db: d, segs: map[int64]*segment{}, ids: map[uint32]session.ID{}}
	if err := ix.loadSegments(); err != nil {
		return append(wrong, err.Error()), ctx.Err()
	}
	for _, seg := range slices.Sorted(maps.Keys(ix.segs)) {
		if err := ix.examine(ix.segs[seg]); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong, ctx.Err()
}

// examine reads every list of s.
func (ix *Index) examine(s *segment) error {
	var ps []posting
	err := ix.db.Each(func(st sqlx.Row) error {
		for block := st.ColumnRawBlob(0); len(block) > 0; {
			_, rest, ok := cut(block)
			if !ok {
				return errPostings
			}
			var list []byte
			if list, block, ok = cut(rest); !ok {
				return errPostings
			}
			var err error
			if ps, err = decode(list, len(s.docs), ps[:0]); err != nil {
				return err
			}
		}
		return nil
	}, "SELECT data FROM recall_terms WHERE pos > ? AND pos < ?", s.seg<<32, (s.seg+1)<<32)
	if err != nil {
		return &segmentError{s.seg, err}
	}
	return nil
}

// Rebuild makes the index anew, from the logs.
func (ix *Index) Rebuild(ctx context.Context) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return session.ErrClosed
	}
	if err := ix.rebuild(); err != nil {
		return err
	}
	return ix.sync(ctx)
}

// Prune takes what is no longer in the store out of the index, and its words
// out of the file.
func (ix *Index) Prune(ctx context.Context) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return session.ErrClosed
	}
	if ix.o.Store != nil {
		if _, err := ix.follow(ctx); err != nil {
			return err
		}
		if _, err := ix.lags(); err != nil {
			return err
		}
	}
	return ix.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

// Count returns how many messages and notes the index holds.
func (ix *Index) Count(ctx context.Context) (messages, notes int, err error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if err := ix.sync(ctx); err != nil {
		return 0, 0, err
	}
	for _, s := range ix.segs {
		messages += len(s.docs)
	}
	if ix.tail != nil {
		messages += len(ix.tail.docs)
	}
	if ix.o.Workspace != "" {
		if _, err := ix.memory.sync(ix.o.Workspace, ix.o.Memory, nil); err != nil {
			return messages, 0, err
		}
	}
	for _, f := range ix.memory.order {
		notes += len(f.notes)
	}
	return messages, notes, nil
}

// Size returns how many bytes of the index's file are in use.
func (ix *Index) Size() (int64, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return 0, session.ErrClosed
	}
	var used [3]int64
	for i, name := range []string{"page_count", "freelist_count", "page_size"} {
		var err error
		if used[i], err = ix.db.Int("PRAGMA " + name); err != nil {
			return 0, err
		}
	}
	return (used[0] - used[1]) * used[2], nil
}
