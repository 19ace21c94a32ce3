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
	"goclaw/recall/internal/notes"
	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/ranking"
	"goclaw/recall/internal/vectors"
	"goclaw/recall/internal/words"
	"goclaw/session"
)

// Query is what is looked for. The zero value of each field asks for nothing.
type Query struct {
	Text  string
	Limit int // 0: 10; at most MaxLimit

	Session session.ID  // one log
	Key     session.Key // all logs of a key
	Agent   string
	Folder  string // an absolute path: sessions that work there or below
	Source  string // the program that a session is of: claude-code, codex ...; goclaw
	Tool    string // calls and output of that tool, in any case
	Role    Role
	Since   time.Time
	Until   time.Time

	Memory   bool // memory files
	Sessions bool // transcripts; if neither is set, both
	Now      time.Time

	// MinScore leaves out hits with a lower Score.
	MinScore float64
	// VectorWeight and TextWeight say how much the meaning and the words of a
	// note count. Only their ratio matters; 0.7 to 0.3, and none at all, is our
	// own balance.
	VectorWeight, TextWeight float64
	// Candidates is how many notes are compared for each that is wanted, at least
	// as many as without it.
	Candidates int

	// Embed is for how long vectors that are missing are made before the answer,
	// if without them nothing is found that says what is asked for. 0: none are.
	Embed time.Duration

	// The record of a session that asks this query, which is left out.
	without session.ID
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
	Folder  string // that the session works in; "": not known
	Source  string // the program that the session is of

	// A note.
	File    string
	Line    int
	Lines   int
	Heading string

	Time time.Time
	Text string
	// Score is from 0 to 1: the weighed mean of the share of the query's words
	// that the text holds, and of the cosine of the two where there are vectors.
	// No hit has less than one after it in the order of its kind.
	Score float64
	Also  []string // citations of near-duplicates
	// Stand are the terms that were found in place of words of the query, those
	// that begin with one or that one misspells, each with the word's own term.
	Stand map[string]string
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
	// Literal says that the query has no word that is indexed, like "to be or
	// not to be" or an emoji: it was looked for literally.
	Literal bool
	// Words says that the query has no vector: words alone decided. If it
	// should have had one, Incomplete says why it has none.
	Words bool
	// Vectors is the share of the candidates that were compared by meaning as
	// well: 1 all, 0 none.
	Vectors float64
	// Near says that nothing was found that says what the query asks for: all
	// hits are only near it. They have few of its words, and mean something
	// else.
	Near bool
	// Missing is how many messages have no vector yet and were not compared by
	// meaning, if Query.Embed is set.
	Missing int
}

// Uncompared says how many messages were not compared by meaning. It is "" if
// none are missing.
func (r Result) Uncompared() string {
	switch r.Missing {
	case 0:
		return ""
	case 1:
		return "1 message is not compared by meaning yet: goclaw search --index makes the vectors that are missing"
	}
	return fmt.Sprintf("%d messages are not compared by meaning yet: goclaw search --index makes the vectors that are missing", r.Missing)
}

// Unclear says that nothing was found that says what was asked for.
func (r Result) Unclear() bool { return len(r.Hits) == 0 || r.Near }

// How many candidates are looked at for the hits that are wanted.
const (
	candidates     = 100 // messages that are compared by their vectors
	noteCandidates = 200
	maxCandidates  = 2000 // messages, where most of them say the same
	defaultLimit   = 10
)

// MaxLimit is how many hits a search has at most, however many are asked for.
const MaxLimit = 200

// Search finds what q asks for. An index that is not up to date is brought up
// to date, a damaged one is repaired; where that is impossible, the result says
// what is missing.
func (ix *Index) Search(ctx context.Context, q Query) (Result, error) {
	defer ix.Hold()()
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	if !q.Memory && !q.Sessions {
		q.Memory, q.Sessions = true, true
	}
	if q.ofSessions() || q.Role != "" || q.Tool != "" {
		q.Memory = false
	}
	if q.Now.IsZero() {
		q.Now = ix.o.Now()
	}
	res, err := ix.search(ctx, q)
	if err != nil || q.Embed <= 0 || res.Words || res.Literal {
		return res, err
	}
	if res.Unclear() {
		if n := ix.vectors.before(ctx, q); n > 0 {
			if res, err = ix.search(ctx, q); err != nil {
				return res, err
			}
		}
	}
	if n, err := ix.Missing(ctx); err == nil && q.Sessions {
		res.Missing = n
	}
	return res, nil
}

