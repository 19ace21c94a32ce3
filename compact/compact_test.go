package compact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/compact"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// byWord counts words: sizes in these tests can be read off.
type byWord struct{}

func (byWord) Count(text string) int { return len(strings.Fields(text)) }

func words(n int) string { return strings.TrimSpace(strings.Repeat("w ", n)) }

var prompt = window.Prompt{Provider: "a", Model: "m"}

// turns is n exchanges of about size words each.
func turns(n, size int) []session.Body {
	var log []session.Body
	for i := range n {
		log = append(log, User(fmt.Sprintf("question %d %s", i+1, words(size/2-6))), Answer(fmt.Sprintf("answer %d %s", i+1, words(size/2-6))))
	}
	return log
}

func plan(t *testing.T, w int, o compact.Options, log ...session.Body) (compact.Cut, bool) {
	t.Helper()
	return compact.Plan(Replay(t, log...), prompt, byWord{}, window.Budget{Window: w, Reserve: w / 10}, o)
}

func TestPlan(t *testing.T) {
	long := turns(20, 100)
	giant := append(turns(3, 100), User("do it"))
	for i := range 12 {
		id := fmt.Sprint("c", i)
		giant = append(giant, Call(id, "read"), Result(id, words(200)))
	}
	open := append(turns(6, 100), User("go"), Call("x", "read"))
	for _, c := range []struct {
		name   string
		window int
		log    []session.Body
		o      compact.Options
		keep   string // "": no cut; a question that stands alone and where the rest goes on
	}{
		{"a fifth stays, from a turn on", 2000, long, compact.Options{}, "e33"},
		{"half stays if that is asked for", 4000, long, compact.Options{Keep: 50}, "e21"},
		{"at least four messages", 4000, turns(20, 12), compact.Options{Keep: 1, Force: true}, "e37"},
		{"nothing to compact", 2000, turns(1, 100), compact.Options{Force: true}, ""},
		{"too little to help", 2000, append([]session.Body{User("a")}, turns(2, 400)...), compact.Options{}, ""},
		{"a giant turn is cut between two pairs", 2400, giant, compact.Options{}, "e7 e26"},
		{"never behind a call that waits", 2000, open, compact.Options{}, "e9"},
		{"a message that is too long goes when the next one is there", 2000, []session.Body{User(words(3000)), Answer("too long"), User("never mind")}, compact.Options{}, "e2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := plan(t, c.window, c.o, c.log...)
			if !ok {
				got.Keep = ""
			}
			if got.Resume != "" {
				got.Keep += " " + got.Resume
			}
			if got.Keep != c.keep {
				t.Errorf("kept from %q, want %q (%d compacted, %d kept, %d tokens before, %d after)", got.Keep, c.keep, got.Compacted, got.Kept, got.Before, got.After)
			}
		})
	}
}

