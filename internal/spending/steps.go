package spending

import (
	"context"
	"sync"

	"goclaw/internal/catalogue"
	"goclaw/internal/config"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// step is one request to a model, in JSON.
type step struct {
	Seq    session.Seq `json:"seq"`
	Time   string      `json:"time"`
	Model  string      `json:"model"`
	Tokens int         `json:"tokens"` // that the window held with the answer
	Window int         `json:"window"` // of the model; 0: not known
	Line
}

// mark is something else that happened to the window.
type mark struct {
	Seq     session.Seq `json:"seq"`
	Time    string      `json:"time"`
	Kind    string      `json:"kind"` // notice, checkpoint, compaction or undo
	Percent int         `json:"percent,omitempty"`
	Before  int         `json:"tokensBefore,omitempty"`
	After   int         `json:"tokensAfter,omitempty"`
}

// tally is what a session has used, up to the record last.
type tally struct {
	mu        sync.Mutex
	last      session.Seq
	bill      *bill
	sum, turn Line
}

func newTally(c *config.Loaded) *tally {
	return &tally{bill: newBill(c)}
}

// add counts a record, and returns the request to a model that it is the answer
// to, if it is one, and what that cost.
func (t *tally) add(r session.Record) (c call, model string, usd float64) {
	t.last = r.Seq
	if session.IsTurn(r.Body) {
		t.turn = Line{}
	}
	if c, model = callOf(r); c.u.Total() == 0 {
		return c, model, 0
	}
	before := t.bill.usd
	t.bill.add(r.Body)
	usd = t.bill.usd - before
	t.sum.add(c.u, usd)
	t.turn.add(c.u, usd)
	return c, model, usd
}

// Tallies are what sessions have used so far.
type Tallies struct {
	mu sync.Mutex
	by map[session.ID]*tally
}

// maxTallies is how many sessions are remembered.
const maxTallies = 1000

// of returns what one session used. The page asks after each turn: it reads on
// where it stopped the last time.
func (ts *Tallies) of(ctx context.Context, st session.Store, c *config.Loaded, in session.Info) (sum, turn Line, err error) {
	ts.mu.Lock()
	t := ts.by[in.ID]
	if t == nil {
		if t = newTally(c); ts.by == nil || len(ts.by) >= maxTallies {
			ts.by = map[session.ID]*tally{}
		}
		ts.by[in.ID] = t
	}
	ts.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last > in.Last { // it is another log, with the same id
		t.last, t.sum, t.turn = 0, Line{}, Line{}
	}
	for r, err := range session.Undamaged(st.Read(ctx, in.ID, t.last), func(*session.Damage) {}) {
		if err != nil {
			return sum, turn, err
		}
		t.add(r)
	}
	return t.sum, t.turn, nil
}

// Steps returns what the requests of one session used, and, unless brief, how
// its window filled.
func (ts *Tallies) Steps(ctx context.Context, st session.Store, c *config.Loaded, in session.Info, brief bool) (any, error) {
	steps, marks := []step{}, []mark{}
	if brief {
		sum, turn, err := ts.of(ctx, st, c, in)
		return map[string]any{"usage": sum, "lastTurn": turn, "steps": steps, "marks": marks}, err
	}
	t := newTally(c)
	for r, err := range session.Undamaged(st.Read(ctx, in.ID, 0), func(*session.Damage) {}) {
		if err != nil {
			return nil, err
		}
		at := transcript.Stamp(r.Time)
		switch body := r.Body.(type) {
		case session.Notice:
			marks = append(marks, mark{Seq: r.Seq, Time: at, Kind: "notice", Percent: body.Percent})
		case session.Checkpoint:
			marks = append(marks, mark{Seq: r.Seq, Time: at, Kind: "checkpoint", Before: body.Tokens})
		case session.Compaction:
			marks = append(marks, mark{Seq: r.Seq, Time: at, Kind: "compaction", Before: body.TokensBefore, After: body.TokensAfter})
		case session.Undo:
			marks = append(marks, mark{Seq: r.Seq, Time: at, Kind: "undo"})
		}
		request, model, usd := t.add(r)
		if _, ok := r.Body.(session.Message); !ok || request.u.Total() == 0 {
			continue
		}
		s := step{Seq: r.Seq, Time: at, Model: model, Tokens: request.u.Prompt() + request.u.Output}
		if known, ok := catalogue.Lookup(model); ok {
			s.Window = known.Prompt()
		}
		s.add(request.u, usd)
		steps = append(steps, s)
	}
	return map[string]any{"usage": t.sum, "lastTurn": t.turn, "steps": steps, "marks": marks}, nil
}
