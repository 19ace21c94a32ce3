package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/store/memory"
	"goclaw/window"
)

// detaching is a runner of a program that has its checkpoints made by others:
// detached is told the sessions.
func detaching(st session.Store, cheap llm.Provider, detached *[]session.ID) *runner.Runner {
	tok := window.NewCounter(byFour{}, 1)
	main := &llmtest.Model{Rest: llmtest.Say("sun")}
	return newRunner(st, main, func(o *runner.Options) {
		if detached != nil {
			o.Detach = func(id session.ID) bool { *detached = append(*detached, id); return true }
		}
		o.Env = func(context.Context, *session.Session) (agent.Env, error) {
			env := agent.Env{
				Provider: main, Prompt: window.Prompt{Provider: "p", Model: "m"}, Budget: window.Budget{Window: 100_000, Reserve: 1000}, Tokens: tok,
				Compact: &compact.Options{Turns: 2}, Summarizer: compact.Extractor{},
			}
			if cheap != nil {
				env.Summarizer = compact.Chain{{Provider: cheap, Name: "cheap", Window: 100_000, Tokens: tok}}
			}
			return env, nil
		}
	})
}

// What is due after a turn is told to Detach, made by Finish in another
// process, and then no longer due.
func TestCheckpointsAreMadeElsewhere(t *testing.T) {
	st := memory.New()
	ctx := context.Background()
	cheap := &llmtest.Model{Rest: llmtest.Say(told)}
	var due []session.ID
	r := detaching(st, cheap, &due)
	turn(t, r, "one")
	if len(due) != 0 {
		t.Fatalf("after a turn %v is due", due)
	}
	turn(t, r, "two")
	if len(due) != 1 {
		t.Fatalf("after two turns %v is due, want the session", due)
	}
	if err := r.Close(ctx); err != nil || len(cheap.Requests()) != 0 {
		t.Fatalf("%v; the model was asked %d times here", err, len(cheap.Requests()))
	}
	for i := range 2 {
		rec, err := detaching(st, cheap, nil).Finish(ctx, due[0])
		if made := rec.Seq > 0; err != nil || made != (i == 0) {
			t.Errorf("attempt %d: record %d, %v", i, rec.Seq, err)
		}
	}
	if n := len(checkpoints(load(t, st))); n != 1 || len(cheap.Requests()) != 1 {
		t.Errorf("%d checkpoints for %d calls, want 1 for 1", n, len(cheap.Requests()))
	}
}

// Two processes that finish the same session ask the model once.
func TestOneFinishes(t *testing.T) {
	st := memory.New()
	ctx := context.Background()
	asked, let := make(chan struct{}, 2), make(chan struct{})
	cheap := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		asked <- struct{}{}
		<-let
		return llmtest.Say(told)(ctx, req)
	}}
	var due []session.ID
	r := detaching(st, cheap, &due)
	turn(t, r, "one")
	turn(t, r, "two")
	var wg sync.WaitGroup
	wg.Go(func() {
		if rec, err := detaching(st, cheap, nil).Finish(ctx, due[0]); err != nil || rec.Seq == 0 {
			t.Errorf("the first: record %d, %v", rec.Seq, err)
		}
	})
	<-asked
	if rec, err := detaching(st, cheap, nil).Finish(ctx, due[0]); err != nil || rec.Seq != 0 {
		t.Errorf("the second: record %d, %v; want nothing", rec.Seq, err)
	}
	// The conversation goes on meanwhile.
	turn(t, r, "three")
	close(let)
	wg.Wait()
	if n := len(checkpoints(load(t, st))); n != 1 || len(asked) != 0 {
		t.Errorf("%d checkpoints, %d more calls", n, len(asked))
	}
}

// What needs no model is done here, and so is what nobody else can do.
func TestNotDetached(t *testing.T) {
	st := memory.New()
	var due []session.ID
	r := detaching(st, nil, &due)
	turn(t, r, "one")
	turn(t, r, "two")
	if err := r.Close(context.Background()); err != nil || len(due) != 0 {
		t.Errorf("%v; detached %v", err, due)
	}
	if n := len(checkpoints(load(t, st))); n != 1 {
		t.Errorf("%d checkpoints by the extractor, want 1", n)
	}
}

