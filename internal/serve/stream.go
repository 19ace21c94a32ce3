package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/window"
)

// position is how far a client has read a session's stream: all records before
// Seq, Sub events of the record Seq, or all of them and the end of so many turns,
// and then Offset bytes of the answer that comes next. It is the id of an event,
// so that a client that comes back, to whichever server, goes on exactly there.
type position struct {
	Seq    session.Seq
	Sub    int
	Offset int
}

// all is a Sub that no record has: every event of the record was read. What is
// above it counts the turns that ended then.
const all = 1 << 30

func (p position) String() string {
	switch {
	case p.Sub == all:
		return fmt.Sprintf("%d.a.%d", p.Seq, p.Offset)
	case p.Sub > all:
		return fmt.Sprintf("%d.e%d.%d", p.Seq, p.Sub-all, p.Offset)
	}
	return fmt.Sprintf("%d.%d.%d", p.Seq, p.Sub, p.Offset)
}

// before reports whether p is before the end of a turn.
func (p position) before(end position) bool {
	return p.Seq < end.Seq || p.Seq == end.Seq && p.Sub < end.Sub
}

// parsePosition reads what String wrote, or the number of a record alone.
func parsePosition(s string) (position, error) {
	parts := strings.Split(s, ".")
	seq, err := strconv.ParseInt(parts[0], 10, 64)
	p := position{Seq: session.Seq(seq), Sub: all}
	if err == nil && len(parts) == 3 {
		if ends, ok := strings.CutPrefix(parts[1], "e"); ok {
			p.Sub, err = strconv.Atoi(ends)
			p.Sub = all + max(min(p.Sub, all/2), 1)
		} else if parts[1] != "a" {
			p.Sub, err = strconv.Atoi(parts[1])
			p.Sub = min(p.Sub, all)
		}
		if err == nil {
			p.Offset, err = strconv.Atoi(parts[2])
		}
	}
	if err != nil || len(parts) != 1 && len(parts) != 3 || seq < 0 || p.Sub < 0 || p.Offset < 0 {
		return position{}, fmt.Errorf("%q is not the id of an event", s)
	}
	return p, nil
}

// event is one event for clients. Those without an id are not repeated.
type event struct {
	id   string
	data map[string]any
	json []byte // data on the wire; nil: not made yet
}

// kept is a record that all followers are told, soon after it was written: its
// events are made once for all of them.
type kept struct {
	session.Record
	made   sync.Once
	events []event
	err    error
}

// piece is a stretch of the answer that arrives.
type piece struct {
	thinking bool
	text     string
}

func (p piece) event() map[string]any {
	if p.thinking {
		return map[string]any{"type": "thinking", "text": p.text}
	}
	return map[string]any{"type": "delta", "text": p.text}
}

// stream is what happens in one session: its records, from whatever process,
// and between them what a turn in this process says. Readers take from it at
// their own pace; nobody waits for them.
type stream struct {
	id     session.ID
	st     session.Store
	record func(session.Record) (json.RawMessage, error)

	reading atomic.Int64 // clients that read now

	mu      sync.Mutex
	changed chan struct{} // closed when there is more
	urgent  chan struct{} // closed when there is more than words and records
	last    session.Seq
	begun   session.Seq      // the record after which the answer that arrives begins
	recent  []*kept          // the latest records up to last, but for parts of an answer that was recorded
	from    session.Seq      // the first record that recent stands for
	pieces  []piece          // of the answer that arrives
	passing []map[string]any // events that are not repeated, the latest
	ends    []end            // of turns, the latest
	passed  int              // how many there were, all in all
	readers int
	local   bool          // a turn runs here
	foreign bool          // a turn of another process has begun, and its end was not told
	poke    chan struct{} // it may run on another server
	end     func()        // of following
}

// end is the end of a turn: the last event before it and its own.
type end struct {
	at   position
	data map[string]any
}

const (
	keepRecords = 64   // without parts of an answer
	keepParts   = 1000 // with them
	keepEnds    = 16
	keepPassing = 256
)

// wake tells the readers that there is more. mu is held.
func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// here reports whether a turn runs here, and sets it.
func (s *stream) here(set ...bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(set) > 0 {
		s.local, s.foreign = set[0], false
	}
	return s.local
}

// add takes a record that was appended, and reports whether it is new.
func (s *stream) add(r session.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Seq <= s.last {
		return false
	}
	if r.Seq != s.last+1 {
		s.recent = nil // readers take the ones between from the store
	}
	s.last = r.Seq
	s.keep(r)
	s.foreign = s.foreign || !s.local && session.IsTurn(r.Body)
	if p, ok := r.Body.(session.Partial); !ok {
		s.pieces, s.begun = nil, r.Seq
	} else if !s.local { // a turn here says it itself
		from := p.Offset
		for _, x := range piecesOf(p) {
			from += len(x.text)
			s.extend(from, x)
		}
	}
	s.wake()
	return true
}