// summary is a model's answer in the form asked for.
func summary(text string, more ...string) string {
	v := map[string]any{"task": "other", "summary": text, "decisions": more}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func model(steps ...llmtest.Step) (compact.Chain, *llmtest.Model) {
	m := llmtest.New(steps...)
	m.Rest = llmtest.Fail(errors.New("no more steps"))
	return compact.Chain{{Provider: m, Name: "cheap", Window: 8000, Tokens: byWord{}}}, m
}

func compaction(t *testing.T, c compact.Cut, sum compact.Summarizer) (session.Compaction, compact.Summary) {
	t.Helper()
	comp, err := c.Compact(context.Background(), sum)
	if err != nil {
		t.Fatal(err)
	}
	return comp, compact.Parse(comp.Summary)
}

func TestCompactByModel(t *testing.T) {
	log := append([]session.Body{User("Build the parser for port 8443"), Answer("ok")}, turns(20, 100)...)
	c, ok := plan(t, 2000, compact.Options{}, log...)
	if !ok {
		t.Fatal("no cut")
	}
	sum, m := model(llmtest.Say(summary("they asked twenty questions and all of them were answered", "use Go")))
	comp, s := compaction(t, c, sum)
	if comp.FirstKept != c.Keep || comp.TokensBefore != c.Before || comp.FromCheckpoint != "" {
		t.Errorf("%+v", comp)
	}
	if s.Task != "Build the parser for port 8443" {
		t.Errorf("the task became %q", s.Task)
	}
	if d := cmp.Diff([]string{"use Go"}, s.Decisions); d != "" {
		t.Error(d)
	}
	if d := compact.DetailsOf(comp); d.By != "cheap" || d.Extract || d.Compacted != c.Compacted {
		t.Errorf("details %+v", d)
	}
	if comp.Usage.Total() == 0 || len(m.Requests()) != 1 {
		t.Errorf("usage %+v after %d calls", comp.Usage, len(m.Requests()))
	}
}

func TestWhatIsRejectedIsAskedForOnce(t *testing.T) {
	good := summary("a summary that says what happened in the conversation so far")
	for _, c := range []struct {
		name    string
		answers []string
		calls   int
		extract bool
	}{
		{"good", []string{good}, 1, false},
		{"fenced, with talk around it", []string{"Sure!\n```json\n" + good + "\n```"}, 1, false},
		{"torn", []string{good[:len(good)-9]}, 1, false},
		{"empty, then good", []string{"{}", good}, 2, false},
		{"blank, then good", []string{summary(""), good}, 2, false},
		{"too long, then good", []string{summary(words(5000)), good}, 2, false},
		{"plain text is taken the second time", []string{"They talked about many things and settled them.", "They talked about many things and settled them."}, 2, false},
		{"empty twice", []string{"{}", "{}"}, 2, true},
		{"nothing but silence", []string{"NO_REPLY", "NO_REPLY"}, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut, ok := plan(t, 2000, compact.Options{}, turns(20, 100)...)
			if !ok {
				t.Fatal("no cut")
			}
			var steps []llmtest.Step
			for _, a := range c.answers {
				steps = append(steps, llmtest.Say(a))
			}
			sum, m := model(steps...)
			comp, s := compaction(t, cut, sum)
			if n := len(m.Requests()); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			if got := compact.DetailsOf(comp).Extract; got != c.extract {
				t.Errorf("extract = %v: %s", got, comp.Summary)
			}
			if c.extract != strings.HasPrefix(comp.Summary, compact.Extracted) {
				t.Errorf("marked: %s", comp.Summary)
			}
			if s.Task == "" || s.Text == "" {
				t.Errorf("incomplete: %+v", s)
			}
		})
	}
}

func TestMainModelAfterTheCheapOne(t *testing.T) {
	cut, _ := plan(t, 2000, compact.Options{}, turns(20, 100)...)
	bad := &llmtest.Model{Rest: llmtest.Fail(llm.ErrBusy)}
	good := llmtest.New(llmtest.Say(summary("the main model says what happened before")))
	comp, _ := compaction(t, cut, compact.Chain{{Provider: bad, Name: "cheap"}, {Provider: good, Name: "main"}})
	if by := compact.DetailsOf(comp).By; by != "main" {
		t.Errorf("made by %q", by)
	}
}

func TestNoModelAtAllMakesAnExtract(t *testing.T) {
	log := append([]session.Body{
		User("Write a billing service in Go for the Berlin office."), Answer("I will start."),
		User("It must never log card numbers."), Answer("Agreed. We decided to use PostgreSQL 16 on db-berlin-7."),
		User("Which port?"), Answer("Shall I take port 8443?"),
	}, turns(12, 100)...)
	cut, ok := plan(t, 1600, compact.Options{}, log...)
	if !ok {
		t.Fatal("no cut")
	}
	comp, s := compaction(t, cut, nil)
	if s.Task != "Write a billing service in Go for the Berlin office." {
		t.Errorf("task %q", s.Task)
	}
	for _, want := range []string{"never log card numbers", "PostgreSQL 16", "db-berlin-7", "8443"} {
		if !strings.Contains(comp.Summary, want) {
			t.Errorf("%q is lost in\n%s", want, comp.Summary)
		}
	}
	if d := compact.DetailsOf(comp); !d.Extract || d.By != "extract" || d.Problem == "" {
		t.Errorf("details %+v", d)
	}
}

