package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/store/memory"
	"goclaw/window"
)

type byFour struct{}

func (byFour) Count(text string) int { return len(text) / 4 }

// compacting returns a runner that compacts its sessions and makes checkpoints,
// with a cheap model for them.
func compacting(st session.Store, main, cheap llm.Provider, w int, told func(session.ID, session.Record, error)) *runner.Runner {
	tok := window.NewCounter(byFour{}, 1)
	return newRunner(st, main, func(o *runner.Options) {
		o.OnBackground = told
		o.Env = func(context.Context, *session.Session) (agent.Env, error) {
			return agent.Env{
				Provider: main, Prompt: window.Prompt{Provider: "p", Model: "m"}, Budget: window.Budget{Window: w, Reserve: w / 10}, Tokens: tok,
				Compact:    &compact.Options{Percents: []int{25, 50, 75}, Turns: 15, MinTokens: 100},
				Summarizer: compact.Chain{{Provider: cheap, Name: "cheap", Window: w, Tokens: tok}, {Provider: main, Name: "m", Window: w, Tokens: tok}},
			}, nil
		}
	})
}

const told = `{"summary":"the user asked about the weather many times and was told each time","topics":["weather"],"decisions":["look it up daily"]}`

func checkpoints(s *session.Session) (out []session.Checkpoint) {
	for _, r := range s.Branch {
		if cp, ok := r.Body.(session.Checkpoint); ok {
			out = append(out, cp)
		}
	}
	return out
}

// A checkpoint that takes forever delays no turn, comes in between two, and
// is waited for when the program ends.
func TestCheckpointsDelayNoTurn(t *testing.T) {
	st := memory.New()
	main := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun ", 100))}
	asked, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	cheap := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		once.Do(func() { close(asked) })
		<-let
		return llmtest.Say(told)(ctx, req)
	}}
	r := compacting(st, main, cheap, 2000, nil)
	for i := range 8 { // a quarter is passed in between
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
	}
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("no checkpoint was begun")
	}
	turn(t, r, "and today?")
	if n := len(checkpoints(load(t, st))); n != 0 {
		t.Fatalf("%d checkpoints before one was made", n)
	}
	close(let)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	s := load(t, st)
	cps := checkpoints(s)
	if len(cps) != 1 || cps[0].Model != "cheap" || cps[0].Topics[0] != "weather" || cps[0].Messages < 4 {
		t.Fatalf("%+v", cps)
	}
	last := s.Branch[len(s.Branch)-1]
	if _, ok := last.Body.(session.Checkpoint); !ok {
		t.Errorf("the log ends with %T", last.Body)
	}
	// What the session has spent is what every model was paid for.
	var spent llm.Usage
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok {
			spent = spent.Add(m.Usage)
		}
	}
	if cps[0].Usage.Total() == 0 || s.Spent != spent.Add(cps[0].Usage) {
		t.Errorf("spent %+v, want %+v for answers and %+v for the checkpoint", s.Spent, spent, cps[0].Usage)
	}
}

func TestCheckpointByTheMainModel(t *testing.T) {
	st := memory.New()
	main := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		if strings.Contains(req.System, "You summarise") {
			return llmtest.Say(told)(ctx, req)
		}
		return llmtest.Say(strings.Repeat("sun ", 100))(ctx, req)
	}}
	r := compacting(st, main, &llmtest.Model{Rest: llmtest.Fail(llm.ErrAuth)}, 2000, nil)
	for i := range 6 {
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if cps := checkpoints(load(t, st)); len(cps) != 1 || cps[0].Model != "m" {
		t.Errorf("%+v", cps)
	}
}