// search finds what q asks for by the vectors that there are.
func (ix *Index) search(ctx context.Context, q Query) (Result, error) {
	s := search{Index: ix, q: q, meaning: meaning{embedding: &ix.vectors}}
	s.literal, s.res.Literal = asLiteral(q.Text)
	notes, err := s.inMemory(ctx)
	if err != nil {
		return s.res, err
	}
	messages, err := s.inSessions(ctx)
	if err != nil {
		return s.res, err
	}
	s.res.Hits = interleave(messages, notes, q.Limit, fewWords(q.Text))
	if s.whole {
		s.res.Hits = slices.DeleteFunc(s.res.Hits, func(h Hit) bool { return h.Near })
	}
	sourcesFirst(s.res.Hits)
	s.res.Words = s.meaning.v == nil
	s.res.Near = len(s.res.Hits) > 0 && !s.clear && !s.res.Literal
	return s.res, nil
}

// search is one search.
type search struct {
	*Index
	q       Query
	meaning meaning
	literal literal
	clear   bool // a hit says what is asked for
	whole   bool // the query is few words, and a text holds all of them
	res     Result
}

// interleave takes turns: scores of messages and of notes cannot be compared. If
// ownFirst, what holds a word of the query comes before what is only near.
func interleave(a, b []Hit, limit int, ownFirst bool) []Hit {
	var out []Hit
	for mine := true; len(out) < limit && len(a)+len(b) > 0; mine = !mine {
		if len(a) > 0 && len(b) > 0 && ownFirst && a[0].Near != b[0].Near {
			mine = b[0].Near
		}
		if mine && len(a) > 0 || len(b) == 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

// fewWords reports whether a query is one or two words, names or paths: whoever
// types those looks for them.
func fewWords(query string) bool {
	n := 0
	for w := range strings.FieldsSeq(query) {
		if len(words.Set(w)) > 0 {
			n++
		}
	}
	return n <= 2 && !asks(query)
}

// inMemory searches the memory files.
func (s *search) inMemory(ctx context.Context) ([]Hit, error) {
	if !s.q.Memory || s.o.Workspace == "" {
		return nil, nil
	}
	if err := s.meaning.of(ctx, s.q.Text, &s.res); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.memory.Sync(nil); err != nil {
		s.res.Incomplete = append(s.res.Incomplete, fmt.Sprintf("the memory files cannot be read: %v", err))
		return nil, nil
	}
	s.res.Incomplete = append(s.res.Incomplete, s.memory.Incomplete()...)
	s.meaning.compare(&s.res)
	hits, err := s.notes()
	if err == nil && len(hits) == 0 && s.res.Literal {
		hits = s.scanMemory()
	}
	return hits, err
}

// notes finds notes by words and meaning.
func (s *search) notes() ([]Hit, error) {
	all := s.memory.All
	c := ranking.Notes(s.memory.Segments())
	// A file of a day is of that day in every zone.
	y, mo, d := s.q.Now.Date()
	asked := ranking.Ask(s.q.Text, time.Date(y, mo, d, s.q.Now.Hour(), s.q.Now.Minute(), 0, 0, time.UTC))
	if err := c.Look(asked); err != nil {
		return nil, err
	}
	fits := func(seg, at int) bool { return all[seg].IsHit(at) && all[seg].Within(at, s.q.Since, s.q.Until) }
	near, err := s.nearNotes(fits)
	if err != nil {
		return nil, err
	}
	cands, err := c.Rank(asked, max(noteCandidates, s.q.Candidates*s.q.Limit), near)
	if err != nil {
		return nil, err
	}
	cands = slices.DeleteFunc(cands, func(c ranking.Candidate) bool { return !fits(c.Seg, c.At) })
	if s.meaning.v != nil {
		for i, c := range cands {
			if v := s.vectors.notes[all[c.Seg].Hashes[c.At]]; v != nil {
				cands[i].Code = v
			}
		}
		ranking.Fuse(vectors.Unit(s.meaning.v), cands, s.q.balance())
		cands = similar(cands, s.floor())
	}
	s.covered(cands)
	g := gathered{limit: s.q.Limit, query: s.q.Text}
	grades := s.grader(asked, vectors.Unit(s.meaning.v))
	for _, c := range s.own(ranking.Trim(cands)) {
		h := s.noteHit(all[c.Seg], c.At, 0)
		h.Near, h.Stand = !c.Own, asked.Stand()
		s.judge(c)
		if g.add(h, true) {
			g.hits[len(g.hits)-1].Score = grades.grade(c, h.Text)
		}
	}
	return level(g.hits, s.q.MinScore), nil
}

// noteHit is note i of f as a hit.
func (s *search) noteHit(f *notes.File, i int, score float64) Hit {
	n := f.Notes[i]
	return Hit{File: f.Path, Line: n.Line, Lines: n.Lines, Heading: n.Heading, Time: f.Time(i, s.q.Now.Location()), Text: n.Text, Score: score}
}

// inSessions searches the transcripts.
func (s *search) inSessions(ctx context.Context) ([]Hit, error) {
	if !s.q.Sessions || s.o.Store == nil {
		return nil, nil
	}
	hits, err := s.found(ctx, max(candidates, 3*s.q.Limit))
	if broken(err) && ctx.Err() == nil {
		if s.repair(ctx, err) == nil {
			hits, err = s.found(ctx, max(candidates, 3*s.q.Limit))
		}
		if broken(err) {
			s.res.Incomplete = append(s.res.Incomplete, fmt.Sprintf("the transcripts were not searched: %v; goclaw doctor says more", err))
			return nil, nil
		}
	}
	if err != nil || len(hits) > 0 || !s.res.Literal {
		return hits, err
	}
	return s.scanSessions(ctx)
}

// title returns the title of a session that has one, or was imported. The others
// are about what the hit itself says.
func (s *search) title(ctx context.Context, in session.Info) string {
	if in.Title == "" && !in.Mirror() {
		return ""
	}
	return naming.Title(ctx, s.o.Store, in)
}

// repair repairs the index, which is damaged as err says.
func (s *search) repair(ctx context.Context, err error) error {
	unlock, closed := s.lock(ctx)
	if closed != nil {
		return closed
	}
	defer unlock()
	return s.messages.repair(err)
}

// found finds messages among the best k by their words and the nearest by
// their vectors.
func (s *search) found(ctx context.Context, k int) ([]Hit, error) {
	asked := ranking.Ask(s.q.Text, s.q.Now)
	if asked.Literal(s.q.Text) != nil {
		k = max(k, ranking.ToRead)
	}
	c, err := s.transcripts(ctx, asked)
	if err != nil {
		return nil, err
	}
	// A model takes its time: others search in the meantime.
	if err := s.meaning.of(ctx, asked.Spoken(s.q.Text), &s.res); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	best, err := s.rank(ctx, asked, c, k)
	if err != nil {
		unlock()
		return nil, err
	}
	hits, unread, err := s.read(ctx, best, s.grader(asked, vectors.Reduce(s.meaning.v)))
	incomplete := s.messages.incomplete(unread)
	unlock()
	if err == nil && len(hits) < s.q.Limit && len(best) >= k && k < maxCandidates {
		return s.found(ctx, maxCandidates) // most of them say the same: look further
	}
	s.res.Incomplete = append(s.res.Incomplete, incomplete...)
	return level(hits, s.q.MinScore), err
}

// transcripts returns what is searched, with the words of the question looked
// up.
func (s *search) transcripts(ctx context.Context, asked *ranking.Question) (*ranking.Corpus, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	t := s.messages
	if err := t.sync(ctx); err != nil {
		return nil, err
	}
	c := ranking.Messages(t.segments(), t.people)
	allow, err := s.filter(ctx, c.Segs)
	if err != nil {
		return nil, err
	}
	c.Allow = allow
	for g, id := range t.ids {
		if s.q.seq != 0 && id == s.q.without {
			c.Mute = &postings.Doc{Group: g, Seq: uint32(s.q.seq)}
			c.Allow = func(d postings.Doc) bool { return postings.ByPlace(d, *c.Mute) != 0 && allow(d) }
		}
	}
	return c, c.Look(asked)
}

// covered notes how many candidates by words have vectors.
func (s *search) covered(cands []ranking.Candidate) {
	n, all := 0, 0
	for _, c := range cands {
		if !c.Meant {
			all++
			if c.Code != nil {
				n++
			}
		}
	}
	switch {
	case all > 0:
		s.res.Vectors = float64(n) / float64(all)
	case len(cands) > 0: // their vectors are all that they were found by
		s.res.Vectors = 1
	}
}

// read reads the best of cands from their logs. unread are the logs that could
// not be read.
func (s *search) read(ctx context.Context, cands []ranking.Candidate, grades grader) (hits []Hit, unread map[session.ID]error, err error) {
	g := gathered{limit: s.q.Limit, query: s.q.Text}
	var taken []ranking.Candidate
	more := 0 // looked at after the hits
	infos, unread := map[session.ID]session.Info{}, maps.Clone(s.messages.unread)
	for _, c := range cands {
		if g.full() {
			if more == maxMore || !slices.ContainsFunc(taken, func(t ranking.Candidate) bool { return mayEqual(c, t) }) {
				continue
			}
			more++
		}
		id := s.messages.ids[c.Doc.Group]
		in, ok := infos[id]
		if !ok {
			for i, err := range s.o.Store.List(ctx, session.Query{ID: id, Limit: 1}) {
				if err != nil {
					return nil, unread, err
				}
				in = i
			}
			in.Title = s.title(ctx, in)
			infos[id] = in
		}
		if in.ID == "" {
			continue // in the trash since
		}
		rec, ok, err := recordAt(ctx, s.o.Store, id, session.Seq(c.Doc.Seq))
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
				return nil, unread, err
			}
			unread[id] = err
			continue
		}
		text, says := speak(rec)
		if !ok || !says {
			continue
		}
		h := text.hit(in, rec.ID)
		h.Near, h.Stand = !c.Own, grades.stand
		s.judge(c)
		if g.add(h, !in.Mirror()) {
			g.hits[len(g.hits)-1].Score = grades.grade(c, h.Text)
			taken = append(taken, c)
		}
	}
	return g.hits, unread, nil
}

// hit is s as a hit in a session.
func (s said) hit(in session.Info, record string) Hit {
	return Hit{Session: in.ID, Key: in.Key, Title: in.Title, Seq: s.seq, Record: record, Role: s.role, Folder: in.CWD, Source: sourceOf(in), Time: s.at, Text: s.text}
}

// maxMore is how many messages are read to tell how often what a hit says was
// said.
const maxMore = 30

// mayEqual reports whether two messages may say the same, word for word.
func mayEqual(a, b ranking.Candidate) bool {
	if a.Doc.Words != b.Doc.Words || a.Doc.Flags != b.Doc.Flags {
		return false
	}
	x, known := a.Code.(vectors.Signs)
	y, both := b.Code.(vectors.Signs)
	return !known || !both || x == y
}

// recordAt reads one record.
func recordAt(ctx context.Context, st session.Store, id session.ID, seq session.Seq) (session.Record, bool, error) {
	var lost error // damage in its place
	for r, err := range session.Joined(st.Read(ctx, id, seq-1)) {
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
		if _, says := speak(r); r.Seq != seq || lost != nil && !says { // it stands for the damage
			return r, false, lost
		}
		return r, true, nil
	}
	return session.Record{}, false, lost
}
