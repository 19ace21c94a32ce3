package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"goclaw/recall/internal/postings"
	"goclaw/session"
	"goclaw/session/storekit"
)

// flushAt is from how many records on what is missing from the index is
// written to a segment. Until then searches read it from the log.
const flushAt = 256

// transcripts is the index of the messages of a store.
type transcripts struct {
	store    session.Store
	progress func(done, total int)
	rebuilt  func() error // is called when the file was rebuilt, empty

	db       *postings.DB // nil: closed
	path     string       // of its file
	inMemory error        // why the index is in memory and not in its file

	logs     map[session.ID]storekit.Change // of the store, up to position
	position string                         // in the store's changes

	// What segs, tail, people and ids know. fresh says that they know all of
	// it, version which state of the file they are of.
	fresh   bool
	version int64
	loads   int // how often they were read
	segs    map[int64]*postings.Segment
	tail    *postings.Segment     // what is in no segment of the file
	people  map[uint32]bool       // the groups in which people talk to each other
	ids     map[uint32]session.ID // by group

	// more says that more is appended soon: then builder is kept, with the words
	// that it knows.
	more    bool
	builder *postings.Builder

	redacted  map[session.ID]bool  // logs of which the index may hold what a redaction took out
	unknown   map[session.ID]bool  // logs that the index knew nothing of before
	unwritten int                  // records that could not be written to segments
	unread    map[session.ID]error // logs that could not be read, or not to their end
	checked   bool                 // that the tables do not contradict each other
}

// openTranscripts opens the index of store in the file at path.
func openTranscripts(store session.Store, path string) (*transcripts, error) {
	t := &transcripts{store: store, path: path, segs: map[int64]*postings.Segment{}, ids: map[uint32]session.ID{}, unread: map[session.ID]error{}}
	t.db, t.inMemory = postings.Open(path)
	if t.inMemory == nil || path == "" {
		return t, t.inMemory
	}
	// The file cannot be used, whatever is there: the logs can be read.
	var err error
	t.db, err = postings.Open("")
	return t, err
}

// sync makes segs and tail what the logs are now.
func (t *transcripts) sync(ctx context.Context) error {
	if t.store == nil {
		return nil
	}
	changed, err := t.follow(ctx)
	if err != nil {
		return err
	}
	version, err := t.db.Int("PRAGMA data_version")
	if err != nil {
		return err
	}
	if t.fresh && !changed && version == t.version {
		return nil
	}
	t.version = version
	if err := t.check(); err != nil {
		return err
	}
	t.redacted, t.unknown = map[session.ID]bool{}, map[session.ID]bool{}
	if err := t.renew(ctx, flushAt); err != nil || len(t.redacted) == 0 {
		return err
	}
	// A redaction may be about records that were indexed before, or have vectors:
	// they are indexed again, without what it took out, and with the redaction,
	// which says no more about what comes later.
	if err := t.forgetRedacted(); err != nil {
		if postings.Unwritable(err) {
			return nil // what is shown is redacted all the same
		}
		return err
	}
	return t.renew(ctx, 1)
}

// forgetRedacted removes from the index the logs that have a new redaction.
func (t *transcripts) forgetRedacted() error {
	known, err := t.db.Sessions()
	if err != nil {
		return err
	}
	var numbers []int64
	for id := range t.redacted {
		if s, ok := known[id]; ok {
			numbers = append(numbers, s.N)
		}
	}
	t.fresh = false
	return t.db.Forget(numbers)
}

// renew indexes what is missing, if it is enough records, and loads the rest.
func (t *transcripts) renew(ctx context.Context, enough int) error {
	t.unread = map[session.ID]error{}
	missing, total, err := t.missing()
	if err != nil {
		return err
	}
	t.unwritten = 0
	if total >= enough {
		switch err := t.flush(ctx, missing, total); {
		case postings.Unwritable(err):
			t.unwritten = total // they are searched without an index
		case err != nil:
			return err
		default:
			if missing, _, err = t.missing(); err != nil {
				return err
			}
		}
	}
	return t.load(ctx, missing)
}

// load reads the segments that are new, and from the logs what is missing.
func (t *transcripts) load(ctx context.Context, missing []postings.Part) error {
	news, err := t.db.Refresh(t.segs)
	if err != nil {
		return err
	}
	if news {
		known, err := t.db.Sessions()
		if err != nil {
			return err
		}
		for id, s := range known {
			t.ids[uint32(s.N)] = id
		}
	}
	var b postings.Builder
	for _, p := range missing {
		if err := t.add(ctx, &b, p); err != nil {
			if err := t.unreadable(ctx, p.ID, err); err != nil {
				return err
			}
		}
	}
	t.tail = b.Segment()
	t.people = postings.PeopleTalk(t.segments())
	t.fresh = true
	t.loads++
	return nil
}

// segments returns all there are, what was written last at the end.
func (t *transcripts) segments() []*postings.Segment {
	segs := slices.SortedFunc(maps.Values(t.segs), func(a, b *postings.Segment) int { return cmp.Compare(a.ID, b.ID) })
	if t.tail != nil {
		segs = append(segs, t.tail)
	}
	return segs
}