// How long to stay away after failures is known from the log alone: each turn
// here is another process, and so is each attempt.
func TestBackOffIsInTheLog(t *testing.T) {
	st := memory.New()
	ctx := context.Background()
	broken := &llmtest.Model{Rest: llmtest.Fail(errors.New("no such model"))}
	var tried []int
	for i := 1; i <= 24; i++ {
		var due []session.ID
		turn(t, detaching(st, broken, &due), fmt.Sprint("turn ", i))
		if len(due) == 0 {
			continue
		}
		tried = append(tried, i)
		if _, err := detaching(st, broken, nil).Finish(ctx, due[0]); err == nil {
			t.Fatal("Finish did well without a model")
		}
	}
	if got, want := fmt.Sprint(tried), "[2 4 8 16]"; got != want {
		t.Errorf("tried after the turns %s, want %s", got, want)
	}
	s := load(t, st)
	failed := 0
	for _, r := range s.Branch {
		if c, ok := r.Body.(session.Custom); ok {
			if failed++; !strings.Contains(string(c.Data), "no such model") {
				t.Errorf("the record says %s", c.Data)
			}
		}
	}
	if failed != len(tried) {
		t.Errorf("%d failures are recorded, want %d", failed, len(tried))
	}
	// It is not part of the conversation.
	if n := len(window.Build(s, window.Prompt{}, window.Loose).Messages); n != 48 {
		t.Errorf("%d messages are sent, want 48", n)
	}
	// One that goes well ends it.
	for i := 25; i <= 34; i++ {
		var due []session.ID
		good := &llmtest.Model{Rest: llmtest.Say(told)}
		turn(t, detaching(st, good, &due), fmt.Sprint("turn ", i))
		for _, id := range due {
			tried = append(tried, i)
			if _, err := detaching(st, good, nil).Finish(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := fmt.Sprint(tried), "[2 4 8 16 32 34]"; got != want {
		t.Errorf("tried after the turns %s, want %s", got, want)
	}
}

// A compaction that is an extract does not end the back-off: the failures from
// before it are no longer opened with the session, and count.
func TestBackOffOutlastsExtracts(t *testing.T) {
	st := memory.New()
	ctx := context.Background()
	broken := &llmtest.Model{Rest: llmtest.Fail(errors.New("no such model"))}
	var tried []int
	for i := 1; i <= 40; i++ {
		var due []session.ID
		r := detaching(st, broken, &due)
		turn(t, r, fmt.Sprint("turn ", i, strings.Repeat(" and so on", 50)))
		id := load(t, st).ID
		if i%9 == 0 {
			if rec, _, err := r.Compact(ctx, id, ""); err != nil || !compact.DetailsOf(rec.Record.Body.(session.Compaction)).Extract {
				t.Fatalf("after turn %d: %v; want an extract", i, err)
			}
		}
		if len(due) == 0 {
			continue
		}
		tried = append(tried, i)
		if _, err := detaching(st, broken, nil).Finish(ctx, id); err == nil {
			t.Fatal("Finish did well without a model")
		}
	}
	if got, want := fmt.Sprint(tried), "[2 4 8 16 32]"; got != want {
		t.Errorf("tried after the turns %s, want %s", got, want)
	}
	if s, err := session.Open(ctx, st, load(t, st).ID); err != nil || s.KeepFrom <= 1 {
		t.Errorf("the session opens from record %d, %v; want a part of it", s.KeepFrom, err)
	}
}

// An attempt that is given up leaves nothing: it has not failed.
func TestGivenUpIsNotFailed(t *testing.T) {
	st := memory.New()
	ctx, cancel := context.WithCancel(context.Background())
	slow := &llmtest.Model{Rest: func(ctx context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			cancel()
			<-ctx.Done()
			yield(llm.Delta{}, ctx.Err())
		}
	}}
	var due []session.ID
	r := detaching(st, slow, &due)
	turn(t, r, "one")
	turn(t, r, "two")
	before := load(t, st).Last
	if _, err := detaching(st, slow, nil).Finish(ctx, due[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("Finish: %v", err)
	}
	if s := load(t, st); s.Last != before {
		t.Errorf("record %d was appended: %+v", s.Last, s.Branch[len(s.Branch)-1].Body)
	}
}