// Improved later: a new record, which keeps what the extract kept.
func TestExtractIsImprovedByANewRecord(t *testing.T) {
	s := Replay(t, turns(20, 100)...)
	b := window.Budget{Window: 2000, Reserve: 200}
	c, _ := compact.Plan(s, prompt, byWord{}, b, compact.Options{})
	clock := &Clock{}
	apply := func(b session.Body) {
		if err := s.Apply(s.Next(b, clock)); err != nil {
			t.Fatal(err)
		}
	}
	comp, _ := compaction(t, c, nil)
	apply(comp)
	apply(User("and now?"))
	apply(Answer("on we go"))
	if !compact.IsExtract(s) {
		t.Fatal("not marked as an extract")
	}
	again, ok := compact.Again(s, prompt, byWord{}, b)
	if !ok {
		t.Fatal("nothing to improve")
	}
	if _, err := again.Improve(context.Background(), nil); !errors.Is(err, compact.ErrNoSummary) {
		t.Errorf("without a model: %v", err)
	}
	sum, m := model(llmtest.Say(summary("twenty questions were asked and answered one after the other")))
	better, err := again.Improve(context.Background(), sum)
	if err != nil {
		t.Fatal(err)
	}
	if better.FirstKept != comp.FirstKept || !strings.Contains(m.Requests()[0].Messages[0].Text(), "question 1 ") {
		t.Errorf("kept from %q, want %q; asked %.300s", better.FirstKept, comp.FirstKept, m.Requests()[0].Messages[0].Text())
	}
	apply(better)
	req := window.Build(s, prompt, window.Loose)
	if text := req.Messages[0].Text(); strings.Contains(text, compact.Extracted) || !strings.Contains(text, "one after the other") {
		t.Errorf("sent: %.300s", text)
	}
	if compact.IsExtract(s) {
		t.Error("still an extract")
	}
	if last := req.Messages[len(req.Messages)-1].Text(); last != "on we go" {
		t.Errorf("ends with %q", last)
	}
}

func TestCheckpointSparesTheCall(t *testing.T) {
	log := append(turns(14, 100), Checkpoint("## Task\nthe task\n\n## Summary\nfourteen questions", "e28"))
	log = append(log, turns(4, 100)...)
	c, ok := plan(t, 2000, compact.Options{}, log...)
	if !ok || c.Asks || c.From != "e29" {
		t.Fatalf("%v %+v", ok, c)
	}
	if c.Keep != "e30" {
		t.Errorf("kept from %s: every record after the checkpoint must stay", c.Keep)
	}
	sum, m := model()
	comp, s := compaction(t, c, sum)
	if len(m.Requests()) != 0 || comp.FromCheckpoint != "e29" || s.Task != "the task" || !strings.Contains(s.Text, "fourteen") {
		t.Errorf("%d calls, %+v", len(m.Requests()), comp)
	}
}