// keep adds a record to the recent ones, which stay few. mu is held.
func (s *stream) keep(r session.Record) {
	if m, ok := r.Body.(session.Message); ok && m.Role == llm.Assistant { // it says what its parts said
		for n := len(s.recent); n > 0 && isPart(s.recent[n-1].Body); n-- {
			s.recent = s.recent[: n-1 : n-1]
		}
	}
	if len(s.recent) == 0 {
		s.from = r.Seq
	}
	s.recent = append(s.recent, &kept{Record: r})
	whole, first := 0, 0
	for i := len(s.recent) - 1; i >= 0 && first == 0; i-- {
		if !isPart(s.recent[i].Body) {
			whole++
		}
		if whole > keepRecords || len(s.recent)-i > keepParts {
			first = i + 1
		}
	}
	if first > 0 {
		s.recent = append(s.recent[:0:0], s.recent[first:]...)
		s.from = s.recent[0].Seq
	}
}

func isPart(b session.Body) bool {
	_, ok := b.(session.Partial)
	return ok
}

// extend takes of a piece that ends at byte end of the answer what is not there
// yet. One that leaves a gap is dropped. mu is held.
func (s *stream) extend(end int, p piece) {
	size := 0
	for _, x := range s.pieces {
		size += len(x.text)
	}
	if from := end - len(p.text); from <= size && size < end {
		p.text = p.text[size-from:]
		s.attach(p)
	}
}

// attach adds a piece to the answer that arrives. mu is held.
func (s *stream) attach(p piece) {
	if n := len(s.pieces); n > 0 && s.pieces[n-1].thinking == p.thinking && len(s.pieces[n-1].text) < 1<<12 {
		s.pieces[n-1].text += p.text
	} else {
		s.pieces = append(s.pieces, p)
	}
}

// say takes a piece of the answer.
func (s *stream) say(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attach(p)
	s.wake()
}

// pass takes an event that is for those who are here now. Only the end of a turn
// is told to those who come back, too; pass returns its place.
func (s *stream) pass(data map[string]any) (at position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	if s.urgent != nil {
		close(s.urgent)
		s.urgent = nil
	}
	if isEnd(data) {
		s.foreign = false
		at = s.place(s.last)
		at.Sub++
		s.ends = append(s.ends[max(len(s.ends)-keepEnds+1, 0):], end{at, data})
		return at
	}
	s.passed++
	if s.passing = append(s.passing, data); len(s.passing) > keepPassing {
		s.passing = append(s.passing[:0:0], s.passing[len(s.passing)-keepPassing:]...)
	}
	return at
}

// isEnd reports whether an event is the last of a turn.
func isEnd(data map[string]any) bool { return data["type"] == "done" || data["type"] == "error" }

// place returns the position after the record seq and the turns that ended there.
// mu is held.
func (s *stream) place(seq session.Seq) position {
	p := position{Seq: seq, Sub: all}
	for _, e := range s.ends {
		if e.at.Seq == seq {
			p.Sub = e.at.Sub
		}
	}
	return p
}

// missed returns the ends of turns after p. mu is held.
func (s *stream) missed(p position) (out []end) {
	for _, e := range s.ends {
		if p.before(e.at) {
			out = append(out, e)
		}
	}
	return out
}

// watched reports whether someone reads the stream, beside the turn in it.
func (s *stream) watched() bool { return s.reading.Load() > 0 }

// forget drops an answer that will not be finished.
func (s *stream) forget() {
	s.mu.Lock()
	s.pieces = nil
	s.mu.Unlock()
}

// now returns the end of the stream.
func (s *stream) now() (p position, passed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.place(s.last)
	for _, x := range s.pieces {
		p.Offset += len(x.text)
	}
	return p, s.passed
}

// reader is a client's place in a stream.
type reader struct {
	*stream
	at     position
	seen   int         // of the events that pass
	until  session.Seq // the last record that is read; 0: there is no last one
	first  []event     // what is told before
	logged []logged    // ends of turns that no one has told here

	urgent <-chan struct{} // closed when there is something that must not wait
}

