package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/store/memory"
	"goclaw/window"
)

var contextLine = regexp.MustCompile(`\[Context: ([0-9.]+)(k?)/[0-9.]+k? tokens \((\d+)%\)\]`)

// lineIsTrue holds the context line of a request against the request: it may
// be off by what an estimate may be off, and never says more than 100 %.
func lineIsTrue(t interface{ Errorf(string, ...any) }, req llm.Request) {
	m := contextLine.FindStringSubmatch(req.Tail)
	if m == nil {
		t.Errorf("no context line in %q", req.Tail)
		return
	}
	said, _ := strconv.ParseFloat(m[1], 64)
	if m[2] == "k" {
		said *= 1000
	}
	percent, _ := strconv.Atoi(m[3])
	req.Tail = ""
	is := float64(llmtest.Tokens(req))
	if off := math.Abs(said - is); off > is/3+100 || percent > 100 {
		t.Errorf("%q stands in a request of %.0f tokens", m[0], is)
	}
}

// scribe is a Summarizer that remembers which records each of its summaries
// covers.
type scribe struct {
	covers []map[string]bool
	fails  bool
}

var summaryNo = regexp.MustCompile(`summary no\. (\d+)`)

// of returns what a summary covers.
func (s *scribe) of(text string) map[string]bool {
	if m := summaryNo.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return s.covers[n]
	}
	return nil
}

func (s *scribe) Summarize(_ context.Context, j compact.Job) (compact.Summary, string, llm.Usage, error) {
	if s.fails {
		return compact.Summary{}, "", llm.Usage{}, llm.ErrBusy
	}
	covers := map[string]bool{}
	for id := range s.of(j.Prev.Text) {
		covers[id] = true
	}
	for _, r := range j.Past {
		covers[r.ID] = true
	}
	s.covers = append(s.covers, covers)
	return compact.Summary{Text: fmt.Sprintf("summary no. %d", len(s.covers)-1)}, "scribe", llm.Usage{Input: 1}, nil
}

// world is a session in a store, a model of changing temper, and a window of
// changing size.
type world struct {
	t      *rapid.T
	st     *memory.Store
	id     session.ID
	clock  *Clock
	scribe *scribe
	window int // advertised
	real   int
	model  string
	calls  int
	asked  string // what is being worked on; "": everything is answered
}

// questionStays holds a request against the promise that what the user asks
// stays the user's own message, word for word, while it is worked on. One that
// fills a good part of the window may become a request in the summary.
func (w *world) questionStays(req llm.Request) {
	if w.asked == "" || len(w.asked)/4 > w.window/10 {
		return
	}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if t, ok := b.(llm.Text); ok && m.Role == llm.User && t.Text == w.asked {
				return
			}
		}
	}
	w.t.Errorf("the question %.40q is not in the request; the user's side begins with %.400q", w.asked, req.Messages[0].Text())
}

var errTemper = errors.New("the model is in a bad temper")

func (w *world) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if err := llmtest.Validate(req); err != nil {
		w.t.Fatalf("a strict API refuses: %v", err)
	}
	lineIsTrue(w.t, req)
	w.questionStays(req)
	if n := llmtest.Tokens(req); n > w.real {
		return llmtest.Fail(&llm.OverflowError{})(ctx, req)
	}
	w.calls++
	switch rapid.IntRange(0, 9).Draw(w.t, "answer") {
	case 0:
		return llmtest.Fail(errTemper)(ctx, req)
	case 1:
		return llmtest.Break("half an ans", errTemper)(ctx, req)
	case 2, 3, 4:
		var blocks []llm.Block
		for i := range rapid.IntRange(1, 3).Draw(w.t, "calls") {
			blocks = append(blocks, llm.ToolCall{ID: fmt.Sprintf("c%d_%d", w.calls, i), Name: "read", Args: []byte(`{}`)})
		}
		return llmtest.Answer(blocks...)(ctx, req)
	}
	return llmtest.Say(tokens(rapid.IntRange(1, 150).Draw(w.t, "words")))(ctx, req)
}