// What came after the checkpoint is too much: both become one summary.
func TestCheckpointAndThePartAfterIt(t *testing.T) {
	log := append(turns(20, 100), Checkpoint("## Task\nthe task\n\n## Decisions\n- use port 8443\n\n## Summary\ntwenty questions were answered", "e40"))
	log = append(log, turns(17, 100)...)
	c, ok := plan(t, 2000, compact.Options{}, log...)
	if !ok || !c.Asks || c.From != "e41" {
		t.Fatalf("%v %+v", ok, c)
	}
	sum, m := model(llmtest.Say(summary("then there were some more")))
	comp, s := compaction(t, c, sum)
	asked := m.Requests()[0].Messages[0].Text()
	if strings.Count(asked, "question 1 ") != 1 || !strings.Contains(asked, "twenty questions were answered") {
		t.Errorf("the part before the checkpoint was sent again, or its summary was not: %.400s", asked)
	}
	if comp.FromCheckpoint != "e41" || !strings.Contains(s.Text, "some more") || !strings.Contains(s.Text, "twenty questions") || len(s.Decisions) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestCheckpointIsNotUsedIfItCoversLessThanHalf(t *testing.T) {
	log := append(turns(5, 100), Checkpoint("## Summary\nfive", "e10"))
	log = append(log, turns(15, 100)...)
	if c, ok := plan(t, 2400, compact.Options{}, log...); !ok || c.From != "" || !c.Asks {
		t.Errorf("%v %+v", ok, c)
	}
	if c, ok := plan(t, 2400, compact.Options{NoCheckpoints: true}, append(turns(18, 100), append([]session.Body{Checkpoint("## Summary\nall", "e36")}, turns(2, 100)...)...)...); !ok || c.From != "" {
		t.Errorf("not wanted: %v %+v", ok, c)
	}
	// It is still better than nothing.
	c, _ := plan(t, 2400, compact.Options{}, log...)
	comp, s := compaction(t, c, nil)
	if comp.FromCheckpoint != "e11" || !strings.Contains(s.Text, "five") {
		t.Errorf("%+v", comp)
	}
}

func TestPiecesWhereTheSummaryWouldOverflow(t *testing.T) {
	log := append([]session.Body{User("the giant " + strings.Repeat("alpha ", 6000) + "omega-99")}, turns(20, 100)...)
	c, ok := plan(t, 9000, compact.Options{}, log...)
	if !ok {
		t.Fatal("no cut")
	}
	n := 0
	m := &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		if k := (byWord{}).Count(req.Messages[0].Text()); k > 1500 {
			return llmtest.Fail(&llm.OverflowError{})(ctx, req)
		}
		n++
		return llmtest.Say(summary(fmt.Sprintf("part %d tells its own story in so many words", n)))(ctx, req)
	}}
	comp, s := compaction(t, c, compact.Chain{{Provider: m, Name: "cheap", Window: 4000, Tokens: byWord{}}})
	if n < 5 || compact.DetailsOf(comp).Extract {
		t.Errorf("%d pieces: %s", n, comp.Summary)
	}
	if !strings.Contains(s.Text, fmt.Sprintf("part %d", n)) {
		t.Errorf("the last part is not in %q", s.Text)
	}
	seen := 0
	for _, r := range m.Requests() {
		seen += strings.Count(r.Messages[0].Text(), "omega-99")
	}
	if seen == 0 {
		t.Error("the end of the giant message was never summarised")
	}
}

func TestSummaryKeepsWhatMustNotBeLost(t *testing.T) {
	pin := "PIN: the vault code is 7-4-1-1\n## not a heading\nline three"
	log := append([]session.Body{User("Be my admin."), User(pin), Answer("noted"), User("by the way, the host db-berlin-7 is for Ana"), Answer("noted")}, turns(20, 100)...)
	log = append(log, User("unanswered wish: rename the bucket"), Stopped(llm.StopAborted, Answer("I")))
	log = append(log, turns(8, 100)...)
	log = append(log, User("is db-berlin-7 up?"), Answer("yes"), Pin("e2"))
	c, ok := plan(t, 2000, compact.Options{}, log...)
	if !ok {
		t.Fatal("no cut")
	}
	sum, _ := model(llmtest.Say(summary("a summary that forgets everything that matters to the user")))
	comp, s := compaction(t, c, sum)
	if d := cmp.Diff([]compact.Pinned{{ID: "e2", Text: pin}}, s.Pinned); d != "" {
		t.Errorf("pinned (-want +got)\n%s", d)
	}
	if !strings.Contains(comp.Summary, pin) {
		t.Error("the pin is not word for word")
	}
	if !strings.Contains(strings.Join(s.Identifiers, "\n"), "db-berlin-7: by the way, the host db-berlin-7 is for Ana") {
		t.Errorf("identifiers %q", s.Identifiers)
	}
	if len(s.Requests) == 0 || !strings.Contains(s.Requests[len(s.Requests)-1], "rename the bucket") {
		t.Errorf("open requests %q", s.Requests)
	}
}

