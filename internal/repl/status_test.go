package repl

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	"goclaw/window"
)

// board is a Display that keeps the status, and what it was told to draw.
type board struct {
	*screen
	mu     sync.Mutex
	status Status
	seen   []Status
	drawn  []string
	moved  chan struct{}
}

func newBoard() *board {
	return &board{screen: &screen{out: io.Discard, notes: io.Discard, columns: func() int { return 80 }}, moved: make(chan struct{}, 1)}
}

func (b *board) Status(s Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.seen = s, append(b.seen, s)
	select {
	case b.moved <- struct{}{}:
	default:
	}
}

func (b *board) DrawWindow(x window.Breakdown, model string) {
	b.drawn = append(b.drawn, fmt.Sprintf("%s %d", model, x.Budget.Used))
}

func (b *board) DrawCompaction(r compact.Report, _ window.Budget) {
	b.drawn = append(b.drawn, fmt.Sprintf("%d turns, %v", len(r.Turns), r.After < r.Before))
}

// await waits until the status is as ok wants it.
func (b *board) await(t *testing.T, what string, ok func(s Status) bool) Status {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		b.mu.Lock()
		s := b.status
		b.mu.Unlock()
		if ok(s) {
			return s
		}
		select {
		case <-b.moved:
		case <-limit:
			t.Errorf("%s: the status stays %+v", what, s)
			return s
		}
	}
}

// typist types lines; before each it does something.
type typist struct {
	t     *testing.T
	lines []typedLine
	asked []string
}

type typedLine struct {
	before func()
	text   string
}

func (y *typist) ReadLine(context.Context, string) (string, error) {
	if len(y.lines) == 0 {
		return "", io.EOF
	}
	l := y.lines[0]
	y.lines = y.lines[1:]
	if l.before != nil {
		l.before()
	}
	if l.text == "" {
		return "", io.EOF
	}
	return l.text, nil
}

func (y *typist) Ask(_ context.Context, prompt string) (string, error) {
	y.asked = append(y.asked, prompt)
	return "y", nil
}

// used answers, and says how many tokens that took.
func used(text string, in, out int) llmtest.Step {
	say := llmtest.Say(text)
	return func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for d, err := range say(ctx, req) {
				if d.End != nil {
					d.End.Usage = llm.Usage{Input: in, Output: out}
				}
				if !yield(d, err) {
					return
				}
			}
		}
	}
}

// The status is what the next request takes, what was spent, and what happens.
func TestStatus(t *testing.T) {
	b := newBench(used("fine", 300, 40), used("good", 360, 40), used("new", 50, 30))
	b.seed(t, "s1", "main:cli:user", User("Why is the sky blue? Tell me in a few words."), Answer("Rayleigh."))
	d := newBoard()
	o := b.options(io.Discard, io.Discard)
	o.Display, o.Interactive, o.Folder = d, true, "~/sky"
	o.Spent = func(context.Context, session.ID) (float64, error) { return 0.5, nil }
	b.price = func(u llm.Usage) llm.Cost { return llm.Cost{Total: float64(u.Output) / 1000} }
	c := New(o)
	remote := Remote{Chat: c}
	in := &typist{t: t, lines: []typedLine{
		{func() {
			s, err := session.Open(context.Background(), b.store, "s1")
			if err != nil {
				t.Fatal(err)
			}
			m := c.o.Model()
			want := Status{Model: "test/one", Folder: "~/sky", Title: "Why is the sky blue?", Window: 1000, Total: 0.5, Priced: true,
				Used: window.Measure(s, m.Prompt, m.Tokens, m.Budget).Used}
			got := d.await(t, "at the beginning", func(s Status) bool { return s.Used > 0 && s.Total > 0 && strings.Contains(s.Title, "sky") })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}, "go on"},
		{func() {
			got := d.await(t, "after a turn", func(s Status) bool { return s.Used == 340 })
			if got.Last != 0.04 || got.Total != 0.54 {
				t.Errorf("after a turn: %+v", got)
			}
			remote.Working("another", true)
			remote.Working("s1", true)
			d.await(t, "while a checkpoint is made", func(s Status) bool { return s.Background == "checkpoint" })
			remote.Working("s1", false)
			d.await(t, "when it is made", func(s Status) bool { return s.Background == "" })
		}, "and more"},
		{func() {
			got := d.await(t, "after another turn", func(s Status) bool { return s.Used == 400 })
			if got.Last != 0.04 {
				t.Errorf("after another turn: %+v", got)
			}
		}, "/new"},
		{func() {
			got := d.await(t, "in a new session", func(s Status) bool { return s.Total == 0 && s.Used > 0 && s.Used < 100 })
			if got.Last != 0 || got.Background != "" {
				t.Errorf("in a new session: %+v", got)
			}
		}, "hello"},
		{func() {
			got := d.await(t, "after its first turn", func(s Status) bool { return s.Total == 0.5 })
			if got.Last != 0.03 {
				t.Errorf("after its first turn: %+v", got)
			}
		}, ""},
	}}
	if err := c.Run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
}

// A compaction shows what it has freed, until the next turn.
func TestStatusAfterACompaction(t *testing.T) {
	b := newBench()
	var log []session.Body
	for i := range 12 {
		log = append(log, User(fmt.Sprint("question ", i, strings.Repeat(" word", 30))), Answer(fmt.Sprint("answer ", i, strings.Repeat(" word", 30))))
	}
	b.seed(t, "s1", "main:cli:user", log...)
	d := newBoard()
	o := b.options(io.Discard, io.Discard)
	o.Display, o.Interactive = d, true
	c := New(o)
	var before Status
	in := &typist{t: t, lines: []typedLine{
		{func() { before = d.await(t, "before", func(s Status) bool { return s.Used > 0 }) }, "/context"},
		{nil, "/compact --dry-run"},
		{func() {
			got := d.await(t, "after it", func(s Status) bool { return s.Compacted > 0 })
			if got.Used >= before.Used || got.Compacted != before.Used-got.Used {
				t.Errorf("before %+v, after %+v", before, got)
			}
		}, "/undo"},
		{func() {
			d.await(t, "after /undo", func(s Status) bool { return s.Compacted == 0 && s.Used == before.Used })
		}, "hello"},
		{func() { d.await(t, "after the next turn", func(s Status) bool { return s.Compacted == 0 }) }, ""},
	}}
	if err := c.Run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fmt.Sprint("test/one ", before.Used), "12 turns, true"}, d.drawn); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Compact now? [y/N] "}, in.asked); diff != "" {
		t.Error(diff)
	}
}

// What was found out about a session that is no longer shown is not told.
func TestStatusIsOfTheCurrentSession(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:user", User("one"), Answer("first"))
	b.seed(t, "s2", "main:cli:two", User(strings.Repeat("two ", 200)), Answer("second"))
	d := newBoard()
	o := b.options(io.Discard, io.Discard)
	o.Display, o.Interactive = d, true
	slow := make(chan struct{})
	o.Spent = func(_ context.Context, id session.ID) (float64, error) {
		if id == "s1" {
			<-slow
			return 1, nil
		}
		return 2, nil
	}
	in := &typist{t: t, lines: []typedLine{
		{nil, "/switch main:cli:two"},
		{func() {
			close(slow)
			got := d.await(t, "in the second", func(s Status) bool { return s.Total == 2 })
			if got.Used < 200 {
				t.Errorf("in the second: %+v", got)
			}
		}, ""},
	}}
	if err := New(o).Run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.seen {
		if s.Total == 1 {
			t.Errorf("the first session's cost was told: %+v", s)
		}
	}
}
