package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
)

// running are the turns that run here.
type running struct {
	server *Server

	mu      sync.Mutex
	of      map[session.ID]*turn // the latest of each session
	stopped bool                 // no more begin
	wait    sync.WaitGroup
}

// turn is a turn that runs here, or has ended a short while ago.
type turn struct {
	id     session.ID
	stream *stream
	from   position      // before its first event
	until  session.Seq   // its last record, if another turn came after it
	key    string        // the idempotency key of its request
	began  chan struct{} // closed when the log shows that it began
	passed int
	cancel context.CancelCauseFunc
	done   chan struct{}
	end    map[string]any // its last event, when done is closed
	at     position       // and its place

	mu   sync.Mutex
	asks *question // what it waits for
}

// keepTurn is how long the end of a turn can still be asked for.
const keepTurn = 10 * time.Minute

var (
	errStopped  = errors.New("stopped: the answer so far is kept")
	errShutdown = errors.New("the server is stopping: the answer so far is kept, and the turn can be continued")
)

// start begins a turn in the session in: what the user says, or an empty
// message to continue what was interrupted. key is the idempotency key of the
// request, if it has one.
func (rs *running) start(in session.Info, say llm.Message, key string) (*turn, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stopped {
		return nil, wrong(http.StatusServiceUnavailable, "the server is stopping: no new turn begins")
	}
	if t := rs.of[in.ID]; t != nil && !t.over() {
		return nil, wrong(http.StatusConflict, "a turn is running in this session: wait until it ends, or stop it")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	t := &turn{id: in.ID, key: key, cancel: cancel, began: make(chan struct{}), done: make(chan struct{}), stream: rs.server.streams.open(in)}
	t.stream.here(true)
	t.stream.forget()                                            // what a server has said that is gone
	if t.from, t.passed = t.stream.now(); t.from.Seq < in.Last { // following may be late
		t.from = position{Seq: in.Last, Sub: all}
	}
	t.from.Offset = 0
	rs.of[in.ID] = t
	rs.wait.Add(1)
	go func() {
		defer rs.wait.Done()
		rs.run(ctx, t, in, say)
		cancel(nil)
		time.AfterFunc(keepTurn, func() { rs.forget(t) })
	}()
	return t, nil
}

// forget gives up the end of a turn.
func (rs *running) forget(t *turn) {
	rs.mu.Lock()
	if rs.of[t.id] == t {
		delete(rs.of, t.id)
	}
	rs.mu.Unlock()
	rs.server.streams.close(t.stream)
}

func (t *turn) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// run runs a turn to its end.
func (rs *running) run(ctx context.Context, t *turn, in session.Info, say llm.Message) {
	s := rs.server
	defer s.metrics.turn(time.Now())
	began := sync.OnceFunc(func() { close(t.began) })
	defer began()
	end := map[string]any{"type": "done"}
	turns, done, err := s.b.Turns(ctx, in, tool.ApproverFunc(t.approve))
	if err == nil {
		defer done()
		for ev, e := range turns.Run(ctx, say) {
			if err = e; err != nil {
				break
			}
			if d, ok := ev.(agent.Done); ok {
				end = s.b.Event(d)
			}
			t.stream.observe(ctx, ev, s.b.Event)
			if rec, ok := ev.(agent.Recorded); ok {
				if _, ok := rec.Record.Body.(session.Message); ok {
					began()
				}
			}
		}
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		end = map[string]any{"type": "error", "message": err.Error()}
	}
	t.stream.forget()
	t.stream.here(false)
	t.end = end
	rs.mu.Lock() // no turn begins between the two
	defer rs.mu.Unlock()
	t.at = t.stream.pass(end)
	close(t.done)
}

// halt stops the turn that runs here in a session, and waits for its end: what
// was said is recorded by then.
func (rs *running) halt(ctx context.Context, id session.ID) error {
	t := rs.latest(id)
	if t == nil {
		return nil
	}
	t.cancel(errStopped)
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain lets turns finish until ctx is done, and stops them then.
func (rs *running) drain(ctx context.Context) {
	rs.mu.Lock()
	rs.stopped = true
	all := make([]*turn, 0, len(rs.of))
	for _, t := range rs.of {
		all = append(all, t)
	}
	rs.mu.Unlock()
	over := make(chan struct{})
	go func() { rs.wait.Wait(); close(over) }()
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	for _, t := range all {
		t.cancel(errShutdown)
	}
	select {
	case <-over:
	case <-time.After(10 * time.Second):
	}
}

// turnsAPI answers requests about turns and their events.
type turnsAPI struct{ *Server }

// turnBody is what a client says.
type turnBody struct {
	Text   string `json:"text"`
	Images []struct {
		MIME string `json:"mime"`
		Data string `json:"data"` // in base64
	} `json:"images"`
	Continue bool `json:"continue"`
}

func (b turnBody) message() (llm.Message, error) {
	if b.Continue {
		if b.Text != "" || len(b.Images) > 0 {
			return llm.Message{}, wrong(http.StatusBadRequest, "continue resumes the last turn and takes no text")
		}
		return llm.Message{}, nil
	}
	m := llm.Message{Role: llm.User}
	for _, img := range b.Images {
		if _, err := base64.StdEncoding.DecodeString(img.Data); err != nil || img.MIME == "" {
			return m, wrong(http.StatusBadRequest, "an image needs mime and data, in base64")
		}
		m.Blocks = append(m.Blocks, llm.Image{MIME: img.MIME, Data: img.Data})
	}
	if strings.TrimSpace(b.Text) != "" {
		m.Blocks = append(m.Blocks, llm.Text{Text: b.Text})
	}
	if len(m.Blocks) == 0 {
		return m, wrong(http.StatusBadRequest, "text is missing")
	}
	return m, nil
}

// startTurn runs a turn and streams its events. A client that prefers not to
// wait gets the place in the session's events where the turn begins.
func (s turnsAPI) startTurn(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	if in, err = s.b.Continue(r.Context(), in); err != nil {
		return err
	}
	w.Header().Set("Content-Location", "/v1/sessions/"+string(in.ID)) // another one, if it was a mirror
	if !s.turns.runs(in.ID) && s.peers.forward(w, r, in.ID) {
		return nil
	}
	var body turnBody
	if err := decode(r, &body); err != nil {
		return err
	}
	say, err := body.message()
	if err != nil {
		return err
	}
	t, err := s.begin(r, in, say, nil)
	if err != nil {
		return err
	}
	if r.Header.Get("Prefer") == "respond-async" {
		w.Header().Set("Preference-Applied", "respond-async")
		return writeJSON(w, http.StatusAccepted, map[string]any{"events": "/v1/sessions/" + string(in.ID) + "/events", "from": t.from.String()})
	}
	return s.streamTurn(w, r, t, in.Last)
}

// latest returns the turn that runs here in a session, or the one that ended
// last; nil if there is none.
func (rs *running) latest(id session.ID) *turn {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.of[id]
}

// runs reports whether a turn runs here in a session.
func (rs *running) runs(id session.ID) bool {
	t := rs.latest(id)
	return t != nil && !t.over()
}

// requested is the type of the record that says which request began a turn, by
// its idempotency key. It comes right before the turn.
const requested = "goclaw.request"

// request is what the record holds.
type request struct {
	Key string `json:"key"`
	Sum string `json:"sum"` // of what was said
}

// lookBack is how many records an idempotency key is looked for in.
const lookBack = 500

// begin begins the turn of a request. A request that this server or another one
// has carried out already, even if it ended since, is not carried out again: its
// turn is told from the log. Otherwise prepare brings the session into the state
// in which the turn begins; nil: it is.
func (s turnsAPI) begin(r *http.Request, in session.Info, say llm.Message, prepare func(session.Info) (session.Info, error)) (*turn, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	if prepare == nil {
		prepare = func(in session.Info) (session.Info, error) { return in, nil }
	}
	if key == "" {
		if in, err = prepare(in); err != nil {
			return nil, err
		}
		return s.turns.start(in, say, "")
	}
	ctx, st := r.Context(), s.b.Store()
	release, err := session.LockSoon(ctx, st, "request\x00"+string(in.ID), Who(s.peers.own))
	if err != nil {
		return nil, err
	}
	free := release
	defer func() { free() }()
	if in, err = session.Stat(ctx, st, in.ID); err != nil {
		return nil, err
	}
	said, err := json.Marshal(say)
	if err != nil {
		return nil, err
	}
	req := request{Key: key, Sum: digest(string(said))}
	at, until, err := s.carriedOut(ctx, in, req)
	if err != nil {
		return nil, err
	}
	if t := s.turns.latest(in.ID); t != nil && t.key == key {
		return t, nil
	}
	if at > 0 {
		t := &turn{id: in.ID, stream: s.streams.open(in), from: position{Seq: at, Sub: all}, until: until, done: make(chan struct{}), cancel: func(error) {}}
		time.AfterFunc(keepTurn, func() { s.streams.close(t.stream) })
		go t.await(s.stop, st)
		return t, nil
	}
	if s.turns.runs(in.ID) {
		return s.turns.start(in, say, key) // which says so
	}
	if in, err = prepare(in); err != nil {
		return nil, err
	}
	now, err := session.Open(ctx, st, in.ID)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	if _, err := session.Keep(ctx, st, now, now.Next(session.Custom{Type: requested, Data: data}, session.System{}), session.System{}); err != nil {
		return nil, err
	}
	t, err := s.turns.start(now.Info, say, key)
	if err == nil { // nobody asks again before the log shows it
		free = func() { go func() { <-t.began; release() }() }
	}
	return t, err
}

// carriedOut returns the number of the record of a request, if a turn began
// after it, else 0, and the last record of that turn if another one came since.
func (s turnsAPI) carriedOut(ctx context.Context, in session.Info, req request) (at, until session.Seq, err error) {
	var damage *session.Damage
	began := false
	for rec, err := range s.b.Store().Read(ctx, in.ID, max(in.Last-lookBack, 0)) {
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		switch b := rec.Body.(type) {
		case session.Custom:
			var other request
			switch {
			case b.Type != requested || json.Unmarshal(b.Data, &other) != nil:
			case at > 0 && began:
				return at, rec.Seq - 1, nil
			case other.Key == req.Key && other.Sum != "" && other.Sum != req.Sum:
				return 0, 0, wrong(http.StatusUnprocessableEntity, "the Idempotency-Key %q is that of another request", req.Key)
			case other.Key == req.Key:
				at = rec.Seq
			default:
				at = 0 // another began after it: it did not
			}
		case session.Message:
			if at > 0 && began && session.IsTurn(b) {
				return at, rec.Seq - 1, nil
			}
			began = at > 0
		}
	}
	if !began {
		at = 0
	}
	return at, 0, nil
}

// streamTurn streams a turn from the client's place on to its end. The log ends
// with the record last, or later.
func (s turnsAPI) streamTurn(w http.ResponseWriter, r *http.Request, t *turn, last session.Seq) error {
	rd := &reader{stream: t.stream, at: t.from, seen: t.passed, until: t.until}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		if err := rd.resume(id, last); err != nil {
			return err
		}
		if q := t.open(); q != nil {
			rd.first = []event{{data: q}}
		}
		if t.over() && t.at.Seq > 0 && !rd.at.before(t.at) {
			w.WriteHeader(http.StatusNoContent) // a browser does not come back then
			return nil
		}
	}
	return s.send(w, r, rd, t)
}

// currentTurn streams the turn that runs in a session, or the one that ended
// last.
func (s turnsAPI) currentTurn(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	t := s.turns.latest(in.ID)
	if (t == nil || t.over()) && s.peers.forward(w, r, in.ID) {
		return nil
	}
	if t != nil {
		return s.streamTurn(w, r, t, in.Last)
	}
	return s.elsewhere(w, r, in)
}

// stopTurn stops the turn that runs in a session.
func (s turnsAPI) stopTurn(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	t := s.turns.latest(in.ID)
	if t == nil || t.over() {
		if s.peers.forward(w, r, in.ID) {
			return nil
		}
		return wrong(http.StatusNotFound, "no turn runs in this session here")
	}
	t.cancel(errStopped)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// events streams what happens in a session, from the client's place on or from
// now on, whichever process does it.
func (s turnsAPI) events(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	st := s.streams.open(in)
	defer s.streams.close(st)
	rd := &reader{stream: st}
	rd.at, rd.seen = st.now()
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("after") // the number of a record: a browser cannot set the header
	}
	if id != "" {
		if err := rd.resume(id, in.Last); err != nil {
			return err
		}
		if err := s.comeBack(r.Context(), rd, id); err != nil {
			return err
		}
	}
	if t := s.turns.latest(in.ID); t != nil && r.Header.Get(forwarded) != "" {
		if q := t.open(); q != nil {
			rd.first = []event{{data: q}} // the other server comes when the turn runs already
		}
	}
	return s.send(w, r, rd, nil)
}

// elsewhere streams a turn that runs on another server, or has been running
// there, from the log.
func (s turnsAPI) elsewhere(w http.ResponseWriter, r *http.Request, in session.Info) error {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return wrong(http.StatusNotFound, "no turn runs in this session here: /events follows those of other processes")
	}
	st := s.streams.open(in)
	defer s.streams.close(st)
	rd := &reader{stream: st}
	if err := rd.resume(id, in.Last); err != nil {
		return err
	}
	t := &turn{id: in.ID, stream: st, done: make(chan struct{})}
	go t.await(r.Context(), s.b.Store())
	return s.send(w, r, rd, t)
}

