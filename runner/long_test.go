package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/recall"
	"goclaw/runner"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/store/memory"
	"goclaw/window"
	"goclaw/window/bpe"
)

// actor is a model for long sessions: it takes real tokens, answers at random
// lengths, calls tools now and then, and refuses what no API would take. It
// remembers nothing.
type actor struct {
	real      int  // tokens it takes
	tells     bool // a refusal says how many
	empty     bool // its summaries are
	fails     int  // one call in so many; 0: none
	tokenSkew int  // percent that it counts differently

	mu        sync.Mutex
	rand      *rand.Rand
	asked     int
	summaries int
	refused   int
	bad       error
}

func (a *actor) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	a.mu.Lock()
	defer a.mu.Unlock()
	summary := strings.Contains(req.System, "You summarise")
	if summary {
		a.summaries++
	} else {
		a.asked++
	}
	if err := llmtest.Validate(req); err != nil {
		a.bad = err
		return llmtest.Fail(&llm.APIError{Provider: "actor", Status: 400, Message: err.Error(), Kind: llm.ErrRefused})(ctx, req)
	}
	n := llmtest.Tokens(req) * (100 + a.tokenSkew) / 100
	if n > a.real || n+req.MaxTokens > a.real && a.tells {
		if !summary {
			a.refused++
		}
		if a.tells {
			return llmtest.Fail(&llm.OverflowError{Tokens: n, Window: a.real, Answer: req.MaxTokens})(ctx, req)
		}
		return llmtest.Fail(&llm.OverflowError{})(ctx, req)
	}
	if a.fails > 0 && a.rand.IntN(a.fails) == 0 {
		return llmtest.Fail(&llm.APIError{Provider: "actor", Status: 529, Kind: llm.ErrBusy})(ctx, req)
	}
	if summary {
		if a.empty {
			return llmtest.Say(`{"summary":""}`)(ctx, req)
		}
		return llmtest.Say(retell(req.Messages[0].Text()))(ctx, req)
	}
	step := llmtest.Say(prose(a.rand, 20+a.rand.IntN(160)))
	if last := req.Messages[len(req.Messages)-1]; len(last.Results()) == 0 && a.rand.IntN(3) == 0 {
		step = llmtest.Call(fmt.Sprintf("c%d", a.asked), "read_file", fmt.Sprintf(`{"path":"src/file%d.go"}`, a.asked))
	}
	return a.skewed(step(ctx, req), n)
}

// skewed reports usage as the actor counts.
func (a *actor) skewed(in iter.Seq2[llm.Delta, error], prompt int) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range in {
			if d.End != nil {
				end := *d.End
				end.Usage.Input, end.Usage.Output = prompt, end.Usage.Output*(100+a.tokenSkew)/100
				d.End = &end
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// retell is what a middling model makes of a conversation: half of its facts.
func retell(text string) string {
	var facts []string
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "the code of door "); i >= 0 && len(facts) < 30 && len(line)%2 == 0 {
			facts = append(facts, strconv.Quote(strings.TrimSpace(line[i:min(len(line), i+60)])))
		}
	}
	return `{"summary":"The user kept asking about the building and the assistant answered from its files, one after the other, without a change of plan.","decisions":[` + strings.Join(facts, ",") + `]}`
}

var vocabulary = strings.Fields("the a building door window floor report plan of with and number file reads writes north south engine result value table checks opens keeps quiet small large red green blue")

func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()
}

// building is the tool of a long session: files of all sizes, some far too
// long.
type building struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func (*building) Specs() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "read_file", Description: "Reads a file of the building.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}
}

func (b *building) Run(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 20 + b.rand.IntN(200)
	if b.rand.IntN(40) == 0 {
		n = 3000
	}
	return llm.Result(c, prose(b.rand, n)), nil
}

// long is what a long session came to.
type long struct {
	turns, compactions, asking, extracts, checkpoints int // asking: compactions for which a model was asked
	summaries                                         int // calls for compactions and checkpoints, the failed ones too
	refused, failed                                   int // questions that were too long, and that failed otherwise
	context, found                                    int // facts: in the context, and there or among the first ten hits of a search
}

const facts = 50