// next returns what there is after the reader's place, and a channel that is
// closed when there is more.
func (r *reader) next(ctx context.Context) ([]event, <-chan struct{}, error) {
	r.mu.Lock()
	changed, last := r.changed, r.last
	recent, first := r.recent, r.from
	pieces := append([]piece(nil), r.pieces...)
	passing := r.passing[max(len(r.passing)-(r.passed-r.seen), 0):]
	r.seen = r.passed
	if r.until > 0 && last >= r.until {
		last, pieces, passing = r.until, nil, nil
	}
	ends := r.untold()
	if r.stream.urgent == nil {
		r.stream.urgent = make(chan struct{})
	}
	r.urgent = r.stream.urgent
	r.mu.Unlock()

	out := r.first
	r.first = nil
	for rec, err := range r.since(ctx, recent, first, last) {
		if err != nil {
			return out, changed, err
		}
		if rec.Seq > last {
			break // it is taken up with what was said before it
		}
		out = append(out, r.ended(&ends, rec.Seq-1)...)
		more, err := r.take(rec)
		if err != nil {
			return out, changed, err
		}
		out = append(out, more...)
	}
	out = append(out, r.ended(&ends, last)...)
	if r.at.Seq >= last {
		out = append(out, r.beyond(pieces, 0)...)
	}
	for _, data := range passing {
		out = append(out, event{data: data})
	}
	return out, changed, nil
}

// ended returns the ends up to the record seq, which it takes from ends.
func (r *reader) ended(ends *[]end, seq session.Seq) (out []event) {
	for len(*ends) > 0 && (*ends)[0].at.Seq <= seq {
		e := (*ends)[0]
		r.at, *ends = e.at, (*ends)[1:]
		out = append(out, event{id: e.at.String(), data: e.data})
	}
	return out
}

// resume sets the place of a reader that comes back with the id of the last event
// that it read, or with the number of a record up to which it knows everything.
// The log ends with the record last.
func (r *reader) resume(id string, last session.Seq) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at, err = parsePosition(id); err == nil && r.at.Seq > last {
		err = fmt.Errorf("%q is beyond the end of the session, whose last record is %d", id, last)
	}
	if err != nil {
		return wrong(http.StatusBadRequest, "%s", err)
	}
	if !strings.Contains(id, ".") {
		r.at = r.place(r.at.Seq)
	}
	r.seen = r.passed
	return nil
}

// since yields the records from the reader's place on. recent stand for those
// from first on.
func (r *reader) since(ctx context.Context, recent []*kept, first, last session.Seq) iter.Seq2[*kept, error] {
	return func(yield func(*kept, error) bool) {
		from := r.at.Seq
		if from > last {
			return
		}
		if r.at.Sub >= all {
			from++
		}
		if from > last {
			return
		}
		if len(recent) > 0 && from >= first {
			for _, rec := range recent {
				if rec.Seq >= from && !yield(rec, nil) {
					return
				}
			}
			return
		}
		var damage *session.Damage
		for rec, err := range r.st.Read(ctx, r.id, from-1) {
			if errors.As(err, &damage) {
				continue
			}
			if !yield(&kept{Record: rec}, err) || err != nil {
				return
			}
		}
	}
}

// take returns the events of a record from the reader's place on.
func (r *reader) take(rec *kept) ([]event, error) {
	if rec.Seq > r.at.Seq { // a new one: first the rest of what it says
		said := piecesOf(rec.Body)
		var out []event
		if p, ok := rec.Body.(session.Partial); ok {
			out = r.beyond(said, p.Offset)
			r.at.Seq, r.at.Sub = rec.Seq, all
			if n := len(out); n > 0 {
				out[n-1].id = r.at.String()
			}
			return out, nil
		}
		out = r.beyond(said, 0)
		r.at = position{Seq: rec.Seq}
		more, err := r.take(rec)
		return append(out, more...), err
	}
	rec.made.Do(func() { rec.events, rec.err = r.events(rec.Record) })
	var out []event
	for i, ev := range rec.events {
		if i < r.at.Sub {
			continue
		}
		if r.at.Sub = i + 1; r.at.Sub == len(rec.events) {
			r.at.Sub = all
		}
		ev.id = r.at.String()
		out = append(out, ev)
	}
	return out, rec.err
}

// beyond returns those of the pieces, which begin at byte from of the answer,
// that are beyond the reader's place.
func (r *reader) beyond(pieces []piece, from int) []event {
	var out []event
	for _, p := range pieces {
		end := from + len(p.text)
		if end > r.at.Offset {
			if cut := r.at.Offset - from; cut > 0 {
				p.text = p.text[cut:]
			}
			r.at.Offset = end
			out = append(out, event{id: r.at.String(), data: p.event()})
		}
		from = end
	}
	return out
}

// piecesOf returns what a model says in a record.
func piecesOf(b session.Body) (out []piece) {
	switch b := b.(type) {
	case session.Partial:
		if b.Thinking != "" {
			out = append(out, piece{true, b.Thinking})
		}
		if b.Text != "" {
			out = append(out, piece{false, b.Text})
		}
	case session.Message:
		if b.Role != llm.Assistant {
			return nil
		}
		for _, block := range b.Blocks {
			switch block := block.(type) {
			case llm.Thinking:
				out = append(out, piece{true, block.Text})
			case llm.Text:
				if !window.IsNoReply(block.Text) { // nothing is said with it
					out = append(out, piece{false, block.Text})
				}
			}
		}
	}
	return out
}

