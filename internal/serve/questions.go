package serve

import (
	"context"
	"net/http"
	"strings"
	"time"

	"goclaw/tool"
)

// question is a tool's question to whoever reads the session's events.
type question struct {
	id     string
	data   map[string]any
	answer chan answer
}

type answer struct {
	decision tool.Decision
	err      error
}

// alone is how long a question waits if nobody reads the session's events: a
// page may be about to come back.
const alone = 20 * time.Second

// decisions are the answers to a question.
var decisions = map[string]tool.Decision{"once": tool.Once, "session": tool.Session, "always": tool.Always, "no": tool.No}

// approve asks whoever reads the session's events. Nobody there means no.
func (t *turn) approve(ctx context.Context, r tool.Request) (tool.Decision, error) {
	q := &question{id: random(), answer: make(chan answer, 1)}
	q.data = map[string]any{
		"type": "question", "id": q.id, "tool": r.Tool, "command": r.Command, "folder": r.Dir, "path": r.Path, "diff": r.Diff, "url": r.URL, "rule": r.Rule.String(), "private": r.Private,
	}
	t.mu.Lock()
	t.asks = q
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.asks = nil
		t.mu.Unlock()
		t.stream.pass(map[string]any{"type": "answered", "id": q.id})
	}()
	t.stream.pass(q.data)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	since := time.Now() // since when nobody is there
	for {
		select {
		case a := <-q.answer:
			return a.decision, a.err
		case <-ctx.Done():
			return tool.No, ctx.Err()
		case <-tick.C:
			if t.stream.watched() {
				since = time.Now()
			} else if time.Since(since) > alone {
				return tool.No, tool.ErrNoOne
			}
		}
	}
}

// questions answers with what the turn in a session waits for, and whether one
// runs here.
func (s turnsAPI) questions(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	out, runs := []any{}, false
	t := s.turns.latest(in.ID)
	if (t == nil || t.over()) && s.peers.forward(w, r, in.ID) {
		return nil
	}
	if t != nil {
		runs = !t.over()
		if q := t.open(); q != nil {
			out = append(out, q)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"questions": out, "running": runs})
}

// open returns what the turn waits for, or nil.
func (t *turn) open() map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asks == nil {
		return nil
	}
	return t.asks.data
}

// answer answers a question. Each is answered once.
func (s turnsAPI) answer(w http.ResponseWriter, r *http.Request) error {
	in, err := s.session(r)
	if err != nil {
		return err
	}
	t := s.turns.latest(in.ID)
	if (t == nil || t.over()) && s.peers.forward(w, r, in.ID) {
		return nil
	}
	var body struct {
		Answer  string `json:"answer"`
		Because string `json:"because"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	d, ok := decisions[body.Answer]
	if !ok {
		return wrong(http.StatusBadRequest, "answer must be once, session, always or no, not %q", body.Answer)
	}
	a := answer{decision: d}
	if why := strings.TrimSpace(body.Because); why != "" && d == tool.No {
		a.err = tool.Because(why)
	}
	if t == nil || !t.settle(r.PathValue("question"), a) {
		return wrong(http.StatusNotFound, "this question is not open: it was answered already, or its turn has ended")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// settle answers the question id, and reports whether it was open.
func (t *turn) settle(id string, a answer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asks == nil || t.asks.id != id {
		return false
	}
	t.asks.answer <- a
	t.asks = nil
	return true
}