// live runs a session of n turns and plants facts in it.
func live(t *testing.T, a *actor, advertised, n int) (got long) {
	t.Helper()
	st := memory.New()
	tok := window.NewCounter(bpe.CL100K(), 1)
	a.rand = rand.New(rand.NewPCG(uint64(advertised), uint64(n)))
	tools := &building{rand: rand.New(rand.NewPCG(7, uint64(n)))}
	budget := window.Budget{Window: advertised, Reserve: min(4000, advertised/4)}
	prompt := window.Prompt{Provider: "p", Model: "m", System: "You are the keeper of a building. " + prose(a.rand, 200), MaxTokens: 2000}
	var mu sync.Mutex
	r := runner.New(runner.Options{Store: st, Clock: &Clock{Step: time.Millisecond}, Who: "test", Env: func(context.Context, *session.Session) (agent.Env, error) {
		mu.Lock()
		defer mu.Unlock()
		return agent.Env{
			Provider: a, Prompt: prompt, Tools: tools, Budget: budget, Tokens: tok,
			Flush:      []window.Threshold{{Percent: 50, Text: "Half full.", As: window.AsSystem}, {Percent: 90, Text: "Save to memory/YYYY-MM-DD.md or reply NO_REPLY.", As: window.AsMarked}},
			Compact:    &compact.Options{Percents: []int{25, 50, 75}, Turns: 15, MinTokens: 10_000},
			Summarizer: compact.Chain{{Provider: a, Name: "m", Window: budget.Window, Tokens: tok}},
		}, nil
	}})
	ctx := context.Background()
	one := func(in llm.Message) error {
		for ev, err := range r.Run(ctx, key, in) {
			if err != nil {
				return err
			}
			if f, ok := ev.(agent.Compacting); ok && f.Cut.Asks {
				got.asking++
			}
			if l, ok := ev.(agent.Learnt); ok {
				mu.Lock()
				budget.Window, budget.Reserve = l.Window, min(budget.Reserve, l.Window/4)
				mu.Unlock()
			}
		}
		return nil
	}
	// Turns take seconds where models are real: the background keeps up.
	rest := func() {
		for !r.Idle() {
			time.Sleep(200 * time.Microsecond)
		}
	}
	code := func(i int) string { return fmt.Sprintf("%c%04d-%c%d", 'A'+i%26, 1000+i*37, 'a'+i%26, i) }
	every := max(1, n/facts)
	for i := range n {
		text := fmt.Sprintf("Question %d: %s?", i, prose(a.rand, 10+a.rand.IntN(60)))
		if i%every == 0 && i/every < facts {
			text = fmt.Sprintf("Remember that the code of door %d is %s.\n%s", i/every, code(i/every), text)
		}
		err := one(llm.UserText(text))
		for try := 0; err != nil; try++ {
			var full *agent.FullError
			if a.bad != nil || errors.As(err, &full) || !errors.Is(err, llm.ErrBusy) || try > 40 {
				t.Fatalf("turn %d: %v (%v)", i, err, a.bad)
			}
			got.failed++
			err = one(llm.Message{})
		}
		rest()
	}
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	info, err := session.Current(ctx, st, key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Replay(info.ID, st.Read(ctx, info.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	req := window.Build(s, prompt, window.Loose)
	var sent strings.Builder
	for _, m := range req.Messages {
		sent.WriteString(m.Text())
	}
	for _, rec := range s.Branch {
		switch b := rec.Body.(type) {
		case session.Compaction:
			if compact.DetailsOf(b).Extract {
				got.extracts++
			}
		case session.Checkpoint:
			got.checkpoints++
		}
	}
	ix, err := recall.Open(recall.Options{Store: st, Path: filepath.Join(t.TempDir(), "index.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for i := range facts {
		in := strings.Contains(sent.String(), code(i))
		if in {
			got.context++
		}
		res, err := ix.Search(ctx, recall.Query{Text: fmt.Sprintf("What is the code of door %d?", i), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if in || slices.ContainsFunc(res.Hits, func(h recall.Hit) bool { return strings.Contains(h.Text, code(i)) }) {
			got.found++
		}
	}
	got.turns, got.compactions, got.summaries, got.refused = s.Turns, s.Compactions, a.summaries, a.refused
	return got
}

// Long sessions on small and large windows, with models that are not what
// they should be. GOCLAW_TURNS=3000 is the whole of it; see docs/lab/window.md.
func TestLongSessions(t *testing.T) {
	n := 120
	if v, err := strconv.Atoi(os.Getenv("GOCLAW_TURNS")); err == nil && v > 0 {
		n = v
	}
	t.Logf("%-24s %7s %6s %12s %7s %9s %12s %6s %8s %7s %11s %6s", "model", "window", "turns", "compactions", "asking", "extracts", "checkpoints", "calls", "refused", "failed", "in context", "found")
	for _, m := range []struct {
		name string
		of   func(w int) *actor
	}{
		{"overflows late", func(w int) *actor { return &actor{real: w * 85 / 100, tokenSkew: 10} }},
		{"empty summaries", func(w int) *actor { return &actor{real: w, empty: true} }},
		{"fails half of the time", func(w int) *actor { return &actor{real: w, fails: 2} }},
		{"wrong advertised window", func(w int) *actor { return &actor{real: w / 2, tells: true, tokenSkew: -10} }},
	} {
		for _, w := range []int{8_000, 32_000, 200_000} {
			a := m.of(w)
			got := live(t, a, w, n)
			t.Logf("%-24s %7d %6d %12d %7d %9d %12d %6d %8d %7d %11d %6d", m.name, w, got.turns, got.compactions, got.asking, got.extracts, got.checkpoints, got.summaries, got.refused, got.failed, got.context, got.found)
			if got.turns != n || got.found != facts {
				t.Errorf("%s on %d: %d turns, %d facts found", m.name, w, got.turns, got.found)
			}
			if limit := n/4 + 4; got.compactions > limit {
				t.Errorf("%s on %d: %d compactions in %d turns", m.name, w, got.compactions, n)
			}
		}
	}
}
