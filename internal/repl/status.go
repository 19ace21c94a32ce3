package repl

import (
	"cmp"
	"context"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/internal/naming"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Status is what a status line shows. A Display is told it again whenever
// something in it changes.
type Status struct {
	Model  string // as the user writes it
	Folder string // that the tools work in, as it is shown
	Title  string // of the session, or its key
	Mode   string // what is done without asking

	// Used is how many tokens of the window the next request takes, about; Window
	// is how many there are. Zero: not known.
	Used, Window int

	Last, Total float64 // cost of the last turn, and of the session, in dollars
	Priced      bool    // the costs are known

	Background string // what is made in the background; "": nothing
	Compacted  int    // tokens that a compaction has freed since the last turn began
}

// teller tells a display what changed in the status. What takes time is found out
// in the background, so that nobody waits for it.
type teller struct {
	chat    *Chat
	display Display
	measure bool // the display shows how full the window is, and what was spent

	mu     sync.Mutex
	last   Status
	id     session.ID
	known  asOf                // what last tells of
	opened *session.Session    // as the chat has just opened it
	spent  bool                // last.Total is what id has cost
	before int                 // tokens before a compaction whose effect is not known yet
	busy   map[session.ID]bool // in the background
	count  int                 // of everything that changes the session
	next   *reading            // to be done
	doing  *reading            // under way
	reads  sync.WaitGroup      // until what is under way is done
	stop   context.CancelFunc
}

// asOf is a state of a session, with a model.
type asOf struct {
	id    session.ID
	last  session.Seq
	model string
}

// reading is a look at a session.
type reading struct {
	asOf
	session *session.Session // nil: it is read
	info    session.Info
	draft   session.Header
	model   Model
	cost    bool // that is looked up as well
	count   int  // see teller
}

// change tells the display the status after f has changed it.
func (t *teller) change(f func(s *Status)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed(f)
}

// changed is change for those who hold the mutex.
func (t *teller) changed(f func(s *Status)) {
	before := t.last
	if f(&t.last); t.last != before {
		t.display.Status(t.last)
	}
}

// tell tells the display what the status line shows now, and has the rest found
// out. It belongs to the chat's goroutine; what happens elsewhere calls change.
func (t *teller) tell() {
	c, m := t.chat, t.chat.o.Model()
	t.mu.Lock()
	defer t.mu.Unlock()
	same := t.id == c.cur.ID && c.cur.ID != ""
	begun := t.id == "" // what was said last began the session
	if !same {
		t.id, t.spent, t.before, t.known = c.cur.ID, false, 0, asOf{}
		t.count++
	}
	now, opened := asOf{c.cur.ID, c.cur.Last, m.Name}, t.opened
	t.opened = nil
	t.changed(func(s *Status) {
		if !same {
			last := s.Last
			*s = Status{Used: s.Used} // until the new one is known
			if begun && c.cur.ID != "" {
				s.Last = last
			}
		}
		s.Model, s.Folder, s.Window = m.Name, c.o.Folder, m.Budget.Window
		if s.Title == "" || c.cur.Info.Title != "" {
			s.Title = cmp.Or(c.cur.Info.Title, string(c.cur.Key))
		}
		if c.o.Modes != nil {
			s.Mode = c.o.Modes.Mode().String()
		}
		s.Background = t.background()
		s.Priced = m.Priced || s.Last+s.Total > 0
	})
	if t.measure && (t.known != now || !t.spent) {
		r := &reading{asOf: now, info: c.cur.Info, draft: c.cur.header(), model: m, cost: !t.spent, count: t.count}
		if s := opened; s != nil && s.ID == now.id && s.Last == now.last {
			r.session = s
		}
		if d := t.doing; d == nil || d.asOf != r.asOf || d.cost != r.cost || d.count != r.count {
			t.read(r)
		}
	}
}

// open says that the chat has opened s, so that it need not be read again.
func (t *teller) open(s *session.Session) {
	if t.measure {
		t.mu.Lock()
		t.opened = s
		t.mu.Unlock()
	}
}

func (t *teller) background() string {
	if t.busy[t.id] {
		return "checkpoint"
	}
	return ""
}

// begin says that a turn begins.
func (t *teller) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = 0
	t.changed(func(s *Status) { s.Last, s.Compacted = 0, 0 })
}

