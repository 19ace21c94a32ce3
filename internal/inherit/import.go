package inherit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/session"
)

// ImportOptions say how transcripts are imported. The zero value is fine.
type ImportOptions struct {
	// Strict imports what pi would show of each transcript, instead of
	// everything.
	Strict bool
	Memo   *Memo // nil: nothing is remembered
	// Removed are the logs that were removed here for good. They are not
	// imported, unless Again is set or the user gave the path of the file.
	Removed *Removed
	Again   bool
	// Deleted imports what was deleted in its program as well, as far as the
	// program has kept it. The user may also give the path of the file.
	Deleted bool
	// Progress is called now and then, from one goroutine at a time.
	Progress func(Progress)
	// Waiting is called once if another process is importing into the same
	// store: Import waits for it.
	Waiting func(*session.HeldError)
	// Patience is how long Import waits for it; 0: as long as it takes.
	Patience time.Duration

	following bool // Follow imports, not a person
}

// State is what became of a transcript.
type State string

const (
	New       State = "new"
	Grown     State = "grown"     // it has records that its log lacked
	Unchanged State = "unchanged" // its log has all of it
	Rewritten State = "rewritten" // its program has changed the past
	Copy      State = "copy"      // another source says the same, or more
	Trashed   State = "trashed"   // its log is in the trash, and stays there
	Purged    State = "purged"    // its log was removed for good, and is not imported again
	Deleted   State = "deleted"   // it was deleted in its program, and is not imported
	Failed    State = "failed"
	Left      State = "left" // the import was stopped before it: the next one continues there
)

// Outcome is what became of one transcript.
type Outcome struct {
	*Transcript
	Log     session.ID // where it is
	State   State
	Records int               // imported now
	Damage  []*session.Damage // the first of them
	Damaged int               // all of them, those of earlier imports too
	// Unfinished is the last line, if its program is still writing it. It is
	// imported when it is complete. nil: every line is complete.
	Unfinished *session.Damage
	Was        session.Key // the key that its log had before, "" if it is the same
	Err        error
}

// maxDamage is how many damaged places of a transcript are listed.
const maxDamage = 100

func (o *Outcome) damage(d *session.Damage) {
	if o.Transcript != nil && !o.Database() && d.Unfinished {
		o.Unfinished = d
		return
	}
	if o.Damaged++; o.Damaged <= maxDamage {
		o.Damage = append(o.Damage, d)
	}
}

// Report is what became of all of them, in the order of the catalogue.
type Report struct {
	Outcomes []Outcome
	Took     time.Duration
}

// Count returns how many transcripts are in a state.
func (r Report) Count(s State) (n int) {
	for _, o := range r.Outcomes {
		if o.State == s {
			n++
		}
	}
	return n
}

// Damaged returns how many transcripts have places that could not be read.
func (r Report) Damaged() (n int) {
	for _, o := range r.Outcomes {
		if o.Damaged > 0 {
			n++
		}
	}
	return n
}

// Moved returns how many logs were given another key.
func (r Report) Moved() (n int) {
	for _, o := range r.Outcomes {
		if o.Was != "" {
			n++
		}
	}
	return n
}

// Records is the number of records that were imported.
func (r Report) Records() (n int) {
	for _, o := range r.Outcomes {
		n += o.Records
	}
	return n
}

// How many transcripts are read at once. Appends share a sync of the disk, which
// is most of the cost of a small transcript.
const (
	workers      = 4
	smallWorkers = 32
	small        = 128 << 10
)

// often is how much the heap grows between collections of garbage during an
// import, in percent; usually is Go's own value. What an import reads is garbage
// soon: collecting it more often takes a few percent more time and a fifth less
// memory.
const (
	often   = 60
	usually = 100
)

// Frugally makes this process collect garbage more often. Call it for an import of
// much, and done when everything is indexed. It is for the whole process, so
// Import does not do it by itself.
func Frugally() (done func()) {
	debug.SetGCPercent(often)
	return func() { debug.SetGCPercent(usually) }
}