// events are the events of a record, apart from what a model says in it: its
// tools that are done, the record itself, and the tools that begin.
func (s *stream) events(rec session.Record) (out []event, err error) {
	line, err := s.record(rec)
	if err != nil {
		return nil, err
	}
	add := func(data map[string]any) { out = append(out, event{data: data, json: jsonOf(data)}) }
	m, isMessage := rec.Body.(session.Message)
	if isMessage {
		for _, r := range m.Results() {
			add(map[string]any{"type": "tool", "state": "done", "id": r.CallID, "name": r.Name, "isError": r.IsError, "output": r.Text()})
		}
	}
	add(map[string]any{"type": "recorded", "record": line})
	if isMessage && m.Role == llm.Assistant {
		for _, c := range m.Calls() {
			add(map[string]any{"type": "tool", "state": "running", "id": c.ID, "name": c.Name, "input": c.Args})
		}
	}
	return out, nil
}

// streams are the streams that someone reads or that a turn runs in.
type streams struct {
	st     session.Store
	record func(session.Record) (json.RawMessage, error)

	peers *peers

	mu   sync.Mutex
	of   map[session.ID]*stream
	stop func() // of watching; there is something to watch as long as there are streams
}

// open returns the stream of a session. Whoever opens it closes it.
func (ss *streams) open(in session.Info) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.of[in.ID]
	if s == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s = &stream{id: in.ID, st: ss.st, record: ss.record, changed: make(chan struct{}), last: in.Last, begun: in.Last, poke: make(chan struct{}, 1), end: cancel}
		ss.of[in.ID] = s
		s.elsewhere()                      // a turn may run already
		go func() { _ = s.catchUp(ctx) }() // what came since in was read
		go ss.peers.relay(ctx, s)
		if len(ss.of) == 1 {
			var watching context.Context
			watching, ss.stop = context.WithCancel(context.Background())
			go ss.watch(watching)
		}
	}
	s.readers++
	return s
}

// close gives a stream back.
func (ss *streams) close(s *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.readers--; s.readers == 0 {
		s.end()
		if delete(ss.of, s.id); len(ss.of) == 0 {
			ss.stop()
		}
	}
}

// elsewhere says that a turn may run on another server.
func (s *stream) elsewhere() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// catchUp takes the records that other processes have appended.
func (s *stream) catchUp(ctx context.Context) error {
	var damage *session.Damage
	end, _ := s.now()
	for rec, err := range s.st.Read(ctx, s.id, end.Seq) {
		switch {
		case errors.As(err, &damage):
		case err != nil:
			return err
		case s.add(rec) && !s.here():
			s.elsewhere()
		}
	}
	return nil
}

// lookAgain is how often the store is looked at for what other processes append.
// It is one look for all sessions, however many are followed.
const lookAgain = 150 * time.Millisecond

// watch looks for what other processes append, until ctx is done. A store that
// fails may come back.
func (ss *streams) watch(ctx context.Context) {
	since, told := "", false
	for ctx.Err() == nil {
		began := time.Now()
		ch, err := storekit.ChangesOf(ctx, ss.st, since)
		if err == nil {
			since = ch.Now
			for _, c := range ch.Logs {
				ss.mu.Lock()
				s := ss.of[c.ID]
				ss.mu.Unlock()
				if s == nil {
					continue
				}
				if end, _ := s.now(); c.Last > end.Seq {
					err = errors.Join(err, s.catchUp(ctx))
				}
			}
		}
		if err != nil && !told && ctx.Err() == nil {
			ss.mu.Lock()
			for _, s := range ss.of {
				s.pass(map[string]any{"type": "notice", "text": "sessions cannot be followed now: " + err.Error()})
			}
			ss.mu.Unlock()
		}
		told = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(max(lookAgain, 10*time.Since(began))): // a tenth of one core at most
		}
	}
}

// observe takes an event of a turn that runs here. show gives the form of those
// that are not in the log.
func (s *stream) observe(ctx context.Context, ev agent.Event, show func(agent.Event) map[string]any) {
	switch ev := ev.(type) {
	case agent.Said:
		if ev.Thinking != "" {
			s.say(piece{true, ev.Thinking})
		}
		if ev.Text != "" {
			s.say(piece{false, ev.Text})
		}
	case agent.Recorded:
		if end, _ := s.now(); ev.Record.Seq > end.Seq+1 { // parts of the answer: once for all readers
			_ = s.catchUp(ctx)
		}
		s.add(ev.Record)
	case agent.Calling, agent.Called, agent.Done: // their records say so; the end of the turn is told by who runs it
	default:
		if data := show(ev); data != nil {
			s.pass(data)
		}
	}
}
