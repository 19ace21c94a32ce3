package recall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/internal/text"
	"goclaw/recall/embed"
	"goclaw/recall/internal/notes"
	"goclaw/recall/internal/vectors"
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Name says which model it is. Vectors of another model are not compared.
	Name() string
	// Vectors returns one vector for each text, all of one length.
	Vectors(ctx context.Context, texts []string) ([][]float32, error)
}

// Local is the model that is part of the program.
type Local struct{}

func (Local) Name() string { return "use-lite" }

func (Local) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	return embed.Load().Vectors(ctx, texts)
}

// maxEmbedded is how many bytes of a text its vector is made of.
const maxEmbedded = 2000

// patience is how long a query waits for its vector at most. Words do not
// wait.
const patience = 5 * time.Second

// slack is how much longer than Query.Embed a search waits for the vectors that
// it has asked for: a server may not answer.
const slack = time.Second

// BeforeAnswer is a Query.Embed for somebody who waits for the answer.
const BeforeAnswer = 300 * time.Millisecond

// embedding makes the vectors of an index.
type embedding struct {
	ix       *Index
	model    Embedder // nil: there are none
	patience time.Duration
	slack    time.Duration
	notes    map[vectors.Hash]vectors.Vector // of the memory files; nil: not read yet
	one      sync.Mutex                      // notes are not embedded twice at the same time
	skip     map[spot]bool                   // messages that could not be read
	done     int                             // with which load of the transcripts none was missing
}

// Embed makes the vectors that are missing, those of the newest messages first,
// until all are made or ctx is done, and returns how many messages and notes got
// one. What is made is kept when it is interrupted. Searches keep working
// meanwhile.
func (ix *Index) Embed(ctx context.Context) (made int, err error) {
	return ix.vectors.all(ctx, &pace{window: 2048, batch: 64})
}

// EmbedFor is Embed for about as long as limit says. However short that is, some
// vectors are made.
func (ix *Index) EmbedFor(ctx context.Context, limit time.Duration) (made int, err error) {
	return ix.vectors.all(ctx, &pace{window: 256, batch: 4, until: time.Now().Add(limit)})
}

// before makes vectors of what q searches, which waits for them, and returns how
// many. If they cannot be made, the result says how many are missing.
func (e *embedding) before(ctx context.Context, q Query) (made int) {
	p := &pace{window: 256, batch: 32, until: time.Now().Add(q.Embed)}
	soon, cancel := context.WithTimeout(ctx, q.Embed+e.slack)
	defer cancel()
	if q.Memory {
		made, _ = e.ofNotes(soon, p)
	}
	if q.Sessions && (made == 0 || !p.over()) {
		n, _ := e.ofMessages(soon, p)
		made += n
	}
	return made
}

// Missing returns how many messages have no vector yet, 0 if none are made.
func (ix *Index) Missing(ctx context.Context) (int, error) {
	late, err := ix.vectors.missing(ctx, 1)
	return late.total, err
}

// all makes vectors of notes and messages.
func (e *embedding) all(ctx context.Context, p *pace) (made int, err error) {
	made, err = e.ofNotes(ctx, p)
	if err != nil || made > 0 && p.over() {
		return made, err
	}
	n, err := e.ofMessages(ctx, p)
	made += n
	if err == nil && !p.over() { // those of notes may have been dropped with the others
		n, err = e.ofNotes(ctx, p)
		made += n
	}
	return made, err
}

// pace says how much is done at once, and when it is enough.
type pace struct {
	window int       // messages that are looked for at once: the shortest of them come first
	batch  int       // texts that the model gets at once
	until  time.Time // zero: until all is done
	wait   func()    // is called before each batch
}

func (p *pace) over() bool { return !p.until.IsZero() && !time.Now().Before(p.until) }

// did notes how long a batch took: if there is time, the next one is larger.
func (p *pace) did(took time.Duration) {
	if !p.until.IsZero() && 2*took < time.Until(p.until) {
		p.batch = min(2*p.batch, 64)
	}
}

// reset drops what is known of vectors, and those of another model.
func (e *embedding) reset() error {
	e.notes = nil
	e.ix.codes.Close()
	if e.model == nil {
		return nil
	}
	return e.ix.table().Use(e.model.Name())
}

// keepUp embeds messages until ctx is done, at low priority: a search does not
// wait for it. A failure is seen by the next search, which says what is missing.
func (e *embedding) keepUp(ctx context.Context) {
	lowPriority()
	p := &pace{window: 1024, batch: 16, wait: func() {
		for e.ix.held.Load() > 0 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}}
	for {
		_, _ = e.ofMessages(ctx, p)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backgroundPause):
		}
	}
}

// errDropped says that all vectors there were have been dropped.
var errDropped = errors.New("recall: the model gives vectors of another length than before")

// of returns the vectors of texts, nil for those whose language the model does
// not know, and how many it made.
func (e *embedding) of(ctx context.Context, texts []string) (vs [][]float32, made int, err error) {
	var known []string
	var at []int
	for i, t := range texts {
		if e.knows(t) {
			known, at = append(known, t), append(at, i)
		}
	}
	vs = make([][]float32, len(texts))
	if len(known) == 0 {
		return vs, 0, nil
	}
	some, err := e.model.Vectors(ctx, known)
	if err == nil && len(some) != len(known) {
		err = fmt.Errorf("recall: %s gave %d vectors for %d texts", e.model.Name(), len(some), len(known))
	}
	if err != nil {
		return nil, 0, err
	}
	for i, v := range some {
		vs[at[i]] = v
	}
	return vs, len(some), nil
}