// Import copies into st what it lacks of c. Each transcript becomes a log with
// the program's own key and id. An import that was interrupted is continued where
// it stopped. A transcript that fails does not stop the others; a store that
// cannot be written does. The error is the store's or ctx's.
func Import(ctx context.Context, st session.Store, c *Catalogue, o ImportOptions) (Report, error) {
	begin := time.Now()
	release, err := o.lockImports(ctx, st)
	if err != nil {
		return Report{}, err
	}
	defer release()
	im := &importer{st: st, o: o, logs: map[session.ID]session.Info{}, origins: map[origin]session.Info{}, families: map[origin][]session.Info{}, memo: o.Memo}
	if im.memo == nil {
		im.memo = NewMemo("")
	}
	im.meter = newMeter(c, im.memo, o.Progress)
	if err := im.memo.refresh(); err != nil {
		return Report{}, err
	}
	if o.Removed != nil {
		if err := o.Removed.load(); err != nil { // another process may have removed more
			return Report{}, err
		}
	}
	rep := Report{Outcomes: make([]Outcome, len(c.Transcripts))}
	for _, trash := range []bool{false, true} {
		for in, err := range st.List(ctx, session.Query{Trash: trash}) {
			if err != nil {
				return rep, err
			}
			im.know(in)
		}
	}
	outer := ctx
	ctx, im.stop = context.WithCancelCause(ctx)
	defer im.stop(nil)
	first, second := im.plan(c.Transcripts)
	for _, jobs := range [][]job{first, second} {
		var few, many []job
		for _, j := range jobs {
			if j.t.Size > small || j.t.Database() {
				few = append(few, j)
			} else {
				many = append(many, j)
			}
		}
		im.run(ctx, workers, few, rep.Outcomes)
		im.run(ctx, smallWorkers, many, rep.Outcomes)
	}
	moved := im.rekey(ctx, rep.Outcomes)
	rep.Took = time.Since(begin)
	for i, t := range c.Transcripts {
		if rep.Outcomes[i].Transcript == nil {
			rep.Outcomes[i] = Outcome{Transcript: t, State: Left}
		}
	}
	if err = outer.Err(); err == nil && ctx.Err() != nil {
		// Saving the memo shows whether the disk is full.
		return rep, errors.Join(context.Cause(ctx), im.memo.save())
	}
	return rep, errors.Join(err, moved, o.Removed.forget(im.again), im.memo.save())
}

// lockImports waits until no other process imports into st: decisions that were
// made by looking at st must still hold when it is written.
func (o ImportOptions) lockImports(ctx context.Context, st session.Store) (release func(), err error) {
	begin := time.Now()
	for told := false; ; {
		release, err := st.Lock(ctx, "import\x00", "an import")
		var held *session.HeldError
		if !errors.As(err, &held) || o.Patience > 0 && time.Since(begin) > o.Patience {
			return release, err
		}
		if !told && o.Waiting != nil {
			o.Waiting(held)
		}
		told = true
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// origin is where a log came from.
type origin struct {
	path   string
	id     session.ID
	strict bool
}

type importer struct {
	st      session.Store
	o       ImportOptions
	memo    *Memo
	logs    map[session.ID]session.Info
	origins map[origin]session.Info // the latest log of each
	// families are all logs of each, repaired or strict.
	families map[origin][]session.Info

	stop context.CancelCauseFunc // the store cannot be written

	*meter
	mu    sync.Mutex
	again []session.ID // removed once, and imported again
}

func (im *importer) know(in session.Info) {
	im.logs[in.ID] = in
	if in.Origin.Path == "" {
		return
	}
	k := origin{path: in.Origin.Path, id: in.Origin.ID}
	im.families[k] = append(im.families[k], in)
	k.strict = isStrict(in)
	if have, ok := im.origins[k]; !ok || in.Created.After(have.Created) {
		im.origins[k] = in
	}
}

// job is one transcript and the log that it goes to.
type job struct {
	at   int // in the catalogue
	t    *Transcript
	log  session.ID
	have session.Info // zero if there is no such log
	// other is the log with t's own id, if it is another source's. If that
	// source says the same, or its file has moved here, no log is begun.
	other session.ID
	from  string // where that source is
}

// plan decides the log of each transcript before anything is written: the same
// sources give the same ids, wherever an earlier run was interrupted. Transcripts
// whose id another one has come second.
func (im *importer) plan(ts []*Transcript) (first, second []job) {
	claimed := map[session.ID]bool{}
	from := map[session.ID]string{}
	for i, t := range ts {
		j := job{at: i, t: t}
		if in, ok := im.origins[origin{source.Text(t.Path), t.ID, im.o.Strict}]; ok && !claimed[in.ID] && sameArchive(in, t) {
			j.log, j.have = in.ID, in
			claimed[in.ID] = true
			first = append(first, j)
			continue
		}
		own := im.named(t.ID)
		_, taken := im.logs[own]
		if !taken && !claimed[own] && t.ID != "" {
			j.log = own
			claimed[j.log], from[j.log] = true, t.Path
			first = append(first, j)
			continue
		}
		j.other, j.from = own, cmp.Or(im.logs[own].Origin.Path, from[own])
		j.log = im.named(otherID(t))
		j.have = im.logs[j.log]
		claimed[j.log] = true
		second = append(second, j)
	}
	return first, second
}

// sameArchive reports whether in is a log of t, and not of another part of the
// same database.
func sameArchive(in session.Info, t *Transcript) bool {
	id := session.ID(strings.TrimPrefix(string(in.ID), strictID))
	return in.ID == t.ID || id == t.ID || isOther(t, id) || !t.Whole && strings.HasPrefix(string(in.ID), "rewrite-")
}

// otherID is the id of t's log if another log has t's own id. It begins
// differently, so that a prefix of the id still finds that other one.
func otherID(t *Transcript) session.ID {
	return session.ID(fmt.Sprintf("%s-%08x-%s", cmp.Or(t.Archive, "copy"), crc32.ChecksumIEEE([]byte(t.Ref())), t.ID))
}

func (im *importer) run(ctx context.Context, workers int, jobs []job, out []Outcome) {
	work := make(chan job)
	var wg sync.WaitGroup
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			for j := range work {
				done := im.watch(j.t)
				out[j.at] = im.one(ctx, j)
				done()
			}
		})
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		work <- j
	}
	close(work)
	wg.Wait()
	im.tell(func(*Progress) {}, true)
}