// follow asks the store what changed, and reports whether anything did.
func (t *transcripts) follow(ctx context.Context) (changed bool, err error) {
	ch, err := storekit.ChangesOf(ctx, t.store, t.position)
	if err != nil {
		return false, err
	}
	t.position = ch.Now
	if ch.All || t.logs == nil {
		t.logs = make(map[session.ID]storekit.Change, len(ch.Logs))
	}
	for _, l := range ch.Logs {
		if l.Gone {
			delete(t.logs, l.ID)
		} else {
			t.logs[l.ID] = l
		}
	}
	return ch.All || len(ch.Logs) > 0, nil
}

// forget removes from the index what is in the trash, purged, or another log
// under the same id, and returns the sessions that it knows then.
func (t *transcripts) forget() (map[session.ID]postings.Session, error) {
	known, err := t.db.Sessions()
	if err != nil {
		return nil, err
	}
	var gone []int64
	for id, s := range known {
		now, ok := t.logs[id]
		if !ok || s.Have > now.Last || s.Gen != int64(now.Written) {
			gone = append(gone, s.N)
		}
	}
	if len(gone) == 0 {
		return known, nil
	}
	t.fresh = false
	if err := t.db.Forget(gone); err != nil {
		return nil, err
	}
	return t.db.Sessions() // others were in the same segments
}

// missing returns the records that no segment holds, by session, and how many
// there are. Afterwards every session has a number.
func (t *transcripts) missing() (parts []postings.Part, total int, err error) {
	known, err := t.forget()
	if err != nil {
		return nil, 0, err
	}
	var late []postings.Session
	for id, now := range t.logs {
		if s := known[id]; s.Have < now.Last {
			s.ID, s.Gen = id, int64(now.Written)
			late = append(late, s)
			if s.N == 0 {
				t.unknown[id] = true
			}
		}
	}
	sort.Slice(late, func(i, j int) bool { return late[i].ID < late[j].ID })
	if slices.ContainsFunc(late, func(s postings.Session) bool { return s.N == 0 }) {
		_ = t.db.Number(late) // where nothing can be written they get one for this search
	}
	for i := range late {
		if late[i].N == 0 {
			late[i].N = 1<<31 + int64(i)
		}
		t.ids[uint32(late[i].N)] = late[i].ID
	}
	sort.Slice(late, func(i, j int) bool { return late[i].N < late[j].N })
	for _, s := range late {
		last := t.logs[s.ID].Last
		total += int(last - s.Have)
		more, err := t.db.Missing(s, last)
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, more...)
	}
	return parts, total, nil
}

// unreadable notes that a log cannot be read on, because of err. The rest of it
// is not indexed; the next search tries again. It returns an error if ctx has
// ended.
func (t *transcripts) unreadable(ctx context.Context, id session.ID, err error) error {
	if ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
		return err
	}
	t.unread[id] = err
	return nil
}

// add adds the records of p to b.
func (t *transcripts) add(ctx context.Context, b *postings.Builder, p postings.Part) error {
	return readSaid(ctx, t.store, p, func(part postings.Part, said []said, redacts bool) error {
		if redacts && t.redacted != nil && !t.unknown[part.ID] {
			t.redacted[part.ID] = true
		}
		for _, s := range said {
			b.Add(s.doc(p.N), s.text, s.speaker, s.tools...)
		}
		return nil
	})
}

// How much is read at once: all of it is in memory.
const (
	partSize  = 1024      // records
	partBytes = 256 << 10 // of text; one record may have as much
)

// readSaid calls f for one piece of p after the other, with what its records
// say, and whether there is a redaction among them. Records that cannot be read
// say nothing. Parts of an answer say something if the answer is not in the log.
func readSaid(ctx context.Context, st session.Store, p postings.Part, f func(p postings.Part, said []said, redacts bool) error) error {
	var out []said
	var parts session.Joiner
	redacts := false
	size := 0
	calls := callsBefore{st: st, id: p.ID, from: p.From}
	say := func(recs []session.Record, to session.Seq) {
		for _, r := range recs {
			tools := calls.of(ctx, r)
			if s, ok := speak(r); ok && r.Seq <= to {
				s.tools = tools
				out = append(out, s)
				size += len(s.text)
			}
		}
	}
	for r, err := range st.Read(ctx, p.ID, p.From-1) {
		var d *session.Damage
		switch {
		case errors.As(err, &d):
			continue
		case errors.Is(err, session.ErrNotFound): // purged in the meantime
			return f(p, out, redacts)
		case err != nil:
			return err
		}
		if _, ok := r.Body.(session.Redaction); ok && r.Seq <= p.To {
			redacts = true
		}
		say(parts.Next(r), p.To)
		switch {
		case parts.Open(): // what follows says whether the answer came
		case r.Seq >= p.To:
			return f(p, out, redacts)
		case r.Seq-p.From >= partSize || size >= partBytes:
			piece := p
			piece.To = r.Seq
			if err := f(piece, out, redacts); err != nil {
				return err
			}
			p.From, out, size = r.Seq+1, nil, 0
		}
	}
	say(parts.End(), p.To)
	return f(p, out, redacts)
}