// took notes the length of vectors that the model gave. If it is another than
// before, all others are dropped.
func (e *embedding) took(vs [][]float32) error {
	i := slices.IndexFunc(vs, func(v []float32) bool { return v != nil })
	if i < 0 {
		return nil
	}
	dropped, err := e.ix.table().SetLength(len(vs[i]))
	if err == nil && dropped {
		e.notes, e.done = nil, 0
		err = errDropped
	}
	return err
}

// ofNotes embeds all notes that have no vector.
func (e *embedding) ofNotes(ctx context.Context, p *pace) (made int, err error) {
	if e.model == nil || e.ix.o.Workspace == "" {
		return 0, nil
	}
	e.one.Lock()
	defer e.one.Unlock()
	for {
		n, more, err := e.someNotes(ctx, p)
		made += n
		if !more || err != nil || p.over() {
			return made, err
		}
	}
}

// someNotes embeds the next notes that have no vector, and reports whether there
// were any.
func (e *embedding) someNotes(ctx context.Context, p *pace) (n int, more bool, err error) {
	hashes, texts, err := e.lateNotes(ctx, p.batch)
	if err != nil || len(texts) == 0 {
		return 0, false, err
	}
	began := time.Now()
	vs, n, err := e.of(ctx, texts)
	if err != nil {
		return 0, false, err
	}
	p.did(time.Since(began))
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return 0, false, err
	}
	defer unlock()
	if err := e.took(vs); err != nil && !errors.Is(err, errDropped) {
		return 0, false, err
	}
	if e.notes == nil {
		e.notes = map[vectors.Hash]vectors.Vector{}
	}
	return n, true, e.ix.table().PutNotes(hashes, vs, e.notes)
}

// lateNotes returns up to most notes that have no vector.
func (e *embedding) lateNotes(ctx context.Context, most int) (hashes []vectors.Hash, texts []string, err error) {
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if err := e.ix.memory.Sync(nil); err != nil {
		return nil, nil, err
	}
	if err := e.loadNotes(); err != nil {
		return nil, nil, err
	}
	for _, f := range e.ix.memory.All {
		for i, h := range f.Hashes {
			if _, ok := e.notes[h]; !ok && !e.knows(notes.WithoutMark(f.Notes[i].Text)) {
				e.notes[h] = nil // it has none
			} else if !ok && len(texts) < most && !slices.Contains(hashes, h) {
				hashes, texts = append(hashes, h), append(texts, text.Head(notes.WithoutMark(f.Notes[i].Text), maxEmbedded))
			}
		}
	}
	return hashes, texts, nil
}

// loadNotes reads the vectors of the notes, and drops those of notes that are
// no longer there.
func (e *embedding) loadNotes() (err error) {
	if e.notes == nil {
		if e.notes, err = e.ix.table().Notes(); err != nil {
			e.notes = nil
			return err
		}
	}
	there := map[vectors.Hash]bool{}
	for _, f := range e.ix.memory.All {
		for _, h := range f.Hashes {
			there[h] = true
		}
	}
	var gone []vectors.Hash
	for h := range e.notes {
		if !there[h] {
			gone = append(gone, h)
		}
	}
	return e.ix.table().DropNotes(gone, e.notes)
}

// meaning is the vector of a query, as it was worded last.
type meaning struct {
	*embedding
	text string
	v    []float32 // nil: there is none
	none bool      // the model gives none
}

// of makes m the vector of query. If the model gives none, res says so.
func (m *meaning) of(ctx context.Context, query string, res *Result) error {
	query = text.Head(strings.TrimSpace(query), maxEmbedded)
	if m.model == nil || m.none || query == m.text {
		return nil
	}
	if !m.knows(query) {
		m.text, m.v = query, nil
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	vs, err := m.model.Vectors(soon, []string{query})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && soon.Err() != nil:
		m.drop(res, fmt.Sprintf("%s gave no vector within %v", m.model.Name(), m.patience))
	case err != nil || len(vs) != 1:
		m.drop(res, fmt.Sprintf("%s gave no vector: %v", m.model.Name(), err))
	default:
		m.text, m.v = query, vs[0]
	}
	return nil
}

// drop says that words alone decide, and why.
func (m *meaning) drop(res *Result, why string) {
	m.v, m.none = nil, true
	res.Incomplete = append(res.Incomplete, "words only: "+why)
}

// compare checks that m can be compared with the vectors that there are. Those
// that it cannot be compared with are dropped, and res says so.
func (m *meaning) compare(res *Result) {
	if m.v == nil {
		return
	}
	have, err := m.ix.table().Length()
	if err == nil && (have == 0 || have == len(m.v)) {
		return
	}
	if err == nil {
		err = m.took([][]float32{m.v})
	}
	if errors.Is(err, errDropped) {
		res.Incomplete = append(res.Incomplete, fmt.Sprintf("%s gives vectors of %d numbers now, and gave %d before: those were dropped, and are recomputed", m.model.Name(), len(m.v), have))
		return
	}
	m.drop(res, fmt.Sprintf("the vectors cannot be compared: %v", err))
}