// one imports one transcript.
func (im *importer) one(ctx context.Context, j job) Outcome {
	o := Outcome{Transcript: j.t, Log: j.log}
	var err error
	m, known := im.memo.imported(im.ref(j.t))
	known = known && m.Strict == im.o.Strict
	switch {
	case im.removed(j):
		o.State = Purged
		return o
	case im.unwanted(j.t) && j.have.ID == "" && (j.other == "" || !im.moved(j.other)):
		o.State = Deleted
		return o
	case known && m.Copy && m.Stat == j.t.Stat && im.logs[m.Log].ID != "":
		o.State, o.Log = Copy, m.Log
	case j.other != "" && j.have.ID == "":
		err = im.second(ctx, j, &o)
	default:
		err = im.log(ctx, j, m, known, &o)
	}
	var full *StoreError
	if errors.As(err, &full) {
		im.stop(full)
	}
	switch {
	case err == nil:
	case full != nil, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		o.State = Left
	default:
		o.State, o.Err = Failed, err
		var p *fs.PathError
		if errors.As(err, &p) && strings.HasPrefix(p.Path, j.t.Path) {
			o.Err = errors.New(source.Unreadable(j.t.Path, err).What)
		}
	}
	return o
}

// removed reports whether the log of j, or that of another source of the same
// session, was removed for good and stays removed.
func (im *importer) removed(j job) bool {
	if j.have.ID != "" {
		return false
	}
	// Healed or strict, it is the same session.
	log := session.ID(strings.TrimPrefix(string(j.log), strictID))
	if !im.o.Removed.has(log, j.t, false) {
		if j.other == "" {
			return false
		}
		log = session.ID(strings.TrimPrefix(string(j.other), strictID))
		if _, again := im.logs[log]; !im.o.Removed.has(log, j.t, again) {
			return false
		}
	}
	if !im.o.Again && !j.t.Named {
		return true
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	im.again = append(im.again, log)
	return false
}

// unwanted reports whether t was deleted in its program and nobody asked for it.
// The log of one that was imported before is only marked.
func (im *importer) unwanted(t *Transcript) bool {
	return t.Mark() == session.Deleted && !im.o.Deleted && !t.Named
}

// log brings the log of j up to date.
func (im *importer) log(ctx context.Context, j job, m imported, known bool, o *Outcome) error {
	t, have := j.t, j.have
	known = known && m.Log == j.log && have.ID != "" && have.Last >= m.Last
	switch {
	case !have.Trashed.IsZero():
		o.State = Trashed
		return nil
	case have.ID == "":
		o.State = New
		return im.begin(ctx, j, o, 0)
	case known && m.Stat == t.Stat:
		o.State, o.Damaged = Unchanged, m.Damage
		return im.title(ctx, j, m, o)
	case known && !im.o.Strict && t.Stat.Size > m.Stat.Size && t.Enters(m.Pos):
		o.State, o.Damaged = Unchanged, m.Damage
		w := &writer{im: im, id: j.log, o: o, last: have.Last}
		pos := m.Pos
		if err := w.all(ctx, t.Lines(ctx, m.Pos, &pos)); err != nil {
			return err
		}
		return im.done(ctx, j, o, w, pos, m.Title)
	}
	return im.compare(ctx, j, o)
}

// source yields the records for t's log, header first.
func (im *importer) source(ctx context.Context, t *Transcript, end *source.Position) iter.Seq2[session.Record, error] {
	recs := t.Raw(ctx, end)
	if im.o.Strict {
		return strictly(t.ID, recs)
	}
	return recs
}

// begin writes a log from its first record on. again is how often its source
// was rewritten.
func (im *importer) begin(ctx context.Context, j job, o *Outcome, again int) error {
	w := &writer{im: im, id: j.log, o: o, last: 0}
	var pos source.Position
	for r, err := range source.Dated(im.source(ctx, j.t, &pos)) {
		if err == nil && w.last == 0 {
			r = j.t.Opened(r, j.log)
			if again > 0 { // newer than the log before it
				h, _ := r.Body.(session.Header)
				r = session.Record{Time: r.Time.Add(time.Duration(again) * time.Millisecond), Body: h}
			}
			if err := w.add(ctx, r); err != nil {
				return err
			}
			if j.t.Title != "" {
				title := titled(j.t.Title, "")
				title.Time = r.Time
				if err := w.add(ctx, title); err != nil {
					return err
				}
			}
			continue
		}
		if err := w.next(ctx, r, err); err != nil {
			return err
		}
	}
	if w.last == 0 { // a session that was begun, and nothing else
		r := j.t.Opened(session.Record{}, j.log)
		if err := w.add(ctx, r); err != nil {
			return err
		}
	}
	return im.done(ctx, j, o, w, pos, j.t.Title)
}

// titled is the title that an index gives to a session. It never becomes the end
// of the branch, but it names the end as its parent, for readers that take the
// last line for the end.
func titled(title, leaf string) session.Record {
	id := fmt.Sprintf("goclaw.title.%08x", crc32.ChecksumIEEE([]byte(title+"\x00"+leaf)))
	return session.Record{ID: id, Parent: leaf, Side: true, Body: session.Title{Title: title}}
}

// done remembers that everything of j is in its log.
func (im *importer) done(ctx context.Context, j job, o *Outcome, w *writer, pos source.Position, title string) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	if o.State == Unchanged && w.n > 0 {
		o.State = Grown
	}
	o.Records += w.n
	m := imported{Log: j.log, Stat: j.t.Stat, Pos: pos, Last: w.last, Title: title, Strict: im.o.Strict, Damage: o.Damaged}
	im.memo.setImported(im.ref(j.t), m)
	return im.title(ctx, j, m, o)
}