// A program that cannot wait loses the checkpoint, and nothing else.
func TestCloseGivesUp(t *testing.T) {
	st := memory.New()
	main := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun ", 100))}
	begun := make(chan struct{}, 100)
	cheap := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		begun <- struct{}{}
		<-ctx.Done()
		return llmtest.Fail(ctx.Err())(ctx, req)
	}}
	var errs []error
	r := compacting(st, main, cheap, 2000, func(_ session.ID, _ session.Record, err error) { errs = append(errs, err) })
	for i := range 6 {
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
	}
	<-begun
	before := load(t, st).Last
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if s := load(t, st); s.Last != before || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("record %d, was %d; told %v", s.Last, before, errs)
	}
}

// The next turn waits for an append of the background instead of failing.
func TestTurnsAndCheckpointsSideBySide(t *testing.T) {
	st := memory.New()
	main := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun ", 40))}
	cheap := &llmtest.Model{Rest: llmtest.Say(told)}
	r := compacting(st, main, cheap, 1500, nil)
	for i := range 120 {
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
		time.Sleep(time.Millisecond) // nobody answers in no time: one core does both
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	info, err := session.Current(context.Background(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Replay(info.ID, st.Read(context.Background(), info.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	if s.Turns != 120 || s.Compactions == 0 || len(checkpoints(s)) == 0 {
		t.Errorf("%d turns, %d compactions, %d checkpoints", s.Turns, s.Compactions, len(checkpoints(s)))
	}
}

func TestExtractIsImprovedInTheBackground(t *testing.T) {
	st := memory.New()
	down := true
	main := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun ", 100))}
	cheap := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		if down {
			return llmtest.Fail(llm.ErrNetwork)(ctx, req)
		}
		return llmtest.Say(told)(ctx, req)
	}}
	tok := window.NewCounter(byFour{}, 1)
	r := newRunner(st, main, func(o *runner.Options) {
		o.Env = func(context.Context, *session.Session) (agent.Env, error) {
			return agent.Env{Provider: main, Prompt: window.Prompt{Provider: "p", Model: "m"}, Budget: window.Budget{Window: 2000, Reserve: 200}, Tokens: tok,
				Compact: &compact.Options{}, Summarizer: compact.Chain{{Provider: cheap, Name: "cheap", Window: 4000, Tokens: tok}}}, nil
		}
	})
	for i := 0; !compact.IsExtract(load(t, st)); i++ {
		if i > 60 {
			t.Fatal("never compacted")
		}
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
	}
	down = false
	for i := 0; compact.IsExtract(load(t, st)); i++ {
		if i > 12 {
			t.Fatal("never improved")
		}
		turn(t, r, "and?")
		for !r.Idle() { // the background keeps up
			time.Sleep(time.Millisecond)
		}
	}
	s := load(t, st)
	at, _, _ := s.Compaction()
	if c := s.Branch[at].Body.(session.Compaction); !strings.Contains(c.Summary, "the user asked about the weather") || compact.DetailsOf(c).By != "cheap" {
		t.Errorf("%+v", c)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A Runner without options compacts, too.
func TestSimpleStaysInsideTheWindow(t *testing.T) {
	st := memory.New()
	model := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun and rain ", 50))}
	r := runner.Simple(st, runner.Model{Provider: model, Name: "p/m", Window: 2000})
	for i := range 20 {
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := load(t, st); s.Compactions == 0 {
		t.Errorf("%d turns of 100 tokens in a window of 2000, and no compaction", s.Turns)
	}
}

// Sessions that nobody uses do not stay in memory forever.
func TestFewSlots(t *testing.T) {
	st := memory.New()
	r := newRunner(st, llmtest.New())
	for i := range 100 {
		for _, err := range r.Run(context.Background(), session.Key(fmt.Sprint("main:cli:", i)), llm.UserText("hello")) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := r.Slots(); n == 0 || n > 64 {
		t.Errorf("%d sessions are in memory, want 64", n)
	}
}

func TestCompactAndUndo(t *testing.T) {
	st := memory.New()
	main := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun ", 50))}
	cheap := &llmtest.Model{Rest: llmtest.Say(told)}
	r := compacting(st, main, cheap, 100_000, nil)
	ctx := context.Background()
	for i := range 10 {
		turn(t, r, fmt.Sprint("weather on day ", i, "?"))
	}
	id := load(t, st).ID
	if _, _, err := r.UndoCompaction(ctx, id); !errors.Is(err, runner.ErrNotCompacted) {
		t.Errorf("undo: %v", err)
	}
	sent := len(window.Build(load(t, st), window.Prompt{}, window.Loose).Messages)
	cut, err := r.Plan(ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	rec, did, err := r.Compact(ctx, id, "the weather")
	if err != nil || did.Keep != cut.Keep {
		t.Fatalf("%v, kept from %s, planned %s", err, did.Keep, cut.Keep)
	}
	asked := cheap.Requests()[0].Messages[0].Text()
	if !strings.Contains(asked, "dwell on this: the weather") {
		t.Errorf("the focus was not told: %.200s", asked)
	}
	if now := len(window.Build(load(t, st), window.Prompt{}, window.Loose).Messages); now >= sent {
		t.Errorf("%d messages are sent, %d were", now, sent)
	}
	turn(t, r, "still there?")
	undone, _, err := r.UndoCompaction(ctx, id)
	if err != nil || undone.ID != rec.Record.ID {
		t.Fatalf("%v: %s was undone, want %s", err, undone.ID, rec.Record.ID)
	}
	if now := len(window.Build(load(t, st), window.Prompt{}, window.Loose).Messages); now != sent+2 {
		t.Errorf("%d messages are sent, want %d", now, sent+2)
	}
	turn(t, r, "and now?")
	if _, _, err := r.UndoCompaction(ctx, id); !errors.Is(err, runner.ErrNotCompacted) {
		t.Errorf("undo again: %v", err)
	}
}

// A model that was chosen stays chosen when the choice is compacted away, however
// often, and also if only what the context needs is loaded.
func TestAChoiceOutlivesCompactions(t *testing.T) {
	st := memory.New()
	main := &llmtest.Model{Rest: llmtest.Say(strings.Repeat("sun ", 50))}
	r := compacting(st, main, &llmtest.Model{Rest: llmtest.Say(told)}, 100_000, nil)
	ctx := context.Background()
	turn(t, r, "hello")
	id := load(t, st).ID
	choice := session.ModelChange{Provider: "p", Model: "chosen", Chosen: true}
	if _, err := r.Record(ctx, id, choice); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i := range 10 {
			turn(t, r, fmt.Sprint("weather on day ", i, "?"))
		}
		if _, _, err := r.Compact(ctx, id, ""); err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(ctx, st, id)
		if err != nil {
			t.Fatal(err)
		}
		if s.KeepFrom < 4 {
			t.Fatalf("the session is read from record %d: the choice was not compacted away", s.KeepFrom)
		}
		rec, ok := s.Chosen()
		if !ok || rec.Body != choice {
			t.Errorf("the choice is %+v, want %+v", rec.Body, choice)
		}
	}
}

// A turn says that it asks another model than the session names, once.
func TestAnotherModelIsSaid(t *testing.T) {
	st := memory.New()
	ctx := context.Background()
	r := compacting(st, llmtest.New(), llmtest.New(), 100_000, nil)
	var said [][]runner.Switched
	for i := range 4 {
		if i == 2 {
			if _, err := r.Record(ctx, load(t, st).ID, session.ModelChange{Provider: "other", Model: "o"}); err != nil {
				t.Fatal(err)
			}
		}
		var evs []runner.Switched
		for ev, err := range r.Run(ctx, key, llm.UserText("hi")) {
			if err != nil {
				t.Fatal(err)
			}
			if sw, ok := ev.(runner.Switched); ok {
				evs = append(evs, sw)
			}
		}
		said = append(said, evs)
	}
	want := [][]runner.Switched{nil, nil, {{From: session.ModelChange{Provider: "other", Model: "o"}, To: session.ModelChange{Provider: "p", Model: "m"}}}, nil}
	if d := cmp.Diff(want, said); d != "" {
		t.Error(d)
	}
}