// await ends a turn that runs elsewhere when nobody has the session's lock any
// more.
func (t *turn) await(ctx context.Context, st session.Store) {
	for t.until == 0 { // else another came after it
		release, err := st.Lock(ctx, string(t.id), looking)
		if err == nil {
			release()
			break
		}
		if !errors.Is(err, session.ErrHeld) {
			t.end = map[string]any{"type": "error", "message": err.Error()}
			close(t.done)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
	t.end = endOf(ctx, t.stream, st, t.until)
	close(t.done)
}

// endOf returns the last event of a turn that ran elsewhere, as far as the log
// says. Its last record is until, or that of the log.
func endOf(ctx context.Context, s *stream, st session.Store, until session.Seq) map[string]any {
	end := lastEvent(session.Message{})
	now, err := session.Open(ctx, st, s.id)
	if err != nil {
		return end
	}
	for i := len(now.Branch) - 1; i >= 0; i-- {
		if m, ok := now.Branch[i].Body.(session.Message); ok && (until == 0 || now.Branch[i].Seq <= until) {
			end = lastEvent(m)
			break
		}
	}
	s.reach(ctx, now.Info.Last) // following may be late
	return end
}

// send writes what a reader reads as server-sent events, until t ends, or for
// as long as the client stays.
func (s turnsAPI) send(w http.ResponseWriter, r *http.Request, rd *reader, t *turn) error {
	defer s.metrics.follower()()
	rd.reading.Add(1)
	defer rd.reading.Add(-1)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	patient(w)
	w.WriteHeader(http.StatusOK)
	alive := time.NewTicker(beat)
	defer alive.Stop()
	var done chan struct{}
	if t != nil {
		done = t.done
	}
	if err := flush(out, w, ": goclaw\n\n"); err != nil {
		return nil
	}
	for {
		stopping := s.stop.Err() != nil // and the last that was said before is told
		over := t != nil && t.over()
		events, changed, err := rd.next(r.Context())
		if err != nil {
			s.log.Debug("a stream ended", "error", err)
			return nil
		}
		if t != nil {
			if i := slices.IndexFunc(events, func(ev event) bool { return isEnd(ev.data) }); i >= 0 {
				events, over = events[:i+1], true
			} else if over && rd.at.Sub <= all { // its end is known from the log only
				rd.at.Sub = all + 1
				events = append(events, event{id: rd.at.String(), data: t.end})
			}
		}
		for _, ev := range events {
			if err := ev.write(w); err != nil {
				return nil
			}
		}
		if len(events) > 0 && out.Flush() != nil {
			return nil
		}
		if over || stopping {
			return nil
		}
		if len(events) > 0 {
			select {
			case <-time.After(pace):
			case <-rd.urgent:
			case <-done:
				continue
			case <-r.Context().Done():
				return nil
			case <-s.stop.Done():
				continue
			}
		}
		select {
		case <-changed:
		case <-done:
		case <-alive.C:
			if err := flush(out, w, ": \n\n"); err != nil {
				return nil
			}
		case <-r.Context().Done():
			return nil
		case <-s.stop.Done():
		}
	}
}

// pace is how long a client is not written to after it was, unless it is urgent: a
// model that speaks fast would have every follower woken for every word.
const pace = 20 * time.Millisecond

// write writes the event in its form on the wire.
func (ev event) write(w io.Writer) error {
	if ev.json == nil {
		ev.json = jsonOf(ev.data)
	}
	head := fmt.Appendf(nil, "event: %s\n", ev.data["type"])
	if ev.id != "" {
		head = fmt.Appendf(head, "id: %s\n", ev.id)
	}
	for _, part := range [][]byte{append(head, "data: "...), ev.json, []byte("\n\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// jsonOf returns the data of an event as JSON.
func jsonOf(data map[string]any) []byte {
	out, err := json.Marshal(data)
	if err != nil {
		out, _ = json.Marshal(map[string]any{"type": "error", "message": err.Error()})
	}
	return out
}

// flush writes text, unless the client does not read.
func flush(out *http.ResponseController, w http.ResponseWriter, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return out.Flush()
}

// patient lets a request take as long as it does once it was read: the time for
// reading it would end it.
func patient(w http.ResponseWriter) { http.NewResponseController(w).SetReadDeadline(time.Time{}) }

// compact compacts a session, plans it, or undoes it.
func (s turnsAPI) compact(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Focus  string `json:"focus"`
		DryRun bool   `json:"dryRun"`
		Undo   bool   `json:"undo"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	if body.Undo && (body.DryRun || body.Focus != "") {
		return wrong(http.StatusBadRequest, "undo cannot be combined with focus or dryRun")
	}
	in, err := s.session(r)
	if err != nil {
		return err
	}
	patient(w)
	turns, done, err := s.b.Turns(r.Context(), in, nil)
	if err != nil {
		return err
	}
	defer done()
	status, v, err := s.once.do(r, func() (int, any, error) {
		switch {
		case body.Undo:
			rec, _, err := turns.Undo(r.Context())
			return http.StatusOK, map[string]any{"key": in.Key, "id": in.ID, "undone": rec.ID}, err
		case body.DryRun:
			cut, err := turns.Plan(r.Context(), body.Focus)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusOK, s.b.Planned(cut), nil
		}
		rec, cut, err := turns.Compact(r.Context(), body.Focus)
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, s.b.Compacted(rec.Record, cut), nil
	})
	switch {
	case errors.Is(err, runner.ErrNothingToCompact), errors.Is(err, runner.ErrNotCompacted), errors.Is(err, runner.ErrMirror):
		return wrong(http.StatusConflict, "%s", strings.TrimPrefix(err.Error(), "runner: "))
	case err != nil:
		return err
	}
	return writeJSON(w, status, v)
}