// title appends the title of t if the index has changed it.
func (im *importer) title(ctx context.Context, j job, m imported, o *Outcome) error {
	if j.t.Title == "" || j.t.Title == m.Title {
		return nil
	}
	in, err := session.Stat(ctx, im.st, j.log)
	if err != nil || in.Title == j.t.Title {
		return err
	}
	r := titled(j.t.Title, in.Leaf)
	r.Seq, r.Time = in.Last+1, in.Updated
	if err := im.append(ctx, j.log, r); err != nil {
		return err
	}
	m.Title, m.Last = j.t.Title, r.Seq
	im.memo.setImported(im.ref(j.t), m)
	o.Records++
	if o.State == Unchanged {
		o.State = Grown
	}
	return nil
}

// compare compares a log with its source and appends what it lacks.
func (im *importer) compare(ctx context.Context, j job, o *Outcome) error {
	var pos source.Position
	next, stop := iter.Pull2(im.source(ctx, j.t, &pos))
	defer stop()
	o.Damage, o.Damaged = nil, 0
	pull := func() (session.Record, bool, error) {
		for {
			r, err, ok := next()
			var d *session.Damage
			if errors.As(err, &d) {
				o.damage(d)
				continue
			}
			return r, ok, err
		}
	}
	same, err := im.same(ctx, j.log, pull)
	if err != nil {
		return err
	}
	if !same.prefix || same.moved && !same.more && j.t.Size <= maxRewrite {
		o.State = Rewritten
		o.Damage, o.Damaged = nil, 0
		stop()
		return im.rewritten(ctx, j, o)
	}
	o.State = Unchanged
	w := &writer{im: im, id: j.log, o: o, last: same.last}
	if same.open != nil {
		if err := w.add(ctx, same.open.rest()); err != nil {
			return err
		}
		if r, ok := same.open.takeBack(); ok {
			if err := w.add(ctx, r); err != nil {
				return err
			}
		}
	}
	for r, ok, err := same.rec, same.more, error(nil); ok || err != nil; r, ok, err = pull() {
		if err := w.next(ctx, r, err); err != nil {
			return err
		}
	}
	return im.done(ctx, j, o, w, pos, "")
}

