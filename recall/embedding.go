package recall

import (
	"cmp"
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
	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/vectors"
	"goclaw/session"
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

const (
	maxEmbedded = 2000 // bytes of a text that its vector is made of
	batch       = 64   // texts that are embedded at once
	maxBatch    = 128  // records that they are looked for in
	lateAtOnce  = 256  // sessions that are looked for at once
)

// patience is how long a query waits for its vector at most. Words do not
// wait.
const patience = 5 * time.Second

// embedding makes the vectors of an index.
type embedding struct {
	ix       *Index
	model    Embedder // nil: there are none
	patience time.Duration
	notes    map[vectors.Hash]vectors.Vector // of the memory files; nil: not read yet
	one      sync.Mutex                      // notes are not embedded twice at the same time
}

// Embed makes the vectors that are missing, the latest sessions first, until
// all are made or ctx is done, and returns how many messages and notes got one.
// Searches keep working meanwhile.
func (ix *Index) Embed(ctx context.Context) (made int, err error) {
	e := &ix.vectors
	made, err = e.ofNotes(ctx)
	if err != nil {
		return made, err
	}
	n, err := e.ofMessages(ctx)
	made += n
	if err == nil { // those of notes may have been dropped with the others
		n, err = e.ofNotes(ctx)
		made += n
	}
	return made, err
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

// keepUp embeds messages until ctx is done. A failure is seen by the next
// search, which says what is missing.
func (e *embedding) keepUp(ctx context.Context) {
	for {
		_, _ = e.ofMessages(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backgroundPause):
		}
	}
}

// errDropped says that all vectors there were have been dropped.
var errDropped = errors.New("recall: the model gives vectors of another length than before")

// took notes the length of vectors that the model gave. If it is another than
// before, all others are dropped.
func (e *embedding) took(vs [][]float32) error {
	if len(vs) == 0 {
		return nil
	}
	dropped, err := e.ix.table().SetLength(len(vs[0]))
	if err == nil && dropped {
		e.notes = nil
		err = errDropped
	}
	return err
}

// ofMessages embeds all messages that have no vector.
func (e *embedding) ofMessages(ctx context.Context) (made int, err error) {
	if e.model == nil || e.ix.o.Store == nil {
		return 0, nil
	}
	for dropped := false; ; {
		n, more, err := e.round(ctx, made)
		made += n
		if errors.Is(err, errDropped) && !dropped {
			dropped = true // those that were made before are recomputed
			continue
		}
		if err != nil || !more {
			return made, err
		}
	}
}

// round embeds messages of some sessions, and reports whether there may be
// more. made is how many were before.
func (e *embedding) round(ctx context.Context, made int) (n int, more bool, err error) {
	late, err := e.late(ctx)
	if err != nil {
		return 0, false, err
	}
	for _, s := range late {
		for last := e.ix.last(s.ID); s.Coded < last; {
			some, err := e.some(ctx, &s, last)
			n += some
			if err != nil {
				return n, false, err
			}
			if e.ix.o.Embedded != nil {
				e.ix.o.Embedded(made + n)
			}
		}
	}
	return n, n > 0 || len(late) == lateAtOnce, nil
}

// late returns sessions with records without vectors: those used last, in the
// order of the table, which has full pages then.
func (e *embedding) late(ctx context.Context) (out []postings.Session, err error) {
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := e.ix.messages.sync(ctx); err != nil {
		return nil, err
	}
	known, err := e.ix.messages.db.Sessions()
	if err != nil {
		return nil, err
	}
	for in, err := range e.ix.o.Store.List(ctx, session.Query{}) {
		if err != nil {
			return nil, err
		}
		if s, ok := known[in.ID]; ok && in.Last > s.Coded {
			out = append(out, s)
		}
		if len(out) == lateAtOnce {
			break
		}
	}
	slices.SortFunc(out, func(a, b postings.Session) int { return cmp.Compare(a.N, b.N) })
	return out, nil
}

// last returns the last record of a log that the index knows of.
func (ix *Index) last(id session.ID) session.Seq {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.messages.logs[id].Last
}

// some embeds the next messages of s, which has records up to last, and returns
// how many.
func (e *embedding) some(ctx context.Context, s *postings.Session, last session.Seq) (n int, err error) {
	coded := s.Coded
	var seqs []session.Seq
	var texts []string
	upto, end := coded, true
	for r, err := range e.ix.o.Store.Read(ctx, s.ID, coded) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if errors.Is(err, session.ErrNotFound) { // purged in the meantime
			s.Coded = last
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		upto = r.Seq
		// Tool output is found by its words.
		if t, ok := speak(r); ok && t.role != Output && e.knows(t.text) {
			seqs, texts = append(seqs, r.Seq), append(texts, text.Head(t.text, maxEmbedded))
		}
		if len(texts) == batch || upto-coded >= maxBatch {
			end = false
			break
		}
	}
	if end {
		upto = max(upto, last)
	}
	vs, err := e.model.Vectors(ctx, texts)
	if err != nil {
		return 0, err
	}
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := e.took(vs); err != nil {
		return 0, err
	}
	s.Coded = upto
	return len(texts), e.ix.table().Put(s.N, coded, upto, seqs, vs)
}

// ofNotes embeds all notes that have no vector.
func (e *embedding) ofNotes(ctx context.Context) (made int, err error) {
	if e.model == nil || e.ix.o.Workspace == "" {
		return 0, nil
	}
	e.one.Lock()
	defer e.one.Unlock()
	for {
		n, err := e.someNotes(ctx)
		made += n
		if n == 0 || err != nil {
			return made, err
		}
	}
}

// someNotes embeds the next notes that have no vector.
func (e *embedding) someNotes(ctx context.Context) (int, error) {
	hashes, texts, err := e.lateNotes(ctx)
	if err != nil || len(texts) == 0 {
		return 0, err
	}
	vs, err := e.model.Vectors(ctx, texts)
	if err != nil {
		return 0, err
	}
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := e.took(vs); err != nil && !errors.Is(err, errDropped) {
		return 0, err
	}
	if e.notes == nil {
		e.notes = map[vectors.Hash]vectors.Vector{}
	}
	return len(texts), e.ix.table().PutNotes(hashes, vs, e.notes)
}

// lateNotes returns some notes that have no vector.
func (e *embedding) lateNotes(ctx context.Context) (hashes []vectors.Hash, texts []string, err error) {
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
			} else if !ok && len(texts) < batch && !slices.Contains(hashes, h) {
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