// event keeps up with a turn.
func (t *teller) event(ev agent.Event) {
	rec, ok := ev.(agent.Recorded)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	usd, used, exact := 0.0, 0, false
	switch b := rec.Record.Body.(type) {
	case session.Message:
		usd = b.Usage.Cost.Total
		if b.Role == llm.Assistant && b.Usage.Total() > 0 {
			used, exact = b.Usage.Prompt()+b.Usage.Output, !b.Usage.Estimated
		}
	case session.Compaction:
		usd, t.before = b.Usage.Cost.Total, b.TokensBefore
	case session.Usage:
		usd = b.Usage.Cost.Total
	}
	t.changed(func(s *Status) {
		if s.Title == string(rec.Info.Key) {
			s.Title = cmp.Or(rec.Info.Title, s.Title)
		}
		if usd > 0 {
			s.Last, s.Total, s.Priced = s.Last+usd, s.Total+usd, true
		}
		if used > 0 {
			t.filled(s, used)
		}
	})
	if used > 0 && exact { // nothing is to be measured
		t.known = asOf{rec.Info.ID, rec.Info.Last, t.last.Model}
	}
}

// filled notes how much of the window is used. After a compaction that shows what
// it has freed.
func (t *teller) filled(s *Status, used int) {
	s.Used = used
	if t.before > 0 {
		s.Compacted, t.before = max(t.before-used, 0), 0
	}
}

// compacted says that the user had the session compacted, which took so many
// tokens before.
func (t *teller) compacted(before int) {
	t.mu.Lock()
	t.before = before
	t.mu.Unlock()
}

// restored says that a compaction was undone.
func (t *teller) restored() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = 0
	t.changed(func(s *Status) { s.Compacted = 0 })
}

// working says that something is being made in the background for the session
// id, or no longer.
func (t *teller) working(id session.ID, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy == nil {
		t.busy = map[session.ID]bool{}
	}
	if on {
		t.busy[id] = true
	} else {
		delete(t.busy, id)
		if id == t.id {
			t.spent = false // it has cost something
		}
	}
	t.changed(func(s *Status) { s.Background = t.background() })
}

// read has r done, unless something newer is to be done by then.
func (t *teller) read(r *reading) {
	idle := t.next == nil && t.stop == nil
	t.next = r
	if !idle {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.reads.Go(func() {
		defer stop()
		for {
			t.mu.Lock()
			r := t.next
			if t.next, t.doing = nil, r; r == nil || ctx.Err() != nil {
				t.stop, t.doing = nil, nil
				t.mu.Unlock()
				return
			}
			t.mu.Unlock()
			t.found(ctx, r)
		}
	})
}

// found looks at a session, and tells what it found unless the session has
// changed meanwhile.
func (t *teller) found(ctx context.Context, r *reading) {
	c := t.chat
	s := r.session
	var err error
	title := ""
	if r.id != "" {
		if s == nil {
			if s, err = session.Open(ctx, c.o.Store, r.id); err != nil {
				return
			}
		}
		title = naming.Title(ctx, c.o.Store, r.info)
	} else {
		s = session.Draft(r.draft, c.o.Clock)
	}
	used := window.Measure(s, r.model.Prompt, r.model.Tokens, r.model.Budget).Used
	usd, priced := 0.0, !r.cost || r.id == ""
	if !priced && c.o.Spent != nil {
		usd, err = c.o.Spent(ctx, r.id)
		priced = err == nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id != r.id || t.count != r.count {
		return
	}
	t.known = r.asOf
	t.changed(func(s *Status) {
		t.filled(s, used)
		s.Title = cmp.Or(title, s.Title)
		if r.cost && priced {
			s.Total, t.spent = usd, true
			s.Priced = s.Priced || usd > 0
		}
	})
}

// close ends what is under way. It does not wait long: nothing is written.
func (t *teller) close() {
	t.mu.Lock()
	t.next = nil
	if t.stop != nil {
		t.stop()
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() { t.reads.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}
