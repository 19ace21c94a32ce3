package serve

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"goclaw/session"
)

// sessionsAPI answers requests about sessions, but for turns in them.
type sessionsAPI struct{ *Server }

// decode reads the body of a request into v. An empty one leaves it as it is.
func decode(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &large):
		return err
	case err != nil:
		return wrong(http.StatusBadRequest, "the body of the request is wrong: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// number returns a parameter of the query that is a number, or other if it is
// not given.
func number(r *http.Request, name string, other int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return other, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, wrong(http.StatusBadRequest, "%s must be a number, not %q", name, text)
	}
	return n, nil
}

// session returns the session that a request is about.
func (s *Server) session(r *http.Request) (session.Info, error) {
	return s.b.Find(r.Context(), r.PathValue("id"), false)
}

func (s sessionsAPI) list(w http.ResponseWriter, r *http.Request) error {
	infos, next, err := s.b.List(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	rows := make([]any, len(infos))
	for i, in := range infos {
		rows[i] = s.b.Session(in)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sessions": rows, "next": next})
}

func (s sessionsAPI) create(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Key    session.Key `json:"key"`
		Title  string      `json:"title"`
		Folder string      `json:"folder"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	if body.Key != "" && !body.Key.Complete() {
		return wrong(http.StatusBadRequest, "%q is not a key: write agent:channel:peer, such as main:web:trip", body.Key)
	}
	title, err := titleOf(body.Title)
	if err != nil {
		return err
	}
	status, v, err := s.once.do(r, func() (int, any, error) {
		in, again, err := s.beginOnce(r, session.Header{Key: body.Key, CWD: body.Folder})
		if err == nil && title != "" && !again {
			in, err = s.retitle(r, in, title)
		}
		return http.StatusCreated, s.b.Session(in), err
	})
	if err != nil {
		return err
	}
	return writeJSON(w, status, v)
}

// beginOnce begins a session. If its key is left to the server, it follows from the
// idempotency key of the request, by which another server, or this one after a
// restart, knows it again.
func (s sessionsAPI) beginOnce(r *http.Request, h session.Header) (in session.Info, again bool, err error) {
	name := r.Header.Get("Idempotency-Key")
	if name == "" || h.Key != "" {
		in, err = s.b.Begin(r.Context(), h)
		return in, false, err
	}
	ctx, st := r.Context(), s.b.Store()
	h.Key = session.Key("main:web:" + digest(name))
	release, err := session.LockSoon(ctx, st, "request\x00"+string(h.Key), Who(s.peers.own))
	if err != nil {
		return in, false, err
	}
	defer release()
	if in, err = session.Current(ctx, st, h.Key); err == nil {
		in, err = s.b.Find(ctx, string(in.ID), false) // with its title
		return in, true, err
	}
	if errors.Is(err, session.ErrNotFound) {
		in, err = s.b.Begin(ctx, h)
	}
	return in, false, err
}

// maxKey is how long an idempotency key may be.
const maxKey = 255

// idempotencyKey returns the idempotency key of a request; "" if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return "", wrong(http.StatusBadRequest, "an Idempotency-Key has at most %d bytes", maxKey)
	}
	return key, nil
}

// maxTitle is how many bytes a title may have.
const maxTitle = 1000

// titleOf returns a title that a client has sent, in one line.
func titleOf(text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxTitle {
		return "", wrong(http.StatusBadRequest, "a title has at most %d bytes", maxTitle)
	}
	return text, nil
}

// retitle gives a session a title.
func (s sessionsAPI) retitle(r *http.Request, in session.Info, title string) (session.Info, error) {
	now, err := session.Open(r.Context(), s.b.Store(), in.ID)
	if err != nil {
		return in, err
	}
	_, err = session.Keep(r.Context(), s.b.Store(), now, now.Next(session.Title{Title: title}, session.System{}), session.System{})
	return now.Info, err
}

func (s sessionsAPI) get(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.b.Session(in))
}

func (s sessionsAPI) patch(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Title *string `json:"title"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	in, err := s.session(r)
	if err != nil {
		return err
	}
	if body.Title != nil {
		title, err := titleOf(*body.Title)
		if err != nil {
			return err
		}
		if title == "" {
			return wrong(http.StatusBadRequest, "title must not be empty")
		}
		if in, err = s.retitle(r, in, title); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, s.b.Session(in))
}

func (s sessionsAPI) remove(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	if !s.turns.runs(in.ID) && s.peers.forward(w, r, in.ID) {
		return nil
	}
	if err := s.turns.halt(r.Context(), in.ID); err != nil {
		return err
	}
	if err := s.b.Store().Delete(r.Context(), in.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s sessionsAPI) restore(w http.ResponseWriter, r *http.Request) error {
	in, err := s.b.Find(r.Context(), r.PathValue("id"), true)
	if err != nil {
		return err
	}
	if err := s.b.Store().Restore(r.Context(), in.ID); err != nil {
		return err
	}
	if in, err = session.Stat(r.Context(), s.b.Store(), in.ID); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.b.Session(in))
}

func (s sessionsAPI) fork(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		At  session.Seq `json:"at"`
		Key session.Key `json:"key"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	if body.Key != "" && !body.Key.Complete() {
		return wrong(http.StatusBadRequest, "%q is not a key: write agent:channel:peer, such as main:web:trip", body.Key)
	}
	in, err := s.session(r)
	if err != nil {
		return err
	}
	if body.At < 0 || body.At > in.Last {
		return wrong(http.StatusBadRequest, "at must be the number of a record, up to %d", in.Last)
	}
	status, v, err := s.once.do(r, func() (int, any, error) {
		st := s.b.Store()
		whole, err := session.Replay(in.ID, st.Read(r.Context(), in.ID, 0))
		if err != nil {
			return 0, nil, err
		}
		f, err := session.Fork(r.Context(), st, whole, body.Key, body.At, session.System{})
		if err != nil {
			return 0, nil, err
		}
		return http.StatusCreated, s.b.Session(f.Info), nil
	})
	if err != nil {
		return err
	}
	return writeJSON(w, status, v)
}

const (
	recordsPage = 100
	maxRecords  = 1000
	maxPage     = 4 << 20 // bytes of records in one answer
)

// page is a stretch of a log: the records after one number and before another.
type page struct {
	after, before int64
	back          bool // counted from its end
}

// pageOf returns the stretch that a request asks for.
func pageOf(r *http.Request, in session.Info) (p page, err error) {
	limit, err := number(r, "limit", recordsPage)
	if err != nil {
		return p, err
	}
	limit = min(max(limit, 1), maxRecords)
	if p.after, err = number(r, "after", -1); err != nil {
		return p, err
	}
	p.after = min(p.after, int64(in.Last))
	if p.before, err = number(r, "before", int64(in.Last)+1); err != nil {
		return p, err
	}
	p.before = min(p.before, int64(in.Last)+1)
	if p.back = p.after < 0; p.back {
		p.after = max(p.before-1-limit, 0)
	} else {
		p.before = min(p.before, p.after+1+limit)
	}
	return p, nil
}

// records answers with records in their order: those after a number, those
// before one, or the latest.
func (s sessionsAPI) records(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	p, err := pageOf(r, in)
	if err != nil {
		return err
	}
	out, size := []json.RawMessage{}, 0
	damaged := []string{}
	var damage *session.Damage
	first, last := session.Seq(0), session.Seq(0)
	for rec, err := range s.b.Store().Read(r.Context(), in.ID, session.Seq(p.after)) {
		if errors.As(err, &damage) {
			damaged = append(damaged, damage.Error())
			continue
		}
		if err != nil {
			return err
		}
		if int64(rec.Seq) >= p.before {
			break
		}
		line, err := s.b.Record(rec)
		if err != nil {
			return err
		}
		if size += len(line); size > maxPage && len(out) > 0 {
			if !p.back {
				break
			}
			// Long records: the latest of them.
			for size > maxPage && len(out) > 0 {
				size -= len(out[0])
				out = out[1:]
				first++
			}
		}
		if len(out) == 0 {
			first = rec.Seq
		}
		out, last = append(out, line), rec.Seq
	}
	return writeJSON(w, http.StatusOK, map[string]any{"records": out, "first": first, "last": last, "end": in.Last, "damage": damaged})
}

func (s sessionsAPI) context(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	body, err := s.b.Context(r.Context(), in)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
	return nil
}

// checkpoints answers with the checkpoints and the compactions of a session.
func (s sessionsAPI) checkpoints(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	out := []json.RawMessage{}
	var damage *session.Damage
	for rec, err := range s.b.Store().Read(r.Context(), in.ID, 0) {
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return err
		}
		switch rec.Body.(type) {
		case session.Checkpoint, session.Compaction:
			line, err := s.b.Record(rec)
			if err != nil {
				return err
			}
			out = append(out, line)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"checkpoints": out})
}

func (s sessionsAPI) sessionUsage(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	v, err := s.b.Usage(r.Context(), &in, r.URL.Query())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}

func (s sessionsAPI) usage(w http.ResponseWriter, r *http.Request) error {
	v, err := s.b.Usage(r.Context(), nil, r.URL.Query())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}

func (s sessionsAPI) search(w http.ResponseWriter, r *http.Request) error {
	if strings.TrimSpace(r.URL.Query().Get("q")) == "" {
		return wrong(http.StatusBadRequest, "q, the text to search for, is missing")
	}
	v, err := s.b.Search(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}

func (s sessionsAPI) models(w http.ResponseWriter, r *http.Request) error {
	names, err := s.b.Models(r.Context())
	if err != nil {
		return err
	}
	data := []any{}
	for _, name := range names {
		data = append(data, map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "goclaw"})
	}
	return writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}