// piece is a part of a log with what it says, or why it cannot be read.
type piece struct {
	postings.Part
	said    []said
	redacts bool
	err     error
}

// readAhead reads parts in the background. The channel ends after the last
// one, or when ctx is done.
func (t *transcripts) readAhead(ctx context.Context, parts []postings.Part) <-chan piece {
	read := make(chan piece, 4)
	send := func(p piece) error {
		select {
		case read <- p:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		defer close(read)
		for _, p := range parts {
			err := readSaid(ctx, t.store, p, func(p postings.Part, said []said, redacts bool) error {
				return send(piece{p, said, redacts, nil})
			})
			if err != nil && send(piece{Part: p, err: err}) != nil {
				return
			}
		}
	}()
	return read
}

// flush writes what is missing into segments.
func (t *transcripts) flush(ctx context.Context, missing []postings.Part, total int) error {
	ctx, cancel := context.WithCancel(ctx)
	read := t.readAhead(ctx, missing)
	defer func() {
		cancel()
		for range read { // wait for the reader
		}
	}()
	b, parts, done := t.builder, []postings.Part(nil), 0
	if b == nil {
		b = &postings.Builder{}
	}
	if b.Reset(); t.more {
		t.builder = b
	}
	write := func() error {
		err := t.db.Write(b, parts)
		b.Reset()
		parts = nil
		if t.progress != nil {
			t.progress(done, total)
		}
		return err
	}
	for p := range read {
		if p.err != nil {
			if err := t.unreadable(ctx, p.ID, p.err); err != nil {
				return err
			}
			continue
		}
		if p.redacts && !t.unknown[p.ID] {
			t.redacted[p.ID] = true
		}
		for _, s := range p.said {
			b.Add(s.doc(p.N), s.text, s.speaker, s.tools...)
		}
		done += int(p.To - p.From + 1)
		parts = postings.Append(parts, p.Part)
		if b.Full() {
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
	return t.db.Small(func(segs []int64, parts []postings.Part) error { return t.join(ctx, segs, parts) })
}

// join indexes again, as one segment, what segs hold.
func (t *transcripts) join(ctx context.Context, segs []int64, parts []postings.Part) error {
	var joined []postings.Part
	b := &postings.Builder{}
	defer func(r map[session.ID]bool) { t.redacted = r }(t.redacted)
	t.redacted = nil // what is in a segment was indexed without it
	for _, p := range parts {
		if err := t.add(ctx, b, p); err != nil {
			return t.unreadable(ctx, p.ID, err) // they stay as they are
		}
		joined = postings.Append(joined, p)
	}
	return t.db.Write(b, joined, segs...)
}

// repair drops a segment that cannot be read: what it held is missing then, and
// is indexed again. If it is not known which it is, all are rebuilt; if all
// of the index can be read, it is not what is damaged.
func (t *transcripts) repair(err error) error {
	var se *postings.SegmentError
	t.fresh = false
	clear(t.segs)
	if errors.As(err, &se) {
		return t.db.Within(func() error { return t.db.Drop(se.ID) })
	}
	if t.db.Readable() == nil {
		return err
	}
	return t.rebuild()
}

// rebuild makes the index empty: everything is missing.
func (t *transcripts) rebuild() error {
	t.fresh, t.checked = false, false
	clear(t.segs)
	clear(t.ids)
	d, err := t.db.Rebuild(t.path)
	if err != nil {
		return err
	}
	t.db = d
	return t.rebuilt()
}

// check rebuilds the index if its tables contradict each other, once: a
// session that claims to be in segments that are not there would never be
// found, nor missed.
func (t *transcripts) check() error {
	if t.checked {
		return nil
	}
	wrong, err := t.db.Contradictions()
	if err == nil && wrong != "" {
		err = t.rebuild()
	}
	if postings.Unwritable(err) {
		return &contradictionError{wrong}
	}
	t.checked = err == nil
	return err
}

// contradictionError is a contradiction that cannot be repaired now.
type contradictionError struct{ wrong string }

func (e *contradictionError) Error() string { return "the index contradicts itself: " + e.wrong }

// broken reports whether err is damage of the index, which can be rebuilt.
func broken(err error) bool {
	var c *contradictionError
	return postings.Broken(err) || errors.As(err, &c)
}

// incomplete says what of the transcripts could not be searched, or not
// through the index; unread are the logs that could not be read.
func (t *transcripts) incomplete(unread map[session.ID]error) (out []string) {
	if t.inMemory != nil {
		out = append(out, fmt.Sprintf("every session was read from its log: %v", t.inMemory))
	}
	if t.unwritten > 0 {
		out = append(out, fmt.Sprintf("%d records could not be written to the index, and were searched without it", t.unwritten))
	}
	if n := len(unread); n > 0 {
		id := slices.Min(slices.Collect(maps.Keys(unread)))
		out = append(out, fmt.Sprintf("%d sessions cannot be read, or not to their end, such as %s: %v; goclaw doctor says more", n, id, unread[id]))
	}
	return out
}