// The question of a turn that is cut in two stays the user's own message, word
// for word, however often the turn is cut; the summary does not repeat it.
func TestQuestionOfASplitTurnStays(t *testing.T) {
	const question = "refactor module X-17 completely\n\nand  keep   the spaces"
	echo := compact.Chain{{Provider: &llmtest.Model{Rest: llmtest.Say(`{"summary":"files were read one by one","openRequests":["refactor module X-17 completely and keep the spaces"]}`)}, Name: "m", Window: 9000, Tokens: byWord{}}}
	for name, sum := range map[string]compact.Summarizer{"a model": echo, "no model": nil} {
		s := Replay(t, append(turns(2, 100), User(question))...)
		clock := &Clock{Seed: 7}
		apply := func(body session.Body) {
			t.Helper()
			if err := s.Apply(s.Next(body, clock)); err != nil {
				t.Fatal(err)
			}
		}
		compactions := 0
		for i := range 30 {
			id := fmt.Sprint("c", i)
			apply(Call(id, "read_file", fmt.Sprintf(`{"path":"f%d.go"}`, i)))
			apply(Result(id, words(200)))
			b := window.Measure(s, prompt, byWord{}, window.Budget{Window: 2400, Reserve: 240})
			if !b.Full() {
				continue
			}
			before := window.Build(s, prompt, window.Loose)
			c, ok := compact.Plan(s, prompt, byWord{}, b, compact.Options{})
			if !ok {
				t.Fatalf("%s: no cut at %d tokens", name, b.Used)
			}
			comp, parsed := compaction(t, c, sum)
			apply(comp)
			compactions++
			if len(parsed.Requests) != 0 {
				t.Errorf("%s: open requests %q", name, parsed.Requests)
			}
			if len(parsed.Read) == 0 {
				t.Errorf("%s: no file is told of", name)
			}
			after := window.Build(s, prompt, window.Loose)
			if window.CountRequest(after, byWord{}) >= window.CountRequest(before, byWord{}) {
				t.Errorf("%s: the compaction made the context larger", name)
			}
			if got := after.Messages[0].Blocks; len(got) != 2 || got[1] != (llm.Text{Text: question}) {
				t.Errorf("%s: the request begins with %q", name, got)
			}
			if err := llmtest.Validate(after); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if compactions < 2 {
			t.Errorf("%s: %d compactions: the test shows nothing", name, compactions)
		}
	}
}

// What the user said before the question, and was not answered either, stays
// with it, unless it is long.
func TestQuestionsInARowStay(t *testing.T) {
	log := append(turns(2, 100), User("refactor module X-17"), Stopped(llm.StopAborted, Answer("I")), User("Go on."))
	for i := range 12 {
		id := fmt.Sprint("c", i)
		log = append(log, Call(id, "read_file"), Result(id, words(200)))
	}
	c, ok := plan(t, 2400, compact.Options{}, log...)
	if !ok || c.Keep != "e5" || c.Resume == "" {
		t.Errorf("%v: keeps %q, resumes at %q", ok, c.Keep, c.Resume)
	}
	log[4] = User("read this: " + words(800))
	c, ok = plan(t, 2400, compact.Options{}, log...)
	if !ok || c.Keep != "e7" {
		t.Errorf("with a long one: %v: keeps %q, resumes at %q", ok, c.Keep, c.Resume)
	}
}

// A summary that would be longer than what it replaces is not made.
func TestCompactionNeverMakesTheContextLarger(t *testing.T) {
	long := compact.Chain{{Provider: &llmtest.Model{Rest: llmtest.Say(summary(strings.Repeat("a very long story of what was said ", 300)))}, Name: "m", Window: 90000, Tokens: byWord{}}}
	made, refused := 0, 0
	for n := 2; n < 30; n++ {
		for size := 14; size < 60; size += 5 {
			log := turns(n, size)
			for i := range n / 3 {
				log = append(log, Pin(fmt.Sprint("e", 2*i+1)))
			}
			s := Replay(t, log...)
			c, ok := compact.Plan(s, prompt, byWord{}, window.Budget{Window: 40_000, Reserve: 400}, compact.Options{Force: true})
			if !ok {
				continue
			}
			before := window.CountRequest(window.Build(s, prompt, window.Loose), byWord{})
			comp, err := c.Compact(context.Background(), long)
			var larger *compact.LargerError
			if errors.As(err, &larger) {
				refused++
				if larger.After < larger.Before {
					t.Errorf("%d turns of %d: %v", n, size, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			made++
			if err := s.Apply(s.Next(comp, &Clock{Seed: 3})); err != nil {
				t.Fatal(err)
			}
			if after := window.CountRequest(window.Build(s, prompt, window.Loose), byWord{}); after >= before || comp.TokensAfter >= comp.TokensBefore {
				t.Errorf("%d turns of %d: %d tokens before, %d after; the record says %d and %d", n, size, before, after, comp.TokensBefore, comp.TokensAfter)
			}
		}
	}
	if made == 0 {
		t.Errorf("%d compactions made, %d refused: the test shows nothing", made, refused)
	}
}

// compactions compacts s n times with turns between, and returns it.
func compactions(t *testing.T, n int, sum compact.Summarizer, first ...session.Body) *session.Session {
	t.Helper()
	s := Replay(t, append(first, turns(20, 100)...)...)
	clock := &Clock{}
	b := window.Budget{Window: 2400, Reserve: 240}
	for range n {
		c, ok := compact.Plan(s, prompt, byWord{}, b, compact.Options{})
		if !ok {
			t.Fatal("no cut")
		}
		comp, err := c.Compact(context.Background(), sum)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range append([]session.Body{comp}, turns(16, 100)...) {
			if err := s.Apply(s.Next(body, clock)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func TestCompactingTwiceKeepsTheFirstSummary(t *testing.T) {
	first := []session.Body{User("Migrate the Berlin ledger to schema v7.3"), Answer("We decided to use two-phase commits."), User("You must never touch table audit_log."), Answer("ok")}
	forgetful := compact.Chain{{Provider: &llmtest.Model{Rest: llmtest.Say(summary("only the last few questions are told here"))}, Name: "m", Tokens: byWord{}}}
	for name, sum := range map[string]compact.Summarizer{"no model": nil, "a model that forgets": forgetful} {
		s := compactions(t, 3, sum, first...)
		at, _, _ := s.Compaction()
		got := compact.Parse(s.Branch[at].Body.(session.Compaction).Summary)
		if got.Task != "Migrate the Berlin ledger to schema v7.3" {
			t.Errorf("%s: the task became %q", name, got.Task)
		}
		if sum == nil && !strings.Contains(strings.Join(got.Constraints, "\n"), "audit_log") {
			t.Errorf("%s: constraints %q", name, got.Constraints)
		}
		if sum == nil && !strings.Contains(strings.Join(got.Decisions, "\n"), "two-phase") {
			t.Errorf("%s: decisions %q", name, got.Decisions)
		}
	}
}

func TestPinsSurviveEveryCompaction(t *testing.T) {
	s := compactions(t, 4, nil, User("remember the word xylophone-42 for me"), Answer("ok"), Pin("e1"))
	if text := window.Build(s, prompt, window.Loose).Messages[0].Text(); strings.Count(text, "remember the word xylophone-42 for me") < 1 || !strings.Contains(text, `<pinned id="e1"`) {
		t.Errorf("the pin is gone from\n%s", text)
	}
}

func TestUndoBringsThePastBack(t *testing.T) {
	s := compactions(t, 1, nil)
	at, _, _ := s.Compaction()
	if err := s.Apply(s.Next(session.Undo{Target: s.Branch[at].ID}, &Clock{Seed: 9})); err != nil {
		t.Fatal(err)
	}
	req := window.Build(s, prompt, window.Loose)
	if first := req.Messages[0].Text(); !strings.HasPrefix(first, "question 1 ") {
		t.Errorf("begins with %.80q", first)
	}
	if len(req.Messages) != 2*36 {
		t.Errorf("%d messages", len(req.Messages))
	}
}

func TestDue(t *testing.T) {
	o := compact.Options{Percents: []int{25, 50, 75}, Turns: 15, MinTokens: 100}
	cp := func(tokens int, covers string) session.Checkpoint {
		return session.Checkpoint{Summary: "s", Covers: covers, Tokens: tokens}
	}
	for _, c := range []struct {
		name string
		used int
		log  []session.Body
		want bool
	}{
		{"little said", 240, turns(3, 20), false},
		{"a quarter", 250, turns(3, 20), true},
		{"below the least", 90, turns(30, 20), false},
		{"made at a quarter", 400, append(turns(3, 20), append([]session.Body{cp(260, "e6")}, turns(3, 20)...)...), false},
		{"the half", 500, append(turns(3, 20), append([]session.Body{cp(260, "e6")}, turns(3, 20)...)...), true},
		{"fifteen messages", 200, turns(15, 20), true},
		{"fourteen", 200, turns(14, 20), false},
		{"those said while it was made count", 300, append(turns(15, 20), cp(260, "e2"), User("x"), Answer("y")), true},
		{"a compaction restarts the count", 300, append(turns(15, 20), Compaction("s", "e29"), User("x"), Answer("y")), false},
		{"and counts again", 300, append(turns(15, 20), append([]session.Body{Compaction("s", "e29")}, turns(2, 20)...)...), true},
	} {
		if got := compact.Due(Replay(t, c.log...), window.Budget{Window: 1000, Used: c.used}, o); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestCheckpointOfASnapshot(t *testing.T) {
	s := Replay(t, turns(6, 100)...)
	b := window.Budget{Window: 2000, Reserve: 200}
	c, ok := compact.Snapshot(s, prompt, byWord{}, b)
	if !ok {
		t.Fatal("no snapshot")
	}
	if err := s.Apply(s.Next(User("later"), &Clock{})); err != nil {
		t.Fatal(err)
	}
	sum, _ := model(llmtest.Say(`{"summary":"six questions were answered","topics":["questions"],"key_decisions":"answer all","open_questions":["why?"]}`))
	cp, err := c.Checkpoint(context.Background(), sum)
	if err != nil {
		t.Fatal(err)
	}
	want := session.Checkpoint{Summary: cp.Summary, Topics: []string{"questions"}, Decisions: []string{"answer all"}, Questions: []string{"why?"}, Covers: "e12", Tokens: c.Before, Messages: 12, Model: "cheap", Usage: cp.Usage}
	if d := cmp.Diff(want, cp); d != "" {
		t.Error(d)
	}
	if cp.Usage.Input == 0 || cp.Usage.Output == 0 {
		t.Errorf("making it took %+v", cp.Usage)
	}
	if got := compact.Parse(cp.Summary); got.Text != "six questions were answered" || !strings.HasPrefix(got.Task, "question 6 ") {
		t.Errorf("%+v", got)
	}
	if _, err := c.Checkpoint(context.Background(), compact.Chain{}); !errors.Is(err, compact.ErrNoSummary) {
		t.Errorf("without a model: %v", err)
	}
}

func TestDryRun(t *testing.T) {
	log := append([]session.Body{User("Deploy to host-17"), Answer("The secret is in /etc/vault/key-9.pem, build 4711.")}, turns(20, 100)...)
	c, ok := plan(t, 2000, compact.Options{}, log...)
	if !ok {
		t.Fatal("no cut")
	}
	r := c.DryRun()
	if r.Compacted+r.Kept != 42 || !r.Asks || r.Cost.Input < 1000 || r.Before <= r.After || r.Preview == "" {
		t.Errorf("%+v", r)
	}
	for _, id := range r.Lost {
		if strings.Contains(r.Preview, id) {
			t.Errorf("%q is not lost", id)
		}
	}
}

// What the turns say of themselves adds up to what the report says.
func TestDryRunTellsOfEachTurn(t *testing.T) {
	log := append(turns(20, 100), Pin("e3"))
	c, ok := plan(t, 2000, compact.Options{}, log...)
	if !ok {
		t.Fatal("no cut")
	}
	r := c.DryRun()
	var gone, kept, stays, pinned int
	for i, turn := range r.Turns {
		switch {
		case turn.Stays == 0:
			gone++
		case turn.Stays == turn.Tokens:
			kept++
		}
		if i > 0 && r.Turns[i-1].Stays > 0 && turn.Stays == 0 {
			t.Errorf("turn %d goes, the one before stays", i)
		}
		if i > 0 && turn.Seq <= r.Turns[i-1].Seq || turn.Text == "" {
			t.Errorf("turn %d: %+v", i, turn)
		}
		stays += turn.Stays
		pinned += turn.Pinned
	}
	if len(r.Turns) != 20 || 2*gone != r.Compacted || 2*kept != r.Kept || pinned != 1 || r.Pinned != 1 || r.Summary <= 0 || stays+r.Summary > r.After {
		t.Errorf("%d go, %d stay, %d tokens stay, %d pins: %+v", gone, kept, stays, pinned, r)
	}
}

func TestSummaryIsReadBack(t *testing.T) {
	s := compact.Summary{Task: "do\n## this", Text: "one\ntwo", Topics: []string{"t"}, Constraints: []string{"c1", "c2\nsecond line"}, Decisions: []string{"d"}, Requests: []string{"r"},
		Questions: []string{"q?"}, Read: []string{"a.go"}, Written: []string{"b.go"}, Identifiers: []string{"x-1"}, Pinned: []compact.Pinned{{"e1", "## Task\n</pinned>\n\nx"}, {"e\"2", ""}}}
	got := compact.Parse(s.String())
	s.Task = "do\n### this"
	if d := cmp.Diff(s, got); d != "" {
		t.Error(d)
	}
	theirs := compact.Parse("## Goal\nport it\n\n## Progress\n### Done\n- x\n\n## Key Decisions\n- **A**: b\n\n## Next Steps\n1. go on")
	if theirs.Task != "port it" || len(theirs.Decisions) != 1 || !strings.Contains(theirs.Text, "go on") || !strings.Contains(theirs.Text, "- x") {
		t.Errorf("%+v", theirs)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("## Task\nx\n## Pinned\n<pinned id=\"a\" bytes=\"3\">\nabc\n</pinned>\n")
	f.Add("<pinned id=\"a\" bytes=\"-1\">\n")
	f.Fuzz(func(t *testing.T, text string) {
		once := compact.Parse(text)
		if twice := compact.Parse(once.String()); !cmp.Equal(once.Pinned, twice.Pinned) || len(once.Decisions) != len(twice.Decisions) {
			t.Errorf("%q: %+v became %+v", text, once, twice)
		}
	})
}

func TestIdentifiers(t *testing.T) {
	text := "See https://x.io/a?b=1. and `foo bar`, cmd/goclaw/main.go, README.md, MAX_SIZE, getUser, v1.2.3, #42, ABC-123, 10.0.0.1:8080, commit 93c01ef, the 4711 and bob@x.org but not this word."
	want := []string{"https://x.io/a?b=1", "foo bar", "cmd/goclaw/main.go", "README.md", "MAX_SIZE", "getUser", "v1.2.3", "#42", "ABC-123", "10.0.0.1:8080", "93c01ef", "4711", "bob@x.org"}
	if d := cmp.Diff(want, compact.Identifiers(text)); d != "" {
		t.Error(d)
	}
}
