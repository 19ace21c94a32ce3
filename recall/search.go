package recall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"goclaw/internal/naming"
	"goclaw/session"
)

// Query is what is looked for. The zero value of each field asks for nothing.
type Query struct {
	Text  string
	Limit int // 0: 10; at most MaxLimit

	Session session.ID  // one log
	Key     session.Key // all logs of a key
	Agent   string
	Role    Role
	Since   time.Time
	Until   time.Time

	Memory   bool // memory files
	Sessions bool // transcripts; if neither is set, both
	Now      time.Time

	without session.ID // one of its records, that says nothing here: the question itself
	seq     session.Seq
}

// Hit is something found: a message of a session, or a note of a memory file.
type Hit struct {
	// A message.
	Session session.ID
	Key     session.Key
	Title   string
	Seq     session.Seq
	Record  string // its id
	Role    Role

	// A note.
	File    string
	Line    int
	Lines   int
	Heading string

	Time  time.Time
	Text  string
	Score float64
	Also  []string // citations of near-duplicates
	// Near says that the hit holds no word of the query itself: the messages
	// around it do, or it means something similar.
	Near bool
}

// Cite says where a hit is: "memory/2026-08-02.md:12", or a session and the
// number of the record in it.
func (h Hit) Cite() string {
	if h.File != "" {
		return fmt.Sprintf("%s:%d", h.File, h.Line)
	}
	return fmt.Sprintf("%s#%d", h.Session, h.Seq)
}

// Result is what a search found, the best first.
type Result struct {
	Hits []Hit
	// Incomplete says, in sentences, what could not be searched, or only in
	// part.
	Incomplete []string
	// Literal says that no word of the query is in any index, such as of "to
	// be or not to be" or an emoji: it was looked for as it stands.
	Literal bool
	// Words says that there is no vector of the query: words alone decided. If
	// there should have been one, Incomplete says why there is none.
	Words bool
	// Vectors is the share of the candidates that were compared by meaning as
	// well: 1 all, 0 none.
	Vectors float64
}

// What is looked at beyond the hits that are wanted.
const (
	candidates     = 100 // messages that are compared by their vectors
	noteCandidates = 200
	maxCandidates  = 2000 // messages, where most of them say the same
	defaultLimit   = 10
)

// MaxLimit is how many hits a search has at most, however many are asked for.
const MaxLimit = 200