// second imports a transcript whose id another source's log has.
func (im *importer) second(ctx context.Context, j job, o *Outcome) error {
	next, stop := iter.Pull2(im.source(ctx, j.t, nil))
	defer stop()
	same, err := im.same(ctx, j.other, func() (session.Record, bool, error) {
		for {
			r, err, ok := next()
			var d *session.Damage
			if !errors.As(err, &d) {
				return r, ok, err
			}
		}
	})
	switch {
	case errors.Is(err, session.ErrNotFound): // writing it has failed
	case err != nil:
		return err
	case same.all && (same.prefix || !j.beside()):
		// The same or less: an older copy, or an export of one of our own
		// sessions.
		o.State, o.Log = Copy, j.other
		im.memo.setImported(im.ref(j.t), imported{Log: j.other, Stat: j.t.Stat, Copy: true, Strict: im.o.Strict})
		return nil
	case same.prefix && im.moved(j.other):
		j.log, o.Log = j.other, j.other
		return im.compare(ctx, j, o)
	}
	stop()
	if im.unwanted(j.t) {
		o.State = Deleted
		return nil
	}
	o.State = New
	j.t.Key = keyOf(j.t, j.log)
	return im.begin(ctx, j, o, 0)
}

// beside reports whether t is in the same folder as the file whose id it has.
// Then it is a separate session, not an older copy.
func (j job) beside() bool {
	return j.from != "" && j.t.Archive == "" && !j.t.Database() && j.from != j.t.Path && filepath.Dir(j.from) == filepath.Dir(j.t.Path)
}

// moved reports whether the source of a log is no longer where it was.
func (im *importer) moved(id session.ID) bool {
	p := im.logs[id].Origin.Path
	if p == "" {
		return false
	}
	_, err := os.Stat(p)
	if name, ok := source.FromText(p); ok && err != nil {
		_, err = os.Stat(name)
	}
	return errors.Is(err, fs.ErrNotExist)
}

// writer appends to one log.
type writer struct {
	im    *importer
	id    session.ID
	o     *Outcome
	last  session.Seq // of what was added
	batch []session.Record
	size  int
	n     int
}

// How much one append holds: enough to share the cost of a sync, little enough
// for little memory.
const (
	batchRecords = 1000
	batchBytes   = 1 << 20
)

func (w *writer) all(ctx context.Context, recs iter.Seq2[session.Record, error]) error {
	for r, err := range recs {
		if err := w.next(ctx, r, err); err != nil {
			return err
		}
	}
	return nil
}

// next adds a record, or notes damage.
func (w *writer) next(ctx context.Context, r session.Record, err error) error {
	var d *session.Damage
	switch {
	case errors.As(err, &d):
		w.o.damage(d)
		return nil
	case err != nil:
		return err
	}
	return w.add(ctx, r)
}

func (w *writer) add(ctx context.Context, r session.Record) error {
	w.last++
	r.Seq = w.last
	if r.Time.IsZero() && r.Raw == nil {
		r.Time = w.o.Stat.Time()
	}
	w.batch = append(w.batch, r)
	w.size += len(r.Raw)
	if len(w.batch) >= batchRecords || w.size >= batchBytes || len(r.Raw) > source.LongLine {
		return w.flush(ctx)
	}
	return nil
}

// StoreError says that the store cannot be written at all.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return "the store cannot be written: " + e.Err.Error() }
func (e *StoreError) Unwrap() error { return e.Err }

// append appends to a log. An error that is about neither the records nor the
// log is about the store.
func (im *importer) append(ctx context.Context, id session.ID, recs ...session.Record) error {
	err := im.st.Append(ctx, id, recs...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // another worker found that the store cannot be written
		return ctx.Err()
	}
	for _, of := range []error{session.ErrStale, session.ErrConflict, session.ErrTooLarge, session.ErrNotFound} {
		if errors.Is(err, of) {
			return err
		}
	}
	for _, r := range recs {
		if _, bad := codec.Native.Encode(r); bad != nil {
			return err
		}
	}
	return &StoreError{err}
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.batch) == 0 {
		return nil
	}
	if err := w.im.append(ctx, w.id, w.batch...); err != nil {
		return err
	}
	w.n += len(w.batch)
	w.im.tell(func(p *Progress) { p.Records += len(w.batch) }, false)
	clear(w.batch)
	w.batch, w.size = w.batch[:0], 0
	return nil
}
