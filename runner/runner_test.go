package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/store/memory"
	"goclaw/window"
)

const key session.Key = "main:cli:user"

func newRunner(st session.Store, model llm.Provider, more ...func(*runner.Options)) *runner.Runner {
	o := runner.Options{Store: st, Clock: session.System{}, Who: "test", Env: func(context.Context, *session.Session) (agent.Env, error) {
		return agent.Env{Provider: model, Prompt: window.Prompt{Provider: "p", Model: "m"}, API: "script"}, nil
	}}
	for _, f := range more {
		f(&o)
	}
	return runner.New(o)
}

// turn runs one turn to its end.
func turn(t *testing.T, r *runner.Runner, text string) (said string) {
	t.Helper()
	for ev, err := range r.Run(context.Background(), key, llm.UserText(text)) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(agent.Said); ok {
			said += d.Text
		}
	}
	return said
}

func load(t *testing.T, st session.Store) *session.Session {
	t.Helper()
	s, err := session.Load(context.Background(), st, key, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryRecordedEventIsDurable(t *testing.T) {
	st := memory.New()
	r := newRunner(st, llmtest.New(llmtest.Say("hello")))
	ctx := context.Background()
	seen := 0
	for ev, err := range r.Run(ctx, key, llm.UserText("What is a monad?")) {
		if err != nil {
			t.Fatal(err)
		}
		rec, ok := ev.(agent.Recorded)
		if !ok {
			continue
		}
		seen++
		found := false
		for have, err := range st.Read(ctx, load(t, st).ID, rec.Record.Seq-1) {
			found = err == nil && have.ID == rec.Record.ID
			break
		}
		if !found {
			t.Errorf("record %d was shown before it was kept", rec.Record.Seq)
		}
		if diff := cmp.Diff(load(t, st).Info, rec.Info); diff != "" {
			t.Errorf("record %d: its event has another Info than the store (-store +event)\n%s", rec.Record.Seq, diff)
		}
	}
	s := load(t, st)
	if seen != 3 || s.Records != 4 || s.Title != "What is a monad?" || s.Turns != 1 {
		t.Errorf("%d shown, %d kept, title %q, turns %d", seen, s.Records, s.Title, s.Turns)
	}
}

func TestConversationGoesOn(t *testing.T) {
	st := memory.New()
	model := llmtest.New()
	r := newRunner(st, model)
	turn(t, r, "one")
	turn(t, r, "two")
	turn(t, newRunner(st, model), "three") // after a restart
	reqs := model.Requests()
	var got []string
	for _, m := range reqs[len(reqs)-1].Messages {
		got = append(got, m.Text())
	}
	want := []string{"one", "echo: one", "two", "echo: two", "three"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// full is a store whose appends fail from the nth on.
type full struct {
	session.Store
	left int
}

func (f *full) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if f.left--; f.left < 0 {
		return errors.New("no space left on device")
	}
	return f.Store.Append(ctx, id, recs...)
}

func TestNoAnswerThatNobodyRemembers(t *testing.T) {
	st := &full{Store: memory.New(), left: 2} // header and question, not the answer
	model := llmtest.New(llmtest.Call("c1", "x", `{}`), llmtest.Say("never"))
	r := newRunner(st, model)
	var last error
	for ev, err := range r.Run(context.Background(), key, llm.UserText("q")) {
		if err != nil {
			last = err
		}
		if _, ok := ev.(agent.Calling); ok {
			t.Error("a tool ran although its call was not kept")
		}
	}
	if last == nil || !strings.Contains(last.Error(), "no space left") {
		t.Errorf("error %v", last)
	}
	st.left = 1000
	if said := turn(t, r, "again"); said != "never" {
		t.Errorf("the session does not go on: %q", said)
	}
}

func TestAnotherWroteInBetween(t *testing.T) {
	st := memory.New()
	ctx := context.Background()
	r := newRunner(st, llmtest.New(llmtest.Say("mine")))
	meddled := false
	for ev, err := range r.Run(ctx, key, llm.UserText("q")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(agent.Said); ok && !meddled {
			meddled = true
			s := load(t, st)
			if err := st.Append(ctx, s.ID, s.Next(User("from elsewhere"), session.System{})); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	for _, rec := range load(t, st).Branch {
		if m, ok := rec.Body.(session.Message); ok {
			got = append(got, m.Text())
		}
	}
	if want := []string{"q", "from elsewhere", "mine"}; !cmp.Equal(got[:3], want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHeldByAnother(t *testing.T) {
	st := memory.New()
	s := load(t, st)
	release, err := st.Lock(context.Background(), string(s.ID), "the other")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("at once", func(t *testing.T) {
		var held *session.HeldError
		for _, err := range newRunner(st, llmtest.New()).Run(context.Background(), key, llm.UserText("q")) {
			if !errors.As(err, &held) || held.Who != "the other" {
				t.Errorf("error %v", err)
			}
		}
		if held == nil {
			t.Error("the turn ran in a held session")
		}
	})
	t.Run("waiting", func(t *testing.T) {
		r := newRunner(st, llmtest.New(), func(o *runner.Options) { o.Wait = time.Minute })
		waited, done := false, false
		for ev, err := range r.Run(context.Background(), key, llm.UserText("q")) {
			if err != nil {
				t.Fatal(err)
			}
			switch ev := ev.(type) {
			case runner.Waiting:
				waited = ev.By.Who == "the other"
				release()
			case agent.Done:
				done = true
			}
		}
		if !waited || !done {
			t.Errorf("waited %v, done %v", waited, done)
		}
	})
}

func TestIdleSessionsExpire(t *testing.T) {
	st := memory.New()
	clock := &Clock{}
	now := func(o *runner.Options) { o.Clock = clock; o.TTL = time.Hour }
	r := newRunner(st, llmtest.New(), now)
	turn(t, r, "one")
	first := load(t, st).ID
	clock.Move(30 * time.Minute)
	turn(t, r, "two")
	if load(t, st).ID != first {
		t.Error("the session expired before its time")
	}
	clock.Move(2 * time.Hour)
	turn(t, r, "three")
	s := load(t, st)
	if s.ID == first || s.Turns != 1 {
		t.Errorf("session %s has %d turns, want a new one", s.ID, s.Turns)
	}
	if _, err := session.Stat(context.Background(), st, first); err != nil {
		t.Errorf("the expired session is gone: %v", err)
	}
}

func TestInterruptedIn(t *testing.T) {
	for _, c := range []struct {
		name string
		log  []session.Body
		want string
	}{
		{"at rest", []session.Body{User("q"), Answer("a"), Title("t")}, "false"},
		{"nothing said", nil, "false"},
		{"no answer", []session.Body{User("q")}, "true waits:true calls:0 q"},
		{"a tool was running", []session.Body{User("q"), Call("c1", "bash")}, "true waits:false calls:1 q"},
		{"after a result", []session.Body{User("q"), Call("c1", "bash"), Result("c1", "ok")}, "true waits:true calls:0 q"},
		{"stopped by the user", []session.Body{User("q"), Stopped(llm.StopAborted, Answer("a"))}, "false"},
	} {
		was, ok := runner.InterruptedIn(Replay(t, c.log...))
		got := fmt.Sprint(ok)
		if ok {
			got = fmt.Sprintf("%v waits:%v calls:%d %s", ok, was.Waits, len(was.Calls), was.Prompt)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A greeting is no title; the topic is, whenever it comes, and what a person
// called the session stays.
func TestTitleComesWithTheTopic(t *testing.T) {
	st := memory.New()
	r := newRunner(st, llmtest.New())
	for _, c := range []struct{ said, want string }{
		{"hello", ""}, {"Good morning!", ""}, {"ok", ""}, {"thanks, and you?", ""}, {"Hi, can you fix the build?", "Hi, can you fix the build?"},
		{"Now rename the branch", "Hi, can you fix the build?"},
	} {
		turn(t, r, c.said)
		if got := load(t, st).Title; got != c.want {
			t.Errorf("after %q the title is %q, want %q", c.said, got, c.want)
		}
	}
	if _, err := r.Record(context.Background(), load(t, st).ID, session.Title{Title: "hello"}); err != nil {
		t.Fatal(err)
	}
	turn(t, r, "How do I rename a branch in git?")
	if got := load(t, st).Title; got != "hello" {
		t.Errorf("the title that a person gave became %q", got)
	}
}

func TestFollow(t *testing.T) {
	st := memory.New()
	r := newRunner(st, llmtest.New())
	turn(t, r, "one")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id := load(t, st).ID
	go func() { turnQuiet(newRunner(st, llmtest.New()), "two") }()
	var seen []string
	for rec, err := range session.Follow(ctx, st, id, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := rec.Body.(session.Message); ok {
			seen = append(seen, m.Text())
		}
		if len(seen) == 4 {
			break
		}
	}
	if want := []string{"one", "echo: one", "two", "echo: two"}; !cmp.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func turnQuiet(r *runner.Runner, text string) {
	for range r.Run(context.Background(), key, llm.UserText(text)) {
	}
}

// TestManyGoroutines is for the race detector: turns and records of one
// session at the same time, in one process.
func TestManyGoroutines(t *testing.T) {
	st := memory.New()
	r := newRunner(st, llmtest.New(), func(o *runner.Options) { o.Wait = time.Minute })
	turn(t, r, "begin")
	id := load(t, st).ID
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { turnQuiet(r, fmt.Sprint("turn ", i)) })
		wg.Go(func() {
			if _, err := r.Record(context.Background(), id, Title(fmt.Sprint("title ", i))); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := r.Load(context.Background(), key); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := load(t, st)
	titles := 0
	for _, rec := range s.Branch {
		if _, ok := rec.Body.(session.Title); ok {
			titles++
		}
	}
	if s.Turns != 5 || titles < 5 {
		t.Errorf("%d turns and %d titles kept, want 5 and 5", s.Turns, titles)
	}
}