// Search finds what q asks for. An index that is behind is brought up to
// date, one that is damaged is repaired; where that is impossible, the result
// says what is missing.
func (ix *Index) Search(ctx context.Context, q Query) (Result, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	if !q.Memory && !q.Sessions {
		q.Memory, q.Sessions = true, true
	}
	if q.Session != "" || q.Key != "" || q.Agent != "" || q.Role != "" {
		q.Memory = false
	}
	if q.Now.IsZero() {
		q.Now = ix.o.Now()
	}
	var res Result
	m := meaning{e: ix.o.Embedder, patience: ix.patience}
	inMemory, inSessions := q.Memory && ix.o.Workspace != "", q.Sessions && ix.o.Store != nil
	if inMemory || inSessions { // others search in the meantime
		if err := m.of(ctx, q.Text, &res); err != nil {
			return res, err
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.db == nil {
		return res, session.ErrClosed
	}
	ix.db.SetInterrupt(ctx)
	defer func() {
		if ix.db != nil { // a damaged file may have been replaced
			ix.db.SetInterrupt(context.Background())
		}
	}()
	var notes, messages []Hit
	var err error
	stands, only := asLiteral(q.Text)
	res.Literal = only
	ix.compares(&m, &res)
	if inMemory {
		if notes, err = ix.searchMemory(ctx, q, m.v, &res); err != nil {
			return res, err
		}
		if only && len(notes) == 0 {
			notes = ix.scanMemory(q, stands)
		}
	}
	if inSessions {
		if messages, err = ix.searchSessions(ctx, q, &m, &res); err != nil {
			return res, err
		}
		if only && len(messages) == 0 {
			if messages, err = ix.scanSessions(ctx, q, stands, &res); err != nil {
				return res, err
			}
		}
	}
	res.Hits = interleave(messages, notes, q.Limit)
	res.Words = m.v == nil
	return res, nil
}

// meaning is the vector of what is looked for, as it was put last.
type meaning struct {
	e    Embedder
	text string
	v    []float32 // nil: there is none
	bad  bool      // there is none to be had

	patience time.Duration
}

// patience is how long a question waits for its vector at most. Words do not
// wait.
const patience = 5 * time.Second

// of makes m that of text. If it cannot be had, res says so.
func (m *meaning) of(ctx context.Context, text string, res *Result) error {
	text = clipText(strings.TrimSpace(text), maxEmbedded)
	if m.e == nil || m.bad || text == m.text {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	vs, err := m.e.Vectors(soon, []string{text})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && soon.Err() != nil:
		m.v, m.bad = nil, true
		res.Incomplete = append(res.Incomplete, fmt.Sprintf("words only: %s gave no vector within %v", m.e.Name(), m.patience))
	case err != nil || len(vs) != 1:
		m.v, m.bad = nil, true
		res.Incomplete = append(res.Incomplete, fmt.Sprintf("words only: the embeddings of %s cannot be had: %v", m.e.Name(), err))
	default:
		m.text, m.v = text, vs[0]
	}
	return nil
}

// interleave takes turns: scores of messages and of notes cannot be compared.
func interleave(a, b []Hit, limit int) []Hit {
	var out []Hit
	for i := 0; len(out) < limit && (i < len(a) || i < len(b)); i++ {
		if i < len(a) {
			out = append(out, a[i])
		}
		if i < len(b) && len(out) < limit {
			out = append(out, b[i])
		}
	}
	return out
}

func (ix *Index) searchMemory(ctx context.Context, q Query, v []float32, res *Result) ([]Hit, error) {
	m := &ix.memory
	if _, err := m.sync(ix.o.Workspace, ix.o.Memory, nil); err != nil {
		res.Incomplete = append(res.Incomplete, fmt.Sprintf("the memory files cannot be read: %v", err))
		return nil, nil
	}
	res.Incomplete = append(res.Incomplete, m.incomplete()...)
	c := newCorpus(m.segments())
	var qv floats
	if v != nil {
		if err := ix.loadNotes(); err != nil {
			return nil, err
		}
		if len(m.codes) > 0 {
			qv = unit(append(floats{}, v...))
		}
	}
	c.allow = func(d doc) bool {
		f := m.order[d.group]
		return (q.Since.IsZero() || f.since(d, q.Since)) && (q.Until.IsZero() || d.time < q.Until.Unix())
	}
	// A file of a day is of that day in every zone.
	y, mo, d := q.Now.Date()
	asked := ask(q.Text, time.Date(y, mo, d, q.Now.Hour(), q.Now.Minute(), 0, 0, time.UTC))
	cands, err := c.rank(&notes, asked, noteCandidates)
	if err != nil {
		return nil, err
	}
	var kept []candidate
	for _, cand := range cands {
		if f := m.order[cand.seg]; f.hit(cand.at) {
			if v := m.codes[f.hashes[cand.at]]; v != nil {
				cand.code = v
			}
			kept = append(kept, cand)
		}
	}
	res.covered(kept)
	if qv != nil {
		notes.fuse(qv, kept)
	}
	ownFirst(kept, asked)
	g := gathered{limit: q.Limit}
	for _, cand := range trim(kept) {
		h := ix.noteHit(m.order[cand.seg], cand.at, cand.score, q)
		h.Near = !cand.own
		g.add(h, true)
	}
	return g.hits, nil
}

// noteHit is note i of f as a hit.
func (ix *Index) noteHit(f *file, i int, score float64, q Query) Hit {
	n := f.notes[i]
	at := time.Unix(f.seg.docs[i].time, 0).UTC()
	if !f.dated {
		at = at.In(q.Now.Location())
	}
	return Hit{File: f.path, Line: n.line, Lines: n.lines, Heading: n.heading, Time: at, Text: n.text, Score: score}
}

func (ix *Index) searchSessions(ctx context.Context, q Query, m *meaning, res *Result) ([]Hit, error) {
	for try := 0; ; try++ {
		hits, err := ix.findMessages(ctx, q, m, res, max(candidates, 3*q.Limit))
		switch {
		case err == nil || ctx.Err() != nil:
			return hits, err
		case try == 0 && broken(err):
			if bad := ix.repair(err); bad == nil {
				continue
			}
			fallthrough
		case broken(err):
			res.Incomplete = append(res.Incomplete, fmt.Sprintf("the transcripts were not searched: %v; goclaw doctor says more", err))
			return nil, nil
		default:
			return nil, err
		}
	}
}

// broken reports whether err is of the index, which can be made again.
func broken(err error) bool {
	var c *contradictionError
	return errors.Is(err, errDocs) || errors.Is(err, errPostings) || errors.As(err, &c) || damaged(err)
}

// incomplete says what of the transcripts could not be searched, or not
// through the index; unread are the logs that could not be read.
func (ix *Index) incomplete(unread map[session.ID]error) (out []string) {
	if ix.aside != nil {
		out = append(out, fmt.Sprintf("every session was read from its log: %v", ix.aside))
	}
	if ix.behind > 0 {
		out = append(out, fmt.Sprintf("%d records could not be written to the index, and were searched as they are", ix.behind))
	}
	if n := len(unread); n > 0 {
		id := slices.Min(slices.Collect(maps.Keys(unread)))
		out = append(out, fmt.Sprintf("%d sessions cannot be read, or not to their end, such as %s: %v; goclaw doctor says more", n, id, unread[id]))
	}
	return out
}

// findMessages finds messages among the best k by their words.
func (ix *Index) findMessages(ctx context.Context, q Query, m *meaning, res *Result, k int) ([]Hit, error) {
	if err := ix.sync(ctx); err != nil {
		return nil, err
	}
	segs := make([]*segment, 0, len(ix.segs)+1)
	for _, s := range ix.segs {
		segs = append(segs, s)
	}
	c := newCorpus(append(segs, ix.tail))
	allow, err := ix.filter(ctx, q)
	if err != nil {
		return nil, err
	}
	c.allow, c.speaks = allow, speakers(c.segs)
	for g, id := range ix.ids {
		if q.seq != 0 && id == q.without {
			c.mute = &doc{group: g, seq: uint32(q.seq)}
			c.allow = func(d doc) bool { return byPlace(d, *c.mute) != 0 && allow(d) }
		}
	}
	asked := ask(q.Text, q.Now)
	cands, err := c.rank(&chat, asked, k)
	if err != nil {
		return nil, err
	}
	if m.v != nil {
		ix.codes = map[int64][]byte{}
		for i := range cands {
			if cands[i].code, err = ix.code(cands[i].doc); err != nil {
				return nil, err
			}
		}
		chat.fuse(fold(append([]float32(nil), m.v...)), cands)
		ix.codes = nil
	}
	res.covered(cands)
	ownFirst(cands, asked)
	best, told := trim(cands), len(res.Incomplete)
	hits, err := ix.messages(ctx, best, q.Limit, res)
	if err == nil && len(hits) < q.Limit && len(best) == k && k < maxCandidates {
		// They say the same, most of them: others come behind.
		res.Incomplete = res.Incomplete[:told]
		return ix.findMessages(ctx, q, m, res, maxCandidates)
	}
	return hits, err
}

// trim drops what speaks against itself and holds no word of the question,
// unless there is nothing else.
func trim(cands []candidate) []candidate {
	for i, c := range cands {
		if c.score <= 0 && i > 0 {
			return slices.DeleteFunc(cands, func(c candidate) bool { return c.score <= 0 && !c.own })
		}
	}
	return cands
}

// covered notes how many candidates have vectors.
func (r *Result) covered(cands []candidate) {
	n := 0
	for _, c := range cands {
		if c.code != nil {
			n++
		}
	}
	if len(cands) > 0 {
		r.Vectors = float64(n) / float64(len(cands))
	}
}

// filter returns which docs q allows.
func (ix *Index) filter(ctx context.Context, q Query) (func(doc) bool, error) {
	var groups map[uint32]bool
	if q.Session != "" || q.Key != "" || q.Agent != "" {
		ids := map[session.ID]bool{}
		for in, err := range ix.o.Store.List(ctx, session.Query{ID: q.Session, Key: q.Key, Agent: q.Agent}) {
			if err != nil {
				return nil, err
			}
			ids[in.ID] = true
		}
		groups = map[uint32]bool{}
		for g, id := range ix.ids {
			if ids[id] {
				groups[g] = true
			}
		}
	}
	since, until := q.Since.Unix(), q.Until.Unix()
	return func(d doc) bool {
		switch {
		case groups != nil && !groups[d.group],
			!q.Since.IsZero() && d.time < since,
			!q.Until.IsZero() && d.time >= until,
			q.Role != "" && d.role() != q.Role:
			return false
		}
		return true
	}, nil
}

// messages reads the best of cands from the log.
func (ix *Index) messages(ctx context.Context, cands []candidate, limit int, res *Result) ([]Hit, error) {
	g := gathered{limit: limit}
	var taken []candidate
	more := 0 // looked at behind the hits
	infos, unread := map[session.ID]session.Info{}, maps.Clone(ix.unread)
	defer func() { res.Incomplete = append(res.Incomplete, ix.incomplete(unread)...) }()
	for _, c := range cands {
		if g.full() {
			if more == maxMore || !slices.ContainsFunc(taken, c.mayEqual) {
				continue
			}
			more++
		}
		id := ix.ids[c.doc.group]
		in, ok := infos[id]
		if !ok {
			for i, err := range ix.o.Store.List(ctx, session.Query{ID: id, Limit: 1}) {
				if err != nil {
					return nil, err
				}
				in = i
			}
			in.Title = naming.Title(ctx, ix.o.Store, in)
			infos[id] = in
		}
		if in.ID == "" {
			continue // in the trash since
		}
		rec, ok, err := recordAt(ctx, ix.o.Store, id, session.Seq(c.doc.seq))
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
				return nil, err
			}
			unread[id] = err
			continue
		}
		s, says := speak(rec)
		if !ok || !says {
			continue
		}
		h := Hit{Session: id, Key: in.Key, Title: in.Title, Seq: rec.Seq, Record: rec.ID, Role: s.role, Time: s.at, Text: s.text, Score: c.score, Near: !c.own}
		if g.add(h, !in.Mirror()) {
			taken = append(taken, c)
		}
	}
	return g.hits, nil
}

// maxMore is how many messages are read to tell how many more say what a hit
// says.
const maxMore = 30

// mayEqual reports whether c may say what o says, word for word.
func (c candidate) mayEqual(o candidate) bool {
	if c.doc.words != o.doc.words || c.doc.flags != o.doc.flags {
		return false
	}
	a, known := c.code.(signs)
	b, both := o.code.(signs)
	return !known || !both || a == b
}

// recordAt reads one record.
func recordAt(ctx context.Context, st session.Store, id session.ID, seq session.Seq) (session.Record, bool, error) {
	var lost error // where it would stand
	for r, err := range st.Read(ctx, id, seq-1) {
		var d *session.Damage
		switch {
		case errors.As(err, &d):
			lost = err
			continue
		case errors.Is(err, session.ErrNotFound):
			return r, false, nil
		case err != nil:
			return r, false, err
		}
		if _, says := speak(r); r.Seq != seq || lost != nil && !says { // what stands for it
			return r, false, lost
		}
		return r, true, nil
	}
	return session.Record{}, false, lost
}

// clipText returns the first n bytes of s, whole characters.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