func (w *world) Specs() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "read", Schema: []byte(`{"type":"object"}`)}}
}

func (w *world) Run(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	if w.calls%5 == 0 {
		return llm.Result(c, tokens(1000+w.calls%7*400)), nil // one that must be cut
	}
	return llm.Result(c, tokens(1+int(c.ID[1])*7%300)), nil
}

func (w *world) env() agent.Env {
	return agent.Env{
		Provider: w, Prompt: window.Prompt{Provider: "p", Model: w.model}, Tools: w, Budget: window.Budget{Window: w.window, Reserve: w.window / 8},
		Tokens: window.NewCounter(byFour{}, 1), Clock: w.clock, Flush: flush, Compact: &compact.Options{}, Summarizer: w.scribe, MaxSteps: 12, Steer: w.steer,
	}
}

// steer is a user who sends something while a turn runs, now and then.
func (w *world) steer() llm.Message {
	if rapid.IntRange(0, 7).Draw(w.t, "steers") > 0 {
		return llm.Message{}
	}
	return llm.UserText("rather " + tokens(rapid.IntRange(1, 60).Draw(w.t, "steer")))
}

// open loads the session as a program that starts does.
func (w *world) open() *session.Session {
	s, err := session.Open(context.Background(), w.st, w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) whole() *session.Session {
	s, err := session.Replay(w.id, w.st.Read(context.Background(), w.id, 0))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) keep(s *session.Session, r session.Record) {
	size := func() int {
		return llmtest.Tokens(window.Build(s, window.Prompt{Provider: "p", Model: w.model}, window.Loose))
	}
	if c, ok := r.Body.(session.Compaction); ok {
		before := size()
		defer func() {
			if after := size(); after >= before || c.TokensAfter >= c.TokensBefore {
				w.t.Errorf("a compaction made %d tokens of %d; its record says %d of %d", after, before, c.TokensAfter, c.TokensBefore)
			}
		}()
	}
	if err := w.st.Append(context.Background(), w.id, r); err != nil {
		w.t.Fatal(err)
	}
	if err := s.Apply(r); err != nil {
		w.t.Fatal(err)
	}
}

// heard notes what is asked and answered.
func (w *world) heard(b session.Body) {
	m, ok := b.(session.Message)
	switch {
	case session.IsTurn(b):
		w.asked = m.Text()
	case ok && m.Role == llm.Assistant && len(m.Calls()) == 0 && m.Stop == llm.StopEnd:
		w.asked = ""
	}
}

// turn runs a turn, which a crash may end after some events.
func (w *world) turn(in llm.Message, crash int) {
	s := w.open()
	w.asked = ""
	for _, r := range w.whole().Branch {
		w.heard(r.Body)
	}
	for ev, err := range agent.Turn(context.Background(), s, in, w.env()) {
		if err != nil {
			var full *agent.FullError
			if !errors.Is(err, errTemper) && !errors.As(err, &full) && !errors.Is(err, agent.ErrSteps) {
				w.t.Fatalf("the turn ended with %v", err)
			}
			return
		}
		if crash--; crash == 0 {
			return
		}
		switch ev := ev.(type) {
		case agent.Recorded:
			w.heard(ev.Record.Body)
			w.keep(s, ev.Record)
		case agent.Learnt:
			w.window = ev.Window
		}
	}
}

// check holds the log against what is promised.
func (w *world) check() {
	s := w.whole()
	at, keep, ok := s.Compaction()
	if ok {
		c := s.Branch[at].Body.(session.Compaction)
		if keep == at {
			w.t.Fatalf("the compaction at %d keeps nothing: %q is not on the branch", at, c.FirstKept)
		}
		covered := w.scribe.of(c.Summary)
		// An extract is made of everything before what it keeps.
		extract := 0
		for i, r := range s.Branch {
			if c, ok := r.Body.(session.Compaction); ok && compact.DetailsOf(c).Extract {
				for k := range i {
					if s.Branch[k].ID == cmp.Or(c.Resume, c.FirstKept) {
						extract = max(extract, k)
					}
				}
			}
		}
		sent := map[string]bool{}
		_, recs := window.Sent(s)
		for _, r := range recs {
			sent[r.ID] = true
		}
		calls := map[string]bool{}
		for i, r := range s.Branch[:at] {
			m, ok := r.Body.(session.Message)
			if !ok {
				continue
			}
			if !sent[r.ID] && i >= extract && m.Stop != llm.StopError && !covered[r.ID] { // a failed answer is never sent
				w.t.Fatalf("record %d (%s) is neither kept nor covered", i, r.ID)
			}
			for _, call := range m.Calls() {
				calls[call.ID] = sent[r.ID]
			}
			for _, res := range m.Results() {
				if was, ok := calls[res.CallID]; ok && was != sent[r.ID] {
					w.t.Fatalf("the compaction at %d parts call %s from its result", at, res.CallID)
				}
			}
		}
	}
	live := w.open()
	if d := len(window.Build(s, window.Prompt{}, window.Loose).Messages) - len(window.Build(live, window.Prompt{}, window.Loose).Messages); d != 0 {
		w.t.Fatalf("a session that was opened sends %d messages fewer than one that was replayed", d)
	}
	for _, q := range []window.Squeeze{window.Loose, window.Results, window.Compact, window.Tight} {
		req := window.Build(live, window.Prompt{Provider: "p", Model: w.model}, q)
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.Assistant {
			req.Messages = append(req.Messages, llm.UserText("and then?"))
		}
		if len(req.Messages) > 0 {
			if err := llmtest.Validate(req); err != nil {
				w.t.Fatalf("%s: %v", q, err)
			}
		}
	}
}

// After any sequence of turns, messages sent into them, compactions, undos, checkpoints, crashes and changes
// of model every record is kept or covered, and what is sent is valid and
// fits, or the error says that it cannot.
func TestAnyHistoryStaysWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, st: memory.New(), clock: &Clock{}, scribe: &scribe{}, window: 1500, real: 1500, model: "m0"}
		s, err := session.Begin(context.Background(), w.st, session.Header{Key: Key}, w.clock)
		if err != nil {
			t.Fatal(err)
		}
		w.id = s.ID
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			w.scribe.fails = rapid.IntRange(0, 3).Draw(t, "scribe") == 0
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0: // another model
				w.window = rapid.IntRange(800, 4000).Draw(t, "window")
				w.real = w.window * rapid.SampledFrom([]int{60, 100, 130}).Draw(t, "real") / 100
				w.model = fmt.Sprint("m", w.window)
			case 1:
				w.compact()
			case 2:
				w.undo()
			case 3:
				w.checkpoint()
			case 4: // goes on with what was broken off
				w.turn(llm.Message{}, 0)
			case 5:
				w.turn(llm.UserText("crash "+tokens(20)), rapid.IntRange(1, 9).Draw(t, "events"))
			default:
				w.turn(llm.UserText("say "+tokens(rapid.IntRange(1, 200).Draw(t, "size"))), 0)
			}
			w.check()
		}
	})
}

func (w *world) compact() {
	s := w.open()
	env := w.env()
	b := window.Measure(s, env.Prompt, env.Tokens, env.Budget)
	if c, ok := compact.Plan(s, env.Prompt, env.Tokens, b, compact.Options{Force: true}); ok {
		body, err := c.Compact(context.Background(), w.scribe)
		if larger := (*compact.LargerError)(nil); errors.As(err, &larger) {
			return
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.keep(s, s.Next(body, w.clock))
	}
}

func (w *world) undo() {
	s := w.whole()
	if at, _, ok := s.Compaction(); ok {
		w.keep(s, s.Next(session.Undo{Target: s.Branch[at].ID}, w.clock))
	}
}

func (w *world) checkpoint() {
	s := w.open()
	env := w.env()
	if c, ok := compact.Snapshot(s, env.Prompt, env.Tokens, env.Budget); ok && !w.scribe.fails {
		cp, err := c.Checkpoint(context.Background(), w.scribe)
		if err != nil {
			w.t.Fatal(err)
		}
		w.keep(s, s.Next(cp, w.clock))
	}
}
